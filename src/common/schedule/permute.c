/* SPDX-License-Identifier: MIT */
/*
 * A Feistel network over [0, 2^shift) x [0, high). This domain contains [0, n)
 * and fewer than 2^shift further values. A result outside of [0, n) is mapped
 * again until it is inside (cycle walking). The map stays a bijection, and
 * 2^shift <= sqrt(n) makes this rare. The two parts take turns: each moves by a
 * keyed hash of the other part, modulo its size. There are ten rounds. Tiny
 * domains need twenty, because a round has few values to choose from there, and
 * all orders must be equally frequent. Pure functions, any thread.
 */
#include "common/schedule/permute.h"

#define ROUNDS 10 /* an even number */
#define ROUNDS_TINY 20
#define TINY 256

static uint64_t round_key(const struct permute *p, unsigned round)
{
	return p->key + (round + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns 32 well mixed bits (the finaliser of splitmix64). */
static uint32_t permute_mix(uint64_t x, uint64_t key)
{
	x += key;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

/* Returns the distance by which the upper part moves, in [0, high). */
static uint64_t distance(const struct permute *p, uint64_t low, unsigned round)
{
	return ((uint64_t)permute_mix(low, round_key(p, round)) * p->high) >>
		32;
}

static uint64_t forward(const struct permute *p, uint64_t x)
{
	uint64_t mask = (UINT64_C(1) << p->shift) - 1;
	uint64_t low = x & mask, high = x >> p->shift;

	for (unsigned i = 0; i < p->rounds; i += 2) {
		high += distance(p, low, i);
		high -= high >= p->high ? p->high : 0;
		low ^= permute_mix(high, round_key(p, i + 1)) & mask;
	}
	return high << p->shift | low;
}

static uint64_t backward(const struct permute *p, uint64_t x)
{
	uint64_t mask = (UINT64_C(1) << p->shift) - 1;
	uint64_t low = x & mask, high = x >> p->shift;

	for (unsigned i = p->rounds; i > 0; i -= 2) {
		uint64_t moved;

		low ^= permute_mix(high, round_key(p, i - 1)) & mask;
		moved = distance(p, low, i - 2);
		high += high < moved ? p->high - moved : -moved;
	}
	return high << p->shift | low;
}

void permute_init(struct permute *p, uint64_t n, uint64_t key)
{
	unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;

	p->n = n;
	p->key = key;
	p->rounds = n < TINY ? ROUNDS_TINY : ROUNDS;
	p->shift = bits / 2;
	p->high = (n + (UINT64_C(1) << p->shift) - 1) >> p->shift;
}

uint64_t permute_at(const struct permute *p, uint64_t i)
{
	do {
		i = forward(p, i);
	} while (i >= p->n);
	return i;
}

uint64_t permute_find(const struct permute *p, uint64_t value)
{
	do {
		value = backward(p, value);
	} while (value >= p->n);
	return value;
}
