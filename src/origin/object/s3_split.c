/* SPDX-License-Identifier: MIT */
/*
 * Chooses points that split a range of keys, without knowing the keys, so that
 * several requests can list the range at a time. Keys are mostly numbered or
 * hashed. If a digit was seen at a place of the keys, all digits are considered
 * possible there; if more than one letter was seen, all letters are. A wrong
 * guess costs an empty page, but no key is missed. Pure functions.
 */
#include "origin/object/s3_list_impl.h"

#include <string.h>

void split_note(struct split_seen *seen, const char *key)
{
	for (unsigned i = 0; i < SPLIT_PLACES && key[i]; i++) {
		unsigned char c = (unsigned char)key[i];

		seen->bytes[i][c / 32] |= UINT32_C(1) << c % 32;
	}
}

/* Indices of words in a map of 256 bits, and masks of bits in these words. */
#define WORD_DIGITS 1
#define WORD_UPPER 2
#define WORD_LOWER 3
#define DIGITS UINT32_C(0x03ff0000)
#define LETTERS UINT32_C(0x07fffffe) /* letters of either case */
#define LETTERS_HEX UINT32_C(0x0000007e)

struct alphabet {
	uint32_t bytes[8];
	unsigned n;
};

static unsigned count_bits(const uint32_t bytes[8])
{
	unsigned n = 0;

	for (unsigned i = 0; i < 8; i++)
		n += (unsigned)__builtin_popcount(bytes[i]);
	return n;
}

/* Returns the bytes that keys may have at this place. */
static struct alphabet alphabet_at(const struct split_seen *seen, unsigned at)
{
	const uint32_t *was = seen->bytes[at];
	struct alphabet a;
	bool varied = count_bits(was) > 1;

	memcpy(a.bytes, was, sizeof(a.bytes));
	if (was[WORD_DIGITS] & DIGITS)
		a.bytes[WORD_DIGITS] |= DIGITS;
	if (varied && was[WORD_LOWER] & LETTERS & ~LETTERS_HEX)
		a.bytes[WORD_LOWER] |= LETTERS;
	else if (varied && was[WORD_LOWER] & LETTERS_HEX)
		a.bytes[WORD_LOWER] |= LETTERS_HEX;
	if (varied && was[WORD_UPPER] & LETTERS)
		a.bytes[WORD_UPPER] |= LETTERS;
	a.n = count_bits(a.bytes);
	return a;
}

static bool alphabet_has(const struct alphabet *a, unsigned c)
{
	return a->bytes[c / 32] >> (c % 32) & 1;
}

/* Returns how many bytes of the alphabet are smaller. */
static unsigned alphabet_rank(const struct alphabet *a, unsigned char c)
{
	uint32_t part = a->bytes[c / 32] & ((UINT32_C(1) << c % 32) - 1);
	unsigned n = (unsigned)__builtin_popcount(part);

	for (unsigned i = 0; i < c / 32u; i++)
		n += (unsigned)__builtin_popcount(a->bytes[i]);
	return n;
}

static unsigned shared_length(const char *a, const char *b)
{
	unsigned i = 0;

	while (a[i] && a[i] == b[i])
		i++;
	return i;
}

/* Find the bytes between `low` and `high` that keys are likely to have. Only
 * ASCII, because a request must not contain half a character. With `beyond`,
 * also the byte after `low`, which shows whether a letter is always the same.
 */
static unsigned candidates(const struct split_seen *seen, unsigned at,
	unsigned low, unsigned high, bool beyond, char out[128])
{
	struct alphabet a = alphabet_at(seen, at);
	unsigned n = 0;

	for (unsigned c = low + 1; c < high && c < 128; c++)
		if (alphabet_has(&a, c) || (beyond && c == low + 1))
			out[n++] = (char)c;
	return n;
}

unsigned split_points(const struct split_seen *seen, const char *a,
	const char *b, unsigned max, char (*points)[SPLIT_POINT_MAX])
{
	unsigned at = b ? shared_length(a, b) : 0, n = 0;
	/* Exclude b itself, because a point equal to b would split nothing. */
	unsigned high = b ? (unsigned char)b[at] + (b[at] && b[at + 1]) : 256;
	bool beyond = !b;
	char bytes[128];

	for (; at < SPLIT_PLACES && a[at] && n == 0; at++) {
		n = candidates(
			seen, at, (unsigned char)a[at], high, beyond, bytes);
		/* If the point has the same byte as a here, it is below b,
		 * whatever bytes follow. */
		high = 256;
		beyond = false;
	}
	max = max < n ? max : n;
	for (unsigned i = 0; i < max; i++) {
		memcpy(points[i], a, at - 1);
		points[i][at - 1] = bytes[(uint64_t)i * n / max];
		points[i][at] = '\0';
	}
	return max;
}

/* -- How much is left ------------------------------------------------------ */

/* Map a key to a number from 0 to 1, as if all likely keys were equally
 * frequent. */
static double place_of_key(
	const struct split_seen *seen, const char *key, unsigned at)
{
	double place = 0, width = 1;

	for (; at < SPLIT_PLACES && key[at]; at++) {
		struct alphabet a = alphabet_at(seen, at);

		if (a.n == 0)
			break;
		place +=
			width * alphabet_rank(&a, (unsigned char)key[at]) / a.n;
		width /= a.n;
	}
	return place;
}

double split_share(const struct split_seen *seen, const char *from,
	const char *a, const char *b)
{
	unsigned at = shared_length(from, b);
	double first = place_of_key(seen, from, at);
	double done = place_of_key(seen, a, at) - first;
	double left = place_of_key(seen, b, at) - first - done;

	return done > 0 && left > 0 ? left / done : 0;
}
