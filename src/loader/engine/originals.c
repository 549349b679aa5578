/* SPDX-License-Identifier: MIT */
/*
 * The pool. It finds originals by fresh number, from the moment an example is
 * named for reading until its last serving is over. Called with the turn's lock
 * held.
 *
 *	        pump              read              taken by a worker
 *	ABSENT ------> READING --------> ENCODED -------------------> WORKING
 *	  ^ ^             |                 ^  |                       |  | |
 *	  | +-------------+ (read again,    |  +--> ABSENT (dropped)   |  | |
 *	  |   or a substitute)              +--------------------------+  | |
 *	  |                                   no room to keep it decoded  | |
 *	  +---- dropped, or a substitute ---------------------------------+ |
 *	  +---- dropped --- KEPT <-- decoded, or made ----------------------+
 *	READING, WORKING --> FAILED: by policy, or no substitute is intact
 *
 * An original without a planned serving is on one of three lists: to be read
 * ahead, read ahead, or idle. When memory is short, idle originals are dropped,
 * beginning with the one that is needed last. Originals that were read ahead,
 * and starved ones, are dropped only for an image that would not fit otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "loader/engine/idle_files_impl.h"
#include "loader/engine/originals_impl.h"

struct originals {
	/* Set once; the lock guards all below */
	const struct engine_parts *parts;
	struct original *table, *free;
	struct part_span *spans; /* NULL: each original has one part */
	uint32_t parts_n;
	uint32_t count, free_count;
	struct original **buckets;
	uint32_t bucket_mask;
	struct list urgent, ahead, read_ahead, starved;
	struct idle idle;
	uint32_t ahead_count; /* number of originals on `ahead` */
	uint32_t incoming;    /* number of originals whose `incoming` is set */
	uint64_t kept_bytes;  /* bytes charged for `kept` of all originals */
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

static uint64_t spans_count(uint64_t count, uint32_t parts)
{
	return parts > 1 ? count * parts : 0;
}

uint64_t originals_bytes(uint64_t count, uint32_t parts)
{
	return count * sizeof(struct original) + idle_bytes(count) +
		spans_count(count, parts) * sizeof(struct part_span) +
		bucket_count(count) * sizeof(struct original *);
}

int originals_new(struct originals **out, const struct engine_parts *parts,
	uint64_t count)
{
	struct originals *pool = calloc(1, sizeof(*pool));
	uint32_t buckets = bucket_count(count);

	if (!pool)
		return -ENOMEM;
	*out = pool;
	pool->parts = parts;
	list_init(&pool->urgent);
	list_init(&pool->ahead);
	list_init(&pool->read_ahead);
	list_init(&pool->starved);
	if (count > UINT32_MAX / 2)
		return -ENOMEM;
	pool->table = calloc(count, sizeof(*pool->table));
	pool->buckets = calloc(buckets, sizeof(struct original *));
	if (!pool->table || !pool->buckets ||
		idle_init(&pool->idle, (uint32_t)count) < 0)
		return -ENOMEM;
	pool->parts_n = dataset_parts(parts->dataset);
	if (pool->parts_n > 1) {
		pool->spans = calloc(spans_count(count, pool->parts_n),
			sizeof(*pool->spans));
		if (!pool->spans)
			return -ENOMEM;
	}
	pool->count = pool->free_count = (uint32_t)count;
	pool->bucket_mask = buckets - 1;
	for (uint64_t i = 0; i < count; i++) {
		pool->table[i].next = pool->free;
		pool->free = &pool->table[i];
	}
	return 0;
}

void originals_free(struct originals *pool)
{
	for (uint32_t i = 0; pool && pool->table && i < pool->count; i++) {
		struct original *o = &pool->table[i];

		free(o->why);
		memory_put(pool->parts->memory, o->encoded);
		memory_put(pool->parts->memory, o->kept);
	}
	if (pool) {
		free(pool->table);
		free(pool->spans);
		free(pool->buckets);
		idle_release(&pool->idle);
	}
	free(pool);
}

struct part_span *original_parts(
	const struct originals *pool, const struct original *o)
{
	return pool->spans ? pool->spans + (o - pool->table) * pool->parts_n
			   : NULL;
}

