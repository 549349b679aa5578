/* SPDX-License-Identifier: MIT */
/* Finds the directory and the name of the control socket. A socket gets its
 * final name by a rename after the daemon listens on it. So if a socket refuses
 * connections, its daemon is dead, and the socket may be removed. The caller
 * has all state; called at start and stop. */
#include "common/control/control_place.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"

#define SUFFIX ".sock"
#define SAME_NAME_MAX 100
#define DIRS_MAX 3

/* Other users may open a socket by its name, but may not list the directory. */
#define PASSABLE 0011

/* Create the directory or check an existing one: no other user may write to it.
 */
static int prepare_dir(const char *dir, bool passable, struct error *err)
{
	CLEANUP_FD int fd = socket_open_dir(dir, 0022);
	struct stat st;

	if (fd == -EPERM)
		return error_set(err, fd,
			"'%s' belongs to another user or is writable by others",
			dir);
	if (fd < 0)
		return error_set(err, fd, "cannot use '%s': %m", dir);
	if (passable &&
		(fstat(fd, &st) < 0 ||
			fchmod(fd, (st.st_mode & 07777) | PASSABLE) < 0))
		return error_set(
			err, -errno, "cannot set the mode of '%s': %m", dir);
	return 0;
}

/* Does a daemon listen on the socket? Returns 0 if it does, -ECONNREFUSED if
 * none does, or another -errno. */
static int try_socket(const char *path)
{
	CLEANUP_FD int fd = socket_connect(path, SOCK_STREAM);

	return fd < 0 ? fd : 0;
}

/* Remove the sockets in the directory on which no daemon listens. */
static void remove_stale(const char *dir)
{
	CLEANUP_DIR DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		char path[SOCKET_PATH_MAX];
		int n;

		if (len < strlen(SUFFIX) ||
			strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		n = snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (n < (int)sizeof(path) && try_socket(path) == -ECONNREFUSED)
			/* if this fails, the socket stays */
			(void)unlink(path);
	}
}

/* Rename the listening socket to a name on which no other daemon listens. */
static int place_publish(struct place *place, const char *dir, const char *from,
	uint64_t hash, struct error *err)
{
	for (int i = 0; i < SAME_NAME_MAX; i++) {
		int n = snprintf(place->path, sizeof(place->path),
			"%s/%016" PRIx64 "-%d-%d" SUFFIX, dir, hash,
			(int)getpid(), i);

		if (n >= (int)sizeof(place->path))
			return error_set(err, -ENAMETOOLONG,
				"'%s' is too long for a socket", dir);
		if (try_socket(place->path) == 0)
			continue;
		if (rename(from, place->path) < 0)
			return error_set(err, -errno, "cannot make '%s': %m",
				place->path);
		return 0;
	}
	return error_set(err, -EADDRINUSE, "too many sockets in '%s'", dir);
}

static int open_in(struct place *place, const char *dir, const char *mountpoint,
	const char *group, struct error *err)
{
	uint64_t hash = hash64(mountpoint, strlen(mountpoint), 0);
	CLEANUP_FD int fd = -1;
	char path[SOCKET_PATH_MAX];
	int n, rc = prepare_dir(dir, place->has_group, err);

	if (rc < 0)
		return rc;
	remove_stale(dir);
	n = snprintf(path, sizeof(path), "%s/new-%d-%016" PRIx64, dir,
		(int)getpid(), hash);
	if (n >= (int)sizeof(path))
		return error_set(err, -ENAMETOOLONG,
			"'%s' is too long for a socket", dir);
	/* left by a dead process that had the same process ID */
	(void)unlink(path);
	fd = socket_listen(path, SOCK_STREAM, place->has_group ? 0660 : 0600,
		place->has_group ? place->gid : (gid_t)-1);
	if (fd < 0)
		rc = error_set(err, fd,
			fd == -EPERM && group
				? "cannot give '%s' to group '%s': %m; join "
				  "the group or mount as root"
				: "cannot listen on '%s': %m",
			path, group);
	else
		rc = place_publish(place, dir, path, hash, err);
	if (rc < 0) {
		(void)unlink(path); /* the file need not exist */
		return rc;
	}
	place->fd = steal_fd(&fd);
	return 0;
}

/* Returns XDG_RUNTIME_DIR if this user owns it. If a group may use the socket,
 * other users must be able to enter the directory, too. */
