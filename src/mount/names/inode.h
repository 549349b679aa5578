/* SPDX-License-Identifier: MIT */
/*
 * Computes inode numbers and attributes.
 *
 * A file has three numbers. The manifest's node number, together with the
 * instance of the mount, is what the kernel calls nodeid. It is valid as long
 * as the kernel holds a reference, and a new version of the file gets a new
 * one, so an open file never sees two versions. The inode number that stat()
 * shows is 64 bits of the key of that version: the same after a remount, on any
 * host. The inode number in the origin is not used: two hard links are two
 * files here.
 */
#ifndef NAMES_INODE_H
#define NAMES_INODE_H

#include <sys/stat.h>

#include "mount/names/manifest.h"

/* Fill in the result of stat() for a node. */
void inode_stat(const struct node_info *info, struct stat *st);

#endif
