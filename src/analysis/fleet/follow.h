/* SPDX-License-Identifier: MIT */
/* Follows the READs of a mount, as its daemon traces them. One thread. */
#ifndef FLEET_FOLLOW_H
#define FLEET_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/fleet/client.h"
#include "common/base/read_trace.h"

/* A READ. The strings are valid during the call, and may contain any
 * characters. */
struct followed_read {
	uint64_t end_us; /* time at which it was answered, since 1970 */
	uint64_t us;	 /* duration */
	pid_t process;	 /* process that has read; 0: not known */
	const char *program, *path;
	uint64_t off, len;
	/* a value of enum latency_kind, as in struct read_record */
	enum latency_kind source;
};

typedef void follow_fn(void *arg, const struct followed_read *read);

struct read_follow {
	/* follow only READs that took at least this long; 0: all */
	uint64_t slow_us;
	pid_t process; /* follow only READs of this process; 0: of all */
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
