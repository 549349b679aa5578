/* SPDX-License-Identifier: MIT */
/*
 * The members of a share, as its host sees them: who may join, what they say,
 * what they are told. The host's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "share/host_impl.h"

/* -- Jobs of the host before ----------------------------------------------- */

uint32_t host_missing(const struct share_host *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->expected_n; i++)
		n += h->expected[i].pidfd >= 0;
	return n;
}

void expected_drop(struct share_host *h, uint32_t n)
{
	if (h->expected[n].pidfd >= 0)
		(void)close(h->expected[n].pidfd); /* not watched any more */
	h->expected[n].pidfd = -1;
}

static void expected_came(struct share_host *h, uint64_t id)
{
	for (uint32_t i = 0; i < h->expected_n; i++)
		if (h->expected[i].id == id)
			expected_drop(h, i);
}

/* -- Coming and going ------------------------------------------------------ */

static struct host_member *host_member_free_place(
	struct share_host *h, uint32_t *n)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd < 0) {
			*n = i;
			return &h->members[i];
		}
	return NULL;
}

static void host_refuse(int fd, int error, const char *text)
{
	struct share_msg msg = {.type = SHARE_REFUSE, .refuse.error = error};

	(void)snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%s", text);
	(void)wire_send(fd, &msg, -1); /* it may be gone */
}

static void host_accept_one(struct share_host *h, int fd)
{
	struct ucred peer = {.pid = 0};
	socklen_t len = sizeof(peer);
	struct host_member *m;
	uint32_t n = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
		peer.uid != geteuid()) {
		host_refuse(fd, -EPERM, "the share is another user's");
		(void)close(fd);
		return;
	}
	m = host_member_free_place(h, &n);
	if (!m) {
		host_refuse(fd, -EUSERS, "the share has no room for more jobs");
		(void)close(fd);
		return;
	}
	*m = (struct host_member){.fd = fd, .pidfd = -1, .pid = peer.pid};
	m->born = proc_born(peer.pid);
	if (peer.pid)
		m->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (peer.pid && m->pidfd < 0 && errno == ESRCH) {
		host_member_leave(h, n); /* a child may hold its socket */
		return;
	}
	if (host_watch(h, EPOLL_CTL_ADD, fd, EPOLLIN, EVENT_SOCKET, n) < 0 ||
		(m->pidfd >= 0 &&
			host_watch(h, EPOLL_CTL_ADD, m->pidfd, EPOLLIN,
				EVENT_PROCESS, n) < 0))
		host_member_leave(h, n);
}

