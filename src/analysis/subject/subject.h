/* SPDX-License-Identifier: MIT */
/* The part of an analysis that runs inside the mount: when commands of the
 * control socket request it, it hides cached items and serves other images in
 * their place; it counts reads. Ordinary mounts do not have it. */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "mount/daemon/daemon.h"

/* Run the daemon of a mount for an analysis; otherwise like daemon_run(). */
int subject_run(const struct mount_options *options, struct error *err);

#endif
