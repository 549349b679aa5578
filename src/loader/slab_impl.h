/* SPDX-License-Identifier: MIT */
/*
 * The memory of batches. A slab holds one batch: the samples, in the caller's
 * memory if so configured, and what the batch says of them. It is free, filled
 * by the loader, or lent. The lender, which has them all, lives until the
 * loader is closed and the last lent slab is back, whichever is later; and with
 * it the lock of the loader, which a release needs to know whether there is
 * still one.
 */
#ifndef LOADER_SLAB_IMPL_H
#define LOADER_SLAB_IMPL_H

#include <pthread.h>
#include <refrain/loader.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "settings/settings.h"

struct lender;

/* Fields that are said to need a lock need that of the lender. */
struct slab {
	struct refrain_batch batch; /* what is lent */
	struct lender *lender;
	struct list node; /* lock: free slabs */
	bool lent;	  /* lock */
	/* Of the batch, writable; who fills the slab. */
	uint8_t *data;
	int64_t *labels;
	uint64_t *indices, *substitutes, *seeds;
	uint32_t *echoes;
	refrain_status *status;
	struct refrain_crop *crops;
};

struct lender {
	pthread_mutex_t lock; /* rank: the loader's, whose lock it is */
	struct list free;     /* lock */
	uint32_t lent;	      /* lock: how many are lent */
	bool left;	      /* lock: the loader has ended */
	void (*on_free)(void *arg);
	void *arg; /* both: set once; not used once `left` is set */
	/* Set once. */
	pid_t pid;
	uint32_t n;
	void *(*alloc)(void *ctx, size_t bytes);
	void (*release)(void *ctx, void *p, size_t bytes);
	void *ctx;
	size_t data_bytes;
	struct slab slabs[];
};

/* What a lender of `n` slabs takes, its own memory included. */
uint64_t lender_bytes(const struct settings *s, uint32_t n);

/*
 * on_free() is called after each refrain_release(), with the lender's lock
 * held, until lender_leave(). -ENOMEM; -EINVAL if the caller's alloc() gave
 * memory that is not aligned.
 */
int lender_new(struct lender **out, const struct settings *s, uint32_t n,
	void (*on_free)(void *arg), void *arg);

/* The loader ends. Slabs that are not lent are gone with this call. */
void lender_leave(struct lender *lender);

/* These need the lock. */

/* A free slab, or NULL. */
struct slab *slab_take(struct lender *lender);
/* Back, unused. */
void slab_put(struct slab *slab);
/* To the caller: the batch stays until refrain_release(). */
void slab_lend(struct slab *slab);

#endif
