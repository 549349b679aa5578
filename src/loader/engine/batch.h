/* SPDX-License-Identifier: MIT */
/*
 * The memory of batches. A slab holds one batch: the samples, in the caller's
 * memory if so configured, and their descriptions. It is free, filled by the
 * loader, or lent. The lender owns all slabs. It has its own lock and lives
 * until the loader is closed and the last lent slab is back, whichever is
 * later.
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

/* The columns of a batch: the samples and their classes. */
#define BATCH_COLUMNS 2

/*
 * A lent batch, in the memory of its lender. batch_release() gives it back:
 * from any thread, also after its source has been closed.
 */
struct lent_batch {
	uint32_t magic;
	struct refrain_batch batch;
	struct refrain_column columns[BATCH_COLUMNS];
	void (*release)(struct lent_batch *b);
};

/*
 * A batch source: what a loader takes batches from, which is an engine of this
 * process or a share. It is embedded in the struct of the part that implements
 * it.
 */
struct batch_source {
	const struct loader_ops *ops;
};

struct dataset;

/* The calls of a batch source. A member NAME does what include/refrain/loader.h
 * says of refrain_NAME(), if there is such a function. */
struct loader_ops {
	int (*next)(struct batch_source *source, struct lent_batch **out,
		int timeout_ms);
	int (*fd)(struct batch_source *source);
	int (*close)(struct batch_source *source);
	/* Copy the message of the last call that failed. */
	void (*message)(struct batch_source *source, struct error *out);

	/* All members below are NULL for a source that only gives batches. */
	const struct settings *(*settings)(const struct batch_source *source);
	const struct dataset *(*dataset)(const struct batch_source *source);
	uint64_t (*steps_left)(struct batch_source *source);
	uint64_t (*step)(struct batch_source *source);
	uint64_t (*epoch_end)(struct batch_source *source, uint64_t epoch);
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
	/* Also NULL if the batches are not in one block of memory. */
	int (*memory)(
		struct batch_source *source, const void **base, size_t *bytes);
};

/* These call the members that all sources have. */
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

/* Memory for slabs, 64-byte aligned. Its owner must keep it until the lender
 * has been freed. */
struct slab_place {
	void *base;
	size_t bytes; /* n * slab_bytes() at least */
};

struct slab {
	struct lent_batch lent_batch; /* what is lent */
	struct lender *lender;
	struct list node; /* lock: free slabs */
	bool lent;	  /* lock */
	/* The batch's memory, writable by the thread that fills the slab. */
	uint8_t *data;
	int64_t *labels;
	uint64_t *indices, *substitutes, *seeds;
	uint32_t *echoes;
	refrain_status *status;
	struct refrain_crop *crops;
};

/* Set the pointers of a batch whose slab lies at `at`. */
void slab_describe(
	const struct settings *s, const void *at, struct refrain_batch *out);

/* Set the shape and the columns of a batch whose `count` is set. */
void slab_shape(const struct settings *s, struct lent_batch *b);

/* The bytes of one slab: samples and their descriptions. */
size_t slab_bytes(const struct settings *s);

/* The memory of a lender with `n` slabs, including its own. */
uint64_t lender_bytes(const struct settings *s, uint32_t n);

/*
 * on_free() is called after each refrain_release(), without a lock, until
 * lender_leave() returns. `place` may be NULL: then samples are in memory from
 * the caller's alloc(). Returns -ENOMEM, -EINVAL if `place` or the memory from
 * alloc() is not aligned, or -ENOSPC if the place is too small.
 */
int lender_new(struct lender **out, const struct settings *s, uint32_t n,
	const struct slab_place *place, void (*on_free)(void *arg), void *arg);

/* Call this when the loader ends. It frees the slabs that are not lent, and
 * waits for running calls of on_free(). */
void lender_leave(struct lender *lender);

/* Snapshots: another thread may give a slab back at any time. */
bool lender_has_free(const struct lender *lender);
bool lender_all_lent(const struct lender *lender);
uint32_t lender_count(const struct lender *lender);
/* The lender's lock, for bench/ to measure. */
const pthread_mutex_t *lender_lock(const struct lender *lender);

/* A free slab, or NULL. */
struct slab *slab_take(struct lender *lender);
/* Lend the slab to the caller: the batch stays until refrain_release(). */
void slab_lend(struct slab *slab);

#endif