void host_accept(struct share_host *h)
{
	int fd;

	while ((fd = accept4(h->listen_fd, NULL, NULL,
			SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		host_accept_one(h, fd);
}

void host_member_leave(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];
	bool joined = m->joined;

	wire_close(m->fd); /* not watched any more */
	if (m->pidfd >= 0)
		(void)close(m->pidfd);
	m->fd = m->pidfd = -1;
	m->joined = false;
	h->joined -= joined;
	host_drop(h, n, NO_STEP);
	if (!joined)
		return;
	h->tell_due = true;
	host_tell_view(h);
}

/* -- Joining --------------------------------------------------------------- */

/* The run that has begun does not have its step any more, or not yet. */
static int host_member_place_late(struct share_host *h, struct host_member *m,
	const struct share_hello *hello, struct error *err)
{
	uint64_t oldest = host_oldest(h), from;

	m->next = hello->step;
	if (m->next >= oldest && !(hello->wish == SHARE_WISH_NEW && h->over))
		return 0;
	if (hello->wish != SHARE_WISH_NEW)
		return error_set(err, -ESTALE,
			"share '%s' is at step %llu, and step %llu is over",
			hello->name, (unsigned long long)oldest,
			(unsigned long long)hello->step);
	from = h->over ? NO_STEP
		       : h->config.ops.epoch_from(h->config.ops.arg, oldest);
	if (from == NO_STEP)
		return error_set(err, -ESTALE,
			"share '%s' is in its last epoch: wait until its run "
			"has ended, or take another name; share_jobs makes "
			"jobs wait for each other",
			hello->name);
	m->next = from;
	return 0;
}

/* Held batches that it needs, too. */
static void host_member_ref(struct share_host *h, uint32_t n)
{
	for (uint32_t i = 0; h->slots && i < h->stream.slots; i++)
		if (h->slots[i].lent &&
			h->slots[i].announced.step >= h->members[n].next)
			h->slots[i].refs |= UINT64_C(1) << n;
}

static int host_member_check(struct share_host *h, struct host_member *m,
	const struct share_hello *hello, struct error *err)
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
	if (h->begun)
		return host_member_place_late(h, m, hello, err);
	/* Its step may be over for the others, who would have to wait. */
	if (h->config.begun && hello->wish != SHARE_WISH_AGAIN)
		return error_set(err, -EAGAIN,
			"share '%s' has a new host, which waits for the jobs "
			"that the last one had",
			hello->name);
	m->next = hello->step;
	return 0;
}

static void host_member_join(
	struct share_host *h, uint32_t n, const struct share_hello *hello)
{
	struct host_member *m = &h->members[n];
	struct share_msg msg = {.type = SHARE_WELCOME};
	struct error err = {""};
	int rc = m->joined ? -EBADMSG : host_member_check(h, m, hello, &err);

	if (rc < 0) {
		host_refuse(m->fd, rc, err.msg);
		host_member_leave(h, n);
		return;
	}
	m->id = hello->id;
	m->batch = hello->batch;
	m->changes = hello->changes;
	memcpy(m->label, hello->label, sizeof(m->label));
	m->joined = true;
	h->joined++;
	h->had_members = true;
	h->own_joined = h->own_joined || m->id == h->config.own;
	if (hello->jobs > h->config.jobs && !h->begun)
		h->config.jobs = hello->jobs;
	expected_came(h, m->id);
	host_member_ref(h, n);
	msg.welcome = (struct share_welcome){.step = m->next,
		.generation = h->config.generation,
		.begun = h->begun};
	if (wire_send(m->fd, &msg, -1) < 0) {
		host_member_leave(h, n);
		return;
	}
	host_tell_view(h);
}

/* -- What it says ---------------------------------------------------------- */

static void host_member_is_bad(struct share_host *h, uint32_t n)
{
	h->malformed++;
	host_refuse(h->members[n].fd, -EBADMSG, "a message is malformed");
	host_member_leave(h, n);
}

static void host_member_released(
	struct share_host *h, uint32_t n, uint64_t step)
{
	uint64_t bit = UINT64_C(1) << n;
	struct host_slot *s = host_slot_of(h, step);

	if (!s || !(s->refs & bit) || step >= h->members[n].next) {
		host_member_is_bad(h, n);
		return;
	}
	s->refs &= ~bit;
	if (s->refs)
		return;
	s->lent->release(s->lent);
	s->lent = NULL;
	h->held--;
}

static void host_member_view(struct share_host *h, uint32_t n);

static void host_member_said(
	struct share_host *h, uint32_t n, const struct share_msg *msg)
{
	struct host_member *m = &h->members[n];

	if (msg->type == SHARE_HELLO) {
		host_member_join(h, n, &msg->hello);
	} else if (msg->type == SHARE_ASK) {
		host_member_view(h, n);
	} else if (m->joined && msg->type == SHARE_RELEASE) {
		host_member_released(h, n, msg->step.step);
	} else if (m->joined && msg->type == SHARE_WAIT) {
		/* It may have been told meanwhile. */
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
			(void)close(fd); /* nobody is to send one */
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

/* -- What it is told ------------------------------------------------------- */

static void view_job(
	const struct share_host *h, uint32_t n, struct share_job *out)
{
	const struct host_member *m = &h->members[n];

	*out = (struct share_job){
		.id = m->id,
		.born = m->born,
		.next = m->next,
		.oldest = NO_STEP,
		.pid = (uint32_t)m->pid,
		.waiting = m->waiting_ns != 0,
		.batch = m->batch,
	};
	memcpy(out->label, m->label, sizeof(out->label));
	for (uint32_t i = 0; h->slots && i < h->stream.slots; i++) {
		const struct host_slot *s = &h->slots[i];

		if (!s->lent || !(s->refs >> n & 1))
			continue;
		out->held++;
		if (s->announced.step < out->oldest)
			out->oldest = s->announced.step;
	}
}

static void view_fill(struct share_host *h, struct share_view *v)
{
	*v = (struct share_view){
		.step = h->end,
		.generation = h->config.generation,
		.malformed = h->malformed,
		.host_pid = (uint32_t)getpid(),
		.begun = h->begun,
		.wanted = h->config.jobs,
		.slots = h->stream.slots,
		.slots_held = h->held,
		.batch = h->config.batch,
		.missing = host_missing(h),
	};
	(void)snprintf(
		v->name, sizeof(v->name), "%s", share_place_name(h->place));
	if (h->begun && !h->over && h->stream_armed) {
		struct error why = {""};

		h->stream.source->message(h->stream.source, &why);
		(void)snprintf(v->text, sizeof(v->text), "%.*s",
			SHARE_TEXT_MAX - 1, why.msg);
	}
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd >= 0 && h->members[i].joined)
			view_job(h, i, &v->jobs[v->jobs_n++]);
}

static void host_member_arm(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];

	if (!m->armed)
		(void)host_watch(h, EPOLL_CTL_MOD, m->fd, EPOLLIN | EPOLLOUT,
			EVENT_SOCKET, n);
	m->armed = true;
}

/* False: later, or it is gone, which an event will say. */
static bool host_member_send(
	struct share_host *h, uint32_t n, const struct share_msg *msg, int fd)
{
	int rc = wire_send(h->members[n].fd, msg, fd);

	if (rc == -EAGAIN)
		host_member_arm(h, n);
	return rc == 0;
}

static void host_member_view(struct share_host *h, uint32_t n)
{
	struct share_msg msg = {.type = SHARE_VIEW};

	view_fill(h, &msg.view);
	h->members[n].view_due = !host_member_send(h, n, &msg, -1);
}

void host_tell_view(struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd >= 0 && h->members[i].joined)
			host_member_view(h, i);
}

