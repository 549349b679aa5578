/* SPDX-License-Identifier: MIT */
/* The parts of a run: the list of files, the units, the record, the report. */
#ifndef RECODE_RECODE_IMPL_H
#define RECODE_RECODE_IMPL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "common/base/array.h"
#include "common/format/jpeg_levels.h"
#include "loader/recode/recode.h"

/* The hidden record in the target, and the beginning of the names under which
 * files are written. */
#define RECORD_FILE ".refrain-recode"

/* Maximum length of the options as text, with a NUL. */
#define SETTINGS_MAX 80

/* A gain below this share of the bytes is none. */
#define GAIN_LEAST 0.05

/* -- recode_list.c: the files of the source -------------------------------- */

struct recode_file {
	size_t path; /* offset in `text` */
	uint64_t bytes;
	int64_t mtime_ns;
};

struct recode_list {
	struct array files; /* struct recode_file, sorted by path */
	struct array dirs;  /* size_t: offsets of paths; parents come first */
	struct array text;
	uint64_t bytes, links;
};

/*
 * List the regular files below a directory, through links, and all directories.
 * A recode.json, the record in the root, and lost+found are left out. Returns 0
 * or -errno with a message.
 */
int recode_list_make(
	struct recode_list *l, const char *source, struct error *err);
void recode_list_release(struct recode_list *l);

static inline size_t recode_list_count(const struct recode_list *l)
{
	return array_count(&l->files, sizeof(struct recode_file));
}

static inline const struct recode_file *recode_list_file(
	const struct recode_list *l, size_t i)
{
	return (const struct recode_file *)array_data(&l->files) + i;
}

static inline const char *recode_list_path(
	const struct recode_list *l, size_t i)
{
	return (const char *)array_data(&l->text) +
		recode_list_file(l, i)->path;
}

/* -- Units ----------------------------------------------------------------- */

struct recode_unit {
	size_t first, count; /* files of the list */
	/* hash of the unit's name, and of names, sizes and times of the files
	 */
	uint64_t key;
	uint64_t source_bytes;
	/* Set by the thread that makes the unit. The levels of a progressive
	 * file are those of jpeg_levels(); in a shard they are 0 */
	struct recode_counts counts;
	uint64_t level[JPEG_DROP_BITS_MAX];
	/* Release by the thread that has made the unit, or has found it in the
	 * record; acquire by others */
	_Atomic bool made;
	bool recorded; /* only used by the thread of recode_run() */
};

struct recode_job {
	const struct recode_options *o; /* set once, as all until `next` */
	struct recode_list list;
	struct recode_unit *units;
	size_t unit_count;
	int source_fd, target_fd;
	/* The options as text: for the record, and for marks, which are the
	 * same in files and in shards */
	char settings[SETTINGS_MAX], mark[SETTINGS_MAX];
	_Atomic size_t next;	       /* next unit for a thread; relaxed */
	_Atomic uint64_t files, bytes; /* finished ones, to show; relaxed */
	_Atomic bool stop;	       /* relaxed; a thread has failed */
	_Atomic unsigned running;      /* threads; release and acquire */
	pthread_mutex_t lock;
	struct error first;  /* guarded by the lock: the first failure */
	int status;	     /* guarded by the lock: its code */
	char first_odd[512]; /* guarded by the lock */
};

/* Name of the target's file: the source's, or a shard's. */
void recode_unit_name(const struct recode_job *j, const struct recode_unit *u,
	char name[PATH_MAX]);

/* The state of one thread. */
struct recode_worker {
	struct recode_job *j;
	struct transcoder *transcoder;
	uint8_t *data; /* a file of the source; only grows */
	size_t room;
	int fd;		    /* the file that is being written */
	uint64_t written;   /* its bytes so far */
	char temporary[48]; /* its name */
};

/* -- recode_unit.c --------------------------------------------------------- */

/* Returns 0 or -ENOMEM. */
int recode_worker_init(
	struct recode_worker *w, struct recode_job *j, unsigned number);
void recode_worker_release(struct recode_worker *w);

/* Make a unit, under its name in the target. Returns 0 or -errno with a
 * message. */
int recode_unit_make(
	struct recode_worker *w, struct recode_unit *u, struct error *err);

/* Is a result of `to` bytes worth keeping, from `from` bytes? */
bool recode_gains(const struct transcode_options *form,
	const struct transcode_info *info, size_t from, size_t to);

/* Read a whole file of the source into w->data; *bytes is its size. Returns 0,
 * or -errno with a message; -EAGAIN if it has changed since it was listed. */
int recode_read(struct recode_worker *w, size_t file, struct error *err);

/* -- recode_tar.c: the members of a shard ---------------------------------- */

/* Write the header of a member, fill its last block, and end the tar. *written
 * counts all bytes. Each returns 0 or -errno. */
int tar_put_header(int fd, const char *name, uint64_t bytes, int64_t mtime_s,
	uint64_t *written);
int tar_put_padding(int fd, uint64_t bytes, uint64_t *written);
int tar_put_end(int fd, uint64_t *written);

/* -- recode_record.c ------------------------------------------------------- */

/*
 * Read the record, and mark the units that it has and whose files are there.
 * Returns 0, or -errno with a message: the target is of something else, or of
 * other options.
 */
int record_load(struct recode_job *j, struct error *err);

/* Append the units that are made to the record, after all their bytes are on
 * disk. Returns 0 or -errno with a message. */
int record_append(struct recode_job *j, struct error *err);

/* Write the record anew, in the order of the units. */
int record_finish(struct recode_job *j, struct error *err);

/* -- recode_report.c ------------------------------------------------------- */

/* Write a file of the target at once: it is complete, or not there. */
int recode_write_file(struct recode_job *j, const char *name, const char *text,
	size_t bytes, struct error *err);

/* Compare a sample of re-coded images with the originals. */
int recode_measure(
	struct recode_job *j, struct recode_sample *out, struct error *err);

/* Write the index of the levels of a progressive target (doc/formats.md), for
 * `refrain mount --drop-bits`. */
int recode_index(struct recode_job *j, struct error *err);

/* Write recode.json. */
int recode_report(
	struct recode_job *j, const struct recode_result *r, struct error *err);

#endif
