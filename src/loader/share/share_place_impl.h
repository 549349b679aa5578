/* SPDX-License-Identifier: MIT */
/*
 * The place of a share: a socket and a lock file in a directory of the user's.
 */
#ifndef SHARE_PLACE_IMPL_H
#define SHARE_PLACE_IMPL_H

#include "loader/share/share.h"

/*
 * Take the lock of the share. Returns -EAGAIN if it is held, also by this
 * process. It may be held for a moment only, by a process that checks whether
 * the host lives. Also removes the files of other shares whose hosts were
 * killed.
 */
int place_lock(struct share_place *place, struct error *err);
/* Remove the socket and the lock file, release the lock, and remove the files
 * of killed hosts. */
void place_unlock(struct share_place *place);

/* Create a listening socket, and remove the previous one. Needs the share's
 * lock. Returns the descriptor or -errno. */
int place_listen(struct share_place *place, struct error *err);
/* Connect to the socket. Returns the descriptor, -ENOENT or -ECONNREFUSED if
 * nobody listens, or another -errno. */
int place_connect(struct share_place *place);

#endif
