/* SPDX-License-Identifier: MIT */
/*
 * Lets a mount outlive its process by descriptors that another process holds,
 * too. They are the connection to the kernel and two shared memories. One is
 * the session, which is this part: what kernel and daemon agreed on in the
 * handshake, and how earlier processes ended. The other is the names, the
 * manifest's record. All are passed to the next process, which checks them
 * before it uses anything. doc/formats.md has the format.
 */
#ifndef FS_SESSION_H
#define FS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/hash.h"

struct session;

/* The descriptors of a session. -1: there is none. */
struct session_fds {
	int fuse, session, names;
	int requests; /* only if the kernel does not send them again */
};

/* Create a session for this dataset. Returns NULL if there is no shared
 * memory. */
struct session *session_new(struct hash128 dataset);

/*
 * Continue the session of the previous process. The session takes over the
 * descriptors. Returns -EBADMSG if it is damaged, of another version or
 * dataset, or ended before the handshake with the kernel; err says which.
 */
int session_open(struct session **out, const struct session_fds *fds,
	struct hash128 dataset, struct error *err);

/* Would session_open() succeed? Changes nothing. */
int session_check(const struct session_fds *fds, struct hash128 dataset,
	struct error *err);

/* Also closes the session's own descriptor; the other descriptors belong to
 * their parts. NULL is allowed. */
void session_free(struct session *s);

/* The name of the session, and the instance of the mount in it, which is not
 * 0. */
struct hash128 session_id(const struct session *s);
uint32_t session_instance(const struct session *s);

/* The descriptor of the session itself. */
int session_fd(const struct session *s);

/* The descriptor of the connection that the session continues; -1: it is a new
 * session. */
int session_connection(const struct session *s);

/* The number of processes before this one, and why the last of them ended. */
unsigned session_recoveries(const struct session *s);
const char *session_last_end(const struct session *s);
/* Was it upgraded or restarted on purpose? */
bool session_was_replaced(const struct session *s);

/* Keep a text that outlives the process: the options that upgrades have
 * changed. Returns false if it is too long. */
#define SESSION_CHANGES_MAX 2048u
bool session_keep_changes(struct session *s, const char *text, size_t bytes);
/* Get the text of a session that is not open yet. Returns its length, 0 if it
 * is damaged. */
size_t session_changes(int fd, char *text, size_t size);

/* How the process is about to end. One that is killed cannot say so. The values
 * are in shared memory; those between are of crashes. */
enum session_end {
	SESSION_KILLED = 0,
	SESSION_UPGRADED = 1, /* by another program in its place */
	SESSION_LEFT = 1000,  /* as for a restart: the mount stays */
};
void session_note_end(struct session *s, enum session_end end);

#endif
