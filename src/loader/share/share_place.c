/* SPDX-License-Identifier: MIT */
/*
 * Names of shares, and the places of their sockets: NAME.sock and NAME.lock in
 * $XDG_RUNTIME_DIR/refrain-share, or in /tmp/refrain-share-UID. Any thread.
 *
 * The lock is a POSIX record lock, because such a lock ends with its process
 * even if a forked child is alive. But it does not exclude other threads of the
 * process, and it is dropped when any descriptor of the file is closed.
 * Therefore a process has a table of its places, which is the only mutable
 * global variable of the library, and never opens a lock file that it has
 * locked.
 *
 * A host creates both files, and removes them when it ends. Only the holder of
 * the lock removes a lock file. So if the file that a process has locked is at
 * its path, it stays there until the process removes it. If it is not, another
 * process removed it just before it was locked: then it is closed, and the path
 * is opened again. The files of hosts that were killed are removed when the
 * next host in the directory starts or ends.
 */
#include "loader/share/share_place_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/list.h"
#include "common/base/lock.h"
#include "common/control/unix_socket.h"

#define SOCK ".sock"
#define LOCK ".lock"

struct place_files {
	char socket[SOCKET_PATH_MAX];
	char lock[SOCKET_PATH_MAX];
};

struct share_place {
	struct list node; /* guarded by places_lock */
	uint32_t refs;	  /* guarded by places_lock */
	/* Guarded by places_lock; -1 unless a host in this process has the
	 * lock */
	int lock_fd;
	pid_t pid; /* set once; the process that created this */
	/* Set once. */
	char name[SHARE_FULL_NAME_MAX];
	struct place_files files;
};

static pthread_mutex_t places_lock = LOCK_INIT(RANK_PLACES);
static struct list places = LIST_INIT(places);

int share_name_check(const char *name, struct error *err)
{
	size_t n = strlen(name);

	if (n == 0 || n > SHARE_NAME_MAX)
		return error_set(err, -EINVAL,
			"share: a name has 1 to %d bytes, this one has %zu",
			SHARE_NAME_MAX, n);
	if (strchr(name, '/') || name[0] == '.')
		return error_set(err, -EINVAL,
			"share: '%s' is not a valid name: it must not contain "
			"'/' nor begin with '.'",
			name);
	return 0;
}

/* -- Directory ------------------------------------------------------------- */

static int find_dir(char dir[PATH_MAX], struct error *err)
{
	struct stat st;
	const char *run = socket_runtime_dir(&st);
	CLEANUP_FD int fd = -1;
	int n;

	if (run)
		n = snprintf(dir, PATH_MAX, "%s/refrain-share", run);
	else
		n = snprintf(dir, PATH_MAX, "/tmp/refrain-share-%u",
			(unsigned)geteuid());
	if (n >= PATH_MAX)
		return error_set(
			err, -ENAMETOOLONG, "XDG_RUNTIME_DIR is too long");
	/* No other user may create files in the directory */
	fd = socket_open_dir(dir, 0077);
	if (fd == -ENOTDIR)
		return error_set(
			err, fd, "'%s' is not a directory: remove it", dir);
	if (fd == -EPERM)
		return error_set(err, fd,
			"'%s' is open to other users, so a share there is not "
			"safe: remove it, or set XDG_RUNTIME_DIR",
			dir);
	return fd < 0 ? error_set(err, fd, "cannot use '%s': %m", dir) : 0;
}

/* Set the paths of the files. Returns false if a path is too long for a
 * socket. */
static bool place_files_of(
	struct place_files *f, const char *dir, const char *name)
{
	size_t room = sizeof(f->socket);

	return (size_t)snprintf(f->socket, room, "%s/%s" SOCK, dir, name) <
		room &&
		(size_t)snprintf(f->lock, room, "%s/%s" LOCK, dir, name) < room;
}

/* Returns the length of the share's name in the name of a file with this
 * suffix, or 0 if the suffix is another one. */
