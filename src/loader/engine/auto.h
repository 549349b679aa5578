/* SPDX-License-Identifier: MIT */
/*
 * Computes, from measurements, the echo factor that hides a slow upstream. This
 * is arithmetic only, without clocks, threads or allocation.
 *
 * A *window* is the time in which `spread` fresh examples are served: a change
 * of the factor needs that long to take full effect
 * (common/schedule/schedule.h). A window is measured in eight *parts*. Two
 * times are stored for each part:
 *
 *   t_upstream: the slower of reading and decoding `batch` examples
 *   t_downstream: the trainer's time for a step, and its augmentation
 *
 * Reads are timed only while more reads are waiting than may run at a time.
 * Otherwise an upstream that waits for the trainer would seem slow, and one
 * that answers many requests at a time would seem as slow as a single answer.
 *
 * R is t_upstream / t_downstream, with the medians of the last eight parts, so
 * that a single outlier does not matter. When two parts in a row differ from
 * all earlier ones, the speed has changed, and the earlier parts are forgotten.
 * Three parts are sufficient if R is far from the factor.
 *
 * If a mount fetches by the loader's plan, reads are not timed. Instead, two
 * values are measured separately: the bytes of an example that the mount must
 * fetch, and the time to fetch a byte.
 */
#ifndef ENGINE_AUTO_H
#define ENGINE_AUTO_H

/* Echoing begins when R rises to this value. */
#define AUTO_R_BEGIN 1.09

#include <stdbool.h>
#include <stdint.h>

#include "common/base/speed.h"
#include "common/schedule/schedule.h"
#include "loader/core/fetch_rates.h"

#define AUTO_PARTS 8 /* parts of a window; R is computed from so many */
#define AUTO_LONG_NS (100 * NS_PER_MS)

/* Sums that only grow. The values of a part are the difference of two such
 * structs. */
struct auto_sums {
	uint64_t steps, fresh; /* numbers returned to the trainer */
	/* Time and reads while more reads were waiting than may run at a time,
	 * which is called a burst. */
	uint64_t full_ns, full_reads;
	/* The amounts of full_ns and full_reads that auto_burst_read() has
	 * counted */
	uint64_t long_ns, long_reads;
	uint64_t bursts; /* number of bursts that have begun */
	bool in_burst;	 /* a burst is running now */
	/* Time with at least one read; number of reads */
	uint64_t read_ns, reads;
	uint64_t decode_ns, decodes, augment_ns; /* sums over all threads */
	/* The trainer's time between batches, and its wait for batches */
	uint64_t trainer_ns, wait_ns;
	/* A mount fetches by a plan: use `rates`, not reads */
	bool planned;
	struct fetch_rates rates;
};

/* The reads of a burst. All members are 0 if no burst has begun. */
struct auto_burst {
	uint64_t first_ns, last_ns, reads;
	uint64_t since_ns; /* the end of the last counted pause */
	/* Reads since since_ns; 0: no pause was counted yet */
	uint32_t since;
};

struct auto_part {
	double up_ns, down_ns; /* times for a batch */
	double decode_ns;      /* the time for decoding within up_ns */
	/* The value of up_ns if storage has used burst credit for
	 * SPEED_SAVED_NS in each burst */
	double up_most_ns;
	bool waited; /* more than a moment; see WAITS in auto.c */
};

/* Measured values, oldest first. */
struct auto_row {
	double v[AUTO_PARTS];
	uint32_t n;
};

struct auto_echo {
	uint32_t batch, threads;
	/* The minimum number of fresh examples in a part */
	uint64_t part_fresh;
	struct schedule_echo max;   /* the upper limit for the factor */
	struct schedule_echo asked; /* the newest factor that was requested */
	struct auto_sums begun;	    /* the sums when the present part began */
	bool begun_once;
	/*
	 * Used only if a mount fetches by a plan (`planned`). `missing`:
	 * bytes that the mount had to fetch for an example, at its last
	 * lookups. `byte_ns`: time to fetch one byte, at the last times when
	 * the source was busy. `saved_ns`: how much longer a byte takes if
	 * storage has used burst credit at these times.
	 */
	bool planned;
	struct auto_row missing, byte_ns, saved_ns;
	struct fetch_rates looked; /* rates when `missing` was last measured */
	struct fetch_rates timed;  /* rates when `byte_ns` was last measured */
	/* Fresh examples when `byte_ns` was last measured, and since then */
	uint64_t timed_fresh, untimed;
	/* The last change was the first step of a fall, and the trainer has not
	 * waited since then. */
	bool tried;
	uint32_t parts; /* number of elements of `part`, oldest first */
	struct auto_part part[AUTO_PARTS];
};

void auto_init(struct auto_echo *a, uint32_t batch, uint32_t threads,
	uint64_t spread, struct schedule_echo max, struct schedule_echo now);

/*
 * Note that a read of the burst has ended. Returns how many reads can be
 * counted now, and sets *ns to the time that storage needed for them at its
 * sustained speed; both are 0 if nothing can be measured at this read. Counting
 * begins AUTO_LONG_NS after the first read of the burst. It goes from one pause
 * that is at least as long as the mean to the next such pause. So several
 * answers that come at once are counted together with the wait before them.
 * This is correct, because storage uses no burst credit while no answer comes.
 */
uint32_t auto_burst_read(struct auto_burst *b, uint64_t now_ns, uint64_t *ns);

/* Add the sums after a step. Call this after each step. */
void auto_step(struct auto_echo *a, const struct auto_sums *now);

/* Get the estimates. Returns false if too little was measured so far. */
bool auto_measured(const struct auto_echo *a, struct auto_part *out);

/*
 * Ask the schedule for the factor that hides the upstream. This is exactly 1
 * for an R up to 1.04 or, while the factor is 1, up to 1.09. Otherwise it is R,
 * rounded to whole 32nds below 4 and to 16ths below 8.
 *
 * With this factor the trainer normally waits a moment in each step and the
 * upstream is always busy, so its measured speed is its sustained speed. Short
 * bursts do not show the sustained speed, because storage that was idle may
 * have burst credit: the throttle of a control group grants credit for a tenth
 * of a second. So if R was measured only in short bursts, a fall begins with a
 * step to slightly less than the R that is certain. The rest of the fall
 * follows unless the trainer has to wait then.
 *
 * The change applies to examples after fresh number `given`. Returns 1 and sets
 * *step to the step that was passed to schedule_change(); 0 if the factor is
 * right, or if the last change is less than a window old; -ERANGE if the run
 * ends before the change could take effect.
 */
int auto_change(struct auto_echo *a, struct schedule *s, uint64_t given,
	uint64_t *step);

#endif
