/* SPDX-License-Identifier: MIT */
/*
 * The kernel's list of mounts, as /proc/PID/mountinfo has it, and whether a
 * directory is the root of a refrain mount. Nothing here asks a mounted file
 * system anything, so nothing waits for a daemon that hangs. State is the
 * caller's.
 */
#ifndef BASE_MOUNTINFO_H
#define BASE_MOUNTINFO_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define MOUNTINFO_REFRAIN "fuse.refrain"

struct mountinfo {
	FILE *file;
	char *line;
	size_t room;
};

/* One mount. The strings are good until the next one is read. */
struct mountinfo_entry {
	unsigned id, major, minor;
	const char *root; /* directory of the file system that is mounted */
	const char *path; /* mountpoint */
	const char *type;
	const char *options; /* of the file system, not of the mountpoint */
};

/* Open the list of this process (`pid` 0) or of another one. -errno. */
int mountinfo_open(struct mountinfo *m, pid_t pid);

/* Read the next mount; false at the end. A later mount lies on top. */
bool mountinfo_next(struct mountinfo *m, struct mountinfo_entry *e);

void mountinfo_close(struct mountinfo *m);

/*
 * The user who owns the refrain mount whose root this open directory (O_PATH
 * does) is, and the canonical path of that root, which may be NULL. Anybody
 * can give a directory of his own any extended attribute, so this comes before
 * the attribute is believed. -ENODATA: it is not the root of a refrain mount;
 * -errno.
 */
int mountinfo_refrain_root(int dir_fd, uid_t *owner, char *path, size_t size);

/*
 * May the process at the other end of this connected socket speak for a mount
 * of `owner`? 0 if it is the owner's or root's; -EPERM; -errno.
 */
int mountinfo_check_peer(int socket_fd, uid_t owner);

#endif
