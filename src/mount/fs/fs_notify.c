/* SPDX-License-Identifier: MIT */
/*
 * Has the kernel drop names and attributes. This can wait for the lock of a
 * directory, so a notifier does it if there is one (agent.h). Otherwise the
 * calling thread does it. Only the tree's thread calls this file.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <limits.h>
#include <linux/fuse.h>
#include <string.h>

#include "common/base/notifier.h"
#include "mount/fs/agent.h"

/* A notification in the format of the kernel: forget a name or an inode. */
struct notice {
	struct fuse_out_header head;
	char body[sizeof(struct fuse_notify_inval_entry_out) + NAME_MAX + 1];
};

_Static_assert(sizeof(struct notice) <= NOTIFIER_BYTES_MAX, "it fits");

static struct notice notice_name(fuse_ino_t dir, const char *name)
{
	size_t len = strnlen(name, NAME_MAX);
	struct fuse_notify_inval_entry_out out = {
		.parent = dir, .namelen = (uint32_t)len};
	struct notice n = {.head.error = FUSE_NOTIFY_INVAL_ENTRY};

	memcpy(n.body, &out, sizeof(out));
	/* a NUL follows the name, because all of `n` is zeroed */
	memcpy(n.body + sizeof(out), name, len);
	n.head.len = (uint32_t)(sizeof(n.head) + sizeof(out) + len + 1);
	return n;
}

static struct notice notice_inode(fuse_ino_t ino, int64_t off)
{
	struct fuse_notify_inval_inode_out out = {.ino = ino, .off = off};
	struct notice n = {.head.error = FUSE_NOTIFY_INVAL_INODE};

	memcpy(n.body, &out, sizeof(out));
	n.head.len = sizeof(n.head) + sizeof(out);
	return n;
}

/* Let the notifier send the notifications. Returns false if there is none. */
static bool notify_elsewhere(
	struct fs *fs, const struct notice *notice, unsigned count)
{
	struct agent_message m[2];

	if (!fs->config.notifier)
		return false;
	for (unsigned i = 0; i < count; i++)
		m[i] = (struct agent_message){
			&notice[i], notice[i].head.len, -1};
	/* The answer of the kernel does not matter: it may not know the name.
	 * If the mount is ending, so is the connection. */
	return agent_do(fs->config.notifier, m, count, &fs->exiting) !=
		-ESHUTDOWN;
}

void notifier_begin(struct fs *fs)
{
	if (fs->config.notifier)
		agent_connect(fs->config.notifier, fuse_session_fd(fs->se));
	atomic_store(&fs->notifies, true);
}

/* -- Kernel caches --------------------------------------------------------- */

/* Have the kernel forget a name. Skip a directory that was removed: its number
 * may stand for a file now, and libfuse would print an error. */
void fs_forget_name(struct fs *fs, node_id dir, const char *name)
{
	fuse_ino_t ino = fs_ino(&fs->config, dir);
	const struct notice notice[] = {
		notice_name(ino, name),
		/* Also drop the kernel's cached listing of the directory. */
		notice_inode(ino, 0),
	};
	struct node_info info;

	if (!atomic_load(&fs->notifies) ||
		manifest_get(fs->config.manifest, dir, &info) < 0 ||
		info.attr.kind != KIND_DIR)
		return;
	if (notify_elsewhere(fs, notice, 2))
		return;
	(void)fuse_lowlevel_notify_inval_entry(fs->se, ino, name, strlen(name));
	(void)fuse_lowlevel_notify_inval_inode(fs->se, ino, 0, 0);
}

void fs_forget_attr(struct fs *fs, node_id id)
{
	fuse_ino_t ino = fs_ino(&fs->config, id);
	const struct notice notice = notice_inode(ino, -1);

	if (atomic_load(&fs->notifies) && !notify_elsewhere(fs, &notice, 1))
		(void)fuse_lowlevel_notify_inval_inode(fs->se, ino, -1, 0);
}
