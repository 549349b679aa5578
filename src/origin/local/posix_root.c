/* SPDX-License-Identifier: MIT */
/*
 * The root of the posix origin: the descriptor beneath which all names are
 * resolved, and checks that the path still leads to it. Used by the thread that
 * creates the origin, later by the threads of its pool.
 *
 * If a source goes away (its file system is unmounted, its server dies), this
 * does not mean that its files were deleted: every answer is -EIO until the
 * path leads to the source again. It counts as the same source if its inode
 * number and file system type are those of the start. The device number may
 * differ, as after a remount. The bare directory below a mountpoint has another
 * inode number. The new root is opened in place of the old one, under the same
 * descriptor number, so that code which uses the number need not know. A source
 * that hangs at the start is opened in the same way when it answers for the
 * first time.
 */
#include "origin/local/posix_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* Constants that <linux/magic.h> lacks in older versions, or in all. */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xFE534D42
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00C36400
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#define BEEGFS_MAGIC 0x19830326
#define GPFS_MAGIC 0x47504653
#define LUSTRE_MAGIC 0x0BD00BD0

/* Get the identity of an open directory. Returns 0 or -errno. */
static int posix_root_look(int fd, struct posix_root *root)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	root->dev = st.st_dev;
	root->ino = st.st_ino;
	root->fs_type = fs.f_type;
	return 0;
}

int posix_root_open(struct posix *p, const char *dir, struct error *err)
{
	p->root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root_fd < 0 && errno == ENOENT)
		return error_set(err, -ENOENT,
			"cannot open '%s': %m; is the storage mounted?", dir);
	if (p->root_fd < 0)
		return error_set(err, -errno, "cannot open '%s': %m", dir);
	/* Opening with O_PATH needs no permission, so check here that listing
	 * will be allowed. */
	if (faccessat(p->root_fd, ".", R_OK | X_OK, AT_EACCESS))
		return error_set(err, -errno,
			"cannot read '%s': %m; give this user r and x "
			"permission",
			dir);
	p->dir = realpath(dir, NULL);
	if (!p->dir || posix_root_look(p->root_fd, &p->root))
		return error_set(err, -errno, "cannot access '%s': %m", dir);
	return 0;
}

int posix_root_open_later(struct posix *p, const char *dir, struct error *err)
{
	/* The eventfd is a placeholder for the root; nothing can be opened
	 * beneath it. */
	p->root_fd = eventfd(0, EFD_CLOEXEC);
	p->dir = strdup(dir);
	p->absent = true;
	if (p->root_fd < 0 || !p->dir)
		return error_set(err, -errno, "cannot open '%s': %m", dir);
	return 0;
}

bool posix_root_is_far(const struct posix *p)
{
	static const uint32_t far[] = {AFS_SUPER_MAGIC, AFS_FS_MAGIC,
		CEPH_SUPER_MAGIC, CIFS_SUPER_MAGIC, CODA_SUPER_MAGIC,
		FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
		SMB2_SUPER_MAGIC, V9FS_MAGIC, BEEGFS_MAGIC, GPFS_MAGIC,
		LUSTRE_MAGIC};

	if (p->absent)
		return true;
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		if ((uint32_t)p->root.fs_type == far[i])
			return true;
	return false;
}

bool posix_root_is_local(const struct posix *p)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC};

	for (size_t i = 0; !p->absent && i < sizeof(local) / sizeof(local[0]);
		i++)
		if ((uint32_t)p->root.fs_type == local[i])
			return true;
	return false;
}

bool posix_root_is_in_memory(const struct posix *p)
{
	return !p->absent &&
		(p->root.fs_type == TMPFS_MAGIC ||
			p->root.fs_type == RAMFS_MAGIC);
}

void posix_root_close(struct posix *p)
{
	if (p->root_fd >= 0)
		/* closing an O_PATH descriptor cannot fail */
		(void)close(p->root_fd);
	free(p->dir);
}

unsigned posix_root_turn(struct posix *p)
{
	LOCK_SCOPE(&p->lock);

	return p->root_turn;
}

dev_t posix_root_dev(struct posix *p)
{
	LOCK_SCOPE(&p->lock);

	return p->root.dev;
}

/* Requires the lock. Make the number of the root's descriptor stand for the
 * file of `fd`. Returns a descriptor of the old root, or -errno. The caller
 * closes the old root without the lock, because that may unmount a file system.
 */
static int replace(struct posix *p, int fd, const struct posix_root *now)
{
	int old = fcntl(p->root_fd, F_DUPFD_CLOEXEC, 0);

	ASSERT_HELD(&p->lock);
	if (old < 0)
		return -errno;
	if (dup3(fd, p->root_fd, O_CLOEXEC) < 0) {
		int rc = -errno;

		/* nothing ends here: the root's descriptor keeps the file open,
		 * too */
		(void)close(old);
		return rc;
	}
	p->root = *now;
	p->absent = false;
	p->root_turn++;
	return old;
}

/* Is the root the same as at `turn`? If the source came back, use its new root
 * from now on. */
static bool is_there(
	struct posix *p, unsigned turn, int fd, const struct posix_root *now)
{
	/* closed at the end, after the lock is released */
	CLEANUP_FD int old = -1;
	LOCK_SCOPE(&p->lock);

	if (p->absent) {
		old = replace(p, fd, now);
		return false;
	}
	if (now->ino != p->root.ino || now->fs_type != p->root.fs_type)
		return false;
	if (now->dev != p->root.dev)
		old = replace(p, fd, now);
	return p->root_turn == turn && now->dev == p->root.dev;
}

int posix_judge(struct posix *p, unsigned turn, int code)
{
	CLEANUP_FD int fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct posix_root now;

	if (fd < 0 || posix_root_look(fd, &now))
		return -EIO;
	return is_there(p, turn, fd, &now) ? code : -EIO;
}