static size_t name_before(const char *file, const char *suffix)
{
	size_t n = strlen(file), m = strlen(suffix);

	return n > m && strcmp(file + n - m, suffix) == 0 ? n - m : 0;
}

/* -- The table of places --------------------------------------------------- */

static struct share_place *place_of_socket(const char *socket_path)
{
	ASSERT_HELD(&places_lock);
	LIST_FOREACH(node, &places) {
		struct share_place *p =
			CONTAINER_OF(node, struct share_place, node);

		if (p->pid == getpid() &&
			strcmp(p->files.socket, socket_path) == 0)
			return p;
	}
	return NULL;
}

static int place_new(struct share_place **out, const char *name,
	const struct place_files *files, struct error *err)
{
	struct share_place *place = calloc(1, sizeof(*place));

	if (!place)
		return error_set(err, -ENOMEM, "no memory for a share");
	place->lock_fd = -1;
	place->pid = getpid();
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	place->files = *files;
	list_add_tail(&places, &place->node);
	*out = place;
	return 0;
}

int share_place_get(
	struct share_place **out, const char *name, struct error *err)
{
	struct place_files files;
	char dir[PATH_MAX];
	int rc = find_dir(dir, err);

	if (rc < 0)
		return rc;
	if (strlen(name) >= SHARE_FULL_NAME_MAX ||
		!place_files_of(&files, dir, name))
		return error_set(err, -ENAMETOOLONG,
			"'%s/%s" SOCK "' is too long for a socket: choose a "
			"shorter name, or set XDG_RUNTIME_DIR to a shorter "
			"path",
			dir, name);
	LOCK_SCOPE(&places_lock);
	*out = place_of_socket(files.socket);
	if (!*out)
		rc = place_new(out, name, &files, err);
	if (rc == 0)
		(*out)->refs++;
	return rc;
}

void share_place_put(struct share_place *place)
{
	if (!place)
		return;
	LOCK_SCOPE(&places_lock);
	if (--place->refs > 0)
		return;
	list_del(&place->node);
	if (place->lock_fd >= 0)
		/* This is a copy of a parent's descriptor, which fork() has
		 * made */
		(void)close(place->lock_fd);
	free(place);
}

const char *share_place_name(const struct share_place *place)
{
	return place->name;
}

int share_place_list(
	int (*each)(void *arg, const char *name), void *arg, struct error *err)
{
	char dir[PATH_MAX];
	CLEANUP_DIR DIR *d = NULL;
	const struct dirent *e;
	int rc = find_dir(dir, err);

	d = rc < 0 ? NULL : opendir(dir);
	if (rc == 0 && !d)
		rc = error_set(err, -errno, "cannot read '%s': %m", dir);
	while (rc == 0 && (e = readdir(d))) {
		char name[sizeof(e->d_name)];
		size_t n = name_before(e->d_name, SOCK);

		if (n == 0)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, e->d_name);
		rc = each(arg, name);
	}
	return rc;
}

/* -- The lock -------------------------------------------------------------- */

static bool is_same_file(int fd, const struct stat *at)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == at->st_dev &&
		st.st_ino == at->st_ino;
}

static bool is_at(int fd, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && is_same_file(fd, &st);
}

/* Does this process hold the lock of this file, even under another path? */
static bool is_locked_here(const char *path)
{
	struct stat st;

	ASSERT_HELD(&places_lock);
	if (lstat(path, &st) < 0)
		return false;
	LIST_FOREACH(node, &places) {
		struct share_place *p =
			CONTAINER_OF(node, struct share_place, node);

		if (p->pid == getpid() && p->lock_fd >= 0 &&
			is_same_file(p->lock_fd, &st))
			return true;
	}
	return false;
}

/* Open and lock the file. Returns its descriptor, -EAGAIN if another host has
 * locked it, or another -errno. */
