/* SPDX-License-Identifier: MIT */
/*
 * The pool: entries by fresh number, from when an example is first to be read
 * until its last serving is over. Entered under the loader's lock.
 *
 *	        pump              read              taken by a worker
 *	ABSENT ------> READING --------> ENCODED -------------------> WORKING
 *	  ^ ^             |                 ^  |                       |  | |
 *	  | +-------------+ (read again,    |  +--> ABSENT (dropped)   |  | |
 *	  |   or a substitute)              +--------------------------+  | |
 *	  |                                   no room to keep it decoded  | |
 *	  +---- dropped, or a substitute ---------------------------------+ |
 *	  +---- dropped --- KEPT <-- decoded, or made ----------------------+
 *	READING, WORKING --> FAILED: by policy, or no substitute is whole
 *
 * An entry without a planned serving is on one of the lists: to be read ahead,
 * read ahead, or idle. The latter two are what is dropped for want of memory:
 * what became idle last is needed last, as is what was read ahead last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine_impl.h"

struct entries {
	struct entry *table, *free;
	uint32_t count, free_count;
	struct entry **buckets;
	uint32_t bucket_mask;
	struct list urgent, ahead, read_ahead, idle;
	uint32_t ahead_count; /* entries on `ahead` */
	uint64_t kept_bytes;  /* charged for `kept` */
	uint32_t kept_count;
};

/* -- The table ------------------------------------------------------------- */

static uint32_t bucket_count(uint64_t count)
{
	uint32_t n = 16;

	while (n < count && n < (UINT32_C(1) << 30))
		n *= 2;
	return n;
}

uint64_t entries_bytes(uint64_t count)
{
	return count * sizeof(struct entry) +
		bucket_count(count) * sizeof(struct entry *);
}

int entries_new(struct entries **out, uint64_t count)
{
	struct entries *all = calloc(1, sizeof(*all));
	uint32_t buckets = bucket_count(count);

	if (!all)
		return -ENOMEM;
	*out = all;
	list_init(&all->urgent);
	list_init(&all->ahead);
	list_init(&all->read_ahead);
	list_init(&all->idle);
	if (count > UINT32_MAX / 2)
		return -ENOMEM;
	all->table = calloc(count, sizeof(*all->table));
	all->buckets = calloc(buckets, sizeof(struct entry *));
	if (!all->table || !all->buckets)
		return -ENOMEM;
	all->count = all->free_count = (uint32_t)count;
	all->bucket_mask = buckets - 1;
	for (uint64_t i = 0; i < count; i++) {
		all->table[i].next = all->free;
		all->free = &all->table[i];
	}
	return 0;
}

/* Buffers of entries that a read has stay. */
void entries_free(struct entries *all, struct memory *memory)
{
	for (uint32_t i = 0; all && all->table && i < all->count; i++) {
		struct entry *e = &all->table[i];

		free(e->why);
		memory_put(memory, e->encoded);
		memory_put(memory, e->kept);
	}
	if (all) {
		free(all->table);
		free(all->buckets);
	}
	free(all);
}

/* -- Asking ---------------------------------------------------------------- */

uint32_t entries_unused(const struct entries *all)
{
	return all->free_count;
}

uint32_t entries_ahead(const struct entries *all)
{
	return all->ahead_count;
}

static struct entry *first_on_list(const struct list *list)
{
	return list_empty(list) ? NULL
				: CONTAINER_OF(list->next, struct entry, node);
}

struct entry *entries_first_urgent(const struct entries *all)
{
	return first_on_list(&all->urgent);
}

struct entry *entries_first_ahead(const struct entries *all)
{
	return first_on_list(&all->ahead);
}

uint64_t entries_kept_bytes(const struct entries *all)
{
	return all->kept_bytes;
}

uint32_t entries_kept(const struct entries *all)
{
	return all->kept_count;
}

