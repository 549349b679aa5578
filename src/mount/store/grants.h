/* SPDX-License-Identifier: MIT */
/*
 * A cache root: a directory that several datasets share, each with a tier of
 * its own in it. Each tier has a grant, the space that it may use, and the
 * grants together never exceed the size of the root. They are in one file of
 * the root (doc/formats.md), which is changed under a lock, as a whole. A grant
 * is written before a tier uses it, so even if a process is killed at any time,
 * the tiers use no more than their grants.
 *
 * The functions block: they write to disk, and wait for the lock for up to
 * GRANTS_WAIT_MS.
 */
#ifndef STORE_GRANTS_H
#define STORE_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define GRANTS_WAIT_MS 5000
#define GRANTS_DATASETS_MAX 1024u
#define GRANT_NAME_MAX 32
/* Before the name of a cache that is being dropped. */
#define GRANT_DROP_PREFIX "drop-"

struct grant {
	/* name of the tier's directory in the root */
	char name[GRANT_NAME_MAX];
	uint64_t bytes, inodes;
};

struct grants {
	uint64_t bytes, inodes; /* sizes of the root; 0 inodes: no limit */
	unsigned n;
	struct grant grant[GRANTS_DATASETS_MAX];
};

/* Write the name of the directory of a dataset. */
void grant_name(const char *dataset, char name[GRANT_NAME_MAX]);

/* Lock the grants of a root, an open directory. Returns a descriptor whose
 * closing unlocks them; -EBUSY if another process keeps the lock; or -errno. */
int grants_lock(int root_fd);

/* Read the grants, which are all 0 if there are none yet. Returns 0, -EBADMSG
 * if the file is damaged, or another -errno. */
int grants_read(int root_fd, struct grants *g);

/* Replace the grants. The caller holds the lock. */
int grants_write(int root_fd, const struct grants *g);

/* Returns the grant with this name, or NULL. */
struct grant *grants_find(struct grants *g, const char *name);
/* Add a grant of 0 bytes. Returns NULL if there are too many. */
struct grant *grants_add(struct grants *g, const char *name);
void grants_remove(struct grants *g, struct grant *grant);

/* Is this the name of a cache that is being dropped? */
bool grant_is_dropping(const char *name);

/*
 * Add grants for the tiers of the root that have none, as after the file of the
 * grants was deleted. Each gets what it uses, for which its files are counted,
 * so this may take long. The tier `own` is left to the caller. The lock is
 * held. -EAGAIN: a tier without a grant is in use; the mount that uses it
 * writes its grant again within a second or two. Or another -errno.
 */
int grants_find_lost(int root_fd, struct grants *g, const char *own);

/* Identifies the file of the grants; 0: there is none. It changes when the
 * grants are replaced. */
uint64_t grants_file(int root_fd);

struct grants_sum {
	uint64_t bytes, inodes;
};
struct grants_sum grants_sum(const struct grants *g);

/* Return the space of the root that no grant has. */
uint64_t grants_left_bytes(const struct grants *g);
uint64_t grants_left_inodes(const struct grants *g); /* UINT64_MAX: no limit */

#endif
