/* SPDX-License-Identifier: MIT */
/*
 * Measures the speed of the source and of the trainer of an echo stage, and
 * finds the echo factor with loader/engine/auto.h. All functions only compute;
 * the caller passes the time.
 *
 * A source may work in the background and have examples ready, so the time of a
 * pull is not the time that the source needs for an example. If the trainer has
 * to wait for the source, the source is always busy. In that case its time for
 * an example is the whole time divided by the number of examples, provided that
 * it works while the trainer does. A *probe* finds out whether it does, and
 * also how fast the source is if the trainer does not have to wait. In a probe,
 * up to 3/8 of a window of examples are pulled one right after the other.
 * Examples that the source had ready are not counted. The trainer has to wait
 * during a probe. Therefore there is at most one probe in three parts of a
 * window, and a probe that only confirms the factor is short.
 */
#ifndef API_STAGE_METER_IMPL_H
#define API_STAGE_METER_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/engine/auto.h"

struct stage_probe {
	bool on;
	bool drained;	  /* the source has no more examples ready */
	uint32_t skipped; /* number of pulls before `drained` was set */
	/* number of pulls after that, up to the last slow pull */
	uint32_t counted;
	uint32_t since; /* pulls after the last slow pull */
	/* time of the `counted` pulls, and of the pulls in `since` */
	uint64_t ns, since_ns;
};

struct stage_meter {
	bool measures;	       /* set once; echo is auto */
	uint32_t skip_most;    /* set once; limit for `skipped` */
	struct auto_echo echo; /* only used if `measures` */
	struct auto_sums sums; /* its wait_ns is the time of slow pulls */
	uint64_t servings;
	/* Time at which the last call returned to the trainer, or 0 */
	uint64_t returned_ns;
	uint64_t lent_ns; /* time at which the last serving was lent */
	uint64_t pull_ns; /* time at which the last pull began */
	/* The time of the fastest pull in each half of the last pulls, in ns,
	 * and the number of pulls in the newer half. */
	uint64_t fastest_ns[2];
	uint32_t fastest_of;
	/* Time in ns and number of pulls outside of probes since the part
	 * began. */
	uint64_t plain_ns, plain;
	bool overlaps; /* the source works while the trainer does */
	/* The factor at the last probe (0/0: there was none), and the number of
	 * parts since then. */
	struct schedule_echo probed;
	uint32_t parts;
	struct stage_probe probe;
};

void stage_meter_init(struct stage_meter *m);
/* Begin to measure. */
void stage_meter_start(struct stage_meter *m, uint32_t batch, uint64_t spread,
	struct schedule_echo max, struct schedule_echo now);

/* Call the first when the trainer calls the stage, and the second for a pause
 * that is not the trainer's work, such as between epochs. */
void stage_meter_called(struct stage_meter *m, uint64_t now_ns);
void stage_meter_paused(struct stage_meter *m);
/* Call these when a pull begins, and when it has ended. */
void stage_meter_pull(struct stage_meter *m, uint64_t now_ns);
void stage_meter_pulled(struct stage_meter *m, uint64_t now_ns);
/* Call these when a serving is lent, and when it was served. */
void stage_meter_lend(struct stage_meter *m, uint64_t now_ns);
void stage_meter_served(struct stage_meter *m, uint64_t now_ns, bool fresh);
/* Call this when a step is complete. */
void stage_meter_step(struct stage_meter *m);

/* Should the next example be pulled before it is needed? Only in a probe. A
 * probe begins with a pull that is needed anyway, when all examples of the last
 * probe are used up. */
bool stage_meter_probes(const struct stage_meter *m);
/* Call this when the source has ended. */
void stage_meter_ended(struct stage_meter *m);

#endif
