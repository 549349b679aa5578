/* SPDX-License-Identifier: MIT */
/*
 * Inode numbers and attributes.
 *
 * There are three numbers for a file. The manifest's node number, together with
 * the instance of the mount, is what the kernel calls nodeid: it is good for as
 * long as the kernel holds a reference, and it is new for a new version of the
 * file, so an open file never sees two versions. The inode number that stat()
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
