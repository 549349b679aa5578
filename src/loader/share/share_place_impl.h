/* SPDX-License-Identifier: MIT */
/*
 * The place of a share: a socket and a lock file in a directory of the user.
 */
#ifndef SHARE_PLACE_IMPL_H
#define SHARE_PLACE_IMPL_H

#include "loader/share/share.h"

/* Take the lock of the share. Returns 0; -EAGAIN if the lock is held, even by
 * this process; or another -errno. Another process may hold it only for a
 * moment, to check whether the host is alive. This also removes the files of
 * other shares whose hosts were killed. */
int place_lock(struct share_place *place, struct error *err);
/* Remove the socket and the lock file, release the lock, and remove the files
 * of hosts that were killed. */
void place_unlock(struct share_place *place);

/* Create a listening socket in place of the previous one. The caller holds the
 * lock of the share. Returns the descriptor or -errno. */
int place_listen(struct share_place *place, struct error *err);
/* Connect to the socket. Returns the descriptor, -ENOENT or -ECONNREFUSED if no
 * process listens, or another -errno. */
int place_connect(struct share_place *place);

#endif
