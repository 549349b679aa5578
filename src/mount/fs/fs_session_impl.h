/* SPDX-License-Identifier: MIT */
/* The contents of the session, which belong to the FUSE front. */
#ifndef FS_SESSION_IMPL_H
#define FS_SESSION_IMPL_H

#include <stddef.h>

#include "mount/fs/fs_session.h"

#define SESSION_INIT_MAX 256u
#define SESSION_WORKERS 16u

/* What kernel and daemon have agreed on. It does not change while the
 * connection lasts. */
struct session_agreed {
	uint32_t want, max_write, max_readahead, max_background;
	uint32_t congestion, stateless;
};

/* The first request of the kernel, before it is answered. */
void session_keep_init(struct session *s, const void *request, size_t bytes);
const void *session_init(const struct session *s, size_t *bytes);

/* session_keep_agreed() keeps what was agreed on, which completes the session;
 * session_agreed() gets what the previous process had agreed on. */
void session_keep_agreed(
	struct session *s, const struct session_agreed *agreed);
const struct session_agreed *session_agreed(const struct session *s);

/* Note, in a handler of a fatal signal, the request that was being handled;
 * unique 0: none. */
void session_note_crash(struct session *s, int sig, uint64_t unique,
	uint64_t node, uint32_t opcode);

/* Were two crashes due to this request, or to a READ of the same node? */
bool session_struck(const struct session *s, uint64_t unique, uint64_t node,
	uint32_t opcode);

#endif
