/* SPDX-License-Identifier: MIT */
/*
 * Handles examples that cannot be read or decoded. They are counted; then, by
 * the policy, another example takes the place, the entry fails, or the run
 * ends. Entered under the engine's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_impl.h"

#define SUBSTITUTES_MAX 16
#define SUBSTITUTE_PURPOSE UINT64_C(0x7375627374697475) /* "substitu" */

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
	entry_read_first(engine, e);
}

/* A lack of resources in the process says nothing about the example. */
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
		.step = steps_first(engine->steps),
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
	entry_drop_kept(engine, e);
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
