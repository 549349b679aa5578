/* SPDX-License-Identifier: MIT */
/*
 * refrain's echo stage is for pipelines that read and decode examples
 * themselves. The pipeline has a source of decoded examples, of any kind. The
 * stage says when to take the next one from the source, and which one to serve
 * next, so that each example is served e times. The order is that of the loader
 * of refrain/loader.h, with its guarantees: each example is served exactly as
 * often as the factor says, two servings of one example are never in one batch
 * and are at least `min_lag` steps apart, at most `window` examples are kept,
 * and a saved state continues the same stream. The stage does not see the
 * examples.
 *
 * 	struct refrain_config c;
 * 	struct refrain_serving s = {.size = sizeof(s)};
 * 	struct refrain_echo *e;
 * 	int rc;
 *
 * 	refrain_config_init(&c);
 * 	c.batch = 64;
 * 	c.echo = 4;
 * 	rc = refrain_echo_open(&e, &c, 0);
 * 	if (rc < 0)
 * 		return fprintf(stderr, "%s\n", refrain_message(NULL)), 1;
 * 	while ((rc = refrain_echo_next(e, &s)) > 0) {
 * 		if (rc == REFRAIN_ECHO_PULL) {
 * 			if (decode_next(s.example) == 0)
 * 				refrain_echo_pulled(e);
 * 			else
 * 				refrain_echo_ended(e);
 * 			continue;
 * 		}
 * 		augment_and_train(s.example, s.seed);
 * 		refrain_echo_served(e);
 * 		if (s.last)
 * 			forget(s.example);
 * 	}
 * 	refrain_echo_close(e);
 *
 * Nothing changes until refrain_echo_pulled(), refrain_echo_ended() or
 * refrain_echo_served(): if the source or the augmentation fails, the next
 * refrain_echo_next() says the same again.
 *
 * Functions return 0 or a count on success and -errno on failure, and
 * refrain_message(NULL) has the message of this thread's last failure. A stage
 * has no threads and no descriptors, and works on after fork(). One thread at a
 * time may use it. Pointers must not be NULL, except for refrain_echo_close().
 */
#ifndef REFRAIN_ECHO_H
#define REFRAIN_ECHO_H

#include <refrain/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

struct refrain_echo;

/* Results of refrain_echo_next(). */
#define REFRAIN_ECHO_END 0   /* the epoch is over */
#define REFRAIN_ECHO_SERVE 1 /* serve the example */
#define REFRAIN_ECHO_PULL 2  /* take the example from the source */

/* The action that the caller has to take next. */
struct refrain_serving {
	size_t size; /* size of this struct */
	/* number of the example in the source, counted from 0 */
	uint64_t example;
	/* SERVE: seed of the augmentation; it differs for each serving,
	 * example, epoch and rank */
	uint64_t seed;
	uint32_t echo; /* SERVE: 0: fresh, 1: first echo, ... */
	/* 1: the example is not needed any more after this action. PULL: the
	 * example need not be kept at all, because it was served before the
	 * state was saved */
	uint32_t last;
	uint64_t serving; /* number of earlier servings in this epoch */
	uint64_t epoch;
};

/* Counters since refrain_echo_open(), and what echo auto has measured. */
struct refrain_echo_stats {
	size_t size; /* size of this struct */
	uint64_t epoch;
	uint64_t serving; /* number of servings in this epoch so far */
	/* number of examples that were served for the first time */
	uint64_t fresh;
	uint64_t served; /* number of servings, fresh ones and echoes */
	/* number of examples that the source has given */
	uint64_t pulled;
	/* number of pairs of servings of one example in a batch. There are some
	 * only if the window is small, or if the factor changed less than a
	 * window before the end */
	uint64_t duplicates;
	uint64_t pull_ns;    /* time that pulls have taken */
	uint64_t augment_ns; /* time from a serving to refrain_echo_served() */
	/* time from refrain_echo_served() to the next refrain_echo_next() */
	uint64_t trainer_ns;
	uint64_t window;    /* maximum number of examples that are kept */
	double echo_factor; /* the current factor e */
	uint64_t echo_changes;
	/* Measured with REFRAIN_ECHO_AUTO, otherwise 0. */
	/* time that the busy source takes for a batch of examples */
	double t_upstream_ms;
	double t_downstream_ms; /* time of a step, with its augmentation */
	double r;		/* t_upstream_ms / t_downstream_ms */
};

