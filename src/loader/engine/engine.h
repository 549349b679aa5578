/* SPDX-License-Identifier: MIT */
/*
 * The engine of a loader: reads, decodes, pools, augments and batches examples
 * in the order of its schedule. engine_open() creates the parts on the caller's
 * thread, so that it can report every error itself. Closing takes a limited
 * time: operations that hang in the kernel are left behind, with all memory
 * that they may still write to. Any thread may call all operations except
 * `close`, but not after a fork.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"
#include "loader/dataset/dataset.h"
#include "loader/core/settings.h"

/* Open an engine; like refrain_open(). The slabs are in `place` or, if it is
 * NULL, in memory of the engine. Closing the source closes the engine. */
int engine_open(struct batch_source **out, const struct refrain_config *config,
	const struct slab_place *place, struct error *err);
/* Get the number and the size of the slabs for which a place must have room.
 * Returns 0 or -EINVAL. */
int engine_place(const struct refrain_config *config, uint32_t *slabs,
	size_t *bytes, struct error *err);

/* Like `next` of the engine as a batch source, but the wait for this batch
 * counts from `since_ns` on; 0: from the call on. */
int engine_next(struct batch_source *source, struct lent_batch **out,
	int timeout_ms, uint64_t since_ns);

/* Open the dataset that the settings name, as refrain_open() does. */
int engine_open_dataset(
	const struct settings *s, struct dataset **out, struct error *err);

/* -- Saved states without an engine ---------------------------------------- */

/* The inputs of a saved state, in addition to the schedule. */
struct state_of {
	/* With the saved state, if there is one; used by state_begin() */
	const struct settings *s;
	uint64_t fingerprint; /* fingerprint of the dataset */
	uint64_t changes;     /* number of changes of the echo factor so far */
	uint64_t step;	      /* the next step */
};

struct state_begun {
	uint64_t step, changes, echoes_dropped;
};

/* Save the state before the batch of `step`; like refrain_save_at(). */
int state_save(const struct state_of *of, const struct schedule *schedule,
	uint64_t step, void *buf, size_t room, struct error *err);
/* Set up the schedule for a configuration and its saved state, as
 * refrain_open() does. */
int state_begin(const struct state_of *of, const struct schedule_config *config,
	struct schedule *schedule, struct state_begun *begun,
	struct error *err);

#endif
