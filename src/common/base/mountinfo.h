/* SPDX-License-Identifier: MIT */
/*
 * The kernel's list of mounts from /proc/PID/mountinfo, and whether a directory
 * is the root of a refrain mount. No function here accesses a mounted file
 * system, so none waits for a daemon that hangs. The caller owns all state.
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

/* One mount. The strings are valid until the next entry is read. */
struct mountinfo_entry {
	unsigned id, parent, major, minor;
	/* mounts and unmounts outside of its namespace reach it */
	bool follows;
	/* the directory of the file system that is mounted there */
	const char *root;
	const char *path; /* mountpoint */
	const char *type;
	const char *source;  /* special characters are octal escapes */
	const char *options; /* of the file system, not of the mountpoint */
};

/* Open the list of this process (`pid` 0) or of another one. Returns 0 or
 * -errno. */
int mountinfo_open(struct mountinfo *m, pid_t pid);

/* Read the next mount; false at the end. Later mounts lie on top of earlier
 * ones. */
bool mountinfo_next(struct mountinfo *m, struct mountinfo_entry *e);

void mountinfo_close(struct mountinfo *m);

/* The user and the group of a FUSE mount, as the kernel knows them; the daemon
 * cannot choose them. -ENODATA if it has none. */
int mountinfo_owner(const struct mountinfo_entry *e, uid_t *uid, gid_t *gid);

struct mountinfo_device {
	unsigned major, minor;
	bool refrain; /* a refrain mount */
};

/* Find the kernel's mount at a path. Returns -ENOENT if nothing is mounted
 * there, or -errno. */
int mountinfo_find(const char *path, struct mountinfo_device *out);

/*
 * Do mounts show the directory `path` inside the directory `top`, maybe under
 * other names (bind mounts)? Both are absolute and contain no links; they need
 * not exist. False if the list of mounts cannot be read.
 */
bool mountinfo_is_inside(const char *path, const char *top);

/*
 * Find the owner and the canonical path (may be NULL) of the refrain mount
 * whose root this open directory is; O_PATH is enough. Any user can set any
 * extended attribute on a directory of his own, so call this before trusting
 * the attribute. Returns -ENODATA if the directory is not the root of a refrain
 * mount, or -errno.
 */
int mountinfo_refrain_root(int dir_fd, uid_t *owner, char *path, size_t size);

#endif