static int lock_file(const char *path, int create)
{
	ASSERT_HELD(&places_lock);
	for (;;) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		CLEANUP_FD int fd = -1;

		if (is_locked_here(path))
			return -EAGAIN;
		fd = open(path,
			O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | create,
			0600);
		if (fd < 0)
			return -errno;
		if (fcntl(fd, F_SETLK, &lock) < 0)
			return errno == EACCES ? -EAGAIN : -errno;
		/* The file may be another one than at the path: the previous
		 * holder of the lock may have removed it before it was locked
		 * here. */
		if (is_at(fd, path))
			return steal_fd(&fd);
	}
}

/* Remove the files of a share, and close its lock file. If the lock file is no
 * longer at its path, another process may have locked a new one, so nothing is
 * removed. */
static void remove_files(int lock_fd, const struct place_files *f, bool socket)
{
	if (is_at(lock_fd, f->lock)) {
		if (socket)
			/* fails if there is no socket */
			(void)unlink(f->socket);
		/* If this fails, the next host uses the file */
		(void)unlink(f->lock);
	}
	(void)close(lock_fd); /* closing releases the lock */
}

static bool is_refused(const char *socket_path)
{
	CLEANUP_FD int fd = socket_connect(socket_path, SOCK_SEQPACKET);

	return fd == -ECONNREFUSED || fd == -ENOENT;
}

/* Remove the files of one share if its host was killed. If there is a socket
 * but no lock file, there may be a host, because programs that clean /tmp
 * remove lock files but not sockets in use. */
static void sweep_share(const struct place_files *f, bool has_lock)
{
	int fd;

	LOCK_SCOPE(&places_lock);
	if (!has_lock && access(f->lock, F_OK) == 0)
		return; /* sweep_share() is called again for the lock file */
	fd = lock_file(f->lock, has_lock ? 0 : O_CREAT);
	if (fd >= 0)
		remove_files(fd, f, has_lock || is_refused(f->socket));
}

/* Remove the files of hosts that were killed. */
static void sweep(const struct share_place *place)
{
	char dir[sizeof(place->files.socket)];
	CLEANUP_DIR DIR *d = NULL;
	const struct dirent *e;

	strcpy(dir, place->files.socket);
	*strrchr(dir, '/') = '\0';
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		size_t locked = name_before(e->d_name, LOCK);
		size_t n = locked ? locked : name_before(e->d_name, SOCK);
		char name[sizeof(e->d_name)];
		struct place_files f;

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, e->d_name);
		if (n && place_files_of(&f, dir, name))
			sweep_share(&f, locked > 0);
	}
}

static int place_lock_file(struct share_place *place, struct error *err)
{
	int fd;

	LOCK_SCOPE(&places_lock);
	fd = place->lock_fd >= 0 ? -EAGAIN
				 : lock_file(place->files.lock, O_CREAT);
	if (fd == -EAGAIN)
		return fd;
	if (fd < 0)
		return error_set(
			err, fd, "cannot lock '%s': %m", place->files.lock);
	place->lock_fd = fd;
	return 0;
}

int place_lock(struct share_place *place, struct error *err)
{
	int rc = place_lock_file(place, err);

	if (rc == 0)
		sweep(place);
	return rc;
}

static void place_unlock_file(struct share_place *place)
{
	LOCK_SCOPE(&places_lock);
	remove_files(place->lock_fd, &place->files, true);
	place->lock_fd = -1;
}

void place_unlock(struct share_place *place)
{
	place_unlock_file(place);
	sweep(place);
}

/* -- The socket ------------------------------------------------------------ */

int place_listen(struct share_place *place, struct error *err)
{
	const char *path = place->files.socket;
	int fd;

	/* This process holds the lock, so the host that owned the old socket
	 * has ended. */
	(void)unlink(path);
	fd = socket_listen(path, SOCK_SEQPACKET, 0600, (gid_t)-1);
	return fd < 0 ? error_set(err, fd, "cannot listen at '%s': %m", path)
		      : fd;
}

int place_connect(struct share_place *place)
{
	return socket_connect(place->files.socket, SOCK_SEQPACKET);
}
