/* SPDX-License-Identifier: MIT */
/* The client of the control socket. Data from the daemon has a limited length,
 * and is checked like any input from outside. No threads. */
#include "analysis/fleet/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/mountinfo.h"
#include "common/control/talk.h"
#include "common/control/control_place.h"
#include "analysis/fleet/silent_impl.h"

/* Limit for a line, against a broken daemon. A line of the status has some
 * kilobytes. */
#define ANSWER_MAX_BYTES ((size_t)16 << 20)

struct ctl_client {
	struct talk talk;
	pid_t pid;
};

/* Refuse a URL. The message does not repeat it, because it may contain a
 * password. */
int ctl_name_check(const char *mountpoint, struct error *err)
{
	if (!strstr(mountpoint, "://"))
		return 0;
	return error_set(err, -EINVAL,
		"a mount is named by its directory, not by the URL of its "
		"source");
}

/* Report why the attribute cannot be read. */
static int no_attribute(int code, const char *mountpoint, struct error *err)
{
	if (ctl_name_check(mountpoint, err) < 0)
		return -EINVAL;
	switch (code) {
	case -ENODATA:
	case -EOPNOTSUPP:
	case -ERANGE:
		return error_set(err, -ENODATA,
			"'%s' is not the root of a refrain mount", mountpoint);
	case -ENOTCONN:
	case -ECONNABORTED:
		return error_set(err, -ENOTCONN,
			"the daemon of '%s' is dead; detach the mount with "
			"'refrain umount %s'",
			mountpoint, mountpoint);
	case -EACCES:
		return error_set(err, code,
			"cannot access '%s': %m; the mount may belong to "
			"another user",
			mountpoint);
	default:
		return error_set(
			err, code, "cannot access '%s': %m", mountpoint);
	}
}

static int no_connection(int code, const char *path, struct error *err)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return error_set(err, -EACCES,
			"cannot open the control socket '%s': the mount "
			"belongs to another user; mount it with --group to "
			"share it",
			path);
	case -ENOENT:
		return error_set(err, code,
			"the control socket '%s' does not exist here; run "
			"this command where the mount was made",
			path);
	case -ECONNREFUSED:
		return error_set(err, code,
			"the daemon has ended: no process listens on the "
			"control socket '%s'",
			path);
	case -EAGAIN:
		return error_set(err, code,
			"the daemon does not answer on '%s'; try again", path);
	default:
		return error_set(err, code, "cannot connect to '%s': %m", path);
	}
}

int ctl_connect_path(
	struct ctl_client **out, const char *path, struct error *err)
{
	struct ctl_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return error_set(err, -ENOMEM, "cannot connect: %m");
	rc = talk_open(&c->talk, path, ANSWER_MAX_BYTES);
	if (rc < 0) {
		free(c);
		return no_connection(rc, path, err);
	}
	c->pid = talk_pid(&c->talk);
	*out = c;
	return 0;
}

/* Check that the daemon of a mount runs as the mount's owner: a daemon of
 * another user could lie. */
static int check_daemon(const struct ctl_client *c, uid_t owner,
	const char *mountpoint, struct error *err)
{
	int rc = talk_check_owner(&c->talk, owner);

	if (rc < 0)
		return error_set(err, -EPERM,
			"refusing the control socket of '%s': it is served "
			"neither by user %u, who owns the mount, nor by root",
			mountpoint, (unsigned)owner);
	return 0;
}

static int connect_owned(struct ctl_client **out, const char *path, uid_t owner,
	const char *mountpoint, struct error *err)
{
	int rc = ctl_connect_path(out, path, err);

	if (rc < 0)
		return rc;
	rc = check_daemon(*out, owner, mountpoint, err);
	if (rc < 0) {
		ctl_disconnect(*out);
		*out = NULL;
	}
	return rc;
}

/* Find the process of a daemon that does not answer, without sending it a
 * request. Returns 0 if it is unknown. */
static pid_t silent_pid(const char *root, uid_t owner)
{
	struct ctl_client *c = NULL;
	char path[SOCKET_PATH_MAX];
	pid_t pid = 0;

	if (place_guess(root, path) == 0 &&
		connect_owned(&c, path, owner, root, NULL) == 0)
		pid = c->pid;
	ctl_disconnect(c);
	return pid;
}

/* Is `path` a control socket? A user names a mount by its socket if the mount
 * has no directory here, for example because another program has mounted it in
 * its own namespace. */
static bool is_socket(const char *path, uid_t *owner)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	*owner = st.st_uid;
	return true;
}

int ctl_connect_found(struct ctl_client **out, const char *mountpoint,
	uid_t owner, int rc, const char *path, struct error *err)
{
	*out = NULL;
	if (rc >= 0 && path[0] != '/')
		rc = -ENODATA;
	if (rc < 0)
		return no_attribute(rc, mountpoint, err);
	return connect_owned(out, path, owner, mountpoint, err);
}

int ctl_connect(
	struct ctl_client **out, const char *mountpoint, struct error *err)
{
	CLEANUP_FD int fd = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[SOCKET_PATH_MAX], root[PATH_MAX];
	uid_t owner;
	int rc = fd < 0 ? -errno : 0;

