/* SPDX-License-Identifier: MIT */
/*
 * A read asks the owner of an item for its units.
 *
 *   GETTING -- all units came -------------------------------------> done: 0
 *      |  \-- their writer is not trusted yet: CHECKING, then GETTING again
 *      |   \- their writer has another dataset: done: -ENOENT
 *      |  units are missing
 *      v
 *   LEASING -- another host fetches it: WAITING, then GETTING again
 *      |  won (then GETTING once more), refused, or ours already
 *      v
 *   done: -ENOENT, and the origin is asked
 *
 * A read ends with an error if its owner does not answer in time, or if it
 * waits for a lease that does not beat, or for a comparison that takes too
 * long. A server that delivers something gets more time. While a reader waits,
 * only a fast server gets more time, because with a fast server the delay comes
 * from our own requests. Used by the thread of the peers. Private to this room.
 */
#ifndef PEER_READ_IMPL_H
#define PEER_READ_IMPL_H

#include "origin/peer/peer_lease_impl.h"
#include "origin/peer/peer_trust_impl.h"

/* The longest read. */
#define READ_UNITS 64u

enum read_state {
	READ_GETTING,
	READ_CHECKING,
	READ_LEASING,
	READ_WAITING,
	READ_DONE
};

struct reads {
	struct list all; /* of struct reading */
	struct leases *leases;
	struct trusts *trusts;
	uint64_t seed;
};

struct reading {
	struct post begin;
	struct list link;
	struct list active;  /* of peers.c, its lock */
	struct reads *reads; /* this and those up to `last` are set once */
	struct provider_read *r;
	struct peer_host *host; /* the owner */
	struct hash128 item;
	uint32_t first, last;	/* units */
	_Atomic bool abandoned; /* by any thread */
	bool ours;		/* we have just won the lease */
	enum read_state state;
	int status;
	struct list gets; /* of struct read_get: on their way */
	unsigned nasked;  /* how many */
	uint32_t next;	  /* the unit to ask for */
	bool has[READ_UNITS];
	uint64_t limit_ns;  /* an answer of the server is awaited until */
	uint64_t urgent_ns; /* a reader waits for the server since; or 0 */
	uint64_t look_ns;   /* WAITING, CHECKING: look again */
	uint64_t beat_ns;   /* WAITING: when the lease last changed */
	uint64_t beat;	    /* and the hash of its value */
	bool has_beat;
	bool foreign;	   /* a unit is of another dataset */
	bool unsure;	   /* a unit's writer is not trusted yet; then: */
	uint64_t writer;   /* its id */
	unsigned news;	   /* of it, when the unit came */
	uint64_t check_ns; /* CHECKING: until then; 0: never was */
};

/* Before it comes on the list. */
void reading_begin(struct reading *g, uint64_t now_ns);
/* Continue all reads. Reads that are done move to `ended`; answers that still
 * come for them are dropped. */
void reads_step(struct reads *all, struct list *ended, uint64_t now_ns);

#endif
