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
 * The memory that names may take. It is a quarter of the memory of this machine
 * or control group, because the record of changes may take as much. If 20
 * million names need more than that, it is their need, but at most half of what
 * the record and the rest of a mount leave. Opens a handful of files: not for
 * hot paths.
 */
uint64_t names_memory_bytes(void);

#endif
