/* SPDX-License-Identifier: MIT */
/*
 * Computes inode numbers and attributes.
 *
 * A file has three numbers. The kernel's nodeid consists of the instance of the
 * mount and the node number of the manifest. It is valid as long as the kernel
 * holds a reference. A new version of the file gets a new nodeid, so an open
 * file never sees two versions.
 *
 * The inode number that stat() shows is 64 bits of the key of the version: it
 * is the same after a remount, and on every host.
 *
 * The inode number in the origin is not used: two hard links are two files in a
 * mount.
 */
#ifndef NAMES_INODE_H
#define NAMES_INODE_H

#include <sys/stat.h>

#include "mount/names/manifest.h"

/* Fill in the result of stat() for a node. */
void inode_stat(const struct node_info *info, struct stat *st);

#endif
