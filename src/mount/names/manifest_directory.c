/* SPDX-License-Identifier: MIT */
/*
 * The slots of a directory, in the order in which names are listed. All
 * functions need the manifest's lock for writing.
 */
#include "mount/names/node_impl.h"

#include <errno.h>

#include "common/base/array.h"

/* The head of struct children takes the space of this many slots. */
#define HEAD_SLOTS (sizeof(struct children) / sizeof(node_id))

/* Allocate memory for more slots. */
static int directory_grow(struct directory *d)
{
	struct children *c = d->has_many ? d->many : NULL;
	size_t cap = c ? c->cap + HEAD_SLOTS : 0;

	if (array_room(&c, cap, &cap, sizeof(node_id)) < 0)
		return -ENOMEM;
	if (!d->has_many) {
		c->holes = d->only == 0;
		c->hole = 0;
		c->at[0] = d->only;
	}
	c->cap = (uint32_t)(cap - HEAD_SLOTS);
	d->many = c;
	d->has_many = true;
	return 0;
}

/* Find an empty slot, so that a directory whose names come and go does not
 * grow. Returns false if all slots are in use. */
static bool directory_reuse(struct directory *d, uint32_t *slot)
{
	struct children *c = d->has_many ? d->many : NULL;

	*slot = 0;
	if (!c)
		return d->only == 0;
	if (c->holes == 0)
		return false;
	for (*slot = c->hole; c->at[*slot] != 0;)
		++*slot;
	c->holes--;
	c->hole = *slot + 1;
	return true;
}

int directory_add(struct directory *d, node_id id, uint32_t *slot)
{
	int rc = 0;

	if (d->kids == DIRECTORY_MOST)
		return -EOVERFLOW;
	if (!directory_reuse(d, slot)) {
		*slot = d->n;
		if (!d->has_many || *slot == d->many->cap)
			rc = directory_grow(d);
	}
	if (rc < 0)
		return rc;
	if (*slot == d->n)
		d->n++;
	directory_at(d)[*slot] = id;
	d->kids++;
	return 0;
}

int directory_put(struct directory *d, node_id id, uint32_t slot)
{
	if (d->kids == DIRECTORY_MOST || slot >= DIRECTORY_MOST)
		return -EOVERFLOW;
	/* Slots in between are empty. Their number is limited: each of them
	 * once had a name, and names that were removed are still stored. */
	while (d->n <= slot) {
		if (d->n > 0 && (!d->has_many || d->n == d->many->cap) &&
			directory_grow(d) < 0)
			return -ENOMEM;
		directory_at(d)[d->n] = 0;
		if (d->has_many)
			d->many->holes++;
		d->n++;
	}
	if (directory_at(d)[slot] != 0)
		return -EBADMSG;
	directory_at(d)[slot] = id;
	if (d->has_many)
		d->many->holes--;
	d->kids++;
	return 0;
}

void directory_empty(struct directory *d, uint32_t slot)
{
	directory_at(d)[slot] = 0;
	if (!d->has_many)
		return;
	d->many->holes++;
	if (slot < d->many->hole)
		d->many->hole = slot;
}

void directory_move(struct directory *d, uint32_t from, uint32_t to)
{
	node_id *at = directory_at(d);

	at[to] = at[from];
	at[from] = 0;
	if (d->has_many && from < d->many->hole)
		d->many->hole = from;
}
