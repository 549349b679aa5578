/* SPDX-License-Identifier: MIT */
/*
 * The memory of batches. A slab holds one batch: the samples, which may be in
 * memory from the caller's alloc(), and their descriptions. A slab is free,
 * being filled by the loader, or lent. The lender owns all slabs. It has its
 * own lock. It lives until the loader is closed and no slab is lent any more.
 */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include <pthread.h>
#include <refrain/loader.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/base/list.h"
#include "common/base/magic.h"
#include "loader/core/settings.h"

/* The columns of a batch: the samples, their classes, and those of fields. */
#define BATCH_COLUMNS (2 + COLUMNS_MAX)

/*
 * A lent batch, in the memory of its lender. batch_release() returns it to the
 * lender. Any thread may call this, even after the source was closed.
 */
struct lent_batch {
	uint32_t magic;
	struct refrain_batch batch;
	struct refrain_column columns[BATCH_COLUMNS];
	/* Names of columns. The batch may outlive its loader, so it has copies.
	 */
	char names[BATCH_COLUMNS][COLUMN_NAME_MAX];
	void (*release)(struct lent_batch *b);
};

/*
 * A batch source: a loader takes its batches from one. It is an engine in this
 * process, or a share. This struct is embedded in that of the implementation.
 */
struct batch_source {
	const struct loader_ops *ops;
};

struct dataset;

/* The operations of a batch source. NAME does what include/refrain/loader.h
 * says about refrain_NAME(), if there is such a function. */
struct loader_ops {
	int (*next)(struct batch_source *source, struct lent_batch **out,
		int timeout_ms);
	int (*fd)(struct batch_source *source);
	int (*close)(struct batch_source *source);
	/* Copy the message of the last call that has failed. */
	void (*message)(struct batch_source *source, struct error *out);

	/* All members below are NULL in a source that can only produce
	 * batches. */
	const struct settings *(*settings)(const struct batch_source *source);
	const struct dataset *(*dataset)(const struct batch_source *source);
	uint64_t (*steps_left)(struct batch_source *source);
	uint64_t (*step)(struct batch_source *source);
	uint64_t (*epoch_end)(struct batch_source *source, uint64_t epoch);
	int (*fresh)(struct batch_source *source, uint64_t f, uint64_t *index);
	/* Get the last failure; its `error` is 0 if there was none. */
	void (*failure)(
		struct batch_source *source, struct refrain_failure *out);
	/* Fill in all members, including `size`, except the numbers of skipped
	 * files and classes of the dataset. */
	void (*stats)(struct batch_source *source, struct refrain_stats *out);
	int (*save)(struct batch_source *source, void *buf, size_t size);
	int (*save_at)(struct batch_source *source, uint64_t step, void *buf,
		size_t size);
	int (*echo_log)(struct batch_source *source, char *buf, size_t size);
	/* This is also NULL if the batches are not in one block of memory. */
	int (*memory)(
		struct batch_source *source, const void **base, size_t *bytes);
};

/* These functions call the operations that all sources have. */
static inline int batch_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	return source->ops->next(source, out, timeout_ms);
}

static inline int batch_fd(struct batch_source *source)
{
	return source->ops->fd(source);
}

static inline int batch_close(struct batch_source *source)
{
	return source->ops->close(source);
}

static inline void batch_message(struct batch_source *source, struct error *out)
{
	source->ops->message(source, out);
}

static inline void batch_release(struct lent_batch *b)
{
	b->release(b);
}

static inline const struct refrain_batch *batch_public(
	const struct lent_batch *b)
{
	return &b->batch;
}

struct lender;

/* Memory for slabs, aligned to 64 bytes. The owner must keep it until the
 * lender is freed. */
struct slab_place {
	void *base;
	size_t bytes; /* at least n * slab_bytes() */
};

struct slab {
	struct lent_batch lent_batch; /* the batch that is lent */
	struct lender *lender;
	struct list node; /* in the list of free slabs; guarded by the lock */
	bool lent;	  /* guarded by the lock */
	/* The memory of the batch. The thread that fills the slab may write to
	 * it. */
	uint8_t *data;
	uint8_t *fields; /* the area of struct columns, in the same memory */
	int64_t *labels;
	uint64_t *indices, *substitutes, *seeds;
	uint32_t *echoes;
	refrain_status *status;
	struct refrain_crop *crops;
};

/* Set the pointers of a batch whose slab is at `at`. */
void slab_describe(
	const struct settings *s, const void *at, struct refrain_batch *out);

/* Set the shape of a batch and the columns of the samples and classes. Its
 * `count` must be set. */
void slab_shape(const struct settings *s, struct lent_batch *b);

/*
 * Add the columns of the fields to a batch that slab_shape() has described. The
 * slab at `at` is packed, and the batch begins with its example `first`. If
 * that is not 0, `offsets` has room for slab_offsets() numbers, which stay in
 * use.
 */
void slab_fields(const struct settings *s, const void *at, uint32_t first,
	uint64_t *offsets, struct lent_batch *b);
size_t slab_offsets(const struct settings *s, uint32_t batch);

/* Pack the fields of a batch that is lent to nobody else yet, and describe its
 * shape and columns. */
void slab_finish(const struct settings *s, struct lent_batch *b);

/* Returns the bytes of one slab: samples and their descriptions. */
size_t slab_bytes(const struct settings *s);

/* Returns the bytes of a lender with `n` slabs, including the lender itself. */
uint64_t lender_bytes(const struct settings *s, uint32_t n);

/*
 * Create a lender. on_free() is called after each refrain_release(), without a
 * lock, until lender_leave() returns. If `place` is NULL, samples are in memory
 * from the caller's alloc(). Returns 0, -ENOMEM, -EINVAL if `place` or memory
 * from alloc() is not aligned, or -ENOSPC if the place is too small.
 */
int lender_new(struct lender **out, const struct settings *s, uint32_t n,
	const struct slab_place *place, void (*on_free)(void *arg), void *arg);

/* Call this when the loader ends. It frees all slabs that are not lent, and
 * waits for running calls of on_free(). */
void lender_leave(struct lender *lender);

/* The results of these may be out of date at once, because another thread may
 * release a slab at any time. */
bool lender_has_free(const struct lender *lender);
bool lender_all_lent(const struct lender *lender);
uint32_t lender_count(const struct lender *lender);
/* Returns the lender's lock, which bench/ measures. */
const pthread_mutex_t *lender_lock(const struct lender *lender);

/* Returns a free slab, or NULL. */
struct slab *slab_take(struct lender *lender);
/* Lend the slab to the caller until refrain_release(). */
void slab_lend(struct slab *slab);

#endif
