/* SPDX-License-Identifier: MIT */
/*
 * Slabs and their lender. Called by workers, by the caller of refrain_next()
 * and, for refrain_release(), by any thread at any time.
 *
 *	free --take--> filled --lend--> lent --refrain_release()--> free
 *
 * After a fork, the child's copy of the lock may be held for ever, so a release
 * in the child does nothing.
 */
#include "loader/engine/batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

#define ALIGN 64

struct lender {
	pthread_mutex_t lock;
	struct list free; /* guarded by the lock */
	uint32_t calls;	  /* guarded by the lock: running calls of on_free() */
	/* Signalled when `calls` becomes 0; lender_leave() waits for it */
	pthread_cond_t idle;
	bool left; /* guarded by the lock: the loader has ended */
	/* Guarded by the lock: one reference for each lent slab, one for each
	 * running release, and one for the loader. */
	uint32_t refs;
	/* Changed with the lock held, but read without it (relaxed). It does no
	 * harm to read an old value, because on_free() makes the reader check
	 * again. */
	_Atomic uint32_t lent, free_count;
	void (*on_free)(void *arg);
	void *arg; /* set once, like on_free(); not used after `left` */
	/* Set once. */
	pid_t pid;
	uint32_t n;
	void *(*alloc)(void *ctx, size_t bytes);
	void (*release)(void *ctx, void *p, size_t bytes);
	void *ctx;
	size_t data_bytes;
	bool placed; /* the slabs are in a slab_place */
	struct slab slabs[];
};

static size_t round_up(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Returns the bytes of the arrays of one slab. */
static size_t meta_bytes(const struct settings *s)
{
	return s->c.batch *
		(sizeof(struct refrain_crop) + 3 * sizeof(uint64_t) +
			sizeof(int64_t) + sizeof(uint32_t) +
			sizeof(refrain_status));
}

static size_t samples_bytes(const struct settings *s)
{
	return round_up(s->c.batch * s->sample_bytes);
}

static size_t data_bytes(const struct settings *s)
{
	return samples_bytes(s) + s->columns.bytes;
}

size_t slab_bytes(const struct settings *s)
{
	return data_bytes(s) + round_up(meta_bytes(s));
}

uint64_t lender_bytes(const struct settings *s, uint32_t n)
{
	return sizeof(struct lender) +
		n *
		((uint64_t)sizeof(struct slab) + meta_bytes(s) + data_bytes(s));
}

static void *default_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return aligned_alloc(ALIGN, bytes);
}

static void default_release(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(p);
}

static void slab_release(struct lender *lender, struct slab *slab)
{
	if (slab->data && !lender->placed)
		lender->release(lender->ctx, slab->data, lender->data_bytes);
	if (!lender->placed)
		free(slab->crops);
	slab->data = NULL;
	slab->crops = NULL;
}

/* Set the pointers of slab i. In a slab place, the slabs are one after the
 * other. */
static void find_place(
	struct slab *slab, const struct settings *s, uint8_t *base, uint32_t i)
{
	slab->data = base + i * slab_bytes(s);
	slab->crops = (void *)(slab->data + data_bytes(s));
}

static int find_memory(struct slab *slab, const struct settings *s)
{
	struct lender *lender = slab->lender;

	slab->data = lender->alloc(lender->ctx, lender->data_bytes);
	slab->crops = malloc(meta_bytes(s));
	if (!slab->data || !slab->crops)
		return -ENOMEM;
	return (uintptr_t)slab->data % ALIGN ? -EINVAL : 0;
}

static void slab_give_back(struct lent_batch *b);

/* Set the pointers of a slab. All its arrays are in one block of memory, which
 * begins with the crops. */
static void slab_init(struct slab *slab, const struct settings *s)
{
	uint32_t n = s->c.batch;

	slab->fields = slab->data + samples_bytes(s);
	slab->seeds = (uint64_t *)(void *)(slab->crops + n);
	slab->indices = slab->seeds + n;
	slab->substitutes = slab->indices + n;
	slab->labels = (int64_t *)(void *)(slab->substitutes + n);
	slab->echoes = (uint32_t *)(void *)(slab->labels + n);
	slab->status = (refrain_status *)(void *)(slab->echoes + n);
	MAGIC_BEGIN(&slab->lent_batch, lent_batch);
	slab->lent_batch.release = slab_give_back;
	slab->lent_batch.batch = (struct refrain_batch){
		.size = sizeof(struct refrain_batch),
		.data = slab->data,
		.sample_bytes = s->sample_bytes,
		.type = s->plain ? settings_sample_type(s) : s->c.type,
		.layout = s->c.layout,
		.labels = slab->labels,
		.indices = slab->indices,
		.substitutes = slab->substitutes,
		.echoes = slab->echoes,
		.seeds = slab->seeds,
		.status = slab->status,
		.crops = slab->crops,
		.crop_bytes = sizeof(struct refrain_crop),
	};
}

