/* SPDX-License-Identifier: MIT */
/*
 * Parses the first lines of memcached's answers to meta commands, `stats` and
 * `version`. Pure functions; the bytes are not trusted. Private to this room.
 */
#ifndef PEER_MEMCACHED_META_IMPL_H
#define PEER_MEMCACHED_META_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The maximum length of a line, including its end; a longer one is invalid. */
#define META_LINE_MAX 2048u

enum meta_kind {
	META_HD,      /* done */
	META_VA,      /* done; a value follows */
	META_EN,      /* no such key, to mg */
	META_NF,      /* no such key */
	META_NS,      /* not stored: it is there already */
	META_EX,      /* not stored: the key has changed */
	META_MN,      /* to mn */
	META_STAT,    /* one line of `stats`; more follow */
	META_END,     /* the end of the lines of `stats` */
	META_VERSION, /* to `version` */
	META_FULL,    /* SERVER_ERROR: out of memory */
	META_ERROR,   /* any other error */
};

struct meta_answer {
	enum meta_kind kind;
	uint32_t value_bytes; /* META_VA: without its CR LF */
	uint32_t opaque;      /* O; 0: none */
	uint64_t cas;	      /* c; 0: none */
	bool won;	      /* W: vivified, and it is ours */
	/* The text after the first word of STAT, VERSION and errors, in the
	 * caller's buffer, without a NUL. */
	const char *text;
	size_t text_bytes;
};

/* Parse the first line of `bytes`. Returns its length with its line end; 0 if
 * the line is not complete; -EBADMSG if it is not of the protocol, or announces
 * a value longer than value_max. */
ssize_t meta_parse(const void *bytes, size_t size, uint32_t value_max,
	struct meta_answer *out);

#endif
