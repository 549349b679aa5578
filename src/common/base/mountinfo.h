/* SPDX-License-Identifier: MIT */
/* Reads the kernel's list of mounts, /proc/PID/mountinfo, and finds out whether
 * a directory is the root of a refrain mount. No function here accesses a
 * mounted file system, so none waits for a daemon that hangs. The caller owns
 * all state. */
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
	/* mounts and unmounts in another namespace are repeated here */
	bool follows;
	/* the directory of the file system that the mount shows */
	const char *root;
	const char *path; /* mountpoint */
	const char *type;
	/* special characters are written as octal escapes */
	const char *source;
	/* options of the file system, not of the mountpoint */
	const char *options;
};

/* Open the list of mounts of a process (`pid` 0: this one). Returns 0 or
 * -errno. */
int mountinfo_open(struct mountinfo *m, pid_t pid);

/* Read the next mount. Returns false at the end. Later mounts are above earlier
 * ones. */
bool mountinfo_next(struct mountinfo *m, struct mountinfo_entry *e);

void mountinfo_close(struct mountinfo *m);

/* Get the user and the group of a FUSE mount. They are correct, because the
 * kernel has set them and not the daemon. Returns -ENODATA if the mount has
 * none. */
int mountinfo_owner(const struct mountinfo_entry *e, uid_t *uid, gid_t *gid);

struct mountinfo_device {
	unsigned major, minor;
	bool refrain; /* this is a refrain mount */
};

/* Find the mount at a path in the list of mounts. Returns 0, -ENOENT if nothing
 * is mounted there, or another -errno. */
int mountinfo_find(const char *path, struct mountinfo_device *out);

/* Is the directory `path` visible inside the directory `top`, maybe under
 * another name (bind mounts)? Both paths are absolute and contain no links; the
 * directories need not exist. Returns false if the list of mounts cannot be
 * read. */
bool mountinfo_is_inside(const char *path, const char *top);

/*
 * Get the owner and the canonical path (may be NULL) of a refrain mount from an
 * open directory, which must be its root; O_PATH is enough. Any user can set
 * any extended attribute on a directory of his own, so call this before you
 * trust the attribute. Returns 0, -ENODATA if the directory is not the root of
 * a refrain mount, or another -errno.
 */
int mountinfo_refrain_root(int dir_fd, uid_t *owner, char *path, size_t size);

#endif
