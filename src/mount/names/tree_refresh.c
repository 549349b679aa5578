/* SPDX-License-Identifier: MIT */
/* Refreshes one path: a directory with everything below it, or a single name.
 * Waits for the origin, on the caller's thread. */
#include "mount/names/tree_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

struct wait_listed {
	struct tree_wait w;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	bool done;
	int status;
};

static void wait_listed_done(struct tree_wait *w, int status)
{
	struct wait_listed *wait = CONTAINER_OF(w, struct wait_listed, w);

	LOCK_SCOPE(&wait->lock);
	wait->done = true;
	wait->status = status;
	pthread_cond_signal(&wait->cond);
}

/* List one directory again and wait for it. */
static int list_and_wait(struct tree *t, node_id dir)
{
	struct wait_listed wait = {
		.w = {.done = wait_listed_done},
		.lock = LOCK_INIT(RANK_LISTED),
		.cond = PTHREAD_COND_INITIALIZER,
	};
	int rc = tree_list(t, dir, true, &wait.w);

	if (rc != 0)
		return rc;
	LOCK_SCOPE(&wait.lock);
	while (!wait.done)
		pthread_cond_wait(&wait.cond, &wait.lock);
	return wait.status;
}

/* Find the deepest known directory of a path, and shorten the path to this
 * directory. */
static node_id deepest_directory(struct manifest *m, char *path)
{
	struct node_info info;

	while (manifest_resolve(m, path, &info) < 0 ||
		info.attr.kind != KIND_DIR) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
		else
			path[0] = '\0';
	}
	return info.id;
}

int tree_refresh(struct tree *t, const char *path,
	struct tree_walk_result *result, struct error *err)
{
	CLEANUP_FREE char *copy = strdup(path);
	struct manifest *m = t->config.manifest;
	struct node_info info;
	uint64_t before = tree_changes(t);
	int rc;

	*result = (struct tree_walk_result){0};
	if (!copy)
		return error_set(err, -ENOMEM, "cannot refresh '%s': %m", path);
	if (*path &&
		(manifest_resolve(m, path, &info) < 0 ||
			info.attr.kind != KIND_DIR)) {
		rc = list_and_wait(t, deepest_directory(m, copy));
		if (rc < 0)
			return error_set(
				err, rc, "cannot refresh '%s': %m", path);
		result->directories = 1;
		result->changed = tree_changes(t) - before;
	}
	if (manifest_resolve(m, path, &info) == 0) {
		if (info.attr.kind == KIND_DIR)
			rc = tree_walk(t, info.id, true, result);
		else
			rc = 0;
		if (rc < 0)
			return error_set(
				err, rc, "cannot refresh '%s': %m", path);
	} else if (tree_changes(t) == before) {
		return error_set(err, -ENOENT,
			"cannot refresh '%s': the source has no such name",
			path);
	}
	tree_flush(t);
	return 0;
}
