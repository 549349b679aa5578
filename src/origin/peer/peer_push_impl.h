/* SPDX-License-Identifier: MIT */
/* Sends units to their owners. Used by the thread of the peers. Private to
 * this room. */
#ifndef PEER_PUSH_IMPL_H
#define PEER_PUSH_IMPL_H

#include "origin/peer/peer_lease_impl.h"
#include "origin/peer/peer_trust_impl.h"

struct pushes {
	struct list waiting; /* list of struct push_job that wait */
	struct leases *leases;
	struct trusts *trusts;
	uint64_t seed;
};

struct push_job {
	struct post begin;
	struct list link; /* in `waiting` until the unit is sent */
	struct request q;
	struct pushes *all;
	struct provider_push *p;
	struct peer_host *host; /* the host that owns the item */
	struct unit unit;
};

/* Send units as long as the connections have room, and end pushes that cannot
 * be sent. */
void pushes_step(struct pushes *all, uint64_t now_ns);

#endif
