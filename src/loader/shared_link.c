/* SPDX-License-Identifier: MIT */
/*
 * What a job that shares knows of its host: the messages it has sent, the
 * releases it has to be told of, and whether a call would wait. With the lock
 * of the loader, any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/lock.h"
#include "loader/shared_impl.h"

/* -- What a call waits for ------------------------------------------------- */

void shared_poll(struct shared *sh, int fd, bool on)
{
	struct epoll_event e = {.events = EPOLLIN};

	if (fd >= 0) /* one that is not there may be taken away */
		(void)epoll_ctl(sh->poll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
			fd, &e);
}

void shared_wake(struct shared *sh)
{
	bool ready = sh->closing || sh->failed || sh->ended ||
		!list_empty(&sh->queue);
	uint64_t n = 1;

	ASSERT_HELD(&sh->lock);
	if (ready && !sh->woken)
		(void)!write(sh->wake_fd, &n, sizeof(n)); /* never full */
	else if (!ready && sh->woken)
		(void)!read(sh->wake_fd, &n, sizeof(n)); /* it is set */
	sh->woken = ready;
}

int shared_fail(struct shared *sh, int error, const char *why)
{
	sh->failed = error;
	return error_set(&sh->message, error, "%s", why);
}

/* -- The own stream -------------------------------------------------------- */

int shared_seek(struct shared *sh, uint64_t own_step, struct error *err)
{
	sh->next = own_step;
	if (schedule_seek(&sh->run.own, &sh->cursor, own_step) < 0)
		return error_set(err, -EBADMSG,
			"the state is of a step after the end of the run");
	sh->epoch = 0;
	while (schedule_epoch_end(&sh->run.own, sh->epoch) < own_step)
		sh->epoch++;
	return 0;
}

/* -- Messages of the host -------------------------------------------------- */

void shared_lose(struct shared *sh)
{
	uint64_t one = 1;

	if (sh->state != SHARED_FOLLOWING)
		return;
	sh->state = SHARED_LOST;
	shared_poll(sh, sh->link.fd, false);
	shared_poll(sh, sh->link.pidfd, false);
	(void)!write(sh->lost_fd, &one, sizeof(one)); /* never full */
}

uint32_t shared_slices(const struct shared *sh, const struct shared_whole *w)
{
	uint32_t batch = sh->run.own_config.batch;

	return (w->said.count + batch - 1) / batch;
}

static void on_batch(struct shared *sh, const struct share_batch *b)
{
	struct shared_area *area = sh->area;
	struct shared_whole *w;

	if (!area || b->slot >= area->slots || b->step != sh->expect ||
		b->count > sh->run.s.c.batch) {
		(void)shared_fail(
			sh, -EBADMSG, "the host announced a malformed batch");
		return;
	}
	w = &area->wholes[b->slot];
	if (w->used || w->release_due) {
		(void)shared_fail(sh, -EBADMSG,
			"the host announced a batch in a slot that is in use");
		return;
	}
	w->used = true;
	w->said = *b;
	w->lent = 0;
	w->left = shared_slices(sh, w);
	area->refs++;
	list_add_tail(&sh->queue, &w->node);
	sh->expect++;
}

static void on_segment(
	struct shared *sh, const struct share_segment *said, int fd)
{
	struct shared_area *area;
	int rc = fd < 0 ? -EBADMSG
			: shared_area_new(&area, sh, sh->run.slices, said, fd);

	if (rc == 0 && said->slot_bytes < slab_bytes(&sh->run.s)) {
		shared_area_unref(area);
		rc = -EBADMSG;
	}
	if (rc < 0) {
		sh->failed = error_set(&sh->message, rc,
			"cannot map the batches of share '%s': %m",
			sh->run.hello.name);
		return;
	}
	if (sh->area)
		shared_area_unref(sh->area);
	sh->area = area;
}

/* One that begins later than the change counts its epochs anew. */
static void on_change(struct shared *sh, const struct share_change *change)
{
	int rc = shared_run_change(&sh->run, change);

	if (rc == 0 && change->step < sh->next)
		rc = shared_seek(sh, sh->next, &sh->message);
	if (rc < 0)
		(void)shared_fail(sh, -EBADMSG,
			"the host's change of the echo factor is not "
			"possible here");
}

static void on_message(struct shared *sh, const struct share_msg *msg, int fd)
{
	switch (msg->type) {
	case SHARE_BATCH:
		on_batch(sh, &msg->batch);
		break;
	case SHARE_SEGMENT:
		on_segment(sh, &msg->segment, fd);
		break;
	case SHARE_VIEW:
		sh->view = msg->view;
		if (msg->view.begun || !sh->before.begun)
			sh->before = msg->view;
		sh->views++;
		break;
	case SHARE_CHANGE:
		on_change(sh, &msg->change);
		break;
	case SHARE_END:
		sh->ended = true;
		sh->end = msg->step.step;
		break;
	case SHARE_REFUSE:
		(void)shared_fail(sh, msg->refuse.error, msg->refuse.text);
		break;
	default: /* nothing that a member is told */
		(void)shared_fail(sh, -EBADMSG, "the host is confused");
		break;
	}
}

bool shared_receive(struct shared *sh, bool all)
{
	struct share_msg msg;

	while (sh->state == SHARED_FOLLOWING && !sh->failed &&
		(all || list_empty(&sh->queue))) {
		CLEANUP_FD int fd = -1;
		int rc = share_link_recv(&sh->link, &msg, &fd, 0);

		if (rc == 0)
			return true;
		if (rc == -EBADMSG || rc == -EPROTONOSUPPORT)
			(void)shared_fail(
				sh, rc, "the host sent a malformed message");
		else if (rc < 0)
			return false;
		else
			on_message(sh, &msg, fd);
	}
	return true;
}

/* -- Releasing ------------------------------------------------------------- */

static bool tell_released(struct shared *sh, struct shared_whole *w)
{
	struct share_msg msg = {
		.type = SHARE_RELEASE, .step.step = w->said.step};

	if (w->area == sh->area && sh->state == SHARED_FOLLOWING &&
		share_link_send(&sh->link, &msg) == -EAGAIN)
		return false;
	w->release_due = false;
	return true;
}

void shared_tell_released(struct shared *sh)
{
	ASSERT_HELD(&sh->lock);
	for (uint32_t i = 0; sh->area && i < sh->area->slots; i++)
		if (sh->area->wholes[i].release_due &&
			!tell_released(sh, &sh->area->wholes[i]))
			return;
}

/* -- Life ------------------------------------------------------------------ */

void shared_free(struct shared *sh)
{
	int fds[] = {sh->poll_fd, sh->wake_fd, sh->stop_fd, sh->lost_fd};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]); /* nobody waits there */
	share_link_close(&sh->link);
	hash_stream_free(sh->count.stream);
	shared_run_release(&sh->run);
	share_place_put(sh->place);
	free(sh->slots);
	pthread_mutex_destroy(&sh->lock);
	free(sh);
}

/* Takes the lock that is held. */
void shared_unref(struct shared *sh)
{
	bool last = --sh->refs == 0;

	ASSERT_HELD(&sh->lock);
	pthread_mutex_unlock(&sh->lock);
	if (last)
		shared_free(sh);
}
