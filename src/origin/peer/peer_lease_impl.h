/* SPDX-License-Identifier: MIT */
/*
 * Leases decide which host fetches an item from the origin. A lease is a
 * separate key in the owner's server. The server creates it for the first host
 * that asks, the winner. The winner changes the value of the key regularly (a
 * *beat*) until nothing more of the item is in flight; the other hosts check
 * that the value changes. If the server had no memory for the item, the lease
 * stays for a while, with a value that says so. Used by the thread of the
 * peers. Private to this room.
 */
#ifndef PEER_LEASE_IMPL_H
#define PEER_LEASE_IMPL_H

#include "origin/peer/peer_host_impl.h"

/* A lease whose value has not changed for this time may be taken over. */
#define LEASE_DEAD_NS (750 * NS_PER_MS)

struct leases;

struct leases *leases_new(void);
void leases_free(struct leases *l);

/* Note that this host has won the lease of this item, and write its beats from
 * now on. */
int leases_hold(struct leases *l, struct peer_host *h, struct hash128 item,
	uint64_t now_ns);
bool leases_has(const struct leases *l, struct hash128 item);
/* Note that a unit of the item was refused because the server's memory is full.
 */
void leases_refused(struct leases *l, struct hash128 item);
/* End the lease of an item, because nothing more of the item is in flight. */
void leases_end(struct leases *l, struct hash128 item, uint64_t now_ns);
/* Stop writing all beats, because it is not known which items are finished. */
void leases_forget(struct leases *l);
bool leases_are_held(const struct leases *l);
/* Write the beats that are due. */
void leases_tick(struct leases *l, uint64_t now_ns);

/*
 * Does the value of another host's lease mean that the server's memory was
 * full?
 */
bool lease_is_refusal(const uint8_t *value, size_t bytes);

#endif
