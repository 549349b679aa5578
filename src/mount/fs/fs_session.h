/* SPDX-License-Identifier: MIT */
/*
 * Lets a mount outlive its process. Another process also holds the descriptors
 * of the mount: the connection to the kernel and two shared memories. One
 * shared memory is the session, which this part handles: the result of the
 * handshake between kernel and daemon, and how earlier processes ended. The
 * other one is the manifest's record of names. The next process gets all these
 * descriptors, and checks all of them before it uses any. doc/formats.md has
 * the format.
 */
#ifndef FS_SESSION_H
#define FS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/hash.h"

struct session;

/* The descriptors of a mount; -1: there is none. */
struct session_fds {
	int fuse, session, names;
	/* the journal; only if the kernel cannot send requests again */
	int requests;
};

/* Create a session for this dataset. Returns NULL if shared memory is short. */
struct session *session_new(struct hash128 dataset);

/* Continue the session of the previous process. The session owns fds->session
 * from now on. Returns -EBADMSG if the session is damaged, has another version
 * or dataset, or ended before the handshake with the kernel; err says which. */
int session_open(struct session **out, const struct session_fds *fds,
	struct hash128 dataset, struct error *err);

/* Would session_open() succeed? This changes nothing. */
int session_check(const struct session_fds *fds, struct hash128 dataset,
	struct error *err);

/* Closes the descriptor of the session, too; other parts own the other
 * descriptors. NULL is allowed. */
void session_free(struct session *s);

/* session_id() returns the random name of the session. The instance of the
 * mount is a part of this name, and never 0. */
struct hash128 session_id(const struct session *s);
uint32_t session_instance(const struct session *s);

/* Returns the descriptor of the session. */
int session_fd(const struct session *s);

/* Returns the descriptor of the connection that the session continues; -1: the
 * session is new. */
int session_connection(const struct session *s);

/* Returns the number of processes before this one, and why the last of them
 * ended. */
unsigned session_recoveries(const struct session *s);
const char *session_last_end(const struct session *s);
/* Was the previous process upgraded or restarted on purpose? */
bool session_was_replaced(const struct session *s);

/* Keep a text in the session for later processes: the options that upgrades
 * have changed. Returns false if it is too long. */
#define SESSION_CHANGES_MAX 2048u
bool session_keep_changes(struct session *s, const char *text, size_t bytes);
/* Get this text from a session by its descriptor. Returns its length; 0 if
 * there is none or it is damaged. */
size_t session_changes(int fd, char *text, size_t size);

/* The reason why a process ends, which it notes before. A process that is
 * killed cannot note it. The values are in shared memory; values in between
 * mean a crash. */
enum session_end {
	SESSION_KILLED = 0,
	SESSION_UPGRADED = 1, /* another program has replaced it */
	/* the process exits for a restart, and the mount stays */
	SESSION_LEFT = 1000,
};
void session_note_end(struct session *s, enum session_end end);

#endif
