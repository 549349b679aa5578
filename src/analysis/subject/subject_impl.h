/* SPDX-License-Identifier: MIT */
/*
 * The state of a mount with --analysis. Its commands: `mask` makes the cache
 * look smaller, `content` replaces images by others, `rates` returns counts of
 * reads.
 */
#ifndef SUBJECT_IMPL_H
#define SUBJECT_IMPL_H

#include <pthread.h>

#include "analysis/subject/kept_pages_impl.h"
#include "analysis/subject/stand_in.h"
#include "analysis/subject/subject_readers_impl.h"
#include "common/base/magic.h"
#include "mount/daemon/mount_hooks.h"

/* Number of entries in the table of files that are being read. Two files that
 * share an entry are rarely read at the same time. */
#define FILES_BEGUN (1U << 20)

/* Pages of larger files do not stay: such files are read in parts, and the
 * daemon must see each part. */
#define SUBJECT_STAYS_MAX ((uint64_t)4 << 20)

enum content {
	CONTENT_REAL,
	/* JPEGs are replaced by a tiny image, padded with zeros */
	CONTENT_TINY,
	CONTENT_LATE, /* like CONTENT_TINY, but each image is delayed */
	/* files are served unchanged but delayed, and no pages stay */
	CONTENT_REAL_LATE,
	/* an uncached file is replaced by a cached image of similar size */
	CONTENT_STAND_IN,
};

struct subject {
	uint32_t magic;
	pthread_mutex_t lock; /* held while `stand_ins` is being created */
	/* Set once, by begin(). */
	const struct mount_parts *parts;
	struct kept *kept;
	struct pages_keeper keeper;
	/* Set once. */
	pthread_key_t scratch; /* a struct store_scratch for each thread */
	struct mount_hooks hooks;
	struct fs_read_hook read_hook;
	struct ctl_command commands[4];
	struct cache_mask mask;	     /* its member is atomic */
	struct stand_ins *stand_ins; /* set before `standing` */
	/* Cached images replace others. Set with release, read with acquire. */
	atomic_bool standing;
	/* The members below are relaxed: no other data depends on them. */
	atomic_int content; /* enum content */
	atomic_uint late_us;
	struct readers readers;
	_Atomic uint64_t read_bytes;
	/* Number of reads of a file's first byte that got a tiny image, an
	 * image that stands in, or pages that had stayed. */
	_Atomic uint64_t tiny_reads;
	_Atomic uint64_t stand_in_reads;
	_Atomic uint64_t kept_reads;
	_Atomic uint64_t last_read_ns;
	atomic_bool drops;   /* have no pages stay */
	atomic_bool refused; /* a loader wanted to read without the mount */
	/* The content that a file's first READ got, at an index computed from
	 * the file. Its later READs get the same content, so that no image is a
	 * mixture. */
	atomic_uchar begun[FILES_BEGUN];
};

/* -- subject_read.c -------------------------------------------------------- */

/* Answer a READ, as struct fs_read_hook specifies. Returns true if it was
 * answered from another image; otherwise the fs answers it from the file. */
bool subject_read(void *arg, const struct cache_item *item, uint64_t off,
	size_t len, void *buf, pid_t thread);

/* May the pages of an item stay? The item must be a whole file that this cache
 * answered unchanged. A function for struct kept_config. */
bool subject_stays(void *arg, const struct cache_item *item);

/* Count a read of pages that had stayed. A function for struct kept_config. */
void subject_seen(void *arg, const struct cache_item *item);

/* Get the first item of a file, and return its key. */
struct hash128 subject_item(const struct subject *s,
	const struct cache_item *item, struct cache_item *first);

/* Does the name of the file say that it is an image? */
bool subject_has_image_name(struct subject *s, uint64_t cookie);

/* -- subject_commands.c: `arg` is a struct subject ------------------------- */

void command_mask(void *arg, struct ctl_conn *conn, const json_t *request);
void command_content(void *arg, struct ctl_conn *conn, const json_t *request);
void command_rates(void *arg, struct ctl_conn *conn, const json_t *request);

#endif
