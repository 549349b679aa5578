/* SPDX-License-Identifier: MIT */
/*
 * An array that grows at its end, of elements of any one type, or of texts.
 * Zero it to begin, and free(data) at the end. No lock: the caller's.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

struct array {
	void *data; /* from malloc(); moves when the array grows */
	size_t bytes, room;
};

/* Make room for `bytes` more at the end; returns a pointer to it, or NULL. */
void *array_grow(struct array *a, size_t bytes);

/* Remove the last element, of `bytes` bytes. Returns a pointer to it, valid
 * until the array grows; NULL if the array is empty. */
void *array_pop(struct array *a, size_t bytes);

/* Append a copy of the bytes and a NUL; returns its offset, or -ENOMEM. */
int64_t array_text(struct array *a, const char *text, size_t bytes);

/* Give back the room that is not used. */
void array_trim(struct array *a);

/*
 * For arrays with a type and a count of their own, which begin as NULL with a
 * room of 0: make room for element n and those before it. The array may move.
 * Returns 0, or -ENOMEM, and then it is as it was. The pointer is an lvalue,
 * `room` a size_t *.
 */
#define ARRAY_ROOM(pointer, n, room)                                           \
	array_room(&(pointer), n, room, sizeof(*(pointer)))
int array_room(void *pointer, size_t n, size_t *room, size_t element_bytes);

/* Likewise, and all new elements are zero. */
#define ARRAY_ROOM_ZEROED(pointer, n, room)                                    \
	array_room_zeroed(&(pointer), n, room, sizeof(*(pointer)))
int array_room_zeroed(
	void *pointer, size_t n, size_t *room, size_t element_bytes);

#endif
