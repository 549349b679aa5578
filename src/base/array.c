/* SPDX-License-Identifier: MIT */
/* An array that grows at its end; see array.h. */
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST_BYTES ((size_t)1024)
#define ARRAY_FIRST_ROOM 16u

void *array_grow(struct array *a, size_t bytes)
{
	void *end;

	if (a->room - a->bytes < bytes) {
		uint64_t room = a->room + a->room / 2 + bytes;
		void *data;

		if (room < ARRAY_FIRST_BYTES)
			room = ARRAY_FIRST_BYTES;
		data = realloc(a->data, room);
		if (!data)
			return NULL;
		a->data = data;
		a->room = room;
	}
	end = (char *)a->data + a->bytes;
	a->bytes += bytes;
	return end;
}

void *array_pop(struct array *a, size_t bytes)
{
	if (a->bytes < bytes)
		return NULL;
	a->bytes -= bytes;
	return (char *)a->data + a->bytes;
}

int64_t array_text(struct array *a, const char *text, size_t bytes)
{
	uint64_t at = a->bytes;
	char *to = array_grow(a, bytes + 1);

	if (!to)
		return -ENOMEM;
	memcpy(to, text, bytes);
	to[bytes] = '\0';
	return (int64_t)at;
}

void array_trim(struct array *a)
{
	void *data = a->bytes > 0 ? realloc(a->data, a->bytes) : NULL;

	if (!data)
		return;
	a->data = data;
	a->room = a->bytes;
}

void *array_room(void *at, size_t n, size_t *room, size_t element_bytes)
{
	size_t wanted = *room ? 2 * *room : ARRAY_FIRST_ROOM;

	if (n < *room)
		return at;
	if (wanted > SIZE_MAX / element_bytes)
		return NULL;
	at = realloc(at, wanted * element_bytes);
	if (at)
		*room = wanted;
	return at;
}
