/* SPDX-License-Identifier: MIT */
/*
 * Sends the messages of a share's host to its members. Runs on the host's
 * thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/proc.h"
#include "loader/share/share_host_impl.h"

uint32_t host_missing(const struct share_host *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->expected_n; i++)
		n += h->expected[i].pidfd >= 0;
	return n;
}

void host_refuse(int fd, int error, const char *text)
{
	struct share_msg msg = {.type = SHARE_REFUSE, .refuse.error = error};

	(void)snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%s", text);
	/* fails if the other process has ended */
	(void)wire_send(fd, &msg, -1);
}

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
		.solo = member_is_alone(m),
		.grace_s = m->grace_s,
	};
	memcpy(out->label, m->label, sizeof(out->label));
	for (uint32_t i = 0; h->slots && i < host_slots(h); i++) {
		const struct host_slot *s = &h->slots[i];

		if (!s->lent || !(s->refs >> n & 1))
			continue;
		out->held++;
		if (s->announced.step < out->oldest)
			out->oldest = s->announced.step;
	}
}

/* Add the jobs of the previous host for which this host still waits. */
static void view_missing(const struct share_host *h, struct share_view *v)
{
	size_t used = 0;

	for (uint32_t i = 0; i < h->expected_n; i++)
		if (h->expected[i].pidfd >= 0 && used + 32 < sizeof(v->text))
			used += (size_t)snprintf(v->text + used,
				sizeof(v->text) - used, "%sprocess %d%s",
				used ? ", " : "", (int)h->expected[i].pid,
				proc_state(h->expected[i].pid) == 'T'
					? " (stopped)"
					: "");
}

static void view_fill(struct share_host *h, struct share_view *v)
{
	*v = (struct share_view){
		.step = h->end,
		.generation = h->config.generation,
		.malformed = h->malformed,
		.host_pid = (uint32_t)getpid(),
		.begun = host_has_begun(h),
		.wanted = h->config.jobs,
		.slots = host_slots(h),
		.slots_held = h->held,
		.batch = h->config.batch,
		.missing = host_missing(h),
	};
	(void)snprintf(
		v->name, sizeof(v->name), "%s", share_place_name(h->place));
	if (!host_has_begun(h))
		view_missing(h, v);
	if (h->state == HOST_RUNS && h->stream_armed) {
		struct error why = {""};

		batch_message(h->stream.source, &why);
		(void)snprintf(v->text, sizeof(v->text), "%.*s",
			SHARE_TEXT_MAX - 1, why.msg);
	}
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (member_has_joined(&h->members[i]))
			view_job(h, i, &v->jobs[v->jobs_n++]);
}

static void host_member_arm(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];

	if (!m->armed)
		(void)host_watch(h, m->fd, EPOLLIN | EPOLLOUT, EVENT_SOCKET, n);
	m->armed = true;
}

/* Send a message to a member. Returns false if it must be sent again later, or
 * if the member is gone, which an event will report. */
static bool host_member_send(
	struct share_host *h, uint32_t n, const struct share_msg *msg, int fd)
{
	int rc = wire_send(h->members[n].fd, msg, fd);

	if (rc == -EAGAIN)
		host_member_arm(h, n);
	return rc == 0;
}

void host_member_view(struct share_host *h, uint32_t n)
{
	struct share_msg msg = {.type = SHARE_VIEW};

	view_fill(h, &msg.view);
	h->members[n].view_due = !host_member_send(h, n, &msg, -1);
}

void host_tell_view(struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (member_has_joined(&h->members[i]))
			host_member_view(h, i);
}

static bool host_member_tell_segment(struct share_host *h, uint32_t n)
{
	struct share_msg msg = {
		.type = SHARE_SEGMENT,
		.segment = {.bytes = host_area(h)->bytes,
			.slot_bytes = h->stream.slot_bytes,
			.slots = host_slots(h)},
	};

	if (h->members[n].told == TOLD_NOTHING &&
		host_member_send(h, n, &msg, host_area(h)->fd))
		h->members[n].told = TOLD_SEGMENT;
	return h->members[n].told != TOLD_NOTHING;
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

/* Do all members know all changes of the echo factor? Until they do, no member
 * gets a batch, because any member may become the next host and must know all
 * changes. */
static bool host_all_know_changes(const struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (host_follows(h, i) && h->members[i].changes < h->changes)
			return false;
	return true;
}

static void host_member_tell_batches(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];

	while (m->next < h->end) {
		struct host_slot *s = host_slot_of(h, m->next);
		struct share_msg msg = {.type = SHARE_BATCH};

		if (!s) /* the batch was made before the member joined */
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

	if (m->told == TOLD_END || h->state != HOST_OVER ||
		(m->next < h->end && !h->failure))
		return;
	if (h->failure) {
		msg.type = SHARE_REFUSE;
		msg.refuse = (struct share_refuse){.error = h->failure};
		(void)snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%.*s",
			SHARE_TEXT_MAX - 1, h->why.msg);
	}
	if (host_member_send(h, n, &msg, -1))
		m->told = TOLD_END;
}

static void host_member_tell_alone(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];
	struct share_msg msg = {.type = SHARE_ALONE, .step.step = m->next};

	if (m->state == MEMBER_PARTING && host_member_send(h, n, &msg, -1))
		m->state = MEMBER_ALONE;
}

void host_member_flush(struct share_host *h, uint32_t n)
{
	if (h->members[n].view_due)
		host_member_view(h, n);
	host_member_tell_alone(h, n);
	if (member_is_alone(&h->members[n])) {
		if (host_has_begun(h) && h->slots)
			/* if this fails, it is tried again later */
			(void)host_member_tell_segment(h, n);
		return;
	}
	if (host_has_begun(h) && h->slots && host_member_tell_segment(h, n) &&
		host_member_tell_changes(h, n) && host_all_know_changes(h))
		host_member_tell_batches(h, n);
	if (host_has_begun(h))
		host_member_tell_end(h, n);
}

static void host_flush_all(struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (member_has_joined(&h->members[i]))
			host_member_flush(h, i);
}

/* Send all messages that are due. Batches are sent only if all members know all
 * changes of the echo factor. So if this sends the last missing change, it must
 * go through the members a second time. */
void host_tell_all(struct share_host *h)
{
	bool knew = host_all_know_changes(h);

	host_flush_all(h);
	if (!knew)
		host_flush_all(h);
}
