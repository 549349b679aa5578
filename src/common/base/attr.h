/* SPDX-License-Identifier: MIT */
/*
 * The attributes of one name of a dataset, as origins report them and the
 * manifest keeps them.
 */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include <stdbool.h>
#include <stdint.h>

/* Files of other kinds (devices, sockets, fifos) are not part of a dataset. */
enum file_kind {
	KIND_FILE = 1,
	KIND_DIR = 2,
	KIND_LINK = 3,
};

/* If two versions of one path are equal, their bytes are the same. */
struct file_version {
	uint64_t size_bytes;
	int64_t mtime_ns; /* since the epoch; 0 if the origin has no times */
	/* A hash of the ETag at an http origin; 0: the origin has no tags. */
	uint64_t tag;
};

struct file_attr {
	struct file_version version;
	enum file_kind kind;
	uint32_t mode; /* the 12 permission bits */
	uint32_t uid, gid;
};

/* One entry of a directory. Strings hold any bytes but NUL; a name never
 * contains '/'. */
struct file_entry {
	const char *name;
	const char *target; /* target of a symbolic link, else NULL */
	struct file_attr attr;
};

static inline bool version_equal(struct file_version a, struct file_version b)
{
	return a.size_bytes == b.size_bytes && a.mtime_ns == b.mtime_ns &&
		a.tag == b.tag;
}

#endif
