/* SPDX-License-Identifier: MIT */
/*
 * The members of a host: lets them join, and handles their messages. Runs on
 * the host's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/proc.h"
#include "common/control/unix_socket.h"
#include "loader/share/share_host_impl.h"

#define ACCEPT_NS (100 * NS_PER_MS)

void host_close_fd(struct share_host *h, int *fd)
{
	if (*fd < 0)
		return;
	loop_unwatch(&h->loop, *fd);
	wire_close(*fd);
	*fd = -1;
}

/* -- Jobs of the previous host --------------------------------------------- */

void expected_drop(struct share_host *h, uint32_t n)
{
	host_close_fd(h, &h->expected[n].pidfd);
}

static void expected_came(struct share_host *h, uint64_t id)
{
	for (uint32_t i = 0; i < h->expected_n; i++)
		if (h->expected[i].id == id)
			expected_drop(h, i);
}

/* -- Connections ----------------------------------------------------------- */

/* Find a free element of `members`. If there is none, close a connection that
 * has not joined yet, and use its element. A job joins immediately after it has
 * connected, and if its connection is closed it tries again. */
static struct host_member *host_member_find_free(
	struct share_host *h, uint32_t *n)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd < 0) {
			*n = i;
			return &h->members[i];
		}
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (!member_has_joined(&h->members[i])) {
			host_member_leave(h, i);
			*n = i;
			return &h->members[i];
		}
	return NULL;
}

static void host_accept_one(struct share_host *h, int fd)
{
	struct ucred peer;
	struct host_member *m;
	uint32_t n = 0;

	if (!socket_peer(fd, &peer) || peer.uid != geteuid()) {
		host_refuse(fd, -EPERM, "the share belongs to another user");
		(void)close(fd);
		return;
	}
	m = host_member_find_free(h, &n);
	if (!m) {
		host_refuse(fd, -EUSERS, "the share has no room for more jobs");
		(void)close(fd);
		return;
	}
	*m = (struct host_member){
		.state = MEMBER_NEW, .fd = fd, .pidfd = -1, .pid = peer.pid};
	m->born = proc_born(peer.pid);
	if (peer.pid)
		m->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (peer.pid && m->pidfd < 0 && errno == ESRCH) {
		/* The process has ended, but a child of it still has the socket
		 * open */
		host_member_leave(h, n);
		return;
	}
	if (host_watch(h, fd, EPOLLIN, EVENT_SOCKET, n) < 0 ||
		(m->pidfd >= 0 &&
			host_watch(h, m->pidfd, EPOLLIN, EVENT_PROCESS, n) < 0))
		host_member_leave(h, n);
}

static void host_listen_again(struct share_host *h, uint64_t at_ns)
{
	h->accept_ns = at_ns;
	(void)host_watch(h, h->listen_fd, at_ns ? 0 : EPOLLIN, EVENT_LISTEN, 0);
}

/* Accept connections. If descriptors run out, the listening socket is ignored
 * for a while, because it would stay readable. */
