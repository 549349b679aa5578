/* SPDX-License-Identifier: MIT */
/*
 * The part of an analysis that runs inside the mount: hides cached items,
 * answers other images in their place, and counts reads, as commands of the
 * control socket say. Ordinary mounts do not have it.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "mount/daemon/daemon.h"

/* daemon_run() for a mount that is to be analysed. */
int subject_run(const struct mount_options *options, struct error *err);

#endif