	*out = NULL;
	if (rc == -ENOTDIR && is_socket(mountpoint, &owner))
		return connect_owned(out, mountpoint, owner, mountpoint, err);
	if (rc == -ENOTDIR)
		rc = -ENODATA;
	if (rc == 0)
		rc = mountinfo_refrain_root(fd, &owner, root, sizeof(root));
	if (rc == 0)
		rc = attribute_read(fd, TALK_XATTR, path, sizeof(path));
	if (rc == -ETIMEDOUT)
		return ctl_silent(mountpoint, silent_pid(root, owner), rc, err);
	return ctl_connect_found(out, mountpoint, owner, rc, path, err);
}

int ctl_says_nothing(const struct ctl_client *c, const char *mountpoint,
	uid_t owner, struct error *err)
{
	pid_t pid = c ? c->pid : silent_pid(mountpoint, owner);

	return ctl_silent(mountpoint, pid, -ETIMEDOUT, err);
}

void ctl_disconnect(struct ctl_client *c)
{
	if (!c)
		return;
	talk_close(&c->talk);
	free(c);
}

pid_t ctl_client_pid(const struct ctl_client *c)
{
	return c->pid;
}

int ctl_client_fd(const struct ctl_client *c)
{
	return c->talk.fd;
}

static int send_request(struct ctl_client *c, json_t *request)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (!request)
		return -ENOMEM;
	text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	text[len] = '\n'; /* the newline replaces the NUL */
	return talk_send(&c->talk, text, len + 1);
}

static int lost(const struct ctl_client *c, int code, struct error *err)
{
	if (code == -EPIPE)
		return error_set(err, code, "the daemon closed the connection");
	if (code == -ETIMEDOUT)
		return ctl_silent(NULL, c->pid, code, err);
	return error_set(err, code, "cannot talk to the daemon: %m");
}

/* Handle one line. Returns 1 if it was the last line of the answer, which the
 * caller then owns; -EREMOTEIO if this line is an error. */
static int take_answer(json_t *line, ctl_line_fn *progress, void *arg,
	json_t **reply, struct error *err)
{
	const json_t *ok = json_object_get(line, "ok");
	const char *why = json_string_value(json_object_get(line, "error"));
	int rc = 0;

	if (json_is_true(ok)) {
		*reply = line;
		return 1;
	}
	if (ok)
		rc = error_set(
			err, -EREMOTEIO, "%s", why ? why : "the daemon failed");
	else if (progress)
		progress(arg, line);
	json_decref(line);
	return rc;
}

int ctl_client_line(struct ctl_client *c, int timeout_ms, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err)
{
	json_error_t why;
	json_t *line;
	char *text;
	size_t len;
	int rc = talk_wait(&c->talk, timeout_ms, &text, &len);

	if (rc < 0)
		return lost(c, rc, err);
	line = json_loadb(text, len, 0, &why);
	if (!line)
		return error_set(err, -EBADMSG,
			"the daemon sent an invalid answer: %s", why.text);
	return take_answer(line, progress, arg, reply, err);
}

/* Receive lines until the last line of the answer. */
static int receive(struct ctl_client *c, int timeout_ms, ctl_line_fn *progress,
	void *arg, json_t **reply, struct error *err)
{
	int rc;

	do
		rc = ctl_client_line(c, timeout_ms, progress, arg, reply, err);
	while (rc == 0);
	return rc < 0 ? rc : 0;
}

int ctl_client_send(struct ctl_client *c, json_t *request, struct error *err)
{
	int rc = send_request(c, request);

	return rc < 0 ? lost(c, rc, err) : 0;
}

int ctl_client_receive(
	struct ctl_client *c, int timeout_ms, json_t **reply, struct error *err)
{
	int rc = ctl_client_line(c, timeout_ms, NULL, NULL, reply, err);

	if (rc == 0) /* the daemon might send such lines without end */
		return error_set(
			err, -EBADMSG, "the daemon sent more than its answer");
	return rc < 0 ? rc : 0;
}

int ctl_request(struct ctl_client *c, json_t *request, unsigned timeout_s,
	ctl_line_fn *progress, void *arg, json_t **reply, struct error *err)
{
	int rc = send_request(c, request), timeout_ms = -1;

	/* -EPIPE: the daemon may have refused the request before it read all of
	 * it, so its answer says why. */
	if (rc < 0 && rc != -EPIPE)
		return lost(c, rc, err);
	if (timeout_s > 0)
		timeout_ms = timeout_s > INT32_MAX / 1000
			? INT32_MAX
			: (int)timeout_s * 1000;
	return receive(c, timeout_ms, progress, arg, reply, err);
}

/* Wait until the daemon closes the connection. Drop everything that it still
 * sends. */
static int wait_hung_up(struct ctl_client *c, int timeout_ms)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	char dropped[4096];

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		int rc;

		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		rc = talk_wait_readable(
			c->talk.fd, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
		if (rc < 0)
			return rc;
		if (rc > 0 && read(c->talk.fd, dropped, sizeof(dropped)) <= 0)
			return 0;
	}
}

int ctl_wait_gone(struct ctl_client *c, int timeout_ms)
{
	CLEANUP_FD int pidfd = -1;
	int rc;

	if (c->pid > 0)
		pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pid > 0 && pidfd < 0 && errno == ESRCH)
		return 0;
	if (pidfd < 0)
		return wait_hung_up(c, timeout_ms);
	rc = talk_wait_readable(pidfd, timeout_ms);
	if (rc == 0)
		return -ETIMEDOUT;
	return rc < 0 ? rc : 0;
}