/*
 * Open a stage, at the beginning of epoch 0 or at the position of `state`. The
 * stage uses these members of the configuration: `batch` (required; the largest
 * batch that the servings will be put into), `seed`, `echo`, `echo_max`,
 * `echo_log`, `window`, `min_lag`, `rank`, `world`,
 * REFRAIN_FLAG_ALLOW_DUPLICATES, `state` and `state_bytes`. These mean the same
 * as for a loader. Each rank has a source of its own; rank and world only make
 * its seeds and its order different. The first epoch of REFRAIN_ECHO_AUTO
 * begins with e = 1, the next ones with the last e. To measure the source, the
 * stage sometimes takes up to 3/8 of a window (64 to 384 examples) more from
 * the source than it serves.
 *
 * `examples` is the number of examples of the source, or 0 if it is not known.
 * The source may end earlier or later. REFRAIN_ECHO_AUTO uses the number: it
 * does not change e in the last window.
 *
 * Returns 0, or -EINVAL, -EBADMSG, -ESTALE or -ENOMEM like refrain_open().
 */
REFRAIN_API int refrain_echo_open(struct refrain_echo **out,
	const struct refrain_config *config, uint64_t examples);

/* Begin an epoch, with example 0 of the source. Examples that are kept and
 * their echoes are dropped. */
REFRAIN_API int refrain_echo_begin(struct refrain_echo *e, uint64_t epoch);

/* After opening with a state: returns the first example that is still needed.
 * The source must begin at that example or before it. refrain_echo_from() tells
 * the stage where the source begins; the default is 0. The stage asks for the
 * examples from there on. */
REFRAIN_API uint64_t refrain_echo_needs(struct refrain_echo *e);
/* Set the example at which the source begins. Returns -EINVAL if that is after
 * refrain_echo_needs(), or if an example was pulled or served since the epoch
 * began or the state was restored. */
REFRAIN_API int refrain_echo_from(struct refrain_echo *e, uint64_t example);

/*
 * Get the next action: fill the first out->size bytes of *out. Set out->size
 * before the call. Returns REFRAIN_ECHO_SERVE, REFRAIN_ECHO_PULL or
 * REFRAIN_ECHO_END, or -ESTALE if echo_log belongs to another configuration.
 */
REFRAIN_API int refrain_echo_next(
	struct refrain_echo *e, struct refrain_serving *out);

/*
 * Say that the action of the last refrain_echo_next() was done. pulled: the
 * source has given the example; ended: the source has no more examples; served:
 * the example was served. Returns 0, or -EINVAL if the last action was another
 * one. refrain_echo_ended() returns -ESTALE if the stage needs examples that
 * the source had before the state was saved.
 */
REFRAIN_API int refrain_echo_pulled(struct refrain_echo *e);
REFRAIN_API int refrain_echo_ended(struct refrain_echo *e);
REFRAIN_API int refrain_echo_served(struct refrain_echo *e);

/* Returns the number of servings in an epoch of `examples` examples, for the
 * factor with which the present epoch began. */
REFRAIN_API uint64_t refrain_echo_servings(
	struct refrain_echo *e, uint64_t examples);

/* Save the position after the last serving, in at most REFRAIN_STATE_MAX bytes.
 * Returns the number of bytes, -ENOSPC, or -EAGAIN, like refrain_save(). */
REFRAIN_API int refrain_echo_save(
	struct refrain_echo *e, void *buf, size_t size);

/* Write the changes of e that this handle has made, like refrain_echo_log().
 * The steps are counted over all epochs, and the last step of an epoch may be
 * short. */
REFRAIN_API int refrain_echo_changes(
	struct refrain_echo *e, char *buf, size_t size);

/* Fill the first out->size bytes of *out; set out->size before the call. */
REFRAIN_API int refrain_echo_stats_get(
	struct refrain_echo *e, struct refrain_echo_stats *out);

/* Free the stage. NULL is allowed. */
REFRAIN_API void refrain_echo_close(struct refrain_echo *e);

#ifdef __cplusplus
}
#endif

#endif
