/* SPDX-License-Identifier: MIT */
/*
 * The order of a plan. The index is a hash table. Each bucket is a ring of
 * positions in ascending order, of which the last one is stored, so that both
 * appending a position and finding the first one take one step. Searches remove
 * finished positions from the rings.
 */
#include "mount/plan/plan_order_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

#define NONE UINT32_MAX
#define BUCKETS_FIRST 1024u

void order_release(struct order *o)
{
	free(o->file);
	free(o->next);
	free(o->state);
	free(o->last);
	free(o->seen);
	free(o->named);
	free(o->epoch);
	*o = (struct order){.cap = 0};
}

static uint32_t *order_bucket(const struct order *o, uint32_t file)
{
	uint32_t h = file * UINT32_C(2654435761);

	return &o->last[(h ^ h >> 16) & (o->buckets - 1)];
}

/* Add a position to its ring. `i` is an index of the arrays, which is the
 * position minus `first`. */
static void link_index(struct order *o, uint32_t i)
{
	uint32_t *last = order_bucket(o, o->file[i]);

	if (*last == NONE) {
		o->next[i] = i;
	} else {
		o->next[i] = o->next[*last];
		o->next[*last] = i;
	}
	*last = i;
}

static void build_index(struct order *o)
{
	memset(o->last, 0xff, o->buckets * sizeof(*o->last));
	for (uint32_t i = 0; i < o->end - o->first; i++)
		link_index(o, i);
}

static int grow_index(struct order *o)
{
	size_t buckets = o->buckets ? 2 * o->buckets : BUCKETS_FIRST;
	uint32_t *last = calloc(buckets, sizeof(*last));

	/* A failure is ignored if there is an index already, because an index
	 * with few buckets works, too, only with longer rings. */
	if (!last)
		return o->buckets ? 0 : -ENOMEM;
	free(o->last);
	o->last = last;
	o->buckets = buckets;
	build_index(o);
	return 0;
}

/* Forget positions before `done`, and epochs that ended before it. */
static void order_forget(struct order *o, uint64_t done)
{
	size_t drop = (size_t)(done - o->first);
	size_t left = (size_t)(o->end - done);
	unsigned past = 0;

	memmove(o->file, o->file + drop, left * sizeof(*o->file));
	memmove(o->state, o->state + drop, left);
	o->first = done;
	while (past + 1 < o->epochs && o->epoch[past + 1].begin <= done)
		past++;
	o->epochs -= past;
	memmove(o->epoch, o->epoch + past, o->epochs * sizeof(*o->epoch));
	build_index(o);
}

static int order_grow(struct order *o, uint64_t done)
{
	size_t n = (size_t)(o->end - o->first);
	size_t cap[] = {o->cap, o->cap, o->cap};

	if (n < o->cap)
		return 0;
	if (done - o->first > n / 2) {
		order_forget(o, done);
		return 0;
	}
	if (ARRAY_ROOM(o->file, n, &cap[0]) < 0 ||
		ARRAY_ROOM(o->next, n, &cap[1]) < 0 ||
		ARRAY_ROOM(o->state, n, &cap[2]) < 0)
		return -ENOMEM;
	o->cap = cap[2]; /* the three arrays always have the same capacity */
	return o->cap > o->buckets + o->buckets / 2 ? grow_index(o) : 0;
}

static int begin_epoch(struct order *o, uint64_t number)
{
	if (o->epochs > 0 && o->epoch[o->epochs - 1].number == number)
		return 0;
	if (o->epochs > 0 && o->epoch[o->epochs - 1].number > number)
		return -EINVAL;
	if (o->epochs == ORDER_EPOCHS_MAX)
		return -ENOSPC;
	if (ARRAY_ROOM(o->epoch, o->epochs, &o->epoch_cap) < 0)
		return -ENOMEM;
	o->epoch[o->epochs++] = (struct order_epoch){number, o->end};
	if (o->seen)
		memset(o->seen, 0, o->seen_bytes);
	return 0;
}

/* Mark the file as added in this epoch. Returns -EEXIST if it was marked
 * before. */
static int see(struct order *o, uint32_t file)
{
	size_t at = file / 8;
	uint8_t bit = (uint8_t)(1u << file % 8);

	if (ARRAY_ROOM_ZEROED(o->seen, at, &o->seen_bytes) < 0 ||
		ARRAY_ROOM_ZEROED(o->named, at, &o->named_bytes) < 0)
		return -ENOMEM;
	if (o->seen[at] & bit)
		return -EEXIST;
	o->seen[at] |= bit;
	o->named[at] |= bit;
	return 0;
}

int order_add(struct order *o, uint64_t epoch, uint32_t file, uint64_t done)
{
	int rc = order_grow(o, done);
	uint32_t i;

	if (rc == 0)
		rc = begin_epoch(o, epoch);
	if (rc == 0)
		rc = see(o, file);
	if (rc < 0)
		return rc;
	i = (uint32_t)(o->end - o->first);
	o->file[i] = file;
	o->state[i] = ORDER_WAITING;
	o->end++;
	link_index(o, i);
	return 0;
}

static bool is_done(const struct order *o, uint32_t i, uint64_t horizon)
{
	uint8_t state = o->state[i] & ORDER_STATE_MASK;

	return state == ORDER_SERVED || state == ORDER_RETIRED ||
		(state == ORDER_SKIPPED && o->first + i < horizon);
}

bool order_find(struct order *o, uint32_t file, uint64_t horizon, uint64_t *pos)
{
	uint32_t *last, i;

	if (o->buckets == 0)
		return false;
	last = order_bucket(o, file);
	while (*last != NONE && is_done(o, o->next[*last], horizon)) {
		i = o->next[*last];
		if (i == *last)
			*last = NONE;
		else
			o->next[*last] = o->next[i];
	}
	if (*last == NONE)
		return false;
	i = *last;
	do {
		i = o->next[i];
		if (o->file[i] == file && !is_done(o, i, horizon)) {
			*pos = o->first + i;
			return true;
		}
	} while (i != *last);
	return false;
}

struct order_epoch order_epoch_at(const struct order *o, uint64_t pos)
{
	unsigned low = 0, high = o->epochs;

	if (high == 0)
		return (struct order_epoch){0};
	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (o->epoch[middle].begin <= pos)
			low = middle;
		else
			high = middle;
	}
	return o->epoch[low];
}
