/* SPDX-License-Identifier: MIT */
/*
 * Leases: who fetches an item from the origin. A lease is a key of its own in
 * the owner's server. The server creates it for one of those who ask, the
 * winner, which writes a beat into it until nothing more of the item is on its
 * way. The others look whether it beats. If the server had no memory for the
 * item, the lease stays for a while and says so. The thread of the peers.
 * Private to src/peer.
 */
#ifndef PEER_LEASE_IMPL_H
#define PEER_LEASE_IMPL_H

#include "peer/host_impl.h"

/* A lease whose beat has not changed for so long is nobody's. */
#define LEASE_DEAD_NS (750 * NS_PER_MS)

struct leases;

struct leases *leases_new(void);
void leases_free(struct leases *l);

/* We have won it. */
int leases_hold(
	struct leases *l, struct host *h, struct hash128 item, uint64_t now_ns);
bool leases_has(const struct leases *l, struct hash128 item);
/* A unit of the item was refused for want of memory. */
void leases_refused(struct leases *l, struct hash128 item);
/* Nothing more of the item is on its way. */
void leases_end(struct leases *l, struct hash128 item, uint64_t now_ns);
/* Write no more beats: which leases have ended is not known. */
void leases_forget(struct leases *l);
bool leases_are_held(const struct leases *l);
/* Write beats. */
void leases_tick(struct leases *l, uint64_t now_ns);

/* What the value of a lease of another host says. */
bool lease_is_refusal(const uint8_t *value, size_t bytes);

#endif
