/* SPDX-License-Identifier: MIT */
/*
 * Names in requests that have very many of them. Runs on the connection's
 * thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/mount_impl.h"

/* A mount that was just made may not know all names yet. */
static bool list_all(struct names *n)
{
	struct tree_walk_result result;

	if (n->listed || atomic_load(&n->m->scan) != SCAN_RUNNING)
		return false;
	n->listed = true;
	return tree_walk(n->m->tree, NODE_ROOT, false, &result) == 0;
}

int names_find(struct names *n, const json_t *name, struct node_info *info)
{
	const char *path = json_string_value(name);
	CLEANUP_FREE char *bytes = NULL;
	int rc;

	if (!path) {
		if (ctl_path_get(name, &bytes) < 0)
			return -EINVAL;
		path = bytes;
	}
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	rc = manifest_resolve(n->m->manifest, path, info);
	if (rc < 0 && list_all(n))
		rc = manifest_resolve(n->m->manifest, path, info);
	return rc < 0 ? -ENOENT : 0;
}
