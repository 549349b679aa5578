/* SPDX-License-Identifier: MIT */
/*
 * The echo stage (include/refrain/echo.h): shared by its files, and by tests,
 * which bring a clock. One thread at a time uses a stage.
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
 * In PULLING and SERVING next says the same again. begin leads to IDLE.
 */
enum stage_state { STAGE_IDLE, STAGE_PULLING, STAGE_SERVING };

struct refrain_echo {
	uint32_t magic;
	struct settings s;	  /* set once; its pointers are not valid */
	uint64_t (*now_ns)(void); /* set once */
	uint64_t expected;	  /* set once: examples of the source, or 0 */
	uint64_t window;	  /* set once */
	struct echo_log log;
	uint64_t base;	/* number of the log's first change in the run */
	uint64_t began; /* changes made before this handle */
	uint64_t made;	/* changes made, including those */
	struct schedule_echo newest; /* the factor of the last change */
	struct stage_meter meter;
	uint64_t duplicates;
	int failed; /* 0, or what next returns from now on */
	struct error why;

	/* The epoch. */
	uint64_t epoch;
	uint64_t steps_before;	    /* steps of the epochs before */
	struct schedule_echo first; /* its factor at the beginning */
	struct schedule schedule;
	struct schedule_cursor at; /* the next serving */
	uint64_t served;	   /* servings before that */
	uint64_t pulled;	   /* the next example of the source */
	uint64_t resumed; /* examples that were pulled before the state was
			   * saved, at least */
	bool untouched;	  /* refrain_echo_from() may be called */
	enum stage_state state;
	struct refrain_serving now; /* in PULLING and SERVING */
};

/* Like refrain_echo_open(), with a clock. */
int stage_open(struct refrain_echo **out, const struct refrain_config *config,
	uint64_t examples, uint64_t (*now_ns)(void), struct error *err);

/* Fill in the schedule's configuration for the present epoch. */
void stage_schedule(const struct refrain_echo *e, struct schedule_config *out);

/* -- echo_stage_change.c -- */

/* Take the log of changes from the configuration. */
int stage_take_log(
	struct refrain_echo *e, const char *echo_log, struct error *err);
/* A batch of servings is complete: change the factor if it is time. Returns 0,
 * or -ESTALE if the log belongs to another configuration. */
int stage_step(struct refrain_echo *e, struct error *err);

/* -- echo_stage_state.c -- */

int stage_restore(struct refrain_echo *e, const void *state, size_t size,
	struct error *err);

#endif
