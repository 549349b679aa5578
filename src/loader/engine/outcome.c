/* SPDX-License-Identifier: MIT */
/*
 * The outcome of a run; see outcome_impl.h. Called with the turn's lock held.
 */
#include "loader/engine/outcome_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/lock.h"

struct outcome {
	const struct turn *turn;
	/* Changed with the lock held; atomic, because start_reads() of engine.c
	 * reads it without the lock. */
	_Atomic bool closing;
	int stopped;
	struct error message, damage;
	struct refrain_failure failure;
};

int outcome_new(struct outcome **out, const struct turn *turn)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->turn = turn;
	return 0;
}

void outcome_free(struct outcome *o)
{
	free(o);
}

void outcome_close(struct outcome *o)
{
	ASSERT_TURN(o->turn);
	o->closing = true;
}

bool outcome_closing(const struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return atomic_load_explicit(&o->closing, memory_order_relaxed);
}

bool outcome_closing_now(const struct outcome *o)
{
	return o->closing;
}

int outcome_stop(struct outcome *o, int error)
{
	ASSERT_TURN(o->turn);
	o->stopped = error;
	return error;
}

int outcome_stopped(const struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return o->stopped;
}

struct error *outcome_message(struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return &o->message;
}

struct error *outcome_damage(struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return &o->damage;
}

const struct error *outcome_why(const struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return o->message.msg[0] ? &o->message : &o->damage;
}

void outcome_fail(struct outcome *o, const struct refrain_failure *failure)
{
	ASSERT_TURN(o->turn);
	o->failure = *failure;
}

void outcome_begin_call(struct outcome *o)
{
	ASSERT_TURN(o->turn);
	if (!o->stopped)
		o->failure.error = 0;
}

const struct refrain_failure *outcome_failure(const struct outcome *o)
{
	ASSERT_TURN(o->turn);
	return &o->failure;
}
