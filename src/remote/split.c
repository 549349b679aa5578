/* SPDX-License-Identifier: MIT */
/*
 * Where to split a range of keys, so that several requests list it at a time,
 * without knowing what keys there are. Keys are mostly numbered or hashed, so
 * at a place where digits were seen all digits are taken for possible, and
 * letters likewise if more than one was seen. A wrong guess costs an empty
 * page, never a key. Pure functions.
 */
#include "remote/list_impl.h"

#include <string.h>

void split_note(struct split_seen *seen, const char *key)
{
	for (unsigned i = 0; i < SPLIT_PLACES && key[i]; i++) {
		unsigned char c = (unsigned char)key[i];

		seen->bytes[i][c / 32] |= UINT32_C(1) << c % 32;
	}
}

static bool was_seen(const struct split_seen *seen, unsigned at, unsigned c)
{
	return seen->bytes[at][c / 32] >> (c % 32) & 1;
}

static bool any_seen(
	const struct split_seen *seen, unsigned at, unsigned from, unsigned to)
{
	for (unsigned c = from; c <= to; c++)
		if (was_seen(seen, at, c))
			return true;
	return false;
}

static unsigned number_seen(const struct split_seen *seen, unsigned at)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 8; i++)
		n += (unsigned)__builtin_popcount(seen->bytes[at][i]);
	return n;
}

/* May keys have `c` here? */
static bool is_likely(const struct split_seen *seen, unsigned at, unsigned c)
{
	bool varied = number_seen(seen, at) > 1;

	if (c >= '0' && c <= '9' && any_seen(seen, at, '0', '9'))
		return true;
	if (c >= 'a' && c <= 'f' && varied && any_seen(seen, at, 'a', 'f'))
		return true;
	if (c >= 'a' && c <= 'z' && varied && any_seen(seen, at, 'g', 'z'))
		return true;
	if (c >= 'A' && c <= 'Z' && varied && any_seen(seen, at, 'A', 'Z'))
		return true;
	return was_seen(seen, at, c);
}

static unsigned shared_length(const char *a, const char *b)
{
	unsigned i = 0;

	while (a[i] && a[i] == b[i])
		i++;
	return i;
}

/*
 * The bytes above `low` and below `high` that keys are likely to have. ASCII
 * only: half a character may not stand in a request. With `beyond` also the
 * one after `low`, to look whether a letter is always the same.
 */
static unsigned candidates(const struct split_seen *seen, unsigned at,
	unsigned low, unsigned high, bool beyond, char out[128])
{
	unsigned n = 0;

	for (unsigned c = low + 1; c < high && c < 128; c++)
		if (is_likely(seen, at, c) || (beyond && c == low + 1))
			out[n++] = (char)c;
	return n;
}

unsigned split_points(const struct split_seen *seen, const char *a,
	const char *b, unsigned max, char (*points)[SPLIT_POINT_MAX])
{
	unsigned at = b ? shared_length(a, b) : 0, n = 0;
	/* A point equal to b would be none. */
	unsigned high = b ? (unsigned char)b[at] + (b[at] && b[at + 1]) : 256;
	bool beyond = !b;
	char bytes[128];

	for (; at < SPLIT_PLACES && a[at] && n == 0; at++) {
		n = candidates(
			seen, at, (unsigned char)a[at], high, beyond, bytes);
		/* With a's own byte here, everything after it is below b. */
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
