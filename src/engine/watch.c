/* SPDX-License-Identifier: MIT */
/*
 * Describes what a batch waits for, after a time-out. Looks at the oldest step
 * under the loader's lock.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "engine/engine_impl.h"

static const char *stage_of(const struct serving *s)
{
	static const char *const words[] = {
		[ENTRY_ABSENT] = "waiting to be read",
		[ENTRY_READING] = "reading",
		[ENTRY_ENCODED] = "waiting to be decoded",
		[ENTRY_WORKING] = "decoding",
		[ENTRY_KEPT] = "waiting to be augmented",
		[ENTRY_FAILED] = "waiting to be filled",
	};

	if (s->state == SERVING_WORKS && s->entry->state == ENTRY_KEPT)
		return "augmenting";
	return words[s->entry->state];
}

static int32_t stage_number(const struct serving *s)
{
	switch (s->entry->state) {
	case ENTRY_ABSENT:
	case ENTRY_READING:
		return REFRAIN_STAGE_READ;
	case ENTRY_ENCODED:
	case ENTRY_WORKING:
		return REFRAIN_STAGE_DECODE;
	case ENTRY_KEPT:
	case ENTRY_FAILED:
		break;
	}
	return REFRAIN_STAGE_AUGMENT;
}

/* The one that has been in its state for longest. */
static const struct serving *oldest(const struct step *st)
{
	const struct serving *found = NULL;

	for (uint32_t i = 0; i < st->count; i++) {
		const struct serving *s = &st->servings[i];

		if (s->state == SERVING_DONE)
			continue;
		if (!found || s->entry->since_ns < found->entry->since_ns)
			found = s;
	}
	return found;
}

void watch_describe(
	struct engine *engine, struct error *err, int rc, uint64_t waited_ns)
{
	const struct step *st = steps_oldest(engine->steps);
	const struct serving *s = st ? oldest(st) : NULL;
	double waited = (double)waited_ns / 1e9;

	if (!s) {
		(void)error_set(err, rc,
			"no batch after %.3f s: none is planned yet", waited);
		return;
	}
	engine->failure = (struct refrain_failure){
		.error = rc,
		.stage = stage_number(s),
		.index = s->entry->index,
		.step = st->number,
	};
	(void)error_set(err, rc,
		"no batch after %.3f s: step %" PRIu64
		" lacks %u of %u examples, '%s' has been %s for %.3f s",
		waited, st->number, st->left, st->count, s->entry->example.name,
		stage_of(s),
		(double)(clock_now_ns() - s->entry->since_ns) / 1e9);
}
