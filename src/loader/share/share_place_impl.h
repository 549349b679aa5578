/* SPDX-License-Identifier: MIT */
/*
 * The place of a share: a socket and a lock file in a directory of the user's.
 */
#ifndef SHARE_PLACE_IMPL_H
#define SHARE_PLACE_IMPL_H

#include "loader/share/share.h"

/*
 * Take the lock of the share: -EAGAIN if it is held, also by this process; for
 * a moment, while another process looks whether its host lives, too. Removes
 * the files of other shares whose hosts were killed.
 */
int place_lock(struct share_place *place, struct error *err);
/* Remove the socket and the lock file, release the lock, and remove the files
 * of killed hosts. */
void place_unlock(struct share_place *place);

/* Create a listening socket in place of the previous one. Needs the lock.
 * Returns the descriptor or -errno. */
int place_listen(struct share_place *place, struct error *err);
/* Connect to the socket; returns the descriptor. -ENOENT, -ECONNREFUSED: nobody
 * listens. */
int place_connect(struct share_place *place);

#endif
