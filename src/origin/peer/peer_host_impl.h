/* SPDX-License-Identifier: MIT */
/*
 * One host: its connections, whether it can be used, and the settings and use
 * that its server reports. States:
 *
 *              settings are right             a time-out, or the
 *   TRYING ------------------------> UP ---- last connection is lost --> DOWN
 *     |  \                            ^                                   |
 *     |   +-- no answer: DOWN         +----- it answers a probe ----------+
 *     +-- settings are wrong: REFUSED, probed like DOWN
 *
 * After a time-out a host that answers is on trial: it is asked for one unit at
 * a time until one comes in time. So a link that works but is too slow delays
 * an occasional read, not all of them.
 *
 * Used only by the thread of the peers, except host_status() and the counts.
 * Private to src/peer.
 */
#ifndef PEER_HOST_IMPL_H
#define PEER_HOST_IMPL_H

#include "origin/peer/peer.h"
#include "origin/peer/memcached_wire_impl.h"

enum host_line {
	HOST_GETS,   /* units; over the less busy of two connections */
	HOST_SMALL,  /* leases; on the same */
	HOST_PUSHES, /* units to keep; a connection of their own */
};

/* Counts of struct peer_status; the counters of the mount have the same. */
enum host_count {
	HOST_HITS,
	HOST_HIT_BYTES,
	HOST_MISSES,
	HOST_FILLS,
	HOST_FILL_BYTES,
	HOST_REFUSED,
	HOST_BAD,
	HOST_FOREIGN,
	HOST_ERRORS,
	HOST_DROPPED,
	HOST_COUNTS
};

/* The configuration that all hosts share; set once. */
struct host_config {
	struct loop *loop; /* of the peers */
	struct hash128 dataset;
	bool named; /* there is a dataset */
	uint64_t secret_mark;
	/* How many hosts have another secret. The thread's. */
	unsigned *nstrangers;
	struct counters *counters;	 /* or NULL */
	const struct event_sink *events; /* or NULL */
};

struct host;

int host_new(struct host **out, const struct host_config *config,
	const char *name, bool self, struct error *err);
void host_free(struct host *h);

/* Connect, probe, check for overdue answers, ask for statistics. */
void host_tick(struct host *h, uint64_t now_ns);
/* An event of one of its connections. */
void host_event(
	struct host *h, struct wire *w, uint32_t events, uint64_t now_ns);
/* Send what is queued. */
void host_flush(struct host *h, uint64_t now_ns);

bool host_is_up(const struct host *h);
/* May another request for a unit be sent? */
bool host_has_room(const struct host *h, enum host_line line);
/* Its recent rate of delivery, in bytes/s. */
uint64_t host_rate(const struct host *h);

/* -EHOSTDOWN, or 0: answered() will be called. */
int host_send(struct host *h, enum host_line line, struct request *q,
	uint64_t now_ns);

/* Delete a key in its server. Nobody is told whether that worked. */
void host_delete(struct host *h, enum host_line line, const char *key);

/* It takes too long: close all connections as soon as possible. */
void host_give_up(struct host *h);

/* A unit came in time: the trial is over. */
void host_delivered(struct host *h);

/* The host refused a unit because its memory is full, or accepted one. */
void host_full(struct host *h, bool full);
/* Should this push be sent? After a refusal, one in 100 is. */
bool host_may_push(struct host *h);

/* Add to a count; any thread. */
void host_count(struct host *h, enum host_count what, uint64_t n);
/* Count a damaged unit, and report it unless secrets differ. */
void host_bad(struct host *h);

/* Set the digest of this host's manifest, which is stored in its own server. */
void host_set_manifest(struct host *h, struct hash128 digest);

void host_status(struct host *h, struct peer_status *status);

#endif
