/* SPDX-License-Identifier: MIT */
/*
 * Has the kernel drop cached names and attributes. Such a notification can wait
 * for the lock of a directory, so another process sends it, if the mount has
 * one for this (base/notifier.h). If this process ends, the notifications that
 * it has not answered are repeated. Without such a process, the thread notifies
 * the kernel itself. Entered by the tree's thread only.
 */
#include "mount/fs/fs_impl.h"

#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/notifier.h"
#include "common/base/proc.h"
#include "common/base/send_fds.h"

/* While the process does not answer, its state is checked after this time,
 * again and again, because it may have been stopped. */
#define LOOK_MS 1000
/* A process that has not begun is given up after this many checks. */
#define BEGIN_LOOKS 5
/* If no process could be started, the next attempt follows after this time. */
#define AGAIN_NS (60 * NS_PER_S)

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
	/* the NUL is there: all of `n` is zeroed */
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

/* -- The other process ----------------------------------------------------- */

static bool is_stopped(pid_t pid)
{
	char state = proc_state(pid);

	/* stopped by a signal, or traced by a debugger */
	return state == 'T' || state == 't';
}

/* Wait for an answer of the process. Returns false if the process has ended, is
 * stopped, or does not begin, or if the mount has ended. A stopped process is
 * not waited for, because it may stay stopped for any time. */
static bool notifier_answers(const struct fs *fs, struct fs_notifier *n)
{
	struct pollfd p = {.fd = n->fd, .events = POLLIN};
	struct got_fds got;
	int answer;

	for (int looks = 1; poll(&p, 1, LOOK_MS) <= 0; looks++)
		if (atomic_load(&fs->exiting) ||
			(n->pid < 0 ? looks == BEGIN_LOOKS
				    : is_stopped(n->pid)))
			return false;
	/* Ignore the kernel's result: it fails if the kernel does not know the
	 * name. */
	if (fds_receive(n->fd, &answer, sizeof(answer), &got, 0) !=
		sizeof(answer))
		return false;
	n->pid = got.pid > 0 ? got.pid : 0;
	return true;
}

/* Wait until the process says that it has begun, then send it the connection.
 */
static bool notifier_begins(const struct fs *fs, struct fs_notifier *n)
{
	int connection = fuse_session_fd(fs->se);

	if (n->pid < 0 && !notifier_answers(fs, n))
		return false;
	n->begun = n->begun ||
		(fds_send(n->fd, "", 1, &connection, 1, 0) == 1 &&
			notifier_answers(fs, n));
	return n->begun;
}

static bool notifier_does(
	struct fs *fs, const struct notice *notice, unsigned count)
{
	struct fs_notifier *n = &fs->notifier;

	if (!notifier_begins(fs, n))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (fds_send(n->fd, &notice[i], notice[i].head.len, NULL, 0,
			    0) < 0)
			return false;
	for (unsigned i = 0; i < count; i++)
		if (!notifier_answers(fs, n))
			return false;
	return true;
}

/* Get another process from the daemon, because this one has failed or there is
 * none. */
static void notifier_replace(struct fs *fs)
{
	struct fs_notifier *n = &fs->notifier;
	struct event e = {.dir = fs->config.mountpoint};

	*n = (struct fs_notifier){
		.fd = fs->config.notifier_again(fs->config.notifier_arg),
		.pid = -1,
		.again_ns = clock_now_ns() + AGAIN_NS,
	};
	e.kind = n->fd >= 0 ? EVENT_NOTIFIER_REPLACED : EVENT_NOTIFIER_LOST;
	event_report(fs->config.events, &e);
}

/* Have the process send the notifications. Returns false if there is no process
 * that can. */
static bool notify_elsewhere(
	struct fs *fs, const struct notice *notice, unsigned count)
{
	struct fs_notifier *n = &fs->notifier;

	if (n->fd < 0 && n->again_ns > 0 && clock_now_ns() >= n->again_ns)
		notifier_replace(fs);
	for (int tries = 0; n->fd >= 0 && tries < 2; tries++) {
		if (notifier_does(fs, notice, count))
			return true;
		if (atomic_load(&fs->exiting))
			return true; /* the connection has ended, too */
		notifier_replace(fs);
	}
	return false;
}

void notifier_begin(struct fs *fs)
{
	fs->notifier = (struct fs_notifier){
		.fd = fs->config.notifier_again ? fs->config.notifier : -1,
		.pid = -1,
	};
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