void entries_keep(struct entries *all, uint64_t cost)
{
	all->kept_bytes += cost;
	all->kept_count++;
}

void entries_drop(struct entries *all, uint64_t cost)
{
	all->kept_bytes -= cost;
	all->kept_count--;
}

static struct entry **bucket_of(const struct engine *engine, uint64_t fresh)
{
	return &engine->entries->buckets[fresh & engine->entries->bucket_mask];
}

struct entry *entry_find(struct engine *engine, uint64_t fresh)
{
	struct entry *e = *bucket_of(engine, fresh);

	while (e && e->slot.fresh != fresh)
		e = e->next;
	return e;
}

struct entry *entry_add(struct engine *engine, const struct schedule_slot *slot,
	const struct example *example)
{
	struct entry **bucket = bucket_of(engine, slot->fresh),
		     *e = engine->entries->free;

	engine->entries->free = e->next;
	engine->entries->free_count--;
	*e = (struct entry){
		.next = *bucket,
		.slot = *slot,
		.index = slot->index,
		.example = *example,
		.label = example->label,
		.left = slot->servings - slot->echo,
		.low = slot->echo,
		.was_read = slot->echo > 0,
		.was_decoded = slot->echo > 0,
		.since_ns = meter_now_ns(engine->meter),
	};
	list_init(&e->node);
	list_init(&e->waiting);
	*bucket = e;
	return e;
}

void entry_serve(struct entry *e, const struct schedule_slot *slot)
{
	e->slot = *slot;
	e->left = slot->servings;
}

void entry_drop_kept(struct engine *engine, struct entry *e)
{
	if (!e->kept)
		return;
	entries_drop(engine->entries, memory_cost(e->kept_bytes));
	memory_put(&engine->memory, e->kept);
	e->kept = NULL;
}

void entry_drop_encoded(struct engine *engine, struct entry *e)
{
	memory_put(&engine->memory, e->encoded);
	e->encoded = NULL;
}

static void entry_free(struct engine *engine, struct entry *e)
{
	struct entry **at = bucket_of(engine, e->slot.fresh);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	entry_list(engine, e, ON_NONE);
	entry_drop_kept(engine, e);
	entry_drop_encoded(engine, e);
	free(e->why);
	e->why = NULL;
	e->next = engine->entries->free;
	engine->entries->free = e;
	engine->entries->free_count++;
}

/* -- States and lists ------------------------------------------------------ */

void entry_state(struct engine *engine, struct entry *e, enum entry_state state)
{
	e->state = state;
	e->since_ns = meter_now_ns(engine->meter);
}

static void take_off(struct engine *engine, struct entry *e)
{
	list_del(&e->node);
	engine->entries->ahead_count -= e->on == ON_AHEAD;
}

void entry_list(struct engine *engine, struct entry *e, enum entry_list on)
{
	struct list *heads[] = {
		[ON_NONE] = NULL,
		[ON_URGENT] = &engine->entries->urgent,
		[ON_AHEAD] = &engine->entries->ahead,
		[ON_READY] = &engine->entries->read_ahead,
		[ON_IDLE] = &engine->entries->idle,
	};

	if (e->on == on)
		return;
	take_off(engine, e);
	e->on = on;
	engine->entries->ahead_count += on == ON_AHEAD;
	if (on != ON_NONE)
		list_add_tail(heads[on], &e->node);
}

/* Move the entry to the front of the read queue. */
void entry_read_first(struct engine *engine, struct entry *e)
{
	struct list *head =
		e->planned ? &engine->entries->urgent : &engine->entries->ahead;

	take_off(engine, e);
	e->on = e->planned ? ON_URGENT : ON_AHEAD;
	engine->entries->ahead_count += e->on == ON_AHEAD;
	list_add_tail(head->next, &e->node);
}

static void queue(struct engine *engine, struct serving *s)
{
	s->state = SERVING_QUEUED;
	s->since_ns = meter_now_ns(engine->meter);
	steps_queue(engine->steps, s);
}

