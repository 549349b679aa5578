/* SPDX-License-Identifier: MIT */
/* Random numbers from a seed; see crop_impl.h. Any thread; no state. */
#include "loader/image/crop_impl.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t crop_draw(uint64_t seed, unsigned n)
{
	const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

	return mix(mix(seed + step) + (n + 1) * step);
}

double crop_uniform(uint64_t seed, unsigned n)
{
	return (double)(crop_draw(seed, n) >> 11) * 0x1p-53;
}

uint32_t crop_integer(uint64_t seed, unsigned n, uint32_t below)
{
	return (uint32_t)(((crop_draw(seed, n) >> 32) * below) >> 32);
}
