/* SPDX-License-Identifier: MIT */
/*
 * Magic numbers of objects that come back through a pointer that does not say
 * what it points to: the argument of a thread or a callback, the private data
 * of a FUSE session or of libcurl, the context of a table of functions, an
 * object of the library that its user gives back. Such a struct has a member
 * `uint32_t magic` and a row in magic.def, and OBJECT() checks it where it
 * enters. All builds check: it costs a comparison.
 *
 * An argument that a function passes down to a callback of its own, on its
 * stack, needs none.
 */
#ifndef BASE_MAGIC_H
#define BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

enum magic_number {
	MAGIC_ENDED = 0, /* freed, or not initialised yet */
#define MAGIC(name, number) MAGIC_##name = (int)(number),
#include "common/base/magic.def"
#undef MAGIC
};

/* Prints which object was expected and which was found, and aborts. */
_Noreturn void magic_fail(const void *object, uint32_t found, uint32_t want);

/* Check the magic number at offset `at`. Returns the object. */
static inline void *magic_check(void *object, size_t at, uint32_t want)
{
	uint32_t found = object ? *(const uint32_t *)((const char *)object + at)
				: (uint32_t)MAGIC_ENDED;

	if (__builtin_expect(found != want, 0))
		magic_fail(object, found, want);
	return object;
}

/* The pointer as a pointer to struct `name`; aborts if the object is not one.
 */
#define OBJECT(name, pointer)                                                  \
	((struct name *)magic_check(                                           \
		(pointer), offsetof(struct name, magic), MAGIC_##name))

/* Call MAGIC_BEGIN() where an object is initialised, and MAGIC_END() before it
 * is freed. The compiler would leave out an ordinary store to memory that is
 * freed next. */
#define MAGIC_BEGIN(object, name) ((void)((object)->magic = MAGIC_##name))
#define MAGIC_END(object)                                                      \
	((void)(*(volatile uint32_t *)&(object)->magic = MAGIC_ENDED))

#endif
