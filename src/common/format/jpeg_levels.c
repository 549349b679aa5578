/* SPDX-License-Identifier: MIT */
/* Finds the levels of a progressive JPEG. The bytes may come from anywhere, so
 * each number is checked. Pure functions. */
#include "common/format/jpeg_levels.h"

#include <stdbool.h>
#include <string.h>

#define COMPONENTS_MAX 4u
#define COEFFICIENTS 64u
/* The low bit of a coefficient that no scan has coded yet. */
#define NOT_CODED 255u

enum marker { SOF2 = 0xc2, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, TEM = 0x01 };

const unsigned char jpeg_end_marker[2] = {0xff, EOI};

struct scan_walk {
	const unsigned char *at, *end;
	size_t ncomponents; /* 0: the frame has not been seen */
	unsigned char id[COMPONENTS_MAX];
	/* the lowest bit of each coefficient that has been coded */
	unsigned char low[COMPONENTS_MAX][COEFFICIENTS];
};

static bool is_restart(unsigned char marker)
{
	return marker >= 0xd0 && marker <= 0xd7;
}

/* Does the marker begin a frame other than the progressive one with Huffman
 * codes? Frames have the markers SOF0 to SOF15, except three numbers in this
 * range: DHT, JPG and DAC. */
static bool is_other_frame(unsigned char marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != SOF2 &&
		marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* Move to the next marker, and return it; 0 at the end of the bytes. Fill bytes
 * may come before it. */
static unsigned char next_marker(struct scan_walk *w)
{
	while (w->at + 1 < w->end && w->at[0] == 0xff && w->at[1] == 0xff)
		w->at++;
	if (w->end - w->at < 2 || w->at[0] != 0xff)
		return 0;
	w->at += 2;
	return w->at[-1];
}

/* Take a segment: *body gets its bytes after the length. */
static bool take_segment(
	struct scan_walk *w, const unsigned char **body, size_t *len)
{
	size_t n;

	if (w->end - w->at < 2)
		return false;
	n = (size_t)w->at[0] << 8 | w->at[1];
	if (n < 2 || (size_t)(w->end - w->at) < n)
		return false;
	*body = w->at + 2;
	*len = n - 2;
	w->at += n;
	return true;
}

static bool take_frame(
	struct scan_walk *w, const unsigned char *body, size_t len)
{
	if (w->ncomponents > 0 || len < 6 || body[5] < 1 ||
		body[5] > COMPONENTS_MAX || len < 6 + 3u * body[5])
		return false;
	w->ncomponents = body[5];
	for (size_t c = 0; c < w->ncomponents; c++)
		w->id[c] = body[6 + 3 * c];
	memset(w->low, NOT_CODED, sizeof(w->low));
	return true;
}

/* Note which coefficients a scan codes, from its header. */
static bool take_scan(
	struct scan_walk *w, const unsigned char *body, size_t len)
{
	size_t n = len > 0 ? body[0] : 0;
	const unsigned char *band = body + 1 + 2 * n;

	if (n < 1 || n > w->ncomponents || len < 4 + 2 * n ||
		band[0] > band[1] || band[1] >= COEFFICIENTS)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t c = 0;

		while (c < w->ncomponents && w->id[c] != body[1 + 2 * i])
			c++;
		if (c == w->ncomponents)
			return false;
		memset(&w->low[c][band[0]], band[2] & 15,
			(size_t)(band[1] - band[0]) + 1);
	}
	return true;
}

/* Move over the data of a scan. Returns whether a marker follows. */
static bool skip_data(struct scan_walk *w)
{
	while (w->end - w->at >= 2) {
		w->at = memchr(w->at, 0xff, (size_t)(w->end - w->at) - 1);
		if (!w->at)
			return false;
		if (w->at[1] != 0 && w->at[1] != 0xff && !is_restart(w->at[1]))
			return true;
		w->at += w->at[1] == 0xff ? 1 : 2;
	}
	return false;
}

/* Returns the number of low bits that some coefficient still lacks. */
static unsigned bits_missing(const struct scan_walk *w)
{
	unsigned most = 0;

	for (size_t c = 0; c < w->ncomponents; c++)
		for (size_t k = 0; k < COEFFICIENTS; k++)
			if (w->low[c][k] > most)
				most = w->low[c][k];
	return most;
}

/* Move over the segments before the next scan, and over its data. */
static bool next_scan(struct scan_walk *w)
{
	const unsigned char *body;
	size_t len;

	for (;;) {
		unsigned char marker = next_marker(w);

		if (marker == TEM || is_restart(marker))
			continue;
		if (marker == 0 || marker == SOI || marker == EOI ||
			is_other_frame(marker) || !take_segment(w, &body, &len))
			return false;
		if (marker == SOF2 && !take_frame(w, body, len))
			return false;
		if (marker == SOS)
			return take_scan(w, body, len) && skip_data(w);
	}
}

bool jpeg_begins(const void *bytes, size_t n)
{
	const unsigned char *first = bytes;

	return n >= 2 && first[0] == 0xff && first[1] == SOI;
}

void jpeg_levels(const void *jpeg, size_t n, uint64_t end[JPEG_DROP_BITS_MAX])
{
	const unsigned char *first = jpeg;
	struct scan_walk w = {.at = first + 2, .end = first + n};
	/* An end counts only if another scan follows it. */
	uint64_t found[JPEG_DROP_BITS_MAX] = {0};

	memset(end, 0, JPEG_DROP_BITS_MAX * sizeof(*end));
	if (!jpeg_begins(jpeg, n))
		return;
	while (next_scan(&w)) {
		unsigned bits = bits_missing(&w);

		memcpy(end, found, sizeof(found));
		for (unsigned b = 1; b <= JPEG_DROP_BITS_MAX; b++)
			if (found[b - 1] == 0 && bits <= b)
				found[b - 1] = (uint64_t)(w.at - first);
	}
}
