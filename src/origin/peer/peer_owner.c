/* SPDX-License-Identifier: MIT */
/* Finds the owner of an item: the host whose hash, mixed with that of the item,
 * is the highest (rendezvous hashing). Pure functions, callable from any
 * thread. */
#include "origin/peer/peer.h"

#include <string.h>

uint64_t peer_host_hash(const char *host)
{
	return hash64(host, strlen(host), 0);
}

/* The finalizer of SplitMix64: every bit of x changes half of the bits. */
static uint64_t owner_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

size_t peer_owner(const uint64_t *peer_host_hash, size_t n, struct hash128 item)
{
	uint64_t best = 0;
	size_t owner = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t weight = owner_mix(
			owner_mix(peer_host_hash[i] ^ item.lo) + item.hi);

		/* If two weights are equal, the host with the higher hash wins,
		 * so that the order of the hosts does not matter. */
		if (i == 0 || weight > best ||
			(weight == best &&
				peer_host_hash[i] > peer_host_hash[owner])) {
			best = weight;
			owner = i;
		}
	}
	return owner;
}
