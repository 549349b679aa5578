/* SPDX-License-Identifier: MIT */
/*
 * The engine of a loader: reads, decodes, pools, augments and batches examples
 * in the order of its schedule. engine_open() builds the parts on the caller's
 * thread, so that it can report every error at once. Closing takes a bounded
 * time: operations that hang in the kernel are left behind, with all memory
 * that they may still write to. Any thread may call all of its operations but
 * `close`. None may be called after a fork.
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

/* Like refrain_open(). `place` is the memory for the slabs; NULL: the engine
 * allocates it. Closing the source closes the engine. */
int engine_open(struct batch_source **out, const struct refrain_config *config,
	const struct slab_place *place, struct error *err);
/* Get the number and the size of the slabs that a place must hold. -EINVAL. */
int engine_place(const struct refrain_config *config, uint32_t *slabs,
	size_t *bytes, struct error *err);

/* Like `next` of the engine as a batch source, but counts the wait from
 * `since_ns`, when the caller began to wait for this batch; 0: from this
 * call. */
int engine_next(struct batch_source *source, struct lent_batch **out,
	int timeout_ms, uint64_t since_ns);

/* Open the dataset that the settings name, as refrain_open() does. */
int engine_open_dataset(
	const struct settings *s, struct dataset **out, struct error *err);

/* -- Saved states without an engine ---------------------------------------- */

/* Inputs of a saved state, besides the schedule. */
struct state_of {
	/* For state_begin(), with the saved state if there is one */
	const struct settings *s;
	uint64_t fingerprint; /* of the dataset */
	uint64_t changes;     /* of the echo factor so far */
	uint64_t step;	      /* the next one */
};

struct state_begun {
	uint64_t step, changes, echoes_dropped;
};

/* Save the state before the batch of `step`, as refrain_save_at(). */
int state_save(const struct state_of *of, const struct schedule *schedule,
	uint64_t step, void *buf, size_t room, struct error *err);
/* Set up the schedule for a configuration and its saved state, as
 * refrain_open() does. */
int state_begin(const struct state_of *of, const struct schedule_config *config,
	struct schedule *schedule, struct state_begun *begun,
	struct error *err);

#endif
