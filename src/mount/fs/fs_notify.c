/* SPDX-License-Identifier: MIT */
/*
 * Has the kernel drop what it remembers. That can wait for the lock of a
 * directory, so a process of its own does it if there is one (base/notifier.h);
 * what it had not answered when it ended is repeated. Where there is none, the
 * thread does it by itself. Entered by the tree's thread only.
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

/* How often a process that does not answer is looked at: it may be stopped. */
#define LOOK_MS 1000
/* After so many looks a process that should begin is given up. */
#define BEGIN_LOOKS 5
/* When another one is asked for, after none could be had. */
#define AGAIN_NS (60 * NS_PER_S)

/* Has the kernel forget a name or an inode, as the kernel reads it. */
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
	memcpy(n.body + sizeof(out), name, len); /* a zero follows */
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

	return state == 'T' || state == 't'; /* by a signal, or traced */
}

/*
 * Wait for an answer. Returns false if the process has ended, is stopped, or
 * does not begin, or if the mount has ended: nobody knows how long a frozen
 * process stays so.
 */
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
	/* What the kernel says does not matter: it may know no such name. */
	if (fds_receive(n->fd, &answer, sizeof(answer), &got, 0) !=
		sizeof(answer))
		return false;
	n->pid = got.pid > 0 ? got.pid : 0;
	return true;
}

/* It says when it begins, and gets the connection then. */
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

/* The process is of no use any more, or there has been none. */
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

/* Returns false if no process has done it. */
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

/*
 * Tell the kernel to forget a name. Directories that are gone are skipped,
 * because their number may stand for a file by now, and libfuse would complain.
 */
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
