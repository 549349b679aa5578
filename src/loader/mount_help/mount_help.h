/* SPDX-License-Identifier: MIT */
/*
 * The help of a mount for a loader whose dataset lies on it. The loader sends
 * the mount its order, and opens entries in the mount's tiers directly. One
 * thread talks to the daemon over the control socket. If that fails, the loader
 * reads as from any file system. A read waits for the first keys, and for keys
 * that come later than the read, HELP_LATE_MS at most.
 *
 *	STARTING --> ON <--> AWAY    STARTING: the mount is being found
 *	    |         |       |      AWAY: the daemon has ended; another may
 *	    +-------> OFF <---+            go on with the mount
 *	                             OFF: no help, or no more of it
 *
 * While the daemon is away, entries whose keys are known are still read
 * directly. The plan is sent again to the next daemon.
 *
 * All functions accept a NULL mount_help, which means that no help is
 * available.
 */
#ifndef MOUNT_HELP_H
#define MOUNT_HELP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hash.h"
#include "common/base/uring.h"
#include "loader/dataset/dataset.h"
#include "loader/core/turn.h"
#include "common/schedule/schedule.h"
#include "loader/core/fetch_rates.h"
#include "loader/core/settings.h"

struct mount_help;

/* The position of the loader at the end of a turn. */
struct help_run {
	uint64_t fresh;	     /* fresh examples that this handle has returned */
	uint64_t step;	     /* the number of the next batch */
	uint64_t read_fresh; /* fresh numbers below this were given to the
				reader */
	/* The trainer's time for a step, without waiting; 0: unknown */
	uint64_t step_ns;
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
	/* Free memory; the help may take an eighth of it */
	uint64_t room_bytes;
};

/* The key of a file, which is a part of an example; unknown if its number + 1
 * is 0. The parts of example i have the numbers from i * dataset_parts() on. */
struct help_key {
	struct hash128 key;
	uint32_t bytes; /* 0: read it through the mount */
	uint32_t file_1;
};

/* Returns NULL if no help is available; lack of memory is not a failure. */
struct mount_help *help_new(const struct help_config *config);
uint64_t help_memory_bytes(const struct mount_help *h);
/*
 * Start the thread, with all signals blocked. Reads wait for it from now on.
 * Entries are read on a ring of their own, or on the caller's ring if io_uring
 * is not available.
 */
void help_start(struct mount_help *h, struct uring *ring, unsigned depth);
/* Stop the thread, after the loader has said `closing`. Returns false if it
 * does not end in time. */
bool help_stop(struct mount_help *h, uint64_t until_ns);
void help_free(struct mount_help *h);

/* -- With the lock of the turn -- */

/* Note that a batch was returned. */
void help_moved(struct mount_help *h);
/* Must its thread be woken? Returns true once for each wake-up. */
bool help_take_stirred(struct mount_help *h);
/* Note that a read of that fresh example starts. */
void help_note_start(struct mount_help *h, uint64_t fresh);
/* Note that direct_bytes were read from a tier; 0: that a file is read through
 * the mount. This is noted for each part. */
void help_note_read(struct mount_help *h, size_t direct_bytes);
/* Returns false if the read should wait: it will soon be known whether there is
 * an entry for this fresh example. `own`: the example itself is read, not a
 * substitute. */
bool help_knows(struct mount_help *h, uint64_t fresh, bool own);
/* The key of the entry to try for a part of an example, or NULL. */
const struct help_key *help_key(
	const struct mount_help *h, uint64_t index, uint32_t part);
/* Does the mount fetch for the loader's plan? help_rates_get() returns how
 * fast, and whether at full speed. */
bool help_plans(const struct mount_help *h);
void help_rates_get(
	const struct mount_help *h, struct fetch_rates *out, bool *fetching);
/* How often another daemon took the place of the one that had ended. */
uint64_t help_returns(const struct mount_help *h);
/* The ring for reading entries; NULL until the mount was found. */
struct uring *help_ring(const struct mount_help *h);

/* -- From the first key on; no lock -- */

/* The directory of a tier; -1: there are no more. */
int help_tier(const struct mount_help *h, unsigned n);

#endif
