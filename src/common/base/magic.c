/* SPDX-License-Identifier: MIT */
/* The names of magic numbers, for the message of a failed check. No state. */
#include "common/base/magic.h"

#include <stdio.h>
#include <stdlib.h>

/* If two rows have the same number, this does not compile. */
static const char *magic_name(uint32_t number)
{
	switch ((int)number) {
	case MAGIC_ENDED:
		return "freed memory";
#define MAGIC(name, number)                                                    \
	case MAGIC_##name:                                                     \
		return "struct " #name;
#include "common/base/magic.def"
#undef MAGIC
	default:
		return "something else";
	}
}

void magic_fail(const void *object, uint32_t found, uint32_t want)
{
	fprintf(stderr, "magic: %p is not a %s but %s (0x%08x)\n", object,
		magic_name(want), object ? magic_name(found) : "a null pointer",
		found);
	abort();
}
