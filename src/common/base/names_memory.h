/* SPDX-License-Identifier: MIT */
/*
 * The memory that the names of a source may take. A server may list without an
 * end, and the kernel kills a daemon that needs too much.
 */
#ifndef BASE_NAMES_MEMORY_H
#define BASE_NAMES_MEMORY_H

#include <stdint.h>

/* Memory of a name of usual length, measured; see doc/operations.md. */
#define NAME_MEMORY_BYTES 122u

/*
 * The names' part of the memory of this machine or control group: a quarter,
 * because the record of changes may take as much, or what 20 million names
 * need, if that is more and half of the rest. Opens a handful of files: not for
 * hot paths.
 */
uint64_t names_memory_bytes(void);

#endif
