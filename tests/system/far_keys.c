/* SPDX-License-Identifier: MIT */
/* The objects of the stand-in: those that are computed, and those that clients
 * have stored. */
#include "far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STORED_MAX 65536u
#define MANY_MTIME 1000000000

unsigned char far_pattern[2 * FAR_PATTERN];
static struct far_object *stored[STORED_MAX];
static uint64_t nstored;

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

unsigned char far_comments[2 * FAR_PATTERN];

void far_make_pattern(void)
{
	for (size_t i = 0; i < FAR_PATTERN; i += 8) {
		uint64_t word = mix(i + 1);

		memcpy(far_pattern + i, &word, 8);
		memcpy(far_pattern + FAR_PATTERN + i, &word, 8);
	}
	for (size_t i = 0; i < sizeof(far_comments); i += 8)
		memcpy(far_comments + i, "<!-- -->", 8);
}

static uint64_t text_hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

size_t far_pattern_start(const char *key)
{
	return mix(text_hash(key)) % FAR_PATTERN;
}

/* -- "many" ---------------------------------------------------------------- */

uint64_t far_many(void)
{
	return (uint64_t)far_set.files;
}

/* Write a number. It does not use printf(), because that would take most of the
 * time for a million keys. */
static char *put_number(char *out, char letter, uint64_t n)
{
	*out++ = letter;
	for (int i = 6; i >= 0; i--, n /= 10)
		out[i] = (char)('0' + n % 10);
	return out + 7;
}

/* Write key i of the bucket "many". If `dirs` is not 0, keys are in so many
 * directories, which are filled one after the other. Ten million keys need
 * seven digits. */
void far_many_key(uint64_t i, char out[64])
{
	uint64_t dirs = (uint64_t)far_set.dirs, each;

	if (dirs > 0) {
		each = (far_many() + dirs - 1) / dirs;
		out = put_number(out, 'd', i / each);
		*out++ = '/';
	}
	out = put_number(out, 'f', i);
	memcpy(out, ".bin", 5);
}

uint64_t far_many_after(const char *key, bool equal_too)
{
	uint64_t low = 0, high = far_many();

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		char text[64];
		int order;

		far_many_key(mid, text);
		order = strcmp(text, key);
		if (order > 0 || (order == 0 && equal_too))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

void far_many_object(const char *key, struct far_object *out)
{
	uint64_t tag;

	memset(out, 0, sizeof(*out));
	out->size = (uint64_t)far_set.size;
	out->mtime_s = MANY_MTIME;
	tag = mix(text_hash(key) ^ out->size);
	for (int i = 0; i < 16; i++)
		out->etag[i] = "0123456789abcdef"[tag >> (60 - 4 * i) & 15];
}

bool far_many_find(const char *key, struct far_object *out)
{
	uint64_t i = far_many_after(key, true);
	char text[64];

	if (i >= far_many())
		return false;
	far_many_key(i, text);
	if (strcmp(text, key) != 0)
		return false;
	far_many_object(key, out);
	return true;
}

/* -- What was put ---------------------------------------------------------- */

static uint64_t place_of(const char *full, bool *found)
{
	uint64_t low = 0, high = nstored;

	*found = false;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		int order = strcmp(stored[mid]->key, full);

		*found |= order == 0;
		if (order >= 0)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static char *full_key(const char *bucket, const char *key)
{
	size_t n = strlen(bucket) + strlen(key) + 2;
	char *full = malloc(n);

	snprintf(full, n, "%s/%s", bucket, key);
	return full;
}

struct far_object *far_find(const char *bucket, const char *key)
{
	char *full = full_key(bucket, key);
	bool found;
	uint64_t i = place_of(full, &found);

	free(full);
	return found ? stored[i] : NULL;
}

void far_put(
	const char *bucket, const char *key, const char *data, uint64_t size)
{
	static uint64_t puts;
	char *full = full_key(bucket, key);
	bool found;
	uint64_t i = place_of(full, &found);
	struct far_object *o;

	if (found) {
		free(full);
		free(stored[i]->data);
	} else {
		if (nstored == STORED_MAX)
			exit(1);
		memmove(stored + i + 1, stored + i,
			(nstored - i) * sizeof(stored[0]));
		nstored++;
		stored[i] = calloc(1, sizeof(*o));
		stored[i]->key = full;
	}
	o = stored[i];
	o->data = malloc(size + 1);
	memcpy(o->data, data, size);
	o->size = size;
	o->mtime_s = time(NULL);
	snprintf(o->etag, sizeof(o->etag), "%016llx%08llx",
		(unsigned long long)mix(++puts), (unsigned long long)size);
	if (far_set.same > 0) {
		o->mtime_s = MANY_MTIME;
		strcpy(o->etag, "one-version");
	}
}

void far_delete(const char *bucket, const char *key)
{
	char *full = full_key(bucket, key);
	bool found;
	uint64_t i = place_of(full, &found);

	free(full);
	if (!found)
		return;
	free(stored[i]->key);
	free(stored[i]->data);
	free(stored[i]);
	nstored--;
	memmove(stored + i, stored + i + 1, (nstored - i) * sizeof(stored[0]));
}

uint64_t far_stored(const char *bucket, uint64_t *first)
{
	char *low = full_key(bucket, ""), *high = strdup(low);
	bool found;
	uint64_t end;

	/* the character after '/' is '0', so this is the first key behind the
	 * directory */
	high[strlen(high) - 1]++;
	*first = place_of(low, &found);
	end = place_of(high, &found);
	free(low);
	free(high);
	return end - *first;
}

struct far_object *far_stored_at(uint64_t i)
{
	return stored[i];
}

bool far_has_bucket(const char *bucket)
{
	uint64_t first;

	return strcmp(bucket, "many") == 0 || strcmp(bucket, "empty") == 0 ||
		far_stored(bucket, &first) > 0;
}
