/* SPDX-License-Identifier: MIT */
/*
 * The echo factor that hides a slow upstream, from what was measured: pure
 * arithmetic without clocks, threads or allocation.
 *
 * A *window* is the time in which `spread` fresh examples are served: a change
 * takes that long to take full effect (common/schedule/schedule.h). It is
 * measured in parts of an eighth. Two times are kept of each part:
 *
 *   t_upstream    the slower of reading and decoding `batch` examples
 *   t_downstream  the trainer's time of a step and its augmentation
 *
 * Reading is timed only while more is to be read than is read at a time. So an
 * upstream that waits for the trainer is not taken for slow, and one that
 * answers many requests at a time is not taken to be as slow as one answer.
 *
 * R is the ratio of the medians of the last eight parts; a single odd part does
 * not count. When two parts in a row differ from all before them, those before
 * are forgotten: the speed has changed. Three parts are enough if R is far from
 * the factor.
 *
 * Where a mount fetches by the loader's plan, reading is not timed. What an
 * example misses and the time to fetch a byte are measured instead, each for
 * itself and not part by part.
 */
#ifndef ENGINE_AUTO_H
#define ENGINE_AUTO_H

/* The R that echoing begins at. */
#define AUTO_R_BEGIN 1.09

#include <stdbool.h>
#include <stdint.h>

#include "common/base/speed.h"
#include "common/schedule/schedule.h"
#include "loader/core/fetch_rates.h"

#define AUTO_PARTS 8 /* of a window, and how many are looked at */
#define AUTO_LONG_NS (100 * NS_PER_MS)

/* Sums that only grow; the differences of two are a part. */
struct auto_sums {
	uint64_t steps, fresh; /* returned to the trainer */
	/* Time and reads while all reads that may go on at a time did, and
	 * others were queued. */
	uint64_t full_ns, full_reads;
	uint64_t long_ns, long_reads; /* of these, by auto_burst_read() */
	uint64_t bursts;	      /* how often it began */
	bool in_burst;		      /* there is one now */
	uint64_t read_ns, reads;      /* while anything was being read */
	uint64_t decode_ns, decodes, augment_ns; /* of all threads together */
	uint64_t trainer_ns, wait_ns;		 /* between batches; for one */
	bool planned; /* a mount fetches by a plan: `rates`, not reads, tell */
	struct fetch_rates rates;
};

/* Reads since reads were first queued. All 0: none yet. */
struct auto_burst {
	uint64_t first_ns, last_ns, reads;
	uint64_t since_ns; /* the end of the last pause that counts */
	uint32_t since;	   /* reads from there on; 0: there was none */
};

struct auto_part {
	double up_ns, down_ns; /* a batch */
	double decode_ns;      /* of up_ns */
	double up_most_ns;     /* had storage saved up SPEED_SAVED_NS of work */
	bool waited;	       /* the trainer, for more than a moment */
};

/* Measured values, oldest first. */
struct auto_row {
	double v[AUTO_PARTS];
	uint32_t n;
};

struct auto_echo {
	uint32_t batch, threads;
	uint64_t part_fresh;	    /* a part has at least so many */
	struct schedule_echo max;   /* never above it */
	struct schedule_echo asked; /* the newest factor */
	struct auto_sums begun;	    /* when the present part began */
	bool begun_once;
	/*
	 * Measured while a mount fetches by a plan. `missing`: bytes of an
	 * example that had to be fetched, from the last looks at a part's
	 * examples. `byte_ns`: the time to fetch one byte, from the last times
	 * that the source was busy. `saved_ns`: the work that storage may have
	 * saved up.
	 */
	bool planned;
	struct auto_row missing, byte_ns, saved_ns;
	struct fetch_rates looked;     /* when `missing` was last reckoned */
	struct fetch_rates timed;      /* ... and `byte_ns` */
	uint64_t timed_fresh, untimed; /* examples then, and since */
	bool tried;	/* the last change was the first step of a fall, and the
			   trainer did not wait since */
	uint32_t parts; /* how many of `part`, oldest first */
	struct auto_part part[AUTO_PARTS];
};

void auto_init(struct auto_echo *a, uint32_t batch, uint32_t threads,
	uint64_t spread, struct schedule_echo max, struct schedule_echo now);

/*
 * A read of the burst has ended. Returns a number of reads, and in *ns the time
 * that the storage needed for them at its lasting speed; both are 0 if this
 * read tells neither. Reads count from AUTO_LONG_NS after the first one, and
 * from one long pause (at least the mean) to the next. Therefore several
 * answers at once weigh as much as the wait before them: while no answer comes,
 * the storage uses up nothing that it had saved.
 */
uint32_t auto_burst_read(struct auto_burst *b, uint64_t now_ns, uint64_t *ns);

/* After each step. */
void auto_step(struct auto_echo *a, const struct auto_sums *now);

/* The estimates; false if too little is known so far. */
bool auto_measured(const struct auto_echo *a, struct auto_part *out);

/*
 * Ask the schedule for the factor that hides the upstream: exactly 1 for R up
 * to 1.04 and beyond (up to 1.09 while it is 1), else R, in whole 32nds below
 * 4, 16ths below 8.
 *
 * Normally the trainer then waits a moment each step and the upstream is always
 * busy, so its speed is its lasting speed. Short bursts do not show the lasting
 * speed: storage may have saved up requests while it was idle, as a control
 * group's throttle does for a tenth of a second. So a fall to the value from
 * short bursts begins with a step to slightly less than the certain value; the
 * rest follows unless the trainer has to wait then.
 *
 * The change applies to examples after fresh number `given`. Returns 1 and the
 * step passed to schedule_change(); 0 if the factor is right or the last change
 * is less than a window old; -ERANGE if the run ends before it could take
 * effect.
 */
int auto_change(struct auto_echo *a, struct schedule *s, uint64_t given,
	uint64_t *step);

#endif