void slab_describe(
	const struct settings *s, const void *at, struct refrain_batch *out)
{
	const char *crops = (const char *)at + data_bytes(s);
	uint32_t n = s->c.batch;

	*out = (struct refrain_batch){
		.size = sizeof(*out),
		.data = at,
		.sample_bytes = s->sample_bytes,
		.type = s->c.type,
		.layout = s->c.layout,
		.crops = (const void *)crops,
		.crop_bytes = sizeof(struct refrain_crop),
	};
	out->seeds = (const void *)(out->crops + n);
	out->indices = out->seeds + n;
	out->substitutes = out->indices + n;
	out->labels = (const void *)(out->substitutes + n);
	out->echoes = (const void *)(out->labels + n);
	out->status = (const void *)(out->echoes + n);
}

static void shape_samples(const struct settings *s, struct refrain_batch *b)
{
	uint64_t nhwc[] = {b->count, s->c.height, s->c.width, 3};
	uint64_t nchw[] = {b->count, 3, s->c.height, s->c.width};

	if (!s->image_sample) {
		b->ndim = 2;
		b->shape[0] = b->count;
		b->shape[1] = s->sample_bytes / settings_value_bytes(s);
		return;
	}
	b->ndim = 4;
	memcpy(b->shape, s->c.layout == REFRAIN_NHWC ? nhwc : nchw,
		sizeof(b->shape));
}

static void shape_array(
	const struct array_crops *array, struct refrain_column *out)
{
	out->ndim = 1;
	if (array->channels)
		out->shape[out->ndim++] = array->channels;
	for (unsigned i = 0; i < 3; i++)
		out->shape[out->ndim++] = array->crop[i];
}

static void describe_samples(const struct settings *s,
	const struct refrain_batch *b, struct refrain_column *out)
{
	const struct array_crops *array = settings_array(s);

	*out = (struct refrain_column){
		.name = settings_samples(s),
		.kind = s->image_sample	     ? REFRAIN_KIND_IMAGE
			: settings_tokens(s) ? REFRAIN_KIND_TOKENS
					     : REFRAIN_KIND_ARRAY,
		.type = settings_sample_type(s),
		.ndim = b->ndim,
		.data = b->data,
		.data_bytes = b->data_bytes,
		.row_bytes = b->sample_bytes,
	};
	memcpy(out->shape, b->shape, b->ndim * sizeof(*b->shape));
	if (array)
		shape_array(array, out);
}

static void describe_classes(const struct settings *s,
	const struct refrain_batch *b, struct refrain_column *out)
{
	*out = (struct refrain_column){
		.name = settings_classes(s),
		.kind = REFRAIN_KIND_CLASS,
		.type = REFRAIN_I64,
		.ndim = 1,
		.shape = {b->count},
		.data = b->labels,
		.data_bytes = b->count * sizeof(*b->labels),
		.row_bytes = sizeof(*b->labels),
	};
}

/* Copy the names of the columns from `first` on, which the settings own. */
static void keep_names(struct lent_batch *lent, uint32_t first)
{
	for (uint32_t i = first; i < lent->batch.column_count; i++) {
		(void)snprintf(lent->names[i], sizeof(lent->names[i]), "%s",
			lent->columns[i].name);
		lent->columns[i].name = lent->names[i];
	}
}

void slab_shape(const struct settings *s, struct lent_batch *lent)
{
	struct refrain_batch *b = &lent->batch;

	b->data_bytes = b->count * b->sample_bytes;
	shape_samples(s, b);
	describe_samples(s, b, &lent->columns[0]);
	describe_classes(s, b, &lent->columns[1]);
	b->columns = lent->columns;
	b->column_count = 2;
	b->column_bytes = sizeof(*lent->columns);
	keep_names(lent, 0);
}

void slab_fields(const struct settings *s, const void *at, uint32_t first,
	uint64_t *offsets, struct lent_batch *lent)
{
	const struct columns *c = &s->columns;
	const uint8_t *area = (const uint8_t *)at + samples_bytes(s);
	struct refrain_batch *b = &lent->batch;

	for (unsigned n = 0; n < c->count; n++) {
		size_t apart = c->column[n].field * ((size_t)b->count + 1);

		columns_describe(c, n, area, first, b->count,
			first ? offsets + apart : NULL,
			&lent->columns[b->column_count + n]);
	}
	b->column_count += c->count;
	keep_names(lent, 2);
}

size_t slab_offsets(const struct settings *s, uint32_t batch)
{
	return s->columns.count ? s->fields.count * ((size_t)batch + 1) : 0;
}

void slab_finish(const struct settings *s, struct lent_batch *lent)
{
	struct slab *slab = CONTAINER_OF(lent, struct slab, lent_batch);

	columns_pack(&s->columns, slab->fields, lent->batch.count);
	slab_shape(s, lent);
	slab_fields(s, slab->data, 0, NULL, lent);
}

