/* SPDX-License-Identifier: MIT */
/*
 * The host of a share: one thread, which waits in one event loop for
 * connections, messages, the end of processes, and batches. share_host_impl.h
 * has the table of its states.
 *
 * While the host gathers members, those that join wait. The stream begins at
 * the lowest step that one of them wants. Each batch of the stream is in a
 * slot. The slot has a bit in `refs` for each member that must still release
 * the batch; a member that begins at a later step has no bit. A slot without
 * bits goes back to the source. Therefore the fastest member is never further
 * ahead of the slowest one than the number of slots.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/proc.h"
#include "loader/share/share_host_impl.h"

/* Time to wait for the end of the thread, which also closes the source */
#define STOP_MS (950 * TIME_LIMIT_FACTOR)
#define GIVE_UP_NS (2 * NS_PER_S)
/* Interval of checks while jobs are missing or descriptors have run out */
#define LOOK_NS (100 * NS_PER_MS)

/* -- The thread ------------------------------------------------------------ */

/*
 * After GIVE_UP_NS, stop waiting for jobs of the previous host that have not
 * joined again. A job whose process is alive and not stopped joins at once,
 * unless it has closed its loader, which the dead host could not report any
 * more. The host still waits for the job of a stopped process, unless that job
 * may be parted.
 */
static void host_give_up_waiting(struct share_host *h)
{
	if (host_has_begun(h) || !host_missing(h) ||
		clock_now_ns() < h->started_ns + GIVE_UP_NS)
		return;
	for (uint32_t i = 0; i < h->expected_n; i++)
		if (h->expected[i].pidfd >= 0 &&
			(h->expected[i].solo ||
				proc_state(h->expected[i].pid) != 'T'))
			expected_drop(h, i);
}

static bool host_is_done(const struct share_host *h)
{
	return h->config.until_empty && h->came && !h->joined &&
		!host_missing(h);
}

/* Handle an event of a member's socket. If the socket was full before, send all
 * members what is due, because some messages may have waited until this member
 * got its own. */
static void host_on_socket(struct share_host *h, uint32_t n, uint32_t events)
{
	struct host_member *m = &h->members[n];
	bool was_armed = m->armed;

	if (m->fd < 0)
		return;
	if (events & EPOLLOUT) {
		(void)host_watch(h, m->fd, EPOLLIN, EVENT_SOCKET, n);
		m->armed = false;
	}
	host_member_read(h, n);
	if (member_has_joined(m))
		host_member_flush(h, n);
	if (was_armed)
		host_tell_all(h);
}

static void host_on_event(struct loop *l, uint64_t data, uint32_t events)
{
	struct share_host *h = CONTAINER_OF(l, struct share_host, loop);
	uint32_t n = (uint32_t)data;

	switch ((enum host_event)(data >> 32)) {
	/* Accept later: a new member could get the number of one with a pending
	 * event */
	case EVENT_LISTEN:
		h->accept_due = true;
		break;
	case EVENT_STREAM:
		h->stream_armed = false;
		break;
	case EVENT_SOCKET:
		host_on_socket(h, n, events);
		break;
	case EVENT_PROCESS:
		if (h->members[n].fd >= 0)
			host_member_leave(h, n);
		break;
	case EVENT_EXPECTED:
		expected_drop(h, n);
		break;
	}
}

static void host_say_done(struct share_host *h)
{
	uint64_t one = 1;

	/* cannot fail: the counter of the eventfd is not full */
	(void)!write(h->done_fd, &one, sizeof(one));
}

/* Close the listening socket, and reset connections that were not accepted
 * yet. */
