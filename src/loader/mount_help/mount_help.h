/* SPDX-License-Identifier: MIT */
/*
 * Mount help: a refrain mount helps a loader whose dataset is on that mount.
 * The loader sends the mount the order in which it will read, and reads entries
 * directly from the mount's tiers. One thread exchanges messages with the
 * daemon over the control socket. If this fails, the loader reads as from any
 * file system. A read waits for the first keys, and for a key that has not come
 * yet, but for at most HELP_LATE_MS.
 *
 *	STARTING --> ON <--> AWAY    STARTING: the mount is being found
 *	    |         |       |      AWAY: the daemon has ended; another one may
 *	    +-------> OFF <---+            continue the mount
 *	                             OFF: the mount does not help, or no longer
 *
 * While the daemon is away, entries whose keys are known are still read
 * directly. The plan is sent again to the next daemon.
 *
 * All functions accept NULL in place of a mount_help, which means that there is
 * no mount help.
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

/* The progress of the loader at the end of a turn. */
struct help_run {
	uint64_t fresh; /* number of fresh examples returned */
	uint64_t step;	/* the number of the next batch */
	/* Fresh numbers below this were given to the reader */
	uint64_t read_fresh;
	/* The trainer's time for a step without waiting, in ns; 0: unknown */
	uint64_t step_ns;
	const struct schedule *schedule;
	bool closing;
};

struct help_config {
	const struct settings *s;
	const struct dataset *dataset;
	struct turn *turn;
	/* Called with the lock held */
	void (*run)(void *arg, struct help_run *out);
	void *arg;
	uint64_t first_fresh; /* number of this handle's first fresh example */
	/* Bytes of free memory; mount help may take an eighth of it */
	uint64_t room_bytes;
};

/* The key of a file, which is a part of an example. The number of part p of
 * example i is i * dataset_parts() + p. file_1 is this number plus 1; 0 means
 * that there is no key. */
struct help_key {
	struct hash128 key;
	uint32_t bytes; /* size of the entry; 0: read through the mount */
	uint32_t file_1;
};

/* Returns NULL if the dataset is not on a mount that helps, or if memory has
 * run out; the loader works without help. */
struct mount_help *help_new(const struct help_config *config);
uint64_t help_memory_bytes(const struct mount_help *h);
/*
 * Start the thread, with all signals blocked. From now on, reads wait for it.
 * Entries are read with a separate ring, or with `ring` if io_uring is not
 * available.
 */
void help_start(struct mount_help *h, struct uring *ring, unsigned depth);
/* Stop the thread. help_run.closing must be set. Returns false if the thread
 * does not end in time. */
bool help_stop(struct mount_help *h, uint64_t until_ns);
void help_free(struct mount_help *h);

/* -- Call these with the lock of the turn held ----------------------------- */

/* Note that a batch was returned. */
void help_moved(struct mount_help *h);
/* Must the thread be woken? Returns true once for each wake-up. */
bool help_take_stirred(struct mount_help *h);
/* Note that a read of this fresh example begins. */
void help_note_start(struct mount_help *h, uint64_t fresh);
/* Note that direct_bytes bytes were read from a tier or, with 0, that a file is
 * read through the mount. Call this for each part. */
void help_note_read(struct mount_help *h, size_t direct_bytes);
/* May the read of this fresh example begin? Returns false if it should wait,
 * because the key will soon be known. `own` is false if another example is read
 * as a substitute for this one. */
bool help_knows(struct mount_help *h, uint64_t fresh, bool own);
/* Returns the key of the entry for a part of an example, or NULL if the key is
 * not known. */
const struct help_key *help_key(
	const struct mount_help *h, uint64_t index, uint32_t part);
/* help_plans(): does the mount fetch for the loader's plan? help_rates_get()
 * gets the rates of fetching, and whether the mount fetches at full speed now.
 */
bool help_plans(const struct mount_help *h);
void help_rates_get(
	const struct mount_help *h, struct fetch_rates *out, bool *fetching);
/* Returns how often another daemon has replaced one that had ended. */
uint64_t help_returns(const struct mount_help *h);
/* Returns the ring for reads from tiers, or NULL before the mount was found. */
struct uring *help_ring(const struct mount_help *h);

/* -- Call these after the first key is known; no lock needed --------------- */

/* Returns a descriptor of the directory of the n-th tier, or -1 if there are
 * not so many. */
int help_tier(const struct mount_help *h, unsigned n);

#endif