static void lender_free(struct lender *lender)
{
	for (uint32_t i = 0; i < lender->n; i++)
		slab_release(lender, &lender->slabs[i]);
	pthread_cond_destroy(&lender->idle);
	pthread_mutex_destroy(&lender->lock);
	free(lender);
}

static int slabs_new(struct lender *lender, const struct settings *s,
	const struct slab_place *place)
{
	int rc = 0;

	if (place && (uintptr_t)place->base % ALIGN)
		return -EINVAL;
	if (place && place->bytes / lender->n < slab_bytes(s))
		return -ENOSPC;
	for (uint32_t i = 0; rc == 0 && i < lender->n; i++) {
		struct slab *slab = &lender->slabs[i];

		slab->lender = lender;
		if (place)
			find_place(slab, s, place->base, i);
		else
			rc = find_memory(slab, s);
		if (rc < 0)
			break;
		slab_init(slab, s);
		list_add_tail(&lender->free, &slab->node);
		lender->free_count++;
	}
	return rc;
}

int lender_new(struct lender **out, const struct settings *s, uint32_t n,
	const struct slab_place *place, void (*on_free)(void *arg), void *arg)
{
	struct lender *lender =
		calloc(1, sizeof(*lender) + n * sizeof(struct slab));
	int rc;

	if (!lender)
		return -ENOMEM;
	lock_init(&lender->lock, RANK_LENDER);
	(void)pthread_cond_init(&lender->idle, NULL);
	list_init(&lender->free);
	lender->refs = 1;
	lender->on_free = on_free;
	lender->arg = arg;
	lender->pid = getpid();
	lender->n = n;
	lender->alloc = s->c.alloc ? s->c.alloc : default_alloc;
	lender->release = s->c.free ? s->c.free : default_release;
	lender->ctx = s->c.alloc_ctx;
	lender->data_bytes = data_bytes(s);
	lender->placed = place != NULL;
	rc = slabs_new(lender, s, place);
	if (rc < 0) {
		lender_free(lender);
		return rc;
	}
	*out = lender;
	return 0;
}

const pthread_mutex_t *lender_lock(const struct lender *lender)
{
	return &lender->lock;
}

/* Drop a reference, and release the lock, which the caller holds. Frees the
 * lender if it was the last reference. */
static void unref(struct lender *lender)
{
	bool last = --lender->refs == 0;

	ASSERT_HELD(&lender->lock);
	pthread_mutex_unlock(&lender->lock);
	if (last)
		lender_free(lender);
}

bool lender_has_free(const struct lender *lender)
{
	return lender->free_count > 0;
}

bool lender_all_lent(const struct lender *lender)
{
	return lender->lent == lender->n;
}

uint32_t lender_count(const struct lender *lender)
{
	return lender->n;
}

void lender_leave(struct lender *lender)
{
	pthread_mutex_lock(&lender->lock);
	lender->left = true;
	for (uint32_t i = 0; i < lender->n; i++)
		if (!lender->slabs[i].lent)
			slab_release(lender, &lender->slabs[i]);
	while (lender->calls > 0)
		pthread_cond_wait(&lender->idle, &lender->lock);
	unref(lender);
}

struct slab *slab_take(struct lender *lender)
{
	struct slab *slab;

	LOCK_SCOPE(&lender->lock);
	if (list_empty(&lender->free))
		return NULL;
	slab = LIST_FIRST(&lender->free, struct slab, node);
	list_del(&slab->node);
	lender->free_count--;
	return slab;
}

void slab_lend(struct slab *slab)
{
	struct lender *lender = slab->lender;

	LOCK_SCOPE(&lender->lock);
	slab->lent = true;
	lender->lent++;
	lender->refs++;
}

/* Return a slab to the free ones. on_free() is called without the lock; `calls`
 * makes the loader wait for it. */
static void give_back(struct lender *lender, struct slab *slab)
{
	ASSERT_HELD(&lender->lock);
	list_add_tail(&lender->free, &slab->node);
	lender->free_count++;
	lender->calls++;
	pthread_mutex_unlock(&lender->lock);
	lender->on_free(lender->arg);
	pthread_mutex_lock(&lender->lock);
	if (--lender->calls == 0)
		pthread_cond_signal(&lender->idle);
}

static void slab_give_back(struct lent_batch *b)
{
	struct slab *slab = CONTAINER_OF(b, struct slab, lent_batch);
	struct lender *lender = slab->lender;

	if (lender->pid != getpid())
		return;
	pthread_mutex_lock(&lender->lock);
	if (!slab->lent) { /* the slab was released before */
		pthread_mutex_unlock(&lender->lock);
		return;
	}
	slab->lent = false;
	lender->lent--;
	if (lender->left)
		slab_release(lender, slab);
	else
		give_back(lender, slab);
	unref(lender);
}
