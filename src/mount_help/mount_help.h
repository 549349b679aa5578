/* SPDX-License-Identifier: MIT */
/*
 * The help of a mount for a loader whose dataset lies on it: the loader tells
 * the mount its order, and opens what the mount has in its tiers by itself. One
 * thread talks with the daemon, over the control socket; whatever goes wrong
 * there only means that the loader reads as on any file system. Reads wait for
 * the first keys, and where they overtake the keys, for HELP_LATE_MS at most.
 *
 *	STARTING --> ON --> OFF      STARTING: the mount is being found
 *	    +---------------^        OFF: no help, or no more of it
 *
 * A mount_help of NULL is no help: every call takes it.
 */
#ifndef MOUNT_HELP_MOUNT_HELP_H
#define MOUNT_HELP_MOUNT_HELP_H

#include <stdbool.h>
#include <stdint.h>

#include "auto/auto.h"
#include "base/hash.h"
#include "base/uring.h"
#include "dataset/dataset.h"
#include "base/turn.h"
#include "schedule/schedule.h"
#include "settings/settings.h"

struct mount_help;

/* Where the loader is, as of a turn. */
struct help_run {
	uint64_t fresh;	     /* examples returned, of this handle */
	uint64_t step;	     /* the number of the next batch */
	uint64_t read_fresh; /* fresh numbers before: given to the reader */
	uint64_t step_ns;    /* of the trainer, without waiting; 0: unknown */
	const struct schedule *schedule;
	bool closing;
};

struct help_config {
	const struct settings *s;
	const struct dataset *dataset;
	struct turn *turn;
	void (*run)(void *arg, struct help_run *out); /* with the lock */
	void *arg;
	uint64_t first_fresh; /* number of the handle's first fresh example */
	uint64_t room_bytes;  /* of memory: an eighth may be taken */
};

/* The key of an example; unknown if its index + 1 is 0. */
struct help_key {
	struct hash128 key;
	uint32_t bytes; /* 0: read it through the mount */
	uint32_t index_1;
};

/* Returns NULL if no help is available; lack of memory is not a failure. */
struct mount_help *help_new(const struct help_config *config);
uint64_t help_memory_bytes(const struct mount_help *h);
/*
 * Start the thread; signals are blocked. Reads wait for it from now on. Entries
 * are read on a ring of its own, or where that would be a pool of threads on
 * the caller's.
 */
void help_start(struct mount_help *h, struct uring *ring, unsigned depth);
/* After the loader says `closing`: false if the thread does not end in time. */
bool help_stop(struct mount_help *h, uint64_t until_ns);
void help_free(struct mount_help *h);

/* -- With the lock of the turn -- */

/* A batch was returned. */
void help_moved(struct mount_help *h);
/* Is its thread to be woken? Once. */
bool help_take_stirred(struct mount_help *h);
/* A read of that fresh example starts. */
void help_note_start(struct mount_help *h, uint64_t fresh);
/* Note that direct_bytes were read from a tier; 0: it is read through the
 * mount. */
void help_note_read(struct mount_help *h, size_t direct_bytes);
/* False: it is soon known whether there is an entry. `index`: of what is read
 * for that fresh example; `own`: it is the example itself. */
bool help_knows(struct mount_help *h, uint64_t fresh, bool own);
/* The key of the entry to be tried, or NULL. */
const struct help_key *help_key(const struct mount_help *h, uint64_t index);
/* Does a plan fetch what the loader reads? How fast, and as fast as it can? */
bool help_plans(const struct mount_help *h);
void help_rates_get(
	const struct mount_help *h, struct auto_rates *out, bool *fetching);

/* -- From the first key on -- */

/* Entries are read there. */
struct uring *help_ring(const struct mount_help *h);
/* The directory of a tier; -1: there are no more. */
int help_tier(const struct mount_help *h, unsigned n);

#endif
