/* SPDX-License-Identifier: MIT */
/*
 * The counters and times of an engine. Every function needs the turn's lock
 * once threads run. Events are counted where they happen. Times are sums that
 * only grow; a rate is computed from the difference between the sums now and
 * those at the end of the window before the last one.
 *
 * The same workers decode and augment, so no clock shows the time of the
 * upstream alone. It is computed as the time in which workers decode, or wait
 * for reads while batches are needed, divided by the number of workers. A
 * worker that sleeps because enough batches are ready is not counted.
 */
#ifndef ENGINE_METER_H
#define ENGINE_METER_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/core/turn.h"
#include "common/schedule/schedule.h"

struct meter;

/* Sums that only grow. The values of a window are the difference of two such
 * structs. */
struct sums {
	uint64_t wall_ns;
	uint64_t steps, decoded;
	/* Sums over all workers */
	uint64_t decode_ns, augment_ns, read_wait_ns;
	uint64_t trainer_ns, wait_ns;
	uint64_t full_ns, full_reads; /* see struct auto_sums */
	uint64_t long_ns, long_reads, bursts;
	uint64_t reading_ns, reads;
};

/* Returns 0 or -ENOMEM. */
int meter_new(struct meter **out, const struct turn *turn);
void meter_free(struct meter *m); /* NULL is allowed */

/* Set the length of a window, in steps. Call this before the first batch. */
void meter_set_window(struct meter *m, uint64_t steps);

/* -- Time ------------------------------------------------------------------ */

/* The activity of the engine since the last tick. */
struct meter_state {
	uint32_t waiting; /* number of workers that wait for reads */
	bool full;	  /* more reads are waiting than may run at a time */
	bool reading;
};

/*
 * Count the time until now. Call this once after taking the lock, before
 * workers, servings or reads change their state. All these changes then have
 * the same time.
 */
void meter_tick(struct meter *m, const struct meter_state *state);
/* Returns the time of the last tick. */
uint64_t meter_now_ns(const struct meter *m);

/* -- Counting -------------------------------------------------------------- */

/*
 * Returns the counters, for the parts of the engine to change. The pointer is
 * valid until the turn's lock is released: copy the counters to keep them.
 * Values that are computed from counters and times are not set.
 */
struct refrain_stats *meter_stats(struct meter *m);

/* Count a file that was read and takes `cost` bytes of memory. `full` says that
 * more reads are waiting than may run at a time. */
void meter_file(struct meter *m, uint64_t cost, bool full);
/* Count reads that were timed; see auto_burst_read(). */
void meter_timed(struct meter *m, uint32_t reads, uint64_t ns);
void meter_burst(struct meter *m);
void meter_decoded(struct meter *m, uint64_t bytes, uint64_t ns, bool again);
void meter_augmented(struct meter *m, uint64_t bytes, uint64_t ns);
/* Count a damaged example, unless it was counted before. `examples` is the size
 * of the dataset. This may allocate memory, and sets *memory_bytes to its
 * size. */
void meter_damaged(struct meter *m, uint64_t index, uint64_t examples,
	uint64_t *memory_bytes);
/* Returns the most memory that meter_damaged() allocates. */
size_t meter_damaged_bytes(uint64_t examples);

/* A batch that is being returned to the caller. */
struct meter_step {
	const struct schedule_slot *slots;
	uint32_t count, fresh, damaged, epochs_ended;
	uint32_t substituted, zero_filled, duplicates;
	bool exception; /* the step whose duplicates cannot be avoided */
	uint64_t lag_sum, lag_min;
	uint32_t lags;
	uint64_t bytes;
	uint64_t called_ns, now_ns;
};
void meter_returned(struct meter *m, const struct meter_step *step);

/* -- Queries --------------------------------------------------------------- */

/* Returns the mean cost of files in bytes, or 0 if no file was read. */
uint64_t meter_file_mean(const struct meter *m);
/* Returns the number of damaged fresh examples in returned batches. */
uint64_t meter_damaged_fresh(const struct meter *m);
/* Returns the trainer's time for a step without waiting, in ns; 0: unknown. */
uint64_t meter_step_ns(const struct meter *m);

struct meter_view {
	struct sums first; /* at the end of the first window */
	struct sums older; /* at the end of the window before the last one */
	struct sums now;
	uint64_t lag_sum, lags;
	uint64_t stream_hash;
};
void meter_view(const struct meter *m, struct meter_view *out);

#endif
