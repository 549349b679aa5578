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
 * After a time-out, a host that answers again is on trial: it is asked for one
 * unit at a time until a unit comes in time. So a link that works but is too
 * slow delays an occasional read, not all of them.
 *
 * Used only by the thread of the peers, except host_status() and the counts.
 * Private to this room.
 */
#ifndef PEER_HOST_IMPL_H
#define PEER_HOST_IMPL_H

#include "origin/peer/peer.h"
#include "origin/peer/memcached_wire_impl.h"

enum peer_host_line {
	HOST_GETS,   /* units, on the less busy of two connections */
	HOST_SMALL,  /* leases, on the same connections */
	HOST_PUSHES, /* units to store, on a connection of their own */
};

/* Counts of struct peer_status; the mount has counters for the same events. */
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
struct peer_host_config {
	struct loop *loop; /* the loop of the peers */
	struct hash128 dataset;
	bool named; /* there is a dataset */
	uint64_t secret_mark;
	/* The number of hosts with another secret, for the peers' thread. */
	unsigned *nstrangers;
	struct counters *counters;	 /* or NULL */
	const struct event_sink *events; /* or NULL */
};

struct peer_host;

int peer_host_new(struct peer_host **out, const struct peer_host_config *config,
	const char *name, bool self, struct error *err);
void peer_host_free(struct peer_host *h);

/* Connect, probe, check for overdue answers, or ask for statistics, as is due.
 */
void peer_host_tick(struct peer_host *h, uint64_t now_ns);
/* Handle an event of one of the connections. */
void peer_host_event(
	struct peer_host *h, struct wire *w, uint32_t events, uint64_t now_ns);
/* Send the queued requests. */
void peer_host_flush(struct peer_host *h, uint64_t now_ns);

bool peer_host_is_up(const struct peer_host *h);
/* May another request for a unit be sent? */
bool peer_host_has_room(const struct peer_host *h, enum peer_host_line line);
/* The recent rate of the host's answers, in bytes/s. */
uint64_t peer_host_rate(const struct peer_host *h);

/* Send a request. Returns -EHOSTDOWN, or 0: answered() will be called. */
int peer_host_send(struct peer_host *h, enum peer_host_line line,
	struct request *q, uint64_t now_ns);

/* Delete a key in the host's server. The result is not reported. */
void peer_host_delete(
	struct peer_host *h, enum peer_host_line line, const char *key);

/* The host takes too long: close all connections as soon as possible. */
void peer_host_give_up(struct peer_host *h);

/* A unit came in time: the trial is over. */
void peer_host_delivered(struct peer_host *h);

/* The host refused a unit because its memory is full, or accepted one. */
void peer_host_full(struct peer_host *h, bool full);
/* Should this push be sent? After a refusal, only one in 100 is. */
bool peer_host_may_push(struct peer_host *h);

/* Add to a count; any thread. */
void host_count(struct peer_host *h, enum host_count what, uint64_t n);
/* Count a damaged unit, and report it unless secrets differ. */
void peer_host_bad(struct peer_host *h);

/* Set the digest of this host's manifest, which is stored in its own server. */
void peer_host_set_manifest(struct peer_host *h, struct hash128 digest);

void host_status(struct peer_host *h, struct peer_status *status);

#endif
