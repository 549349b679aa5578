/* SPDX-License-Identifier: MIT */
/*
 * The state of a mount with --analysis. Its commands: `mask` makes the cache
 * look smaller, `content` replaces images by others, `rates` counts what is
 * read.
 */
#ifndef SUBJECT_IMPL_H
#define SUBJECT_IMPL_H

#include <pthread.h>

#include "analysis/subject/kept_pages_impl.h"
#include "analysis/subject/stand_in.h"
#include "analysis/subject/subject_readers_impl.h"
#include "common/base/magic.h"
#include "mount/daemon/mount_hooks.h"

/* Entries of a table; files that share one are rarely read at the same moment.
 */
#define FILES_BEGUN (1U << 20)

enum content {
	CONTENT_REAL,
	CONTENT_TINY,	   /* JPEGs are a tiny image, padded with zeros */
	CONTENT_LATE,	   /* the same, later */
	CONTENT_REAL_LATE, /* as they are, later; no pages stay */
	CONTENT_STAND_IN,  /* of one file: a cached image of like size */
};

struct subject {
	uint32_t magic;
	pthread_mutex_t lock; /* guards the making of `stand_ins` */
	/* Set once, by begin(). */
	const struct mount_parts *parts;
	struct kept *kept;
	struct pages_keeper keeper;
	/* Set once. */
	pthread_key_t scratch; /* struct store_scratch */
	struct mount_hooks hooks;
	struct fs_read_hook read_hook;
	struct ctl_command commands[4];
	struct cache_mask mask;	     /* atomic */
	struct stand_ins *stand_ins; /* set before `standing` */
	/* Cached images are answered in place of others. Release, acquire. */
	atomic_bool standing;
	/* All below are relaxed: nothing else depends on them. */
	atomic_int content; /* enum content */
	atomic_uint late_us;
	struct readers readers;
	_Atomic uint64_t read_bytes;
	/* Reads of a file's first byte that got a tiny image, a stand-in, or
	 * pages that had stayed. */
	_Atomic uint64_t tiny_reads;
	_Atomic uint64_t stand_in_reads;
	_Atomic uint64_t kept_reads;
	_Atomic uint64_t last_read_ns;
	atomic_bool drops;   /* no pages stay */
	atomic_bool refused; /* a loader wanted to read past the mount */
	/* The content that a file's first READ got, by a hash of the file:
	 * later ones get the same, so that no image is half tiny. */
	atomic_uchar begun[FILES_BEGUN];
};
/* The item that a file begins with, and its key. */
struct hash128 subject_item(const struct subject *a,
	const struct cache_item *item, struct cache_item *first);

/* Is the file an image by its name? */
bool subject_has_image_name(struct subject *a, uint64_t cookie);

/* subject_commands.c; `arg` is a struct subject. */
void command_mask(void *arg, struct ctl_conn *conn, const json_t *request);
void command_content(void *arg, struct ctl_conn *conn, const json_t *request);
void command_rates(void *arg, struct ctl_conn *conn, const json_t *request);

#endif
