/* SPDX-License-Identifier: MIT */
/*
 * Times the source and the trainer of an echo stage, and finds the echo factor
 * with loader/engine/auto.h. Pure arithmetic; the caller brings the time.
 *
 * A source may work in the background and have examples ready, so the time of
 * a pull is not the time that the source needs for an example. Where the
 * trainer has to wait for the source, the source is always busy, and the whole
 * time divided by the examples is its time, if it works while the trainer does.
 * A *probe* tells whether it does, and how fast the source is where the trainer
 * does not wait: examples are pulled one right after the other, up to 3/8 of a
 * window. What the source had ready is not counted. A probe holds the trainer
 * up, so there is one in three parts of a window at most, and a short one if it
 * only confirms the factor.
 */
#ifndef API_STAGE_METER_IMPL_H
#define API_STAGE_METER_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/engine/auto.h"

struct stage_probe {
	bool on;
	bool drained;	       /* the source had nothing ready any more */
	uint32_t skipped;      /* pulls before that */
	uint32_t counted;      /* after that, up to the last one that waited */
	uint32_t since;	       /* ... and since then */
	uint64_t ns, since_ns; /* of those */
};

struct stage_meter {
	bool measures;	       /* set once: for echo auto */
	uint32_t skip_most;    /* set once: pulls of a probe not counted */
	struct auto_echo echo; /* if it measures */
	struct auto_sums sums; /* wait_ns: of pulls that are slow */
	uint64_t servings;
	uint64_t returned_ns; /* when the trainer began to work, or 0 */
	uint64_t lent_ns;     /* when the last serving was lent */
	uint64_t pull_ns;     /* when the last pull began */
	/* The fastest pull of the last few, in two halves. */
	uint64_t fastest_ns[2];
	uint32_t fastest_of;
	/* Pulls outside probes, since the part began. */
	uint64_t plain_ns, plain;
	bool overlaps; /* the source works while the trainer does */
	/* The factor at the last probe, and parts since then; 0/0: none. */
	struct schedule_echo probed;
	uint32_t parts;
	struct stage_probe probe;
};

void stage_meter_init(struct stage_meter *m);
/* Begin to measure. */
void stage_meter_start(struct stage_meter *m, uint32_t batch, uint64_t spread,
	struct schedule_echo max, struct schedule_echo now);

/* The trainer asks for more; a pause, such as between epochs, does not count
 * as its work. */
void stage_meter_called(struct stage_meter *m, uint64_t now_ns);
void stage_meter_paused(struct stage_meter *m);
/* A pull begins, and has ended. */
void stage_meter_pull(struct stage_meter *m, uint64_t now_ns);
void stage_meter_pulled(struct stage_meter *m, uint64_t now_ns);
/* A serving is lent, and was served. */
void stage_meter_lend(struct stage_meter *m, uint64_t now_ns);
void stage_meter_served(struct stage_meter *m, uint64_t now_ns, bool fresh);
/* A step is complete. */
void stage_meter_step(struct stage_meter *m);

/* Should the next example be pulled before it is needed? */
bool stage_meter_probes(const struct stage_meter *m);
/* The source has ended. */
void stage_meter_ended(struct stage_meter *m);

#endif
