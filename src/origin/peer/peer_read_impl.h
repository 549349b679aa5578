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
 * waits for a lease that has stopped beating, or for a comparison that takes
 * too long. A server that delivers something gets more time. While a reader
 * waits, only a fast server gets more time, because the delays of a fast server
 * come from this host's own requests. Used by the thread of the peers. Private
 * to this room.
 */
#ifndef PEER_READ_IMPL_H
#define PEER_READ_IMPL_H

#include "origin/peer/peer_lease_impl.h"
#include "origin/peer/peer_trust_impl.h"

/* The maximum number of units of a read. */
#define READ_UNITS 64u

enum read_state {
	READ_GETTING,
	READ_CHECKING,
	READ_LEASING,
	READ_WAITING,
	READ_DONE
};

struct reads {
	struct list all; /* readings */
	struct leases *leases;
	struct trusts *trusts;
	uint64_t seed;
};

struct reading {
	struct post begin;
	struct list link;
	/* in the list of active readings of peers.c, under its lock */
	struct list active;
	/* this member and those up to `last` are set once */
	struct reads *reads;
	struct provider_read *r;
	struct peer_host *host; /* the host that owns the item */
	struct hash128 item;
	uint32_t first, last;	/* range of units */
	_Atomic bool abandoned; /* set by any thread */
	bool ours;		/* this host has just won the lease */
	enum read_state state;
	int status;
	struct list gets; /* commands without an answer */
	unsigned nasked;  /* length of `gets` */
	uint32_t next;	  /* the next unit to request */
	bool has[READ_UNITS];
	uint64_t limit_ns; /* time at which the server must have answered */
	/* time since when a reader waits for the server; 0: none waits */
	uint64_t urgent_ns;
	uint64_t look_ns; /* WAITING, CHECKING: time of the next check */
	uint64_t beat_ns; /* WAITING: time at which the lease last changed */
	uint64_t beat;	  /* hash of the lease's value at that time */
	bool has_beat;
	bool foreign;	 /* a unit is of another dataset */
	bool unsure;	 /* the writer of a unit is not trusted yet */
	uint64_t writer; /* id of that writer */
	unsigned news;	 /* trusts_news() for that writer when the unit came */
	/* CHECKING: time at which to stop waiting; 0: no comparison so far */
	uint64_t check_ns;
};

/* Initialise a reading, before it is added to the list. */
void reading_begin(struct reading *g, uint64_t now_ns);
/* Continue all reads. Reads that have ended move to `ended`; later answers to
 * their commands are ignored. */
void reads_step(struct reads *all, struct list *ended, uint64_t now_ns);

#endif
