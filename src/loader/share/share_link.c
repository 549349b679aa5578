/* SPDX-License-Identifier: MIT */
/*
 * A member's end of its connection to the host. It also finds the job that the
 * others wait for in the host's view. No threads.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/control/unix_socket.h"
#include "loader/share/share_place_impl.h"
#include "loader/share/share_wire_impl.h"

static int link_wait(const struct share_link *link, int timeout_ms)
{
	struct pollfd p[2] = {{.fd = link->fd, .events = POLLIN},
		{.fd = link->pidfd, .events = POLLIN}};
	int n = poll(p, 2, timeout_ms);

	return n < 0 && errno != EINTR ? -errno : n;
}

/* Has the process of this pidfd ended? */
static bool is_dead(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* Get a pidfd of the host, and check that the host is alive. If it is dead, a
 * child that it has forked may still have the listening socket, but nobody
 * accepts connections any more. */
static int open_pidfd(struct share_link *link, pid_t pid)
{
	/* The pid is 0 if the host is in another pid namespace. Then only the
	 * end of the connection shows that the host is gone. */
	link->pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (pid && link->pidfd < 0 && errno == ESRCH)
		return -ECONNREFUSED;
	if (!is_dead(link->pidfd))
		return 0;
	/* this was the pidfd of a process that has ended */
	(void)close(link->pidfd);
	link->pidfd = -1;
	return -ECONNREFUSED;
}

int share_link_open(
	struct share_link *link, struct share_place *place, struct error *err)
{
	struct ucred peer;
	CLEANUP_FD int fd = place_connect(place);
	int rc;

	if (fd < 0)
		return fd;
	if (socket_check_peer(fd, geteuid()) < 0)
		return error_set(err, -EPERM,
			"share '%s' is hosted by another user",
			share_place_name(place));
	link->host_pid = socket_peer(fd, &peer) ? peer.pid : 0;
	rc = open_pidfd(link, link->host_pid);
	if (rc < 0)
		return rc;
	link->fd = steal_fd(&fd);
	return 0;
}

void share_link_close(struct share_link *link)
{
	if (link->fd >= 0)
		wire_close(link->fd);
	if (link->pidfd >= 0)
		(void)close(link->pidfd);
	link->fd = link->pidfd = -1;
}

int share_link_send(struct share_link *link, const struct share_msg *msg)
{
	return link->fd < 0 ? -EPIPE : wire_send(link->fd, msg, -1);
}

int share_link_recv(
	struct share_link *link, struct share_msg *msg, int *fd, int timeout_ms)
{
	uint64_t until_ns = clock_now_ns() +
		(uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;

	for (;;) {
		/* First find out whether the host is dead, then read the socket
		 * a last time. A forked child may keep the socket open. */
		bool dead = is_dead(link->pidfd);
		int rc = wire_recv(link->fd, msg, fd);
		uint64_t now_ns;

		if (rc != -EAGAIN)
			return rc;
		if (dead)
			return -EPIPE;
		now_ns = timeout_ms ? clock_now_ns() : until_ns;
		if (now_ns >= until_ns)
			return 0;
		rc = link_wait(
			link, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
		if (rc < 0)
			return rc;
	}
}

int share_link_join(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err)
{
	struct share_msg msg = {.type = SHARE_HELLO, .hello = *hello};
	int rc = share_link_send(link, &msg);

	if (rc < 0)
		return rc;
	return share_link_await(link, hello, timeout_ms, out, err);
}

/* Wait for the answer to HELLO. Views may come before it. */
int share_link_await(struct share_link *link, const struct share_hello *hello,
	int timeout_ms, struct share_welcome *out, struct error *err)
{
	struct share_msg msg;
	CLEANUP_FD int fd = -1;
	int rc;

	do
		rc = share_link_recv(link, &msg, &fd, timeout_ms);
	while (rc == 1 && msg.type == SHARE_VIEW);
	if (rc == 0)
		return error_set(err, -EAGAIN,
			"the host of share '%s' (process %d) does not answer",
			hello->name, (int)link->host_pid);
	if (rc == -EPROTONOSUPPORT)
		return error_set(err, rc,
			"the host of share '%s' (process %d) runs another "
			"version of refrain",
			hello->name, (int)link->host_pid);
	if (rc < 0)
		return rc;
	if (msg.type == SHARE_REFUSE)
		return error_set(err, msg.refuse.error, "%s", msg.refuse.text);
	if (msg.type != SHARE_WELCOME)
		return -EBADMSG;
	*out = msg.welcome;
	return 0;
}

const struct share_job *share_view_slowest(const struct share_view *v)
{
	const struct share_job *found = NULL;

	if (!v->begun || v->slots_held < v->slots)
		return NULL;
	for (uint32_t i = 0; i < v->jobs_n; i++)
		if (v->jobs[i].held && !v->jobs[i].waiting &&
			!v->jobs[i].solo &&
			(!found || v->jobs[i].oldest < found->oldest))
			found = &v->jobs[i];
	return found;
}
