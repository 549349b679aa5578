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

#define SUBSTITUTES_MAX 16
#define SUBSTITUTE_PURPOSE UINT64_C(0x7375627374697475) /* "substitu" */

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

int entries_init(struct engine *engine, uint64_t count)
{
	uint32_t buckets = bucket_count(count);

	list_init(&engine->urgent);
	list_init(&engine->ahead);
	list_init(&engine->read_ahead);
	list_init(&engine->idle_entries);
	if (count > UINT32_MAX / 2)
		return -ENOMEM;
	engine->entries = calloc(count, sizeof(*engine->entries));
	engine->buckets = calloc(buckets, sizeof(struct entry *));
	if (!engine->entries || !engine->buckets)
		return -ENOMEM;
	engine->entries_count = engine->free_entries = (uint32_t)count;
	engine->bucket_mask = buckets - 1;
	for (uint64_t i = 0; i < count; i++) {
		engine->entries[i].next = engine->entries_free;
		engine->entries_free = &engine->entries[i];
	}
	return 0;
}

/* Buffers of entries that a read has stay. */
void entries_release(struct engine *engine)
{
	for (uint32_t i = 0; engine->entries && i < engine->entries_count;
		i++) {
		struct entry *e = &engine->entries[i];

		free(e->why);
		memory_put(&engine->memory, e->encoded);
		memory_put(&engine->memory, e->kept);
	}
	free(engine->entries);
	free(engine->buckets);
	engine->entries = NULL;
	engine->buckets = NULL;
}

static struct entry **bucket_of(const struct engine *engine, uint64_t fresh)
{
	return &engine->buckets[fresh & engine->bucket_mask];
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
		     *e = engine->entries_free;

