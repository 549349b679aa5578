/* SPDX-License-Identifier: MIT */
/*
 * Parses the first lines of memcached's answers to meta commands, `stats` and
 * `version`. Pure functions; the bytes are not trusted.
 */
#ifndef MEMCACHED_META_H
#define MEMCACHED_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The maximum length of a line, including its end; a longer one is invalid. */
#define META_LINE_MAX 2048u

enum meta_kind {
	META_HD,      /* success */
	META_VA,      /* success; a value follows */
	META_EN,      /* answer to mg: no such key */
	META_NF,      /* no such key */
	META_NS,      /* not stored: the key exists already */
	META_EX,      /* not stored: the key has changed */
	META_MN,      /* answer to mn */
	META_STAT,    /* one line of `stats`; more follow */
	META_END,     /* the end of the lines of `stats` */
	META_VERSION, /* answer to `version` */
	META_FULL,    /* SERVER_ERROR: out of memory */
	META_ERROR,   /* any other error */
};

struct meta_answer {
	enum meta_kind kind;
	/* META_VA: length of the value without its CR LF */
	uint32_t value_bytes;
	uint32_t opaque; /* value of flag O; 0: none */
	uint64_t cas;	 /* value of flag c; 0: none */
	/* flag W: this request has created the key, so this client has the
	 * lease */
	bool won;
	/* The text after the first word of STAT, VERSION and errors, in the
	 * caller's buffer, without a NUL. */
	const char *text;
	size_t text_bytes;
};

/* Parse the first line of `bytes`. Returns its length with its line end; 0 if
 * the line is incomplete; or -EBADMSG if the line is not part of the protocol,
 * or announces a value longer than value_max. */
ssize_t meta_parse(const void *bytes, size_t size, uint32_t value_max,
	struct meta_answer *out);

#endif
