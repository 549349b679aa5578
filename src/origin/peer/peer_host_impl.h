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
 * After a time-out, a host that answers again is on trial: it gets requests for
 * one unit at a time until a unit arrives in time. So a link that works but is
 * too slow delays only some reads.
 *
 * Used only by the thread of the peers, except host_status() and the counts.
 */
#ifndef PEER_HOST_IMPL_H
#define PEER_HOST_IMPL_H

#include "origin/peer/peer.h"
#include "common/memcached/memcached_wire.h"
#include "origin/peer/peer_unit_impl.h"

enum peer_host_line {
	HOST_GETS, /* requests for units, on the less busy of two connections */
	HOST_SMALL,  /* lease commands, on the same two connections */
	HOST_PUSHES, /* units to be stored, on a separate connection */
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
	/* The number of hosts with another secret. Only the peers' thread uses
	 * it. */
	unsigned *nstrangers;
	struct counters *counters;	 /* may be NULL */
	const struct event_sink *events; /* may be NULL */
};

struct peer_host;

int peer_host_new(struct peer_host **out, const struct peer_host_config *config,
	const char *name, bool self, struct error *err);
void peer_host_free(struct peer_host *h);

/* Do what is due: connect, probe, check for overdue answers, or ask for
 * statistics. */
void peer_host_tick(struct peer_host *h, uint64_t now_ns);
/* Handle an event of one of the connections. */
void peer_host_event(
	struct peer_host *h, struct wire *w, uint32_t events, uint64_t now_ns);
/* Send the queued requests. */
void peer_host_flush(struct peer_host *h, uint64_t now_ns);

bool peer_host_is_up(const struct peer_host *h);
/* May another request for a unit be sent? */
bool peer_host_has_room(const struct peer_host *h, enum peer_host_line line);
/* Returns the recent rate of the host's answers, in bytes/s. */
uint64_t peer_host_rate(const struct peer_host *h);

/* Send a request. Returns 0 if answered() will be called, or -EHOSTDOWN. */
int peer_host_send(struct peer_host *h, enum peer_host_line line,
	struct request *q, uint64_t now_ns);

/* Delete a key in the host's server. The result is not reported. */
void peer_host_delete(
	struct peer_host *h, enum peer_host_line line, const char *key);

/* Note that the host takes too long: close all its connections as soon as
 * possible. */
void peer_host_give_up(struct peer_host *h);

/* Note that a unit came in time, which ends a trial. */
void peer_host_delivered(struct peer_host *h);

/* Note that the host refused a unit because its memory is full, or that it
 * accepted one. */
void peer_host_full(struct peer_host *h, bool full);
/* May this push be sent? After a refusal, only one in 100 may. */
bool peer_host_may_push(struct peer_host *h);

/* Add to a count. Any thread may call this. */
void host_count(struct peer_host *h, enum host_count what, uint64_t n);
/* Count a damaged unit. Report it, unless this host has another secret. */
void peer_host_bad(struct peer_host *h);

/* Set the digest of this host's manifest, which is stored in its own server. */
void peer_host_set_manifest(struct peer_host *h, struct hash128 digest);

void host_status(struct peer_host *h, struct peer_status *status);

#endif
