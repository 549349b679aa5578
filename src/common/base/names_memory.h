/* SPDX-License-Identifier: MIT */
/*
 * A limit on the memory for the names of a source. A server may send a listing
 * without end, and the kernel kills a daemon that needs too much memory.
 */
#ifndef BASE_NAMES_MEMORY_H
#define BASE_NAMES_MEMORY_H

#include <stdint.h>

/* The memory that a name of usual length takes, as measured; see
 * doc/operations.md. */
#define NAME_MEMORY_BYTES 122u

/*
 * Returns the limit in bytes. It is a quarter of the memory of this machine or
 * control group, because the record of changes may take as much. If 20 million
 * names need more than that, the limit is what they need, but at most half of
 * the memory that remains beside the record and the rest of a mount. Opens a
 * handful of files, so do not call this often.
 */
uint64_t names_memory_bytes(void);

#endif