static void host_close_listener(struct share_host *h)
{
	int fd;

	/* Shut it down first, because a forked child may have a copy */
	(void)shutdown(h->listen_fd, SHUT_RDWR);
	while ((fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		wire_close(fd);
	(void)close(h->listen_fd); /* cannot lose data */
	h->listen_fd = -1;
}

static void host_close_members(struct share_host *h)
{
	host_close_listener(h);
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++) {
		host_close_fd(h, &h->members[i].fd);
		host_close_fd(h, &h->members[i].pidfd);
		expected_drop(h, i);
	}
}

static void host_close_stream(struct share_host *h)
{
	if (h->config.ops.ending)
		h->config.ops.ending(h->config.ops.arg);
	h->closed = batch_close(h->stream.source);
	/* Slots are freed only after the source was closed, because members may
	 * still read the batches that they hold. */
	for (uint32_t i = 0; h->slots && i < host_slots(h); i++)
		if (h->slots[i].lent)
			host_free_slot(h, &h->slots[i]);
	/* If a thread of the source hangs, it may still write to the memory, so
	 * the memory stays. */
	if (h->closed == 0)
		share_area_release(&h->stream.area);
}

/* End the host. Its members look for the next host at once. The next host can
 * begin only when the threads of this one have ended or are left behind. */
static void host_end(struct share_host *h)
{
	host_close_members(h);
	if (h->stream.source)
		host_close_stream(h);
	place_unlock(h->place);
}

/* Returns the time until which the host waits for an event. */
static uint64_t host_wait_until(const struct share_host *h)
{
	uint64_t wait_ns =
		h->accept_ns || (!host_has_begun(h) && host_missing(h))
		? LOOK_NS
		: host_judge_wait_ns(h);

	return wait_ns == LOOP_NEVER ? LOOP_NEVER : clock_now_ns() + wait_ns;
}

static void *host_main(void *arg)
{
	struct share_host *h = OBJECT(share_host, arg);

	for (;;) {
		loop_wait(&h->loop, host_wait_until(h), host_on_event);
		if (!loop_run_posts(&h->loop))
			break;
		host_give_up_waiting(h);
		if (h->accept_due ||
			(h->accept_ns && clock_now_ns() >= h->accept_ns))
			host_accept(h);
		h->accept_due = false;
		if (h->tell_due)
			host_tell_all(h);
		h->tell_due = false;
		host_begin(h);
		host_pump(h);
		if (host_judge(h))
			host_pump(h);
		if (host_is_done(h))
			break;
	}
	host_end(h);
	host_say_done(h);
	return NULL;
}

/* -- Creation and end ------------------------------------------------------ */

static void host_free(struct share_host *h)
{
	if (h->done_fd >= 0)
		(void)close(h->done_fd); /* cannot lose data */
	if (h->listen_fd >= 0)
		(void)close(h->listen_fd); /* cannot lose data */
	loop_release(&h->loop);
	pthread_mutex_destroy(&h->lock);
	free(h->slots);
	MAGIC_END(h);
	free(h);
}

/* Note the jobs of the previous host that are still alive; the host waits for
 * them. */
static void expect(struct share_host *h, const struct share_view *before)
{
	for (uint32_t i = 0; before && i < before->jobs_n; i++) {
		const struct share_job *job = &before->jobs[i];
		struct expected *x = &h->expected[h->expected_n];
		int fd;

		if (job->id == h->config.own || !job->pid || job->solo)
			continue;
		fd = (int)syscall(SYS_pidfd_open, (pid_t)job->pid, 0);
		if (fd >= 0 && proc_born((pid_t)job->pid) == job->born) {
			*x = (struct expected){.id = job->id,
				.pidfd = fd,
				.pid = (pid_t)job->pid,
				.solo = job->grace_s > 0};
			(void)host_watch(h, fd, EPOLLIN, EVENT_EXPECTED,
				h->expected_n++);
		} else if (fd >= 0) {
			/* Another process has the number of the job's process
			 * now */
			(void)close(fd);
		}
	}
}

static int host_open(struct share_host *h, struct error *err)
{
	int rc = loop_init(&h->loop);

	if (rc == 0) {
		h->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		rc = h->done_fd < 0 ? -errno : 0;
	}
	if (rc < 0)
		return error_set(err, rc, "cannot wait for events: %m");
	h->listen_fd = place_listen(h->place, err);
	if (h->listen_fd < 0)
		return h->listen_fd;
	rc = host_watch(h, h->listen_fd, EPOLLIN, EVENT_LISTEN, 0);
	if (rc < 0)
		return error_set(err, rc, "cannot wait for events: %m");
	expect(h, h->config.before);
	h->config.before = NULL; /* it belongs to the caller, who may free it */
	return 0;
}

/* Start the thread with all signals blocked, so that the program's own threads
 * handle them. */
static int host_start_thread(struct share_host *h, struct error *err)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	rc = -pthread_create(&h->thread, NULL, host_main, h);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

int share_host_start(struct share_host **out,
	const struct share_host_config *config, struct error *err)
{
	struct share_host *h;
	int rc = place_lock(config->place, err);

	if (rc < 0)
		return rc;
	h = calloc(1, sizeof(*h));
	if (!h) {
		place_unlock(config->place);
		return error_set(err, -ENOMEM, "no memory for a share");
	}
	MAGIC_BEGIN(h, share_host);
	h->config = *config;
	h->place = config->place;
	h->own = config->own;
	h->started_ns = clock_now_ns();
	h->done_fd = h->listen_fd = -1;
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		h->members[i].fd = h->members[i].pidfd = h->expected[i].pidfd =
			-1;
	lock_init(&h->lock, RANK_SHARE_HOST);
	rc = host_open(h, err);
	if (rc == 0)
		rc = host_start_thread(h, err);
	if (rc < 0) {
		place_unlock(config->place);
		for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
			expected_drop(h, i);
		host_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

bool share_host_end(struct share_host *host)
{
	struct pollfd p = {.fd = host->done_fd, .events = POLLIN};

	loop_stop(&host->loop);
	return poll(&p, 1, STOP_MS) == 1;
}

int share_host_stop(struct share_host *host)
{
	int rc;

	if (!share_host_end(host))
		return 1; /* the host stays, with all its memory */
	/* Does not wait, because the thread has ended */
	(void)pthread_join(host->thread, NULL);
	rc = host->closed;
	host_free(host);
	return rc;
}

int share_host_done_fd(const struct share_host *host)
{
	return host->done_fd;
}

int share_host_failed(struct share_host *host, struct error *err)
{
	LOCK_SCOPE(&host->lock);
	if (host->ended && err)
		*err = host->said;
	return host->ended;
}
