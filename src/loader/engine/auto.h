/* SPDX-License-Identifier: MIT */
/*
 * Computes the echo factor that hides a slow upstream from measurements: pure
 * arithmetic without clocks, threads or allocation.
 *
 * A *window* is the time in which `spread` fresh examples are served: a change
 * of the factor needs that long to take full effect
 * (common/schedule/schedule.h). A window is measured in eight *parts*. Two
 * times are kept for each part:
 *
 *   t_upstream    the slower of reading and decoding `batch` examples
 *   t_downstream  the trainer's time of a step and its augmentation
 *
 * Reading is timed only while more reads are waiting than may run at a time.
 * Otherwise an upstream that waits for the trainer would seem slow, and one
 * that answers many requests at a time would seem as slow as a single answer.
 *
 * R is t_upstream / t_downstream, with the medians of the last eight parts, so
 * that a single odd part does not count. When two parts in a row differ from
 * all earlier ones, the speed has changed, and the earlier parts are forgotten.
 * Three parts are enough if R is far from the factor.
 *
 * Reading is not timed if a mount fetches by the loader's plan. Two other
 * things are measured instead, separately: the bytes of an example that the
 * mount lacks, and the time to fetch a byte.
 */
#ifndef ENGINE_AUTO_H
#define ENGINE_AUTO_H

/* Echoing begins when R rises to this. */
#define AUTO_R_BEGIN 1.09

#include <stdbool.h>
#include <stdint.h>

#include "common/base/speed.h"
#include "common/schedule/schedule.h"
#include "loader/core/fetch_rates.h"

#define AUTO_PARTS 8 /* in a window; R is computed from this many */
#define AUTO_LONG_NS (100 * NS_PER_MS)

/* Sums that only grow; a part is the difference of two of them. */
struct auto_sums {
	uint64_t steps, fresh; /* returned to the trainer */
	/* While more reads were waiting than may run at a time. */
	uint64_t full_ns, full_reads;
	/* The part of full_ns and full_reads that auto_burst_read() counted */
	uint64_t long_ns, long_reads;
	uint64_t bursts;	 /* how often that state began */
	bool in_burst;		 /* that state lasts now */
	uint64_t read_ns, reads; /* while anything was being read */
	uint64_t decode_ns, decodes, augment_ns; /* of all threads together */
	/* Between batches; for a batch */
	uint64_t trainer_ns, wait_ns;
	bool planned; /* a mount fetches by a plan: use `rates`, not reads */
	struct fetch_rates rates;
};

/* Reads since more were waiting than may run. All 0: no burst has begun. */
struct auto_burst {
	uint64_t first_ns, last_ns, reads;
	uint64_t since_ns; /* the end of the last pause that counts */
	/* Reads since since_ns; 0: no pause has counted yet */
	uint32_t since;
};

struct auto_part {
	double up_ns, down_ns; /* a batch */
	double decode_ns;      /* of up_ns */
	/* up_ns if storage had saved up SPEED_SAVED_NS of work */
	double up_most_ns;
	bool waited; /* the trainer waited for more than a moment */
};

/* Measured values, oldest first. */
struct auto_row {
	double v[AUTO_PARTS];
	uint32_t n;
};

struct auto_echo {
	uint32_t batch, threads;
	/* The least number of fresh examples in a part */
	uint64_t part_fresh;
	struct schedule_echo max;   /* the highest factor */
	struct schedule_echo asked; /* the newest factor */
	struct auto_sums begun;	    /* when the present part began */
	bool begun_once;
	/*
	 * If a mount fetches by a plan: the missing bytes of an example, in the
	 * mount's last looks, each at the examples of a part; the time to fetch
	 * a byte, in the last periods in which the source was busy; and the
	 * work that storage may have saved up.
	 */
	bool planned;
	struct auto_row missing, byte_ns, saved_ns;
	struct fetch_rates looked; /* when `missing` was last measured */
	struct fetch_rates timed;  /* ... and `byte_ns` */
	/* Fresh examples at that time, and since then */
	uint64_t timed_fresh, untimed;
	/* The last change was the first step of a fall, and the trainer has not
	 * waited since. */
	bool tried;
	uint32_t parts; /* number of elements of `part`, oldest first */
	struct auto_part part[AUTO_PARTS];
};

void auto_init(struct auto_echo *a, uint32_t batch, uint32_t threads,
	uint64_t spread, struct schedule_echo max, struct schedule_echo now);

/*
 * Note that a read of the burst has ended. Returns a number of reads, and in
 * *ns the time that storage needed for them at its lasting speed; both are 0 if
 * nothing can be measured at this read. Counting begins AUTO_LONG_NS after the
 * first read of the burst, and goes from one pause that is at least as long as
 * the mean to the next such pause. Therefore several answers at once weigh as
 * much as the wait before them. This is right, because storage uses up nothing
 * that it has saved while no answer comes.
 */
uint32_t auto_burst_read(struct auto_burst *b, uint64_t now_ns, uint64_t *ns);

/* Add a step. Call this after each step. */
void auto_step(struct auto_echo *a, const struct auto_sums *now);

/* Get the estimates. Returns false if too little is known so far. */
bool auto_measured(const struct auto_echo *a, struct auto_part *out);

/*
 * Ask the schedule for the factor that hides the upstream. It is exactly 1 for
 * R up to 1.04, or up to 1.09 while the factor is 1 already; otherwise R, in
 * whole 32nds below 4 and 16ths below 8.
 *
 * Normally the trainer then waits a moment each step and the upstream is always
 * busy, so its speed is its lasting speed. Short bursts do not show the lasting
 * speed: storage may have saved up requests while it was idle, as a control
 * group's throttle does for a tenth of a second. So if R was measured in short
 * bursts only, a fall begins with a step to slightly less than the R that is
 * certain; the rest of the fall follows unless the trainer then has to wait.
 *
 * The change applies to examples after fresh number `given`. Returns 1 and in
 * *step the step that was passed to schedule_change(); 0 if the factor is right
 * or the last change is less than a window old; -ERANGE if the run ends before
 * the change could take effect.
 */
int auto_change(struct auto_echo *a, struct schedule *s, uint64_t given,
	uint64_t *step);

#endif
