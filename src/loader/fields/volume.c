/* SPDX-License-Identifier: MIT */
/* Crops of volumes; see volume.h. */
#include "loader/fields/volume.h"

#include <string.h>

#include "common/base/hash.h"

/* Reading up to this many bytes between two rows costs less than another
 * read. It is less than a chunk of a mount, so no chunk is fetched for it. */
#define GAP_BYTES ((uint64_t)64 << 10)

static uint64_t draw(uint64_t seed, uint64_t purpose)
{
	return hash64(&purpose, sizeof(purpose), seed);
}

/* Returns a number below n <= 2^32. */
static uint64_t draw_below(uint64_t seed, uint64_t purpose, uint64_t n)
{
	return (draw(seed, purpose) >> 32) * n >> 32;
}

void volume_crop(const struct array_crops *how, const struct volume *v,
	enum volume_choice choice, uint64_t seed, struct volume_crop *out)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t left = v->shape[i] - how->crop[i];

		out->start[i] = choice == VOLUME_CENTRE
			? left / 2
			: draw_below(seed, i, left + 1);
		out->flip[i] =
			choice == VOLUME_RANDOM_FLIP && draw(seed, 3 + i) >> 63;
	}
}

void volume_add(struct volume *v, const struct array_crops *how,
	const struct volume_crop *crop)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t start = crop->start[i], end = start + how->crop[i];
		uint64_t old = v->start[i] + v->size[i];

		if (v->size[i] && v->start[i] < start)
			start = v->start[i];
		if (v->size[i] && old > end)
			end = old;
		v->start[i] = start;
		v->size[i] = end - start;
	}
}

/* -- Runs ------------------------------------------------------------------ */

static uint64_t channels_of(const struct array_crops *how)
{
	return how->channels ? how->channels : 1;
}

/* The region as rows: the distance in the file of two rows, planes and
 * channels, and how many of these levels are read with the gaps between
 * them. */
struct region_rows {
	uint64_t row, apart[3], count[3];
	unsigned joined;
};

static struct region_rows region_rows(
	const struct array_crops *how, const struct volume *v)
{
	uint64_t value = how->value_bytes, end;
	struct region_rows r = {.row = v->size[2] * value};

	r.apart[0] = v->shape[2] * value;
	r.apart[1] = r.apart[0] * v->shape[1];
	r.apart[2] = r.apart[1] * v->shape[0];
	r.count[0] = v->size[1];
	r.count[1] = v->size[0];
	r.count[2] = channels_of(how);
	for (end = r.row; r.joined < 3; r.joined++) {
		if (r.count[r.joined] > 1 &&
			r.apart[r.joined] - end > GAP_BYTES)
			break;
		end += (r.count[r.joined] - 1) * r.apart[r.joined];
	}
	return r;
}

void volume_runs(const struct array_crops *how, const struct volume *v,
	struct volume_runs *out)
{
	struct region_rows r = region_rows(how, v);

	*out = (struct volume_runs){.count = 1, .bytes = r.row};
	for (unsigned i = 0; i < 3; i++)
		if (i < r.joined)
			out->bytes += (r.count[i] - 1) * r.apart[i];
		else
			out->count *= r.count[i];
	out->apart = (size_t)((out->bytes + 7) / 8 * 8);
}

uint64_t volume_run_offset(
	const struct array_crops *how, const struct volume *v, uint64_t n)
{
	struct region_rows r = region_rows(how, v);
	uint64_t at = v->at + v->start[2] * how->value_bytes +
		v->start[1] * r.apart[0] + v->start[0] * r.apart[1];
	struct volume_runs all;

	volume_runs(how, v, &all);
	n = all.count - 1 - n;
	for (unsigned i = r.joined; i < 3; i++) {
		at += n % r.count[i] * r.apart[i];
		n /= r.count[i];
	}
	return at;
}

/* Returns where a row of the region is in the memory of the runs. `number`
 * counts rows in a plane, planes, and channels. */
static size_t row_in_runs(const struct region_rows *r,
	const struct volume_runs *runs, const uint64_t number[3])
{
	uint64_t run = 0, in = 0;

	for (unsigned i = 3; i-- > 0;)
		if (i < r->joined)
			in += number[i] * r->apart[i];
		else
			run = run * r->count[i] + number[i];
	return (size_t)((runs->count - 1 - run) * runs->apart + in);
}

/* -- Cutting --------------------------------------------------------------- */

static void mirror(uint8_t *row, uint64_t count, size_t value)
{
	for (uint64_t i = 0; i < count / 2; i++) {
		uint8_t *a = row + i * value;
		uint8_t *b = row + (count - 1 - i) * value;
		uint8_t keep[8];

		memcpy(keep, a, value);
		memcpy(a, b, value);
		memcpy(b, keep, value);
	}
}

void volume_cut(const struct array_crops *how, const struct volume *v,
	const struct volume_crop *crop, const uint8_t *runs, uint8_t *out)
{
	const uint32_t *size = how->crop;
	size_t row = (size_t)size[2] * how->value_bytes;
	uint64_t x = (crop->start[2] - v->start[2]) * how->value_bytes;
	struct region_rows r = region_rows(how, v);
	struct volume_runs all;

	volume_runs(how, v, &all);
	for (uint64_t n = 0; n < channels_of(how) * size[0] * size[1]; n++) {
		uint64_t y = n % size[1], z = n / size[1] % size[0];
		uint64_t from[3] = {
			(crop->flip[1] ? size[1] - 1 - y : y) + crop->start[1] -
				v->start[1],
			(crop->flip[0] ? size[0] - 1 - z : z) + crop->start[0] -
				v->start[0],
			n / size[1] / size[0],
		};
		uint8_t *to = out + n * row;

		memcpy(to, runs + row_in_runs(&r, &all, from) + x, row);
		if (crop->flip[2])
			mirror(to, size[2], how->value_bytes);
	}
}
