/* SPDX-License-Identifier: MIT */
/* An array that grows at its end; see array.h. */
#include "common/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST_ROOM ((size_t)8)

void *array_grow(struct array *a, size_t bytes)
{
	if (bytes > SIZE_MAX - a->bytes ||
		array_room(&a->data, a->bytes + bytes, &a->room, 1) < 0)
		return NULL;
	a->bytes += bytes;
	return (char *)a->data + a->bytes - bytes;
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

int array_room(void *pointer, size_t n, size_t *room, size_t element_bytes)
{
	size_t wanted = n < ARRAY_FIRST_ROOM ? ARRAY_FIRST_ROOM : n + n / 2;
	void *data, *more;

	if (n < *room)
		return 0;
	if (wanted < n || wanted > SIZE_MAX / element_bytes)
		return -ENOMEM;
	/* The pointer may have any type, so copy it: C does not allow to access
	 * it as a void *. */
	memcpy(&data, pointer, sizeof(data));
	more = realloc(data, wanted * element_bytes);
	if (!more)
		return -ENOMEM;
	memcpy(pointer, &more, sizeof(more));
	*room = wanted;
	return 0;
}

int array_room_zeroed(
	void *pointer, size_t n, size_t *room, size_t element_bytes)
{
	size_t before = *room;
	int rc = array_room(pointer, n, room, element_bytes);
	char *data;

	if (*room == before)
		return rc;
	memcpy(&data, pointer, sizeof(data));
	memset(data + before * element_bytes, 0,
		(*room - before) * element_bytes);
	return 0;
}
