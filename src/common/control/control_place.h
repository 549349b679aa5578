/* SPDX-License-Identifier: MIT */
/*
 * The location of the control socket, and who may open it.
 */
#ifndef CONTROL_PLACE_H
#define CONTROL_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/control/unix_socket.h"

struct place {
	int fd; /* listening and non-blocking */
	char path[SOCKET_PATH_MAX];
	uid_t uid; /* the owner of the socket, who may connect */
	bool has_group;
	gid_t gid; /* members of this group may connect, too */
};

/* Create a listening socket with a unique name in the first usable directory of
 * $XDG_RUNTIME_DIR/refrain, /run/refrain and /tmp/refrain-UID. Removes sockets
 * of dead daemons from this directory. `group` may be NULL. */
int place_open(struct place *place, const char *mountpoint, const char *group,
	struct error *err);

/* Find the socket of a mount by its name, for a daemon that does not answer.
 * Searches the same directories of this user. Returns -ENOENT if there is none.
 */
int place_guess(const char *mountpoint, char path[SOCKET_PATH_MAX]);

/* Remove the socket and close it. */
void place_close(struct place *place);

/* May the process at the other end of a connection use the socket? */
bool place_allows(const struct place *place, int fd);

#endif
