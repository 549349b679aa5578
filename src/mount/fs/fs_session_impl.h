/* SPDX-License-Identifier: MIT */
/* The contents of the session that only the FUSE front uses. */
#ifndef FS_SESSION_IMPL_H
#define FS_SESSION_IMPL_H

#include <stddef.h>

#include "mount/fs/fs_session.h"

#define SESSION_INIT_MAX 256u
#define SESSION_WORKERS 16u

/* The results of the handshake of kernel and daemon. They do not change while
 * the connection lasts. */
struct session_agreed {
	uint32_t want, max_write, max_readahead, max_background;
	uint32_t congestion, stateless;
};

/* session_keep_init() stores the first request of the kernel, before it is
 * answered. session_init() returns this request. */
void session_keep_init(struct session *s, const void *request, size_t bytes);
const void *session_init(const struct session *s, size_t *bytes);

/* session_keep_agreed() stores the result of the handshake, which completes the
 * session. session_agreed() returns the result of the previous process. */
void session_keep_agreed(
	struct session *s, const struct session_agreed *agreed);
const struct session_agreed *session_agreed(const struct session *s);

/* Note the request whose handling has caused a crash; unique 0: none was
 * handled. Called in a handler of a fatal signal. */
void session_note_crash(struct session *s, int sig, uint64_t unique,
	uint64_t node, uint32_t opcode);

/* Did this request, or for a READ any READ of the same node, cause two
 * crashes? */
bool session_struck(const struct session *s, uint64_t unique, uint64_t node,
	uint32_t opcode);

#endif
