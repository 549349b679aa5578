/* SPDX-License-Identifier: MIT */
/* Follows the READs of a mount, as its daemon traces them. One thread. */
#ifndef FLEET_FOLLOW_H
#define FLEET_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/fleet/client.h"
#include "common/base/read_trace.h"

/* A READ. The strings are valid during the call; they may hold any characters.
 */
struct followed_read {
	uint64_t end_us; /* when it was answered, since 1970 */
	uint64_t us;	 /* duration */
	pid_t process;	 /* 0: not known */
	const char *program, *path;
	uint64_t off, len;
	enum latency_kind source; /* as in struct read_record */
};

typedef void follow_fn(void *arg, const struct followed_read *read);

struct read_follow {
	uint64_t slow_us; /* only READs that took this long; 0: all */
	pid_t process;	  /* only those of this process; 0: of all */
	follow_fn *read;
	/* Called when READs were lost. May be NULL. */
	void (*lost)(void *arg, uint64_t reads);
	/* The trace ends when this returns true; called several times a second.
	 */
	bool (*over)(void *arg);
	/* Called when the trace has begun. May be NULL. */
	void (*begun)(void *arg);
	void *arg;
};

/* Follow until over() is true. Returns 0, or -errno if the daemon does not
 * trace or has ended. */
int follow_reads(struct ctl_client *client, const struct read_follow *how,
	struct error *err);

#endif
