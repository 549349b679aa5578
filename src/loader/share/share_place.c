/* SPDX-License-Identifier: MIT */
/*
 * Names of shares and where their sockets are: NAME.sock and NAME.lock in
 * $XDG_RUNTIME_DIR/refrain-share, or in /tmp/refrain-share-UID. Both files
 * stay behind. Any thread.
 *
 * The lock is a POSIX record lock: it ends with its process, also where a
 * forked child lives on. It does not exclude another thread of the process, and
 * closing any descriptor of the file drops it. So the process has one table of
 * its places, the one mutable global of the library, and opens each lock file
 * once.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/list.h"
#include "common/base/lock.h"

#define SOCK ".sock"
#define LOCK ".lock"
#define BACKLOG 64

struct share_place {
	struct list node; /* places_lock */
	uint32_t refs;	  /* places_lock */
	bool locked;	  /* places_lock: by a host of this process */
	pid_t pid;	  /* set once: of the process that opened it */
	/* Set once. */
	int lock_fd;
	char name[SHARE_FULL_NAME_MAX];
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
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

/* -- The directory --------------------------------------------------------- */

/* Nobody else may make files in it. */
static int place_check_dir(const char *dir, struct error *err)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return error_set(err, -errno, "cannot look at '%s': %m", dir);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR,
			"'%s' is not a directory: remove it", dir);
	if (st.st_uid != geteuid() || (st.st_mode & 0077))
		return error_set(err, -EPERM,
			"'%s' is open to other users, so a share there is not "
			"safe: remove it, or set XDG_RUNTIME_DIR",
			dir);
	return 0;
}

static int find_dir(char dir[PATH_MAX], struct error *err)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (run && run[0] == '/' && stat(run, &st) == 0 &&
		S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		n = snprintf(dir, PATH_MAX, "%s/refrain-share", run);
	else
		n = snprintf(dir, PATH_MAX, "/tmp/refrain-share-%u",
			(unsigned)geteuid());
	if (n >= PATH_MAX)
		return error_set(
			err, -ENAMETOOLONG, "XDG_RUNTIME_DIR is too long");
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return error_set(
			err, -errno, "cannot make the directory '%s': %m", dir);
	return place_check_dir(dir, err);
}

/* -- The table ------------------------------------------------------------- */

static struct share_place *place_of_socket(const char *socket_path)
{
	ASSERT_HELD(&places_lock);
	LIST_FOREACH(node, &places) {
		struct share_place *p =
			CONTAINER_OF(node, struct share_place, node);

		if (p->pid == getpid() && strcmp(p->socket, socket_path) == 0)
			return p;
	}
	return NULL;
}

static int place_new(struct share_place **out, const char *name,
	const char *dir, const char *socket_path, struct error *err)
{
	struct share_place *place = calloc(1, sizeof(*place));
	char lock[PATH_MAX + SHARE_FULL_NAME_MAX + 8];

	if (!place)
		return error_set(err, -ENOMEM, "no memory for a share");
	(void)snprintf(lock, sizeof(lock), "%s/%s" LOCK, dir, name);
	place->lock_fd =
		open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (place->lock_fd < 0) {
		free(place);
		return error_set(err, -errno, "cannot open '%s': %m", lock);
	}
	place->pid = getpid();
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	(void)snprintf(place->socket, sizeof(place->socket), "%s", socket_path);
	list_add_tail(&places, &place->node);
	*out = place;
	return 0;
}

int share_place_get(
	struct share_place **out, const char *name, struct error *err)
{
	char dir[PATH_MAX], socket_path[PATH_MAX + SHARE_FULL_NAME_MAX];
	int rc = find_dir(dir, err);

	if (rc < 0)
		return rc;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/%s" SOCK, dir,
		name); /* looked at below */
	if (strlen(name) >= SHARE_FULL_NAME_MAX ||
		strlen(socket_path) >= sizeof((*out)->socket))
		return error_set(err, -ENAMETOOLONG,
			"'%s' is too long for a socket: choose a shorter name, "
			"or set XDG_RUNTIME_DIR to a shorter path",
			socket_path);
	LOCK_SCOPE(&places_lock);
	*out = place_of_socket(socket_path);
	if (!*out)
		rc = place_new(out, name, dir, socket_path, err);
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
	(void)close(place->lock_fd); /* drops the lock */
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
		size_t n = strlen(e->d_name);

		if (n <= strlen(SOCK) ||
			strcmp(e->d_name + n - strlen(SOCK), SOCK) != 0)
			continue;
		memcpy(name, e->d_name, n);
		name[n - strlen(SOCK)] = '\0';
		rc = each(arg, name);
	}
	return rc;
}

/* -- The lock -------------------------------------------------------------- */

int place_lock(struct share_place *place, struct error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	LOCK_SCOPE(&places_lock);
	if (place->locked)
		return -EAGAIN;
	if (fcntl(place->lock_fd, F_SETLK, &lock) < 0)
		return errno == EACCES || errno == EAGAIN
			? -EAGAIN
			: error_set(err, -errno, "cannot lock share '%s': %m",
				  place->name);
	place->locked = true;
	return 0;
}

void place_unlock(struct share_place *place)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	LOCK_SCOPE(&places_lock);
	(void)fcntl(place->lock_fd, F_SETLK, &lock); /* cannot fail */
	place->locked = false;
}

/* -- The socket ------------------------------------------------------------ */

int place_listen(struct share_place *place, struct error *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return error_set(err, -errno, "cannot make a socket: %m");
	memcpy(at.sun_path, place->socket, sizeof(at.sun_path));
	/* The old one belonged to a host that has ended: we hold the lock. */
	(void)unlink(place->socket);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		chmod(place->socket, 0600) < 0 || listen(fd, BACKLOG) < 0)
		return error_set(err, -errno, "cannot listen at '%s': %m",
			place->socket);
	return steal_fd(&fd);
}

int place_connect(struct share_place *place)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(at.sun_path, place->socket, sizeof(at.sun_path));
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	return steal_fd(&fd);
}
