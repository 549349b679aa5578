/* SPDX-License-Identifier: MIT */
/*
 * Handles examples that cannot be read or decoded. It counts them. Then,
 * depending on the policy, another example is substituted, the original fails,
 * or the run ends. Entered with the turn's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/lock.h"
#include "loader/engine/damage_impl.h"

struct damage {
	struct damage_config use;
};

#define SUBSTITUTES_MAX 16
#define SUBSTITUTE_PURPOSE UINT64_C(0x7375627374697475) /* "substitu" */

int damage_new(struct damage **out, const struct damage_config *config)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->use = *config;
	return 0;
}

void damage_free(struct damage *d)
{
	free(d);
}

static void count_damaged(struct damage *d, uint64_t index)
{
	uint64_t bytes;

	meter_damaged(
		d->use.meter, index, dataset_count(d->use.dataset), &bytes);
	memory_charge_over(d->use.memory, bytes);
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
static void substitute(struct damage *d, struct original *o)
{
	uint64_t words[] = {
		SUBSTITUTE_PURPOSE, o->slot.epoch, o->slot.index, ++o->attempt};

	o->index = hash64(words, sizeof(words), d->use.s->c.seed) %
		dataset_count(d->use.dataset);
	dataset_example(d->use.dataset, o->index, &o->example);
	o->label = o->example.label;
	o->size_hint = 0;
	o->tries = 0;
	o->picture = (struct picture){.declined = false};
	o->was_read = o->was_decoded = o->slot.echo > 0;
	original_state(d->use.pool, o, ORIGINAL_ABSENT);
	original_read_first(d->use.pool, o);
}

/*
 * A lack of resources of the process does not mean that the example is damaged.
 */
static bool is_of_machine(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

static void stop_for_want(struct damage *d, const struct original *o, int error)
{
	const char *advice = "lower memory_bytes, or let the process use more "
			     "memory";
	struct refrain_failure failure = {
		.error = error,
		.stage = o->error_stage,
		.index = o->index,
		.step = steps_first(d->use.steps),
	};

	if (error == -EMFILE)
		advice = "raise the limit of open files (ulimit -n), or lower "
			 "reads_ahead";
	else if (error == -ENFILE)
		advice = "raise /proc/sys/fs/file-max";
	(void)outcome_stop(d->use.outcome, error);
	outcome_fail(d->use.outcome, &failure);
	(void)error_set(outcome_message(d->use.outcome), error, "%s; %s",
		outcome_damage(d->use.outcome)->msg, advice);
}

/* Keep why the example failed; its substitutes are another matter. */
static void note_why(
	struct damage *d, struct original *o, int error, const char *stage)
{
	count_damaged(d, o->index);
	if (o->error) {
		meter_stats(d->use.meter)->substitute_errors++;
		return;
	}
	count_error(meter_stats(d->use.meter), error, stage);
	o->error = error;
	o->error_index = o->index;
	o->why = strdup(outcome_damage(d->use.outcome)
				->msg); /* without it: the number */
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

void damage_fail(struct damage *d, struct original *o, int error,
	const char *stage, const char *what)
{
	ASSERT_TURN(d->use.turn);
	(void)error_set(outcome_damage(d->use.outcome), error,
		"cannot %s '%s': %s", stage, o->example.name, what);
	original_drop_kept(d->use.pool, o);
	original_drop_encoded(d->use.pool, o);
	if (!o->error)
		o->error_stage = stage[0] == 'r' ? REFRAIN_STAGE_READ
						 : REFRAIN_STAGE_DECODE;
	if (is_of_machine(error))
		stop_for_want(d, o, error);
	else
		note_why(d, o, error, stage);
	if (!is_of_machine(error) && d->use.s->c.policy == REFRAIN_SUBSTITUTE &&
		dataset_count(d->use.dataset) > 1 &&
		o->attempt < SUBSTITUTES_MAX) {
		substitute(d, o);
		return;
	}
	if (is_of_machine(error))
		o->error = error;
	else
		note_no_substitute(o);
	original_list(d->use.pool, o, ON_NONE);
	original_state(d->use.pool, o, ORIGINAL_FAILED);
	original_settle(d->use.pool, o);
}