static void wait_for(struct entry *e, struct serving *s)
{
	s->state = SERVING_WAITS;
	list_add_tail(&e->waiting, &s->node);
}

void entry_plan(struct engine *engine, struct entry *e, struct serving *s)
{
	e->planned++;
	steps_plan(engine->steps);
	switch (e->state) {
	case ENTRY_ABSENT:
		entry_list(engine, e, ON_URGENT);
		wait_for(e, s);
		break;
	case ENTRY_READING:
	case ENTRY_WORKING:
		wait_for(e, s);
		break;
	case ENTRY_ENCODED:
	case ENTRY_KEPT:
	case ENTRY_FAILED:
		entry_list(engine, e, ON_NONE);
		queue(engine, s);
		break;
	}
}

void entry_wake(struct engine *engine, struct entry *e)
{
	while (!list_empty(&e->waiting)) {
		struct serving *s =
			CONTAINER_OF(e->waiting.next, struct serving, node);

		list_del(&s->node);
		queue(engine, s);
	}
}

void entry_served(struct engine *engine, struct entry *e, uint32_t echo)
{
	steps_done(engine->steps);
	e->planned--;
	e->left--;
	if (e->low == echo)
		e->low++;
}

void entry_settle(struct engine *engine, struct entry *e)
{
	if (e->state == ENTRY_WORKING || e->state == ENTRY_READING || e->users)
		return;
	if (!e->left) {
		entry_free(engine, e);
		return;
	}
	if (e->state == ENTRY_ABSENT) {
		if (e->planned)
			entry_list(engine, e, ON_URGENT);
		return;
	}
	entry_wake(engine, e);
	if (!e->planned && e->state != ENTRY_FAILED)
		entry_list(engine, e, e->planned_once ? ON_IDLE : ON_READY);
}

/* -- Dropping -------------------------------------------------------------- */

static void drop(struct engine *engine, struct entry *e)
{
	entry_drop_kept(engine, e);
	entry_drop_encoded(engine, e);
	entry_state(engine, e, ENTRY_ABSENT);
}

bool entries_reclaim(struct engine *engine)
{
	struct entry *e;

	if (!list_empty(&engine->entries->idle)) {
		e = CONTAINER_OF(
			engine->entries->idle.prev, struct entry, node);
		drop(engine, e);
		entry_list(engine, e, ON_NONE);
		return true;
	}
	if (list_empty(&engine->entries->read_ahead))
		return false;
	e = CONTAINER_OF(engine->entries->read_ahead.prev, struct entry, node);
	drop(engine, e);
	entry_read_first(engine, e);
	return true;
}

/* Servings of the entry that are queued wait again. */
static void unqueue(struct engine *engine, struct entry *e)
{
	for (uint64_t n = steps_first(engine->steps);
		n < steps_end(engine->steps); n++) {
		struct step *st = steps_at(engine->steps, n);

		LIST_FOREACH_SAFE(pos, tmp, &st->ready) {
			struct serving *s =
				CONTAINER_OF(pos, struct serving, node);

			if (s->entry != e)
				continue;
			steps_unqueue(engine->steps, s);
			wait_for(e, s);
		}
	}
}

bool entries_reclaim_queued(struct engine *engine)
{
	for (uint64_t n = steps_end(engine->steps);
		n-- > steps_first(engine->steps);) {
		struct step *st = steps_at(engine->steps, n);

		LIST_FOREACH(pos, &st->ready) {
			struct entry *e =
				CONTAINER_OF(pos, struct serving, node)->entry;

			if ((e->state != ENTRY_ENCODED &&
				    e->state != ENTRY_KEPT) ||
				e->users)
				continue;
			unqueue(engine, e);
			drop(engine, e);
			entry_list(engine, e, ON_URGENT);
			return true;
		}
	}
	return false;
}
