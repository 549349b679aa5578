/* SPDX-License-Identifier: MIT */
/*
 * The echo stage (include/refrain/echo.h). This header is shared by its files
 * and by tests, which have a clock of their own. One thread at a time uses a
 * stage.
 */
#ifndef API_ECHO_STAGE_IMPL_H
#define API_ECHO_STAGE_IMPL_H

#include <refrain/echo.h>

#include "common/base/err.h"
#include "common/schedule/schedule.h"
#include "loader/api/stage_meter_impl.h"
#include "loader/core/settings.h"
#include "loader/engine/echo_log.h"

/*
 *	        next              pulled, ended
 *	IDLE ---------> PULLING ---------------> IDLE
 *	  |      next              served
 *	  +-----------> SERVING ---------------> IDLE
 *
 * The arrows are calls of refrain_echo_NAME(). In PULLING and SERVING, `next`
 * returns the same action again. `begin` leads from any state to IDLE.
 */
enum stage_state { STAGE_IDLE, STAGE_PULLING, STAGE_SERVING };

struct refrain_echo {
	uint32_t magic;
	struct settings s; /* set once; its pointers are no longer valid */
	uint64_t (*now_ns)(void); /* set once; the clock */
	/* set once; number of examples of the source; 0: unknown */
	uint64_t expected;
	uint64_t window; /* set once; the window of the schedule */
	struct echo_log log;
	/* number of changes in the run before the first one in the log */
	uint64_t base;
	uint64_t began; /* changes made before this handle was opened */
	uint64_t made;	/* all changes made so far, including `began` */
	struct schedule_echo newest; /* the factor of the last change */
	struct stage_meter meter;
	uint64_t duplicates;
	/* 0, or the error that refrain_echo_next() returns from now on */
	int failed;
	struct error why;

	/* The present epoch. */
	uint64_t epoch;
	uint64_t steps_before;	    /* steps in all earlier epochs */
	struct schedule_echo first; /* factor at the beginning of the epoch */
	struct schedule schedule;
	struct schedule_cursor at; /* position of the next serving */
	uint64_t served;	   /* number of servings before that position */
	uint64_t pulled; /* number of the next example of the source */
	/* This many examples or more were pulled before the state was saved */
	uint64_t resumed;
	bool untouched; /* refrain_echo_from() may be called */
	enum stage_state state;
	struct refrain_serving now; /* the action, in PULLING and SERVING */
};

/* Like refrain_echo_open(), with a clock. */
int stage_open(struct refrain_echo **out, const struct refrain_config *config,
	uint64_t examples, uint64_t (*now_ns)(void), struct error *err);

/* Fill in the configuration of the schedule for the present epoch. */
void stage_schedule(const struct refrain_echo *e, struct schedule_config *out);

/* -- echo_stage_change.c -- */

/* Read the log of changes in the configuration, if there is one. Returns 0 or
 * -errno. */
int stage_take_log(
	struct refrain_echo *e, const char *echo_log, struct error *err);
/* Called when a batch of servings is complete: changes the factor if a change
 * is due. Returns 0, or -ESTALE if the log belongs to another configuration. */
int stage_step(struct refrain_echo *e, struct error *err);

/* -- echo_stage_state.c -- */

int stage_restore(struct refrain_echo *e, const void *state, size_t size,
	struct error *err);

#endif