/* -- Queries --------------------------------------------------------------- */

uint32_t originals_unused(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return pool->free_count;
}

uint32_t originals_ahead(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return pool->ahead_count;
}

static struct original *first_on_list(const struct list *list)
{
	return list_empty(list) ? NULL
				: LIST_FIRST(list, struct original, node);
}

struct original *originals_first_urgent(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return first_on_list(&pool->urgent);
}

struct original *originals_first_ahead(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return first_on_list(&pool->ahead);
}

struct original *originals_first_starved(
	const struct originals *pool, uint64_t *bytes)
{
	struct original *o = first_on_list(&pool->starved);

	ASSERT_TURN(pool->parts->turn);
	if (bytes)
		*bytes = o ? o->starved_bytes : 0;
	return o;
}

uint32_t originals_incoming(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return pool->incoming;
}

uint64_t originals_kept_bytes(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return pool->kept_bytes;
}

uint32_t originals_kept(const struct originals *pool)
{
	ASSERT_TURN(pool->parts->turn);
	return pool->kept_count;
}

void originals_keep(struct originals *pool, uint64_t cost)
{
	ASSERT_TURN(pool->parts->turn);
	pool->kept_bytes += cost;
	pool->kept_count++;
}

void originals_drop(struct originals *pool, uint64_t cost)
{
	ASSERT_TURN(pool->parts->turn);
	pool->kept_bytes -= cost;
	pool->kept_count--;
}

static struct original **bucket_of(const struct originals *pool, uint64_t fresh)
{
	return &pool->buckets[fresh & pool->bucket_mask];
}

struct original *original_find(const struct originals *pool, uint64_t fresh)
{
	struct original *o = *bucket_of(pool, fresh);

	ASSERT_TURN(pool->parts->turn);
	while (o && o->slot.fresh != fresh)
		o = o->next;
	return o;
}

void original_forget_sizes(struct originals *pool, struct original *o)
{
	struct part_span *span = original_parts(pool, o);

	o->size_hint = 0;
	for (uint32_t i = 0; span && i < pool->parts_n; i++)
		span[i].file_bytes = 0;
}

struct original *original_add(struct originals *pool,
	const struct schedule_slot *slot, const struct example *example)
{
	struct original **bucket = bucket_of(pool, slot->fresh),
			*o = pool->free;

	ASSERT_TURN(pool->parts->turn);
	pool->free = o->next;
	pool->free_count--;
	*o = (struct original){
		.next = *bucket,
		.slot = *slot,
		.index = slot->index,
		.example = *example,
		.label = example->label,
		.left = slot->servings - slot->echo,
		.low = slot->echo,
		.was_read = slot->echo > 0,
		.was_decoded = slot->echo > 0,
		.since_ns = meter_now_ns(pool->parts->meter),
	};
	original_forget_sizes(pool, o);
	list_init(&o->node);
	list_init(&o->waiting);
	*bucket = o;
	return o;
}

void original_serve(struct original *o, const struct schedule_slot *slot)
{
	o->slot = *slot;
	o->left = slot->servings;
}

void original_drop_kept(struct originals *pool, struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	if (!o->kept)
		return;
	originals_drop(pool, memory_cost(o->kept_bytes));
	memory_put(pool->parts->memory, o->kept);
	o->kept = NULL;
}

bool original_is_file(const struct original *o, uint64_t *index)
{
	*index = o->index;
	return o->example.whole;
}

void original_drop_encoded(struct originals *pool, struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	memory_put(pool->parts->memory, o->encoded);
	o->encoded = NULL;
}

static void original_free(struct originals *pool, struct original *o)
{
	struct original **at = bucket_of(pool, o->slot.fresh);

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	original_list(pool, o, ON_NONE);
	original_drop_kept(pool, o);
	original_drop_encoded(pool, o);
	free(o->why);
	o->why = NULL;
	o->next = pool->free;
	pool->free = o;
	pool->free_count++;
}

/* -- States and lists ------------------------------------------------------ */

