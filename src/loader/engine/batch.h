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

/*
 * A lent batch, in the memory of its lender. batch_release() gives it back:
 * from any thread, also after its source has been closed.
 */
struct lent_batch {
	uint32_t magic;
	struct refrain_batch batch;
	void (*release)(struct lent_batch *b);
};

/*
 * Where the batches of a loader come from: the engine of this process, or that
 * of another one. It is a member of its maker's struct.
 */
struct batch_source {
	const struct loader_ops *ops;
};

struct dataset;

/* The calls of a loader. Each means what the function refrain_NAME() says,
 * where there is one. */
struct loader_ops {
	int (*next)(struct batch_source *source, struct lent_batch **out,
		int timeout_ms);
	int (*fd)(struct batch_source *source);
	int (*close)(struct batch_source *source);
	/* Why the last call that failed did, copied. */
	void (*message)(struct batch_source *source, struct error *out);

	/* All members below are NULL for a source that only gives batches. */
	const struct settings *(*settings)(const struct batch_source *source);
	const struct dataset *(*dataset)(const struct batch_source *source);
	uint64_t (*steps_left)(struct batch_source *source);
	uint64_t (*step)(struct batch_source *source);
	uint64_t (*epoch_end)(struct batch_source *source, uint64_t epoch);
	/* The last failure; `error` 0: there was none. */
	void (*failure)(
		struct batch_source *source, struct refrain_failure *out);
	/* Fill in all members, including `size`, but for those of the dataset:
	 * what was skipped. */
	void (*stats)(struct batch_source *source, struct refrain_stats *out);
	int (*save)(struct batch_source *source, void *buf, size_t size);
	int (*save_at)(struct batch_source *source, uint64_t step, void *buf,
		size_t size);
	int (*echo_log)(struct batch_source *source, char *buf, size_t size);
	/* NULL, too, if the batches are not in one block of memory. */
	int (*memory)(
		struct batch_source *source, const void **base, size_t *bytes);
};

/* The calls of each source, as the members say. */
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

/* Memory that slabs lie in, 64-byte aligned; the giver's for as long as the
 * lender lives. */
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

/* Set the shape of a batch whose `count` is set. */
void slab_shape(const struct settings *s, struct refrain_batch *b);

/* The bytes of one slab: samples and their descriptions. */
size_t slab_bytes(const struct settings *s);

/* The memory of a lender with `n` slabs, including its own. */
uint64_t lender_bytes(const struct settings *s, uint32_t n);

/*
 * on_free() is called after each refrain_release(), without a lock, until
 * lender_leave() returns. -ENOMEM; -EINVAL if the caller's alloc(), or `place`,
 * gave memory that is not aligned; -ENOSPC if the place is too small. `place`
 * may be NULL: samples then are in memory of alloc().
 */
int lender_new(struct lender **out, const struct settings *s, uint32_t n,
	const struct slab_place *place, void (*on_free)(void *arg), void *arg);

/*
 * The loader ends: free the slabs that are not lent, and wait for running calls
 * of on_free().
 */
void lender_leave(struct lender *lender);

/* Snapshots: another thread may give a slab back at any time. */
bool lender_has_free(const struct lender *lender);
bool lender_all_lent(const struct lender *lender);
uint32_t lender_count(const struct lender *lender);
/* For measuring. */
const pthread_mutex_t *lender_lock(const struct lender *lender);

/* A free slab, or NULL. */
struct slab *slab_take(struct lender *lender);
/* Lend the slab to the caller: the batch stays until refrain_release(). */
void slab_lend(struct slab *slab);

#endif