static bool host_member_tell_segment(struct share_host *h, uint32_t n)
{
	struct share_msg msg = {
		.type = SHARE_SEGMENT,
		.segment = {.bytes = h->stream.area.bytes,
			.slot_bytes = h->stream.slot_bytes,
			.slots = h->stream.slots},
	};

	if (!h->members[n].segment_sent)
		h->members[n].segment_sent =
			host_member_send(h, n, &msg, h->stream.area.fd);
	return h->members[n].segment_sent;
}

static bool host_member_tell_changes(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];

	while (m->changes < h->changes) {
		struct share_msg msg = {.type = SHARE_CHANGE};

		if (h->config.ops.change(
			    h->config.ops.arg, m->changes, &msg.change) <= 0 ||
			!host_member_send(h, n, &msg, -1))
			return false;
		m->changes++;
	}
	return true;
}

/* No batch goes to anyone before all know how the stream goes on: a member that
 * becomes the host must know as much as any other. */
static bool host_all_know_changes(const struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd >= 0 && h->members[i].joined &&
			h->members[i].changes < h->changes)
			return false;
	return true;
}

static void host_member_tell_batches(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];

	while (m->next < h->end) {
		struct host_slot *s = host_slot_of(h, m->next);
		struct share_msg msg = {.type = SHARE_BATCH};

		if (!s) /* before it joined */
			return;
		msg.batch = s->announced;
		if (!host_member_send(h, n, &msg, -1))
			return;
		m->next++;
		m->waiting_ns = 0;
	}
}

static void host_member_tell_end(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];
	struct share_msg msg = {.type = SHARE_END, .step.step = h->end};

	if (m->end_sent || !h->over || (m->next < h->end && !h->failure))
		return;
	if (h->failure) {
		msg.type = SHARE_REFUSE;
		msg.refuse = (struct share_refuse){.error = h->failure};
		(void)snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%.*s",
			SHARE_TEXT_MAX - 1, h->why.msg);
	}
	m->end_sent = host_member_send(h, n, &msg, -1);
}

void host_member_flush(struct share_host *h, uint32_t n)
{
	if (h->members[n].view_due)
		host_member_view(h, n);
	if (h->begun && h->slots && host_member_tell_segment(h, n) &&
		host_member_tell_changes(h, n) && host_all_know_changes(h))
		host_member_tell_batches(h, n);
	if (h->begun)
		host_member_tell_end(h, n);
}

static void host_flush_all(struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (h->members[i].fd >= 0 && h->members[i].joined)
			host_member_flush(h, i);
}

/* Batches wait until the last of them knows of a change. */
void host_tell_all(struct share_host *h)
{
	bool knew = host_all_know_changes(h);

	host_flush_all(h);
	if (!knew)
		host_flush_all(h);
}