void original_state(
	struct originals *pool, struct original *o, enum original_state state)
{
	ASSERT_TURN(pool->parts->turn);
	if (state == ORIGINAL_READING && !o->incoming) {
		o->incoming = true;
		pool->incoming++;
	}
	if (state == ORIGINAL_ABSENT || state == ORIGINAL_KEPT ||
		state == ORIGINAL_FAILED)
		original_used(pool, o);
	o->state = state;
	o->since_ns = meter_now_ns(pool->parts->meter);
}

void original_used(struct originals *pool, struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	pool->incoming -= o->incoming;
	o->incoming = false;
}

/* Returns the step of a serving. It may not be known after a state was
 * restored, or if the echo factor changes; this affects only speed. */
static uint64_t serving_step_of(
	const struct originals *pool, const struct original *o, uint32_t echo)
{
	uint64_t step;

	return schedule_serving_step(
		       pool->parts->schedule, o->slot.fresh, echo, &step) < 0
		? UINT64_MAX
		: step;
}

uint64_t original_next_step(
	const struct originals *pool, const struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	if (o->planned > 1)
		/* another serving is planned already, so it comes soon */
		return 0;
	return serving_step_of(pool, o, o->slot.servings - o->left + 1);
}

static void take_off(struct originals *pool, struct original *o)
{
	if (o->on == ON_IDLE)
		idle_remove(&pool->idle, o);
	else
		list_del(&o->node);
	pool->ahead_count -= o->on == ON_AHEAD;
}

void original_list(
	struct originals *pool, struct original *o, enum original_list on)
{
	struct list *heads[] = {
		[ON_NONE] = NULL,
		[ON_URGENT] = &pool->urgent,
		[ON_AHEAD] = &pool->ahead,
		[ON_READY] = &pool->read_ahead,
		[ON_IDLE] = NULL,
		[ON_STARVED] = &pool->starved,
	};

	ASSERT_TURN(pool->parts->turn);
	if (o->on == on)
		return;
	take_off(pool, o);
	o->on = on;
	pool->ahead_count += on == ON_AHEAD;
	if (heads[on])
		list_add_tail(heads[on], &o->node);
	if (on != ON_IDLE)
		return;
	o->next_step = serving_step_of(pool, o, o->slot.servings - o->left);
	idle_add(&pool->idle, o);
}

/* Put the original first in its list of originals to read. */
void original_read_first(struct originals *pool, struct original *o)
{
	struct list *head = o->planned ? &pool->urgent : &pool->ahead;

	ASSERT_TURN(pool->parts->turn);
	take_off(pool, o);
	o->on = o->planned ? ON_URGENT : ON_AHEAD;
	pool->ahead_count += o->on == ON_AHEAD;
	list_add_tail(list_next(head), &o->node);
}

static void queue(struct originals *pool, struct serving *s)
{
	s->state = SERVING_QUEUED;
	s->since_ns = meter_now_ns(pool->parts->meter);
	steps_queue(pool->parts->steps, s);
}

void original_wait(struct original *o, struct serving *s)
{
	s->state = SERVING_WAITS;
	list_add_tail(&o->waiting, &s->node);
}

/* Queue a planned serving, or make it wait for its original. */
static void original_begin(
	struct originals *pool, struct original *o, struct serving *s)
{
	o->planned++;
	switch (o->state) {
	case ORIGINAL_ABSENT:
		original_list(pool, o, ON_URGENT);
		original_wait(o, s);
		break;
	case ORIGINAL_READING:
	case ORIGINAL_WORKING:
		original_wait(o, s);
		break;
	case ORIGINAL_ENCODED:
	case ORIGINAL_KEPT:
	case ORIGINAL_FAILED:
		if (o->on == ON_STARVED) {
			original_wait(o, s);
			break;
		}
		original_list(pool, o, ON_NONE);
		queue(pool, s);
		break;
	}
}

static void note_planned(
	struct originals *pool, struct original *o, const struct serving *s)
{
	o->planned_once = true;
	o->last_step = s->step->number;
	steps_plan(pool->parts->steps);
}

void original_plan(
	struct originals *pool, struct original *o, struct serving *s)
{
	ASSERT_TURN(pool->parts->turn);
	note_planned(pool, o, s);
	original_begin(pool, o, s);
}

