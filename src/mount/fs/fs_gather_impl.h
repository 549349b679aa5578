/* SPDX-License-Identifier: MIT */
/*
 * Limits the memory of reads over several items, whose bytes are gathered
 * before they are answered. The kernel may send thousands of reads at a time.
 * Reads for which memory is short wait here, in order. Called by every thread
 * that answers reads.
 */
#ifndef FS_GATHER_IMPL_H
#define FS_GATHER_IMPL_H

#include "common/base/list.h"
#include "mount/fs/fs_impl.h"

/* gathers_wait() will call read() when the read has got its memory; see
 * asked_fn in fs_impl.h. */
void gathers_init(struct gathers *g, uint64_t max_bytes, asked_fn *read);
/* call this when no read waits any more */
void gathers_release(struct gathers *g);

/* Take memory for one read. Returns false if memory is short, or if other reads
 * already wait for memory. */
bool gathers_take(struct gathers *g, uint64_t bytes);

/* Let the read wait for memory. If it cannot be queued, it is answered with
 * -ENOMEM. */
void gathers_wait(const struct asked *ask, fuse_req_t req);

/* Return the memory of a read, and begin as many waiting reads as there is
 * memory for. */
void gathers_give(struct gathers *g, uint64_t bytes);

#endif
