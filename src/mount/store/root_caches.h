/* SPDX-License-Identifier: MIT */
/* Lists the caches of a cache root, and drops those that nobody uses. */
#ifndef STORE_ROOT_CACHES_H
#define STORE_ROOT_CACHES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/err.h"

struct root_cache {
	const char *dir;     /* name of the directory in the root */
	const char *dataset; /* dataset, as in identity files; "" if unknown */
	uint64_t granted_bytes, granted_inodes;
	time_t used; /* time at which a mount last used the cache; 0: unknown */
	bool in_use; /* a mount has locked it */
};

struct root_size {
	uint64_t bytes, granted_bytes;
};

/* Call fn() for each cache. Returns 0; -EINVAL if the directory is not a cache
 * root; or -errno. */
typedef void root_cache_fn(void *arg, const struct root_cache *cache);
int root_caches_list(const char *root, root_cache_fn *fn, void *arg,
	struct root_size *size, struct error *err);

/*
 * Drop the caches that no mount has used since `before`, and call fn() for
 * each; with `dry_run`, only call fn(). A cache that a mount has locked stays.
 * If this is killed, the next call continues. If a cache cannot be dropped, the
 * others still are, and the first failure is returned; -EPERM if the root
 * belongs to another user.
 */
int root_caches_drop(const char *root, time_t before, bool dry_run,
	root_cache_fn *fn, void *arg, struct error *err);

#endif
