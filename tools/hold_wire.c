/* SPDX-License-Identifier: MIT */
/* The messages of refrain-hold; see hold_wire.h. One thread. */
#include "hold_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/send_fds.h"

/* The first descriptor number that a program inherits. hold_pass() moves the
 * descriptors to numbers from SPARE_FD on first, and then down to this range.
 * So no descriptor overwrites another one. */
#define FIRST_FD 3
#define SPARE_FD (FIRST_FD + HOLD_FDS_MAX)

#define JOIN "X_REFRAIN_JOIN=1"
#define ANSWER_MS 10000

/* Receive one message. Returns false if there is none. */
static bool hold_hear(int socket, struct said *said)
{
	struct got_fds got;
	ssize_t n = fds_receive(
		socket, said->text, sizeof(said->text) - 1, &got, MSG_DONTWAIT);

	said->fd = -1;
	if (n < 0)
		return false;
	said->text[got.cut ? 0 : n] = '\0';
	fds_close(&got, 1);
	if (got.n > 0)
		said->fd = got.fd[0];
	if (got.uid != geteuid() && got.uid != 0)
		said->text[0] = '\0';
	said->pid = got.pid;
	return true;
}

void hold_hear_queued(
	int socket, void (*fn)(void *arg, struct said *said), void *arg)
{
	struct said said;

	for (unsigned i = 0; i < HOLD_HEAR_MAX && hold_hear(socket, &said); i++)
		fn(arg, &said);
}

const char *hold_value(
	const char *text, const char *name, char *buf, size_t size)
{
	size_t len = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t n = strcspn(text, "\n");

		if (n <= len || memcmp(text, name, len) != 0 ||
			text[len] != '=' || n - len - 1 >= size)
			continue;
		memcpy(buf, text + len + 1, n - len - 1);
		buf[n - len - 1] = '\0';
		return buf;
	}
	return NULL;
}

pid_t hold_peer(int link)
{
	struct ucred who = {.pid = -1};
	socklen_t len = sizeof(who);

	(void)getsockopt(link, SOL_SOCKET, SO_PEERCRED, &who, &len);
	return who.pid;
}

bool hold_closed(int link)
{
	struct pollfd p = {.fd = link};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

/* Send the descriptors. The text of the message has the name of each, with a
 * colon between names. */
bool hold_answer(int link, const struct stored *stored, unsigned n)
{
	char names[HOLD_FDS_MAX * (HOLD_NAME_BYTES + 1) + 1] = ":";
	int fds[HOLD_FDS_MAX];

	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(names);

		(void)snprintf(names + len, sizeof(names) - len, "%s%s",
			i > 0 ? ":" : "", stored[i].name);
		fds[i] = stored[i].fd;
	}
	return fds_send(link, names, strlen(names), fds, n, 0) >= 0;
}

/* -- The daemon's side ----------------------------------------------------- */

static int cannot_join(const char *path, const char *why)
{
	(void)fprintf(stderr,
		"refrain: hold: cannot join the holder at '%s': "
		"%s\n",
		path, why);
	return -1;
}

/* Does a process of this user or of root listen at the path? A process of
 * another user could pass descriptors of its own. */
static bool is_holder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		(st.st_uid == geteuid() || st.st_uid == 0);
}

static bool ask_to_join(const char *path, int end)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool sent;

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	sent = fd >= 0 &&
		connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
		fds_send(fd, JOIN, strlen(JOIN), &end, 1, 0) >= 0;
	if (fd >= 0)
		(void)close(fd);
	return sent;
}

/* Receive the descriptors from the holder. Returns false if the holder refuses
 * because another daemon has a link, or if no holder answers. */
static bool hear_answer(int link, struct stored *stored, unsigned *n)
{
	char names[HOLD_FDS_MAX * (HOLD_NAME_BYTES + 1) + 2], *at = names + 1;
	struct pollfd p = {.fd = link, .events = POLLIN};
	struct got_fds got;
	ssize_t got_bytes;

	if (poll(&p, 1, ANSWER_MS) != 1)
		return false;
	got_bytes =
		fds_receive(link, names, sizeof(names) - 1, &got, MSG_DONTWAIT);
	if (got_bytes <= 0)
		return false;
	names[got.cut ? 0 : got_bytes] = '\0';
	*n = got.n;
	for (unsigned i = 0; i < *n; i++) {
		size_t len = strcspn(at, ":");

		(void)snprintf(
			stored[i].name, HOLD_NAME_BYTES, "%.*s", (int)len, at);
		stored[i].fd = got.fd[i];
		at += len;
		at += *at == ':';
	}
	return true;
}

int hold_join(const char *path, struct stored *stored, unsigned *n)
{
	int end[2], link;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return cannot_join(path, strerror(ENAMETOOLONG));
	if (!is_holder(path))
		return cannot_join(path,
			"it is not a socket of this user or root; start "
			"'refrain hold --socket' first");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) < 0)
		return cannot_join(path, strerror(errno));
	if (!ask_to_join(path, end[1]))
		return cannot_join(path, strerror(errno));
	(void)close(end[1]);
	if (!hear_answer(end[0], stored, n))
		return cannot_join(path,
			"another daemon serves its mount, or it does not "
			"answer");
	link = fcntl(end[0], F_DUPFD, SPARE_FD);
	(void)close(end[0]);
	return link;
}

/* -- The next program ------------------------------------------------------ */

void hold_setenv(const char *name, long n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%ld", n);
	/* if this fails, the daemon runs without a holder */
	(void)setenv(name, text, 1);
}

void hold_pass(const struct stored *stored, unsigned n)
{
	char names[HOLD_FDS_MAX * (HOLD_NAME_BYTES + 1)] = "";
	int fds[HOLD_FDS_MAX];

	for (unsigned i = 0; i < n; i++)
		fds[i] = fcntl(stored[i].fd, F_DUPFD_CLOEXEC, SPARE_FD);
	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(names);

		(void)dup2(fds[i], FIRST_FD + (int)i);
		(void)snprintf(names + len, sizeof(names) - len, "%s%s",
			i > 0 ? ":" : "", stored[i].name);
	}
	if (n == 0)
		return;
	hold_setenv("LISTEN_FDS", n);
	hold_setenv("LISTEN_PID", getpid());
	(void)setenv("LISTEN_FDNAMES", names, 1);
}
