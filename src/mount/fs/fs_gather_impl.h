/* SPDX-License-Identifier: MIT */
/*
 * Limits the memory for reads over several items, whose bytes are gathered
 * before the answer. The kernel may send thousands of reads at a time; those
 * for which there is no memory wait here, in order. Entered by every thread
 * that answers reads.
 */
#ifndef FS_GATHER_IMPL_H
#define FS_GATHER_IMPL_H

#include "common/base/list.h"
#include "mount/fs/fs_impl.h"

/* read() is called for a read that has waited; see fs_impl.h. */
void gathers_init(struct gathers *g, uint64_t max_bytes, asked_fn *read);
void gathers_release(struct gathers *g); /* no read waits any more */

/* Take room for one read. Returns false if there is none, or if others wait for
 * it. */
bool gathers_take(struct gathers *g, uint64_t bytes);

/* Let the read wait for its turn. If there is no memory for that, it is
 * answered with -ENOMEM. */
void gathers_wait(const struct asked *ask, fuse_req_t req);

/* Give the room back, and begin the waiting reads for which it is enough. */
void gathers_give(struct gathers *g, uint64_t bytes);

#endif