	engine->entries_free = e->next;
	engine->free_entries--;
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

static void drop_kept(struct engine *engine, struct entry *e)
{
	if (!e->kept)
		return;
	engine->kept_bytes -= memory_cost(e->kept_bytes);
	engine->kept_count--;
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
	drop_kept(engine, e);
	entry_drop_encoded(engine, e);
	free(e->why);
	e->why = NULL;
	e->next = engine->entries_free;
	engine->entries_free = e;
	engine->free_entries++;
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
	engine->ahead_count -= e->on == ON_AHEAD;
}

void entry_list(struct engine *engine, struct entry *e, enum entry_list on)
{
	struct list *heads[] = {
		[ON_NONE] = NULL,
		[ON_URGENT] = &engine->urgent,
		[ON_AHEAD] = &engine->ahead,
		[ON_READY] = &engine->read_ahead,
		[ON_IDLE] = &engine->idle_entries,
	};

	if (e->on == on)
		return;
	take_off(engine, e);
	e->on = on;
	engine->ahead_count += on == ON_AHEAD;
	if (on != ON_NONE)
		list_add_tail(heads[on], &e->node);
}

/* To the front of what is to be read. */
static void read_first(struct engine *engine, struct entry *e)
{
	struct list *head = e->planned ? &engine->urgent : &engine->ahead;

	take_off(engine, e);
	e->on = e->planned ? ON_URGENT : ON_AHEAD;
	engine->ahead_count += e->on == ON_AHEAD;
	list_add_tail(head->next, &e->node);
}

static void queue(struct engine *engine, struct serving *s)
{
	s->state = SERVING_QUEUED;
	s->since_ns = meter_now_ns(engine->meter);
	list_add_tail(&s->step->ready, &s->node);
	engine->ready++;
}

static void wait_for(struct entry *e, struct serving *s)
{
	s->state = SERVING_WAITS;
	list_add_tail(&e->waiting, &s->node);
}

void entry_plan(struct engine *engine, struct entry *e, struct serving *s)
{
	e->planned++;
	engine->unfinished++;
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
	engine->unfinished--;
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
	drop_kept(engine, e);
	entry_drop_encoded(engine, e);
	entry_state(engine, e, ENTRY_ABSENT);
}

bool entries_reclaim(struct engine *engine)
{
	struct entry *e;

	if (!list_empty(&engine->idle_entries)) {
		e = CONTAINER_OF(engine->idle_entries.prev, struct entry, node);
		drop(engine, e);
		entry_list(engine, e, ON_NONE);
		return true;
	}
	if (list_empty(&engine->read_ahead))
		return false;
	e = CONTAINER_OF(engine->read_ahead.prev, struct entry, node);
	drop(engine, e);
	read_first(engine, e);
	return true;
}

/* Servings of the entry that are queued wait again. */
static void unqueue(struct engine *engine, struct entry *e)
{
	for (uint64_t n = engine->step_first; n < engine->step_end; n++) {
		struct step *st = step_of(engine, n);

		LIST_FOREACH_SAFE(pos, tmp, &st->ready) {
			struct serving *s =
				CONTAINER_OF(pos, struct serving, node);

			if (s->entry != e)
				continue;
			list_del(&s->node);
			engine->ready--;
			wait_for(e, s);
		}
	}
}

bool entries_reclaim_queued(struct engine *engine)
{
	for (uint64_t n = engine->step_end; n-- > engine->step_first;) {
		struct step *st = step_of(engine, n);

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

/* -- Damage ---------------------------------------------------------------- */

static void count_damaged(struct engine *engine, uint64_t index)
{
	uint64_t bytes;

	meter_damaged(engine->meter, index, engine->examples, &bytes);
	memory_charge_over(&engine->memory, bytes);
}

static void count_error(struct refrain_stats *out, int error, const char *stage)
{
	out->errors++;
	if (error == -E2BIG)
		out->errors_too_large++;
	else if (error == -EMEDIUMTYPE)
		out->errors_format++;
	else if (error == -EBADMSG || strcmp(stage, "read") != 0)
		out->errors_damaged++;
	else
		out->errors_read++;
}

/* The next candidate. */
static void substitute(struct engine *engine, struct entry *e)
{
	uint64_t words[] = {
		SUBSTITUTE_PURPOSE, e->slot.epoch, e->slot.index, ++e->attempt};

	e->index = hash64(words, sizeof(words), engine->s.c.seed) %
		engine->examples;
	dataset_example(engine->dataset, e->index, &e->example);
	e->label = e->example.label;
	e->size_hint = 0;
	e->tries = 0;
	e->picture = (struct picture){.declined = false};
	e->was_read = e->was_decoded = e->slot.echo > 0;
	entry_state(engine, e, ENTRY_ABSENT);
	read_first(engine, e);
}

/* What the process lacks says nothing about the example. */
static bool is_local(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

static void stop_for_want(
	struct engine *engine, const struct entry *e, int error)
{
	const char *advice = "lower memory_bytes, or give the process more";

	if (error == -EMFILE)
		advice = "raise the limit of open files (ulimit -n), or lower "
			 "reads_ahead";
	else if (error == -ENFILE)
		advice = "raise /proc/sys/fs/file-max";
	engine->stopped = error;
	engine->failure = (struct refrain_failure){
		.error = error,
		.stage = e->error_stage,
		.index = e->index,
		.step = engine->step_first,
	};
	(void)error_set(
		&engine->message, error, "%s; %s", engine->damage.msg, advice);
}

/* Keep why the example failed; its substitutes are another matter. */
static void note_why(
	struct engine *engine, struct entry *e, int error, const char *stage)
{
	count_damaged(engine, e->index);
	if (e->error) {
		meter_stats(engine->meter)->substitute_errors++;
		return;
	}
	count_error(meter_stats(engine->meter), error, stage);
	e->error = error;
	e->error_index = e->index;
	e->why = strdup(engine->damage.msg); /* without it: the number */
}

static void note_no_substitute(struct entry *e)
{
	struct error why;

	if (!e->why || !e->attempt)
		return;
	(void)error_set(&why, e->error,
		"%s; none of %u substitutes could be used", e->why, e->attempt);
	free(e->why);
	e->why = strdup(why.msg);
}

void entry_fail(struct engine *engine, struct entry *e, int error,
	const char *stage, const char *what)
{
	(void)error_set(&engine->damage, error, "cannot %s '%s': %s", stage,
		e->example.name, what);
	drop_kept(engine, e);
	entry_drop_encoded(engine, e);
	if (!e->error)
		e->error_stage = stage[0] == 'r' ? REFRAIN_STAGE_READ
						 : REFRAIN_STAGE_DECODE;
	if (is_local(error))
		stop_for_want(engine, e, error);
	else
		note_why(engine, e, error, stage);
	if (!is_local(error) && engine->s.c.policy == REFRAIN_SUBSTITUTE &&
		engine->examples > 1 && e->attempt < SUBSTITUTES_MAX) {
		substitute(engine, e);
		return;
	}
	if (is_local(error))
		e->error = error;
	else
		note_no_substitute(e);
	entry_list(engine, e, ON_NONE);
	entry_state(engine, e, ENTRY_FAILED);
	entry_settle(engine, e);
}
