/* SPDX-License-Identifier: MIT */
/*
 * A look finds the contents of a dataset and fills its tables. The *driver* is
 * one thread that makes all calls that can hang, so that the caller of
 * dataset_open() can abandon it. It gives work to *workers*.
 */
#ifndef DATASET_LOOK_IMPL_H
#define DATASET_LOOK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/magic.h"
#include "common/base/thread_pool.h"
#include "loader/dataset/dataset_table_impl.h"

struct look {
	uint32_t magic;
	/* Set once, by the caller of dataset_open(). */
	char *path, *root;
	char *cache_dir; /* for catalogues; NULL: no catalogue */
	int source;
	uint32_t record_bytes, label_bytes;
	bool tokens; /* the files are tokens, cut into `windows` */
	struct token_windows windows;
	bool volumes; /* the files are arrays, of which `arrays` are crops */
	struct array_crops arrays;
	bool any_file;
	struct ds_members *members; /* NULL: none; the driver changes `found` */
	char *members_text;	    /* dataset_options.members; NULL: none */
	unsigned threads;
	int64_t start_ns; /* start of the look; CLOCK_REALTIME */

	/* Used only by the driver. */
	struct thread_pool *workers; /* set once */
	char *real, *real_root;	     /* set once; path and root without links */
	struct dataset *ds;
	uint64_t skipped; /* changed by look_skip(), as is the next member */
	char *first_skipped;

	_Atomic bool stop; /* relaxed; all jobs must end soon */
	/* For the caller that waits: the number of answers from the storage,
	 * and a constant string that says what the driver does now. Both are
	 * accessed relaxed. */
	_Atomic uint64_t answers;
	const char *_Atomic doing;
	pthread_mutex_t lock;
	/* signalled when `pending` has become 0, or `done` true */
	pthread_cond_t changed;
	unsigned pending; /* guarded by the lock: number of workers' jobs */
	bool done;	  /* guarded by the lock: the driver has finished */
	/* Guarded by the lock: the caller no longer waits, so the driver frees
	 * the look */
	bool abandoned;
	int status;	  /* guarded by the lock: 0, or the first failure */
	struct error err; /* guarded by the lock: its message */
};

static inline bool look_stopped(const struct look *l)
{
	return atomic_load_explicit(&l->stop, memory_order_relaxed);
}

/* Note that the storage has answered. Called by any thread. */
static inline void look_answered(struct look *l)
{
	(void)atomic_fetch_add_explicit(&l->answers, 1, memory_order_relaxed);
}

/* Set the text that says what the driver does next. It must make sense after
 * the word "while". Called by the driver. */
static inline void look_doing(struct look *l, const char *what)
{
	look_answered(l);
	atomic_store_explicit(&l->doing, what, memory_order_relaxed);
}

/* Record this failure if it is the first, and make all other jobs end soon.
 * Returns `code`. Called by any thread. */
int look_fail(struct look *l, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Start the workers unless they already run. Called by the driver. */
int look_workers(struct look *l);

/* Give the workers a job. The last call of the job must be look_ended(). */
void look_submit(struct look *l, struct thread_job *job);
void look_ended(struct look *l);

/* Wait until all jobs have ended. Returns 0 or the first failure. Called by the
 * driver. */
int look_wait(struct look *l);

/* Make the workers call fn(l, arg, i) for each i below n, in any order, and
 * wait for them. Returns 0 or the first failure. Called by the driver. */
typedef int look_fn(struct look *l, void *arg, uint64_t i);
int look_each(struct look *l, uint64_t n, look_fn *fn, void *arg);

enum look_type {
	LOOK_FILE,
	LOOK_DIR,
	LOOK_LINK,  /* a symbolic link without a target */
	LOOK_OTHER, /* a FIFO, a device, a socket */
};

/* Call fn() for each name in a directory, except "." and "..", and close
 * dir_fd. Returns 0, -errno if the directory cannot be read, or the first
 * non-zero result of fn(). */
typedef int list_fn(void *arg, const char *name, enum look_type type);
int look_list(struct look *l, int dir_fd, list_fn *fn, void *arg);

/* Does the name begin with a dot? */
static inline bool look_is_hidden(const char *name)
{
	return name[0] == '.';
}

/*
 * Count `files` files that are not examples. `dir` + `name` is the lowest of
 * their paths; `dir` is empty or ends with '/'. Returns 0 or -ENOMEM. Called by
 * the driver.
 */
int look_skip(
	struct look *l, uint64_t files, const char *dir, const char *name);

/* Is a file with this name an image? With a decode callback, any file is. */
bool look_is_image(const struct look *l, const char *name);

/* Add the regular files in the directory whose names end with one of the
 * `suffixes` as shards, in the order of their names. A NULL ends the suffixes.
 * look_stat_shards() reads their sizes and mtimes. */
int look_list_shards(struct look *l, const char *const *suffixes);
int look_stat_shards(struct look *l);

struct npy;
/* Read and check the header of a shard that is an array. Returns 0, or -errno
 * with a message. Called by any thread. */
int look_npy(
	struct look *l, uint64_t shard, struct npy *out, struct error *err);

struct stat;
int64_t stat_mtime_ns(const struct stat *st);
/* Returns the size of a file. For a directory, returns a hash of its inode and
 * size with the highest bit set. */
uint64_t stat_fingerprint(const struct stat *st);

/* -- The kinds of datasets; each fills l->ds, whose directory is watched --- */

int look_folder(struct look *l);
int look_list_file(struct look *l);
int look_tar(struct look *l);
int look_raw(struct look *l);
int look_tokens(struct look *l);
int look_arrays(struct look *l);

/* -- dataset_annotated.c --------------------------------------------------- */

/* Open the annotations of a dataset. Returns 0, an error of annotations_open(),
 * or -ENODATA if they have none of its examples. */
int ds_annotations_open(struct dataset *ds, const char *path,
	const char *cache_dir, struct error *err);

#endif
