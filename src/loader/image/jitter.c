/* SPDX-License-Identifier: MIT */
/*
 * Applies colour jitter. Brightness and contrast change each value
 * independently of the other channels, so one table does both. Contrast needs
 * the mean grey of the sample, which is computed first.
 */
#include "loader/image/jitter_impl.h"

static uint8_t clamped(double v)
{
	if (!(v > 0))
		return 0;
	return v < 255 ? (uint8_t)(v + 0.5) : 255;
}

/* Returns the grey of a pixel. The weights sum to 65536. */
static unsigned grey_of(unsigned r, unsigned g, unsigned b)
{
	return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
}

static double mean_grey(const uint8_t *map, const uint8_t *rgb, size_t pixels)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < pixels; i++, rgb += 3)
		sum += grey_of(map[rgb[0]], map[rgb[1]], map[rgb[2]]);
	return (double)sum / (double)pixels;
}

static void apply(
	const uint8_t *restrict map, uint8_t *restrict rgb, size_t count)
{
	for (size_t i = 0; i < count; i++)
		rgb[i] = map[rgb[i]];
}

static uint8_t added(unsigned grey, int difference)
{
	int v = (int)grey + difference;

	v = v < 0 ? 0 : v;
	return (uint8_t)(v > 255 ? 255 : v);
}

/* Fill in a table of distances from the grey, from -255 to 255: for each old
 * distance the new one. */
static void init_distances(float factor, int16_t *distances)
{
	for (int d = 0; d <= 255; d++) {
		double far = d * (double)factor + 0.5;

		distances[255 + d] = (int16_t)(far < 510 ? far : 510);
		/* Halves are rounded away from the grey on this side, too. */
		far = d * (double)factor - 0.5;
		far = far > 0 ? far + 1 : 0;
		distances[255 - d] = (int16_t)(far < 510 ? -(int)far : -510);
	}
}

static void apply_saturated(const uint8_t *restrict map,
	const int16_t *restrict distances, uint8_t *restrict rgb, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++, rgb += 3) {
		unsigned r = map[rgb[0]], g = map[rgb[1]], b = map[rgb[2]];
		unsigned grey = grey_of(r, g, b);
		const int16_t *far = distances + 255 - grey;

		rgb[0] = added(grey, far[r]);
		rgb[1] = added(grey, far[g]);
		rgb[2] = added(grey, far[b]);
	}
}

bool jitter_needed(const float factors[3])
{
	return factors[0] != 1 || factors[1] != 1 || factors[2] != 1;
}

void jitter(const float factors[3], uint8_t *rgb, size_t pixels)
{
	int16_t distances[511];
	uint8_t map[256];

	for (unsigned v = 0; v < 256; v++)
		map[v] = clamped(v * (double)factors[0]);
	if (factors[1] != 1) {
		double mean = mean_grey(map, rgb, pixels);

		for (unsigned v = 0; v < 256; v++)
			map[v] = clamped(mean + (map[v] - mean) * factors[1]);
	}
	if (factors[2] == 1) {
		apply(map, rgb, 3 * pixels);
		return;
	}
	init_distances(factors[2], distances);
	apply_saturated(map, distances, rgb, pixels);
}