void original_pull(
	struct originals *pool, struct original *o, struct serving *s)
{
	ASSERT_TURN(pool->parts->turn);
	note_planned(pool, o, s);
	if (!o->planned)
		original_list(pool, o, ON_NONE); /* it need not be read */
	o->pulled++;
	s->state = SERVING_WAITS;
}

bool original_step_before(const struct original *o, uint64_t *step)
{
	*step = o->last_step;
	return o->planned_once;
}

bool original_take(
	struct originals *pool, struct serving *s, enum original_state *state)
{
	struct original *o = s->original;

	ASSERT_TURN(pool->parts->turn);
	*state = o->state;
	switch (o->state) {
	case ORIGINAL_ENCODED:
		original_state(pool, o, ORIGINAL_WORKING);
		return true;
	case ORIGINAL_KEPT:
	case ORIGINAL_FAILED:
		return true;
	default:
		original_wait(o, s);
		return false;
	}
}

/* Queue the servings that wait for this original, because its file or its kept
 * data is there. */
static void original_wake(struct originals *pool, struct original *o)
{
	while (!list_empty(&o->waiting)) {
		struct serving *s =
			LIST_FIRST(&o->waiting, struct serving, node);

		list_del(&s->node);
		queue(pool, s);
	}
}

void original_starve(struct originals *pool, struct original *o,
	struct serving *s, uint64_t bytes)
{
	ASSERT_TURN(pool->parts->turn);
	original_wait(o, s);
	original_state(pool, o, ORIGINAL_ENCODED);
	o->starved_bytes = bytes;
	original_list(pool, o, ON_STARVED);
}

void original_feed(struct originals *pool, struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	original_list(pool, o, ON_NONE);
	original_wake(pool, o);
}

void original_served(struct originals *pool, struct serving *s)
{
	struct original *o = s->original;

	ASSERT_TURN(pool->parts->turn);
	steps_done(pool->parts->steps, s);
	o->planned--;
	o->left--;
	if (o->low == s->echo)
		o->low++;
}

void original_pulled(struct originals *pool, struct serving *s)
{
	struct original *o = s->original;

	ASSERT_TURN(pool->parts->turn);
	steps_done(pool->parts->steps, s);
	o->pulled--;
	o->left--;
	if (o->low == s->echo)
		o->low++;
	if (!o->left)
		original_free(pool, o); /* nobody else can have it */
}

void original_make(struct originals *pool, struct serving *s)
{
	ASSERT_TURN(pool->parts->turn);
	s->original->pulled--;
	original_begin(pool, s->original, s);
}

void original_settle(struct originals *pool, struct original *o)
{
	ASSERT_TURN(pool->parts->turn);
	if (o->state == ORIGINAL_WORKING || o->state == ORIGINAL_READING ||
		o->users)
		return;
	if (!o->left) {
		original_free(pool, o);
		return;
	}
	if (o->state == ORIGINAL_ABSENT) {
		if (o->planned)
			original_list(pool, o, ON_URGENT);
		return;
	}
	original_wake(pool, o);
	if (!o->planned && o->state != ORIGINAL_FAILED)
		original_list(pool, o, o->planned_once ? ON_IDLE : ON_READY);
}

/* -- Dropping -------------------------------------------------------------- */

static void drop(struct originals *pool, struct original *o)
{
	original_drop_kept(pool, o);
	original_drop_encoded(pool, o);
	original_state(pool, o, ORIGINAL_ABSENT);
}

bool originals_reclaim_idle(struct originals *pool, uint64_t step)
{
	struct original *o = idle_last(&pool->idle);

	ASSERT_TURN(pool->parts->turn);
	if (!o || o->next_step <= step)
		return false;
	drop(pool, o);
	original_list(pool, o, ON_NONE);
	return true;
}

/* Drop the last original of the list, because it is needed last. */
bool originals_reclaim_unused(struct originals *pool)
{
	struct list *from = list_empty(&pool->read_ahead) ? &pool->starved
							  : &pool->read_ahead;
	struct original *o;

	ASSERT_TURN(pool->parts->turn);
	if (list_empty(from))
		return false;
	o = LIST_LAST(from, struct original, node);
	drop(pool, o);
	original_read_first(pool, o);
	return true;
}
