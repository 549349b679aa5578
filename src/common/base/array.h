/* SPDX-License-Identifier: MIT */
/*
 * An array that grows at its end. Its elements are of any one type, or texts.
 * Zero it to begin, and call array_release() at the end. The caller does the
 * locking.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* All members are private. */
struct array {
	void *data; /* from malloc(); moves when the array grows */
	size_t bytes, room;
};

/* Returns the first element; NULL if the array never had one. */
static inline void *array_data(const struct array *a)
{
	return a->data;
}

static inline size_t array_bytes(const struct array *a)
{
	return a->bytes;
}

static inline size_t array_count(const struct array *a, size_t element_bytes)
{
	return a->bytes / element_bytes;
}

/* Returns the number of allocated bytes, used or not. */
static inline size_t array_room_bytes(const struct array *a)
{
	return a->room;
}

/* Returns an array whose elements are in existing memory, which comes from
 * malloc(). If the caller neither grows nor releases the array, the memory may
 * belong to somebody else. */
static inline struct array array_of(void *data, size_t bytes)
{
	return (struct array){data, bytes, bytes};
}

/* Free the memory. After that, the array is empty. */
static inline void array_release(struct array *a)
{
	free(a->data);
	*a = array_of(NULL, 0);
}

/* Make room for `bytes` more bytes at the end. Returns a pointer to them, or
 * NULL if memory is short. */
void *array_grow(struct array *a, size_t bytes);

/* Remove the last element, of `bytes` bytes. Returns a pointer to it, valid
 * until the array grows; NULL if the array is empty. */
void *array_pop(struct array *a, size_t bytes);

/* Append a copy of the bytes, and a NUL. Returns the offset of the copy, or
 * -ENOMEM. */
int64_t array_text(struct array *a, const char *text, size_t bytes);

/* Free the memory that no element uses. */
void array_trim(struct array *a);

/* Make room for element n and those before it in an array that has a type and a
 * count of its own, and began as NULL with a `room` of 0. The array may move.
 * Returns 0; on -ENOMEM the array stays as it was. `pointer` is an lvalue,
 * `room` a size_t *. */
#define ARRAY_ROOM(pointer, n, room)                                           \
	array_room(&(pointer), n, room, sizeof(*(pointer)))
int array_room(void *pointer, size_t n, size_t *room, size_t element_bytes);

/* Like ARRAY_ROOM(), but all new elements are zero. */
#define ARRAY_ROOM_ZEROED(pointer, n, room)                                    \
	array_room_zeroed(&(pointer), n, room, sizeof(*(pointer)))
int array_room_zeroed(
	void *pointer, size_t n, size_t *room, size_t element_bytes);

#endif
