/* SPDX-License-Identifier: MIT */
/*
 * Handles examples that cannot be read or decoded. They are counted. Then,
 * depending on the configured policy, another example is substituted, the
 * original fails, or the run ends. Called with the turn's lock held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/lock.h"
#include "loader/engine/damage_impl.h"

#define SUBSTITUTES_MAX 16
/* The bytes "substitu" */
#define SUBSTITUTE_PURPOSE UINT64_C(0x7375627374697475)

static void count_damaged(const struct engine_parts *parts, uint64_t index)
{
	uint64_t bytes;

	meter_damaged(
		parts->meter, index, dataset_count(parts->dataset), &bytes);
	memory_charge_over(parts->memory, bytes);
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

/* Substitute the next candidate. */
static void substitute(const struct engine_parts *parts, struct original *o)
{
	uint64_t words[] = {
		SUBSTITUTE_PURPOSE, o->slot.pass, o->slot.index, ++o->attempt};

	o->index = schedule_substitute(parts->schedule, &o->slot,
		hash64(words, sizeof(words), parts->c->seed));
	dataset_example_in(parts->dataset, o->index, parts->c->seed,
		o->slot.pass, &o->example);
	o->label = o->example.label;
	original_forget_sizes(parts->pool, o);
	o->tries = 0;
	o->picture = (struct picture){.declined = false};
	o->was_read = o->was_decoded = o->slot.echo > 0;
	original_state(parts->pool, o, ORIGINAL_ABSENT);
	original_read_first(parts->pool, o);
}

/* Does the error mean that the machine has run out of a resource? Then the
 * example is not damaged. */
static bool is_of_machine(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE ||
		error == -ELIBACC;
}

static void stop_for_want(
	const struct engine_parts *parts, const struct original *o, int error)
{
	const char *advice = "lower memory_bytes, or let the process use more "
			     "memory";
	struct refrain_failure failure = {
		.error = error,
		.stage = o->error_stage,
		.index = o->index,
		.step = steps_first(parts->steps),
	};

	if (error == -EMFILE)
		advice = "raise the limit of open files (ulimit -n), or lower "
			 "reads_ahead";
	else if (error == -ENFILE)
		advice = "raise /proc/sys/fs/file-max";
	else if (error == -ELIBACC)
		advice = "install libspng (in Debian: libspng0)";
	(void)outcome_stop(parts->outcome, error);
	outcome_fail(parts->outcome, &failure);
	(void)error_set(outcome_message(parts->outcome), error, "%s; %s",
		outcome_damage(parts->outcome)->msg, advice);
}

/* Count the damage. The message is stored for the example itself, but not for
 * its substitutes. */
static void note_why(const struct engine_parts *parts, struct original *o,
	int error, const char *stage)
{
	count_damaged(parts, o->index);
	if (o->error) {
		meter_stats(parts->meter)->substitute_errors++;
		return;
	}
	count_error(meter_stats(parts->meter), error, stage);
	o->error = error;
	o->error_index = o->index;
	o->why = strdup(outcome_damage(parts->outcome)
				/* If memory has run out, only the error number
				 * is reported */
				->msg);
}

static void note_no_substitute(struct original *o)
{
	struct error why;

	if (!o->why || !o->attempt)
		return;
	(void)error_set(&why, o->error,
		"%s; none of %u substitutes could be used", o->why, o->attempt);
	free(o->why);
	o->why = strdup(why.msg);
}

void damage_fail(const struct engine_parts *parts, struct original *o,
	int error, const char *stage, const char *what)
{
	ASSERT_TURN(parts->turn);
	(void)error_set(outcome_damage(parts->outcome), error,
		"cannot %s '%s': %s", stage, o->example.name, what);
	original_drop_kept(parts->pool, o);
	original_drop_encoded(parts->pool, o);
	if (!o->error)
		o->error_stage = stage[0] == 'r' ? REFRAIN_STAGE_READ
						 : REFRAIN_STAGE_DECODE;
	if (is_of_machine(error))
		stop_for_want(parts, o, error);
	else
		note_why(parts, o, error, stage);
	if (!is_of_machine(error) && parts->c->policy == REFRAIN_SUBSTITUTE &&
		dataset_count(parts->dataset) > 1 &&
		o->attempt < SUBSTITUTES_MAX) {
		substitute(parts, o);
		return;
	}
	if (is_of_machine(error))
		o->error = error;
	else
		note_no_substitute(o);
	original_list(parts->pool, o, ON_NONE);
	original_state(parts->pool, o, ORIGINAL_FAILED);
	original_settle(parts->pool, o);
}
