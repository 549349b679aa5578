/* SPDX-License-Identifier: MIT */
/*
 * Handles a READ of a version that the source does not have any more. If the
 * file changed before any of its bytes was read, the request is repeated with
 * the new version. Otherwise the reader gets ESTALE. No thread waits: the
 * answer of the source arrives on a thread of the origin.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <stdlib.h>

struct follow {
	struct tree_lookup l;
	struct parked p;
	struct asked ask;
	asked_fn *read;
};

/* Has the node got another version? If so, sets the item's digest and version.
 */
static bool has_followed(struct asked *ask)
{
	struct manifest *m = ask->fs->config.manifest;
	struct file_version old = ask->item.version;
	node_id node = asked_node(ask);
	struct node_info info;

	return manifest_get(m, node, &info) == 0 && !info.retired &&
		manifest_identity(
			m, node, &ask->item.digest, &ask->item.version) &&
		!version_equal(old, ask->item.version);
}

static void follow_end(struct follow *f)
{
	struct asked ask = f->ask;
	asked_fn *read = f->read;
	fuse_req_t req = f->p.req;
	bool ours = parked_claim(&f->p);

	free(f);
	if (!ours)
		return;
	ask.again = true;
	ask.has_room = false;
	if (has_followed(&ask))
		read(&ask, req);
	else
		fs_reply_error(req, -ESTALE);
}

static void followed(
	struct tree_lookup *l, int status, const struct node_info *info)
{
	struct follow *f = CONTAINER_OF(l, struct follow, l);

	if (status == 0)
		manifest_unref(f->ask.fs->config.manifest, info->id, 1);
	follow_end(f);
}

bool fs_follow(const struct asked *ask, fuse_req_t req, asked_fn *read)
{
	struct follow *f = ask->again ? NULL : malloc(sizeof(*f));
	struct asked now = *ask;

	if (!f)
		return false;
	f->ask = *ask;
	f->read = read;
	f->l.done = followed;
	parked_init(&f->p, req);
	if (has_followed(&now) ||
		tree_follow(ask->fs->config.tree, asked_node(ask), &f->l) < 0)
		follow_end(f);
	return true;
}