static const char *user_runtime_dir(bool passable)
{
	struct stat st;
	const char *dir = socket_runtime_dir(&st);

	if (!dir)
		return NULL;
	/* A user who can write to this directory could replace the directory of
	 * our socket. */
	if ((st.st_mode & 0022) && !(st.st_mode & S_ISVTX))
		return NULL;
	if (passable && (st.st_mode & PASSABLE) != PASSABLE)
		return NULL;
	return dir;
}

static int find_group(struct place *place, const char *group, struct error *err)
{
	const struct group *found;

	if (!group)
		return 0;
	errno = 0;
	found = getgrnam(group);
	if (!found)
		return error_set(err, errno ? -errno : -EINVAL,
			"unknown group '%s'", group);
	place->has_group = true;
	place->gid = found->gr_gid;
	return 0;
}

/* List the directories that may contain the socket, the best one first. Returns
 * their number. */
static size_t list_dirs(bool passable, char dirs[DIRS_MAX][SOCKET_PATH_MAX])
{
	const char *xdg = user_runtime_dir(passable);
	size_t n = 0;

	if (xdg &&
		snprintf(dirs[n], sizeof(dirs[n]), "%s/refrain", xdg) <
			(int)sizeof(dirs[n]))
		n++;
	(void)snprintf(dirs[n++], sizeof(dirs[0]), "/run/refrain");
	(void)snprintf(dirs[n++], sizeof(dirs[0]), "/tmp/refrain-%u",
		(unsigned)geteuid());
	return n;
}

int place_open(struct place *place, const char *mountpoint, const char *group,
	struct error *err)
{
	char dirs[DIRS_MAX][SOCKET_PATH_MAX];
	size_t n;
	int rc;

	*place = (struct place){.fd = -1, .uid = geteuid()};
	rc = find_group(place, group, err);
	if (rc < 0)
		return rc;
	n = list_dirs(place->has_group, dirs);
	for (size_t i = 0; i < n; i++) {
		rc = open_in(place, dirs[i], mountpoint, group, err);
		/* another daemon has removed the directory when it ended */
		if (rc == -ENOENT)
			rc = open_in(place, dirs[i], mountpoint, group, err);
		if (rc == 0)
			return 0;
	}
	return error_wrap(err, rc, "cannot create the control socket");
}

/* Find a socket whose name has this hash and on which a daemon listens. */
static bool find_socket(
	const char *dir, const char *hash, char path[SOCKET_PATH_MAX])
{
	CLEANUP_DIR DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, hash, strlen(hash)) == 0 &&
			snprintf(path, SOCKET_PATH_MAX, "%s/%s", dir,
				e->d_name) < (int)SOCKET_PATH_MAX &&
			try_socket(path) == 0)
			return true;
	return false;
}

int place_guess(const char *mountpoint, char path[SOCKET_PATH_MAX])
{
	char dirs[DIRS_MAX][SOCKET_PATH_MAX], hash[32];
	size_t n = list_dirs(false, dirs);

	(void)snprintf(hash, sizeof(hash), "%016" PRIx64 "-",
		hash64(mountpoint, strlen(mountpoint), 0));
	for (size_t i = 0; i < n; i++)
		if (find_socket(dirs[i], hash, path))
			return 0;
	return -ENOENT;
}

void place_close(struct place *place)
{
	char *slash = strrchr(place->path, '/');

	(void)unlink(place->path); /* it may be gone already */
	if (slash) {
		*slash = '\0';
		/* this fails if the directory contains other sockets */
		(void)rmdir(place->path);
	}
	(void)close(place->fd);
	place->fd = -1;
}

static bool in_group(int fd, gid_t gid)
{
	CLEANUP_FREE gid_t *gids = NULL;
	socklen_t len = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 ||
		errno != ERANGE)
		return false;
	gids = malloc(len);
	if (!gids || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(*gids); i++)
		if (gids[i] == gid)
			return true;
	return false;
}

bool place_allows(const struct place *place, int fd)
{
	struct ucred peer;

	if (!socket_peer(fd, &peer))
		return false;
	if (peer.uid == place->uid || peer.uid == 0)
		return true;
	return place->has_group &&
		(peer.gid == place->gid || in_group(fd, place->gid));
}
