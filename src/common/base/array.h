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

/* All private. */
struct array {
	void *data; /* from malloc(); moves when the array grows */
	size_t bytes, room;
};

/* The first element; NULL if there never was one. */
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

/* The bytes that are allocated, used or not. */
static inline size_t array_room_bytes(const struct array *a)
{
	return a->room;
}

/* An array over existing memory, which comes from malloc(). If the array
 * neither grows nor is released, the memory may belong to somebody else. */
static inline struct array array_of(void *data, size_t bytes)
{
	return (struct array){data, bytes, bytes};
}

/* Free the memory. The array is empty then. */
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

/* Append a copy of the bytes and a NUL; returns its offset, or -ENOMEM. */
int64_t array_text(struct array *a, const char *text, size_t bytes);

/* Free the memory that no element uses. */
void array_trim(struct array *a);

/*
 * For arrays that have a type and a count of their own, and begin as NULL with
 * a `room` of 0: make room for element n and those before it. The array may
 * move. Returns 0; on -ENOMEM the array stays as it was. `pointer` is an
 * lvalue, `room` a size_t *.
 */
#define ARRAY_ROOM(pointer, n, room)                                           \
	array_room(&(pointer), n, room, sizeof(*(pointer)))
int array_room(void *pointer, size_t n, size_t *room, size_t element_bytes);

/* The same as ARRAY_ROOM(), but all new elements are zero. */
#define ARRAY_ROOM_ZEROED(pointer, n, room)                                    \
	array_room_zeroed(&(pointer), n, room, sizeof(*(pointer)))
int array_room_zeroed(
	void *pointer, size_t n, size_t *room, size_t element_bytes);

#endif
