/* SPDX-License-Identifier: MIT */
/*
 * Magic numbers of objects that come back through a pointer of type void *,
 * which does not say to what it points: the argument of a thread or a callback,
 * the private data of a FUSE session or of libcurl, the context of a table of
 * functions, or an object of the library that its user passes back. Such a
 * struct has a member `uint32_t magic` and a row in magic.def, and OBJECT()
 * checks the number where the pointer enters. All builds check, because it
 * costs only a comparison.
 *
 * An argument on the stack that a function passes down to a callback of its own
 * needs no magic number.
 */
#ifndef BASE_MAGIC_H
#define BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

enum magic_number {
	MAGIC_ENDED = 0, /* the object was freed, or is not initialised yet */
#define MAGIC(name, number) MAGIC_##name = (int)(number),
#include "common/base/magic.def"
#undef MAGIC
};

/* Print which object was expected and which was found, and abort. */
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

/* Convert the pointer to a pointer to struct `name`. Abort if the object is not
 * a struct `name`. */
#define OBJECT(name, pointer)                                                  \
	((struct name *)magic_check(                                           \
		(pointer), offsetof(struct name, magic), MAGIC_##name))

/* Call MAGIC_BEGIN() where an object is initialised, and MAGIC_END() before it
 * is freed. MAGIC_END() writes through a volatile pointer, because the compiler
 * would leave out an ordinary write to memory that is freed next. */
#define MAGIC_BEGIN(object, name) ((void)((object)->magic = MAGIC_##name))
#define MAGIC_END(object)                                                      \
	((void)(*(volatile uint32_t *)&(object)->magic = MAGIC_ENDED))

#endif
