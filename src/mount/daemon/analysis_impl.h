/* SPDX-License-Identifier: MIT */
/*
 * The state of a mount with --analysis. Its commands: `mask` makes the cache
 * look smaller, `content` replaces images by others, `rates` counts what is
 * read.
 */
#ifndef DAEMON_ANALYSIS_IMPL_H
#define DAEMON_ANALYSIS_IMPL_H

#include "mount/daemon/mount_impl.h"
#include "mount/daemon/stand_in.h"

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

struct analysis {
	pthread_mutex_t lock;	   /* guards the making of `stand_ins` */
	struct counters *counters; /* set once */
	struct store *store;	   /* set once */
	struct cache *cache;	   /* these two by analysis_begin() */
	struct pages *pages;
	struct manifest *manifest;
	pthread_key_t scratch;	     /* set once; struct store_scratch */
	struct fs_watch watch;	     /* set once */
	struct cache_mask mask;	     /* atomic */
	struct stand_ins *stand_ins; /* set before `standing` */
	/* Cached images are answered in place of others. Release, acquire. */
	atomic_bool standing;
	/* Relaxed, these: nothing else depends on them. */
	atomic_int content; /* enum content */
	atomic_uint late_us;
	struct readers readers;
	_Atomic uint64_t read_bytes;
	_Atomic uint64_t tiny_reads; /* of a file's first byte; and */
	_Atomic uint64_t stand_in_reads;
	_Atomic uint64_t kept_reads; /* of files whose pages had stayed */
	_Atomic uint64_t last_read_ns;
	atomic_bool drops;   /* no pages stay */
	atomic_bool refused; /* a loader wanted to read past the mount */
	/* The content that a file's first READ got, by a hash of the file:
	 * later ones get the same, so that no image is half tiny. */
	atomic_uchar begun[FILES_BEGUN];
};
/* The item that a file begins with, and its key. */
struct hash128 analysis_item(const struct analysis *a,
	const struct cache_item *item, struct cache_item *first);

/* Is the file an image by its name? */
bool analysis_has_image_name(struct analysis *a, uint64_t cookie);

#endif
