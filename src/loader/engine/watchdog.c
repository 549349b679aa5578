/* SPDX-License-Identifier: MIT */
/*
 * Says what a batch waits for after a time-out. Reads the oldest step with the
 * turn's lock held.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "loader/engine/engine_impl.h"

static const char *stage_of(const struct serving *s)
{
	static const char *const words[] = {
		[ORIGINAL_ABSENT] = "waiting to be read",
		[ORIGINAL_READING] = "reading",
		[ORIGINAL_ENCODED] = "waiting to be decoded",
		[ORIGINAL_WORKING] = "decoding",
		[ORIGINAL_KEPT] = "waiting to be augmented",
		[ORIGINAL_FAILED] = "waiting to be filled",
	};

	if (s->state == SERVING_WORKS && s->original->state == ORIGINAL_KEPT)
		return "augmenting";
	return words[s->original->state];
}

static int32_t stage_number(const struct serving *s)
{
	switch (s->original->state) {
	case ORIGINAL_ABSENT:
	case ORIGINAL_READING:
		return REFRAIN_STAGE_READ;
	case ORIGINAL_ENCODED:
	case ORIGINAL_WORKING:
		return REFRAIN_STAGE_DECODE;
	case ORIGINAL_KEPT:
	case ORIGINAL_FAILED:
		break;
	}
	return REFRAIN_STAGE_AUGMENT;
}

/* Returns the serving that has been in its state for the longest time. */
static const struct serving *oldest(const struct step *st)
{
	const struct serving *found = NULL;

	for (uint32_t i = 0; i < st->count; i++) {
		const struct serving *s = &st->servings[i];

		if (s->state == SERVING_DONE)
			continue;
		if (!found || s->original->since_ns < found->original->since_ns)
			found = s;
	}
	return found;
}

void watchdog_describe(
	const struct steps *steps, struct outcome *outcome, uint64_t waited_ns)
{
	const struct step *st = steps_oldest(steps);
	const struct serving *s = st ? oldest(st) : NULL;
	struct refrain_failure failure;
	struct error *err = outcome_message(outcome);
	double waited = (double)waited_ns / 1e9;

	if (!s) {
		(void)error_set(err, -ETIMEDOUT,
			"no batch after %.3f s: none is planned yet", waited);
		return;
	}
	failure = (struct refrain_failure){
		.error = -ETIMEDOUT,
		.stage = stage_number(s),
		.index = s->original->index,
		.step = st->number,
	};
	outcome_fail(outcome, &failure);
	(void)error_set(err, -ETIMEDOUT,
		"no batch after %.3f s: step %" PRIu64
		" lacks %u of %u examples, '%s' has been %s for %.3f s",
		waited, st->number, st->left, st->count,
		s->original->example.name, stage_of(s),
		(double)(clock_now_ns() - s->original->since_ns) / 1e9);
}