void host_accept(struct share_host *h)
{
	int fd;

	while ((fd = accept4(h->listen_fd, NULL, NULL,
			SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		host_accept_one(h, fd);
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		errno == ENOMEM)
		host_listen_again(h, clock_now_ns() + ACCEPT_NS);
	else if (h->accept_ns)
		host_listen_again(h, 0);
}

void host_member_leave(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];
	bool joined = member_has_joined(m);

	host_close_fd(h, &m->fd);
	host_close_fd(h, &m->pidfd);
	m->state = MEMBER_FREE;
	h->joined -= joined;
	h->solos -= joined && m->grace_s;
	host_drop(h, n, true);
	if (!joined)
		return;
	h->tell_due = true;
	host_tell_view(h);
}

/* -- Joining --------------------------------------------------------------- */

/* Check a job that wants to join after the stream has begun. The step at which
 * it wants to join may be over already, or too far ahead. */
static int host_member_check_late(struct share_host *h, struct host_member *m,
	const struct share_hello *hello, enum member_state *joins,
	struct error *err)
{
	uint64_t oldest = host_oldest(h), from;

	m->next = hello->step;
	if (hello->wish == SHARE_WISH_STEP &&
		m->next > h->end + host_slots(h)) {
		if (!hello->grace_s)
			return error_set(err, -ESTALE, HOST_AHEAD, hello->name,
				(unsigned long long)h->end,
				(unsigned long long)m->next, host_slots(h));
		*joins = MEMBER_PARTING;
	}
	if (m->next >= oldest &&
		!(hello->wish == SHARE_WISH_NEW && h->state == HOST_OVER))
		return 0;
	if (hello->wish != SHARE_WISH_NEW)
		return error_set(err, -ESTALE,
			"share '%s' is at step %llu, already past step %llu",
			hello->name, (unsigned long long)oldest,
			(unsigned long long)hello->step);
	from = h->state == HOST_OVER
		? NO_STEP
		: h->config.ops.epoch_from(h->config.ops.arg, oldest);
	if (from == NO_STEP)
		return error_set(err, -ESTALE,
			"share '%s' is in its last epoch: wait until its run "
			"has ended, or choose another name; share_jobs makes "
			"jobs wait for each other",
			hello->name);
	m->next = from;
	return 0;
}

/* Check a job that wants to join. Sets the job's next step, and the state in
 * which it joins. */
static int host_member_check(struct share_host *h, struct host_member *m,
	const struct share_hello *hello, enum member_state *joins,
	struct error *err)
{
	int rc;

	if (h->failure)
		return error_set(err, h->failure, "%s", h->why.msg);
	if (strcmp(hello->name, share_place_name(h->place)) != 0)
		return error_set(err, -EBADMSG, "this is share '%s'",
			share_place_name(h->place));
	rc = h->config.ops.check(h->config.ops.arg, hello, err);
	if (rc < 0)
		return rc;
	m->next = hello->step;
	*joins =
		hello->wish == SHARE_WISH_ALONE ? MEMBER_ALONE : MEMBER_FOLLOWS;
	if (*joins == MEMBER_ALONE)
		return 0;
	if (host_has_begun(h))
		return host_member_check_late(h, m, hello, joins, err);
	/* Let jobs of the previous host join first. This job might want to
	 * begin at a step that they have already passed, and they would have to
	 * wait for it. */
	if (h->config.begun && hello->wish != SHARE_WISH_AGAIN)
		return error_set(err, -EAGAIN,
			"share '%s' has a new host, which waits for the jobs "
			"of the previous host",
			hello->name);
	return 0;
}

static void host_member_join(
	struct share_host *h, uint32_t n, const struct share_hello *hello)
{
	struct host_member *m = &h->members[n];
	struct share_msg msg = {.type = SHARE_WELCOME};
	struct error err = {""};
	enum member_state joins = MEMBER_FOLLOWS;
	int rc = member_has_joined(m)
		? -EBADMSG
		: host_member_check(h, m, hello, &joins, &err);

	if (rc < 0) {
		host_refuse(m->fd, rc, err.msg);
		host_member_leave(h, n);
		return;
	}
	m->id = hello->id;
	m->batch = hello->batch;
	m->changes = hello->changes;
	m->wish = hello->wish;
	m->grace_s = hello->grace_s;
	memcpy(m->label, hello->label, sizeof(m->label));
	m->state = joins;
	m->released = hello->wish == SHARE_WISH_AGAIN || member_is_alone(m);
	h->joined++;
	h->solos += m->grace_s > 0;
	h->came++;
	if (m->id == h->own)
		h->own = 0;
	if (hello->jobs > h->config.jobs && !host_has_begun(h))
		h->config.jobs = hello->jobs;
	expected_came(h, m->id);
	if (host_has_begun(h) && h->slots)
		share_area_set_parted(host_area(h), n, member_is_alone(m));
	if (!member_is_alone(m))
		host_member_ref(h, n);
	msg.welcome = (struct share_welcome){.step = m->next,
		.generation = h->config.generation,
		.begun = host_has_begun(h),
		.place = n,
		.changes = h->changes};
	if (wire_send(m->fd, &msg, -1) < 0) {
		host_member_leave(h, n);
		return;
	}
	host_tell_view(h);
}

/* -- Messages of members --------------------------------------------------- */

static void host_member_is_bad(struct share_host *h, uint32_t n)
{
	h->malformed++;
	host_refuse(h->members[n].fd, -EBADMSG, "a message is malformed");
	host_member_leave(h, n);
}

static void host_member_took(struct share_host *h, uint32_t n, uint64_t step)
{
	uint64_t bit = UINT64_C(1) << n;
	struct host_slot *s = host_slot_of(h, step);

	/* A TAKE may arrive after the member was parted. This is no error: the
	 * member reads its word before it uses the batch. */
	if (s && (s->refs & bit) && step < h->members[n].next)
		s->taken |= bit;
	else if (!member_is_alone(&h->members[n]))
		host_member_is_bad(h, n);
}

/* Handle the position of a member that makes its own batches; `step` is its
 * next step. If the share is near that step, the member follows the share
 * again. */
static void host_member_return(struct share_host *h, uint32_t n, uint64_t step)
{
	struct host_member *m = &h->members[n];

	if (m->state != MEMBER_ALONE || h->state != HOST_RUNS ||
		step < host_oldest(h) || step > h->end + host_slots(h))
		return;
	m->state = MEMBER_FOLLOWS;
	m->next = step;
	m->waiting_ns = m->slow_ns = m->paused_ns = 0;
	share_area_set_parted(host_area(h), n, false);
	host_member_ref(h, n);
	host_tell_view(h);
}

static void host_member_released(
	struct share_host *h, uint32_t n, uint64_t step)
{
	uint64_t bit = UINT64_C(1) << n;
	struct host_slot *s = host_slot_of(h, step);

	if (!s || !(s->refs & bit) || step >= h->members[n].next) {
		if (!member_is_alone(&h->members[n]))
			host_member_is_bad(h, n);
		return;
	}
	h->members[n].released = true;
	s->refs &= ~bit;
	s->taken &= ~bit;
	if (!s->refs)
		host_free_slot(h, s);
}

static void host_member_said(
	struct share_host *h, uint32_t n, const struct share_msg *msg)
{
	struct host_member *m = &h->members[n];

	if (msg->type == SHARE_HELLO) {
		host_member_join(h, n, &msg->hello);
	} else if (msg->type == SHARE_ASK) {
		host_member_view(h, n);
	} else if (member_has_joined(m) && msg->type == SHARE_RELEASE) {
		host_member_released(h, n, msg->step.step);
	} else if (member_has_joined(m) && msg->type == SHARE_TAKE) {
		host_member_took(h, n, msg->step.step);
	} else if (member_has_joined(m) && msg->type == SHARE_ALONE) {
		host_member_return(h, n, msg->step.step);
	} else if (member_has_joined(m) && msg->type == SHARE_WAIT) {
		/* If the member has got the batch while this message was on its
		 * way, it does not wait any more. */
		if (msg->step.step == m->next && !m->waiting_ns)
			m->waiting_ns = clock_now_ns();
	} else {
		host_member_is_bad(h, n);
	}
}

void host_member_read(struct share_host *h, uint32_t n)
{
	struct share_msg msg;
	int fd, rc;

	while (h->members[n].fd >= 0) {
		rc = wire_recv(h->members[n].fd, &msg, &fd);
		if (fd >= 0)
			(void)close(fd); /* members must not send descriptors */
		if (rc == -EAGAIN)
			return;
		if (rc == -EPIPE)
			host_member_leave(h, n);
		else if (rc < 0 || fd >= 0)
			host_member_is_bad(h, n);
		else
			host_member_said(h, n, &msg);
	}
}
