/* SPDX-License-Identifier: MIT */
/*
 * The engine's parts and how they are connected. Each part is described in its
 * own header. The planner walks the schedule and makes *steps*, which are
 * batches under construction. Each place of a step is a *serving*, the unit of
 * work. Servings of one decoded example share an *original* of the pool. The
 * reader fills originals with encoded bytes; workers turn originals into
 * samples. The budget gives memory to all of them, the meter counts, and the
 * outcome says how the run ends.
 *
 * One lock, that of loader/core/turn.h, guards all parts, except members that
 * are set once or have an owner. It is held for a few list operations, never
 * while decoding or during a file operation. The consequences of a change are
 * handled at the end of the turn. A part calls only those below it:
 *
 *	workers -> echoes -> planner -> budget -> originals -> steps
 *	   +---------> damage -----------------------^   (reader, too)
 */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/magic.h"
#include "loader/core/memory.h"
#include "loader/core/turn.h"
#include "loader/engine/batch.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/echo_factor_impl.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/engine.h"
#include "loader/engine/meter.h"
#include "loader/engine/planner_impl.h"
#include "loader/engine/reader_impl.h"
#include "loader/engine/workers_impl.h"
#include "loader/mount_help/mount_help.h"
#include "loader/engine/pool_impl.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings.h"

struct engine {
	struct batch_source source; /* the interface of the engine */
	uint32_t magic;
	struct engine_parts parts;
	/* Set once. */
	struct settings s;
	struct turn turn;
	bool turns;    /* `turn` was initialised */
	bool complete; /* all parts were created, so turns are possible */

	/* All below is guarded by the lock. */
	struct memory memory;
	struct schedule schedule; /* see struct planner in planner.c */
	uint32_t callers;
	/* Time in calls that timed out; it is part of the wait for the next
	 * batch */
	uint64_t waited_ns;
};

static inline struct engine *engine_of(const struct batch_source *source)
{
	return OBJECT(
		engine, CONTAINER_OF((uintptr_t)source, struct engine, source));
}

/* -- engine.c -- */

/* The begin and end of a turn; used by engine_open.c. */
extern const struct turn_ops engine_turns;
extern const struct loader_ops engine_ops;
/* Close the engine, even if it is not complete. */
int engine_close(struct batch_source *source);

/* -- engine_next.c: delivers batches --------------------------------------- */

/* Would refrain_next() return at once? */
bool engine_is_ready(const struct engine *engine);

/* -- engine_stats.c -- */

/* Make the meter count the time until now. */
void engine_tick(struct engine *engine);
void engine_stats(struct batch_source *source, struct refrain_stats *out);

/* -- engine_state.c -- */

int engine_save(struct batch_source *source, void *buf, size_t size);
int engine_save_at(
	struct batch_source *source, uint64_t step, void *buf, size_t size);
/* Begin at the saved state in the configuration, if there is one. *step is set
 * to the next step, and *changes to the number of earlier changes of the echo
 * factor. Returns 0 or -errno. */
int state_restore(struct engine *engine, const struct schedule_config *config,
	uint64_t *step, uint64_t *changes, struct error *err);

/* -- watchdog.c -- */

/* Set the message and the failure of a call that has timed out. They describe
 * what the oldest batch waits for. */
void watchdog_describe(
	const struct steps *steps, struct outcome *outcome, uint64_t waited_ns);

#endif
