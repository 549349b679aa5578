/* SPDX-License-Identifier: MIT */
/*
 * A job's end of the link to its host: handles messages, sends releases, and
 * decides whether refrain_next() would wait. Called by any thread that holds
 * the lock of the loader.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "loader/share/share_member_impl.h"

/* -- What a call waits for ------------------------------------------------- */

void shared_poll(struct shared *sh, int fd, bool on)
{
	struct epoll_event e = {.events = EPOLLIN};

	if (fd >= 0) /* a descriptor that is not there does no harm */
		(void)epoll_ctl(sh->poll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
			fd, &e);
}

/* Would refrain_next() return at once? A job that makes its own batches waits
 * for them even if the shared stream has ended. */
static bool is_ready(const struct shared *sh)
{
	bool own = sh->state == SHARED_PARTED || sh->state == SHARED_ALONE;

	return sh->course == SHARED_CLOSING || sh->failed ||
		!list_empty(&sh->lending.queue) ||
		(sh->course == SHARED_ENDED && !own);
}

void shared_unlock(struct shared *sh)
{
	uint64_t one = 1;
	bool change = sh->change_due, ready;

	ASSERT_HELD(&sh->lock);
	sh->change_due = false;
	ready = ready_set(&sh->ready, is_ready(sh));
	pthread_mutex_unlock(&sh->lock);
	if (ready)
		ready_write(&sh->ready);
	if (change)
		(void)!write(sh->follower.lost_fd, &one,
			sizeof(one)); /* cannot fail: its counter is not full */
}

int shared_fail(struct shared *sh, int error, const char *why)
{
	ASSERT_HELD(&sh->lock);
	sh->failed = error;
	return error_set(&sh->message, error, "%s", why);
}

/* -- The own stream -------------------------------------------------------- */

static bool is_last_epoch(const struct shared *sh, uint64_t epoch)
{
	uint64_t epochs = schedule_settings(&sh->run.own)->epochs;

	return epochs && epoch + 1 >= epochs;
}

int shared_seek(struct shared *sh, uint64_t own_step, struct error *err)
{
	ASSERT_HELD(&sh->lock);
	sh->lending.next = own_step;
	if (schedule_seek(&sh->run.own, &sh->lending.cursor, own_step) < 0)
		return error_set(err, -EBADMSG,
			"the state was saved at a step after the end of this "
			"run");
	sh->lending.epoch = 0;
	/* The last epoch is not reported as over, because echoes of its
	 * examples may follow. */
	while (!is_last_epoch(sh, sh->lending.epoch) &&
		schedule_epoch_end(&sh->run.own, sh->lending.epoch) < own_step)
		sh->lending.epoch++;
	return 0;
}

/* -- Messages of the host -------------------------------------------------- */

void shared_lose(struct shared *sh)
{
	ASSERT_HELD(&sh->lock);
	if (sh->link.state != LINK_UP)
		return;
	sh->link.state = LINK_LOST;
	if (sh->state == SHARED_FOLLOWING)
		sh->state = SHARED_LOST;
	shared_poll(sh, sh->link.to.fd, false);
	shared_poll(sh, sh->link.to.pidfd, false);
	sh->change_due = true;
}

void shared_hang_up(struct shared *sh)
{
	share_link_close(&sh->link.to);
	sh->link.state = LINK_NONE;
}

uint32_t shared_slices(const struct shared *sh, const struct shared_whole *w)
{
	uint32_t batch = sh->run.own_config.batch;

	ASSERT_HELD(&sh->lock);
	return (w->said.count + batch - 1) / batch;
}

/* -- Parting and coming back ----------------------------------------------- */

static bool is_parted(const struct shared_area *area)
{
	return share_area_is_parted(&area->memory, area->word);
}

bool shared_was_parted(const struct shared *sh)
{
	ASSERT_HELD(&sh->lock);
	return sh->run.hello.grace_s && sh->lending.area &&
		is_parted(sh->lending.area);
}

int shared_take(struct shared *sh, struct shared_whole *w)
{
	struct share_msg msg = {.type = SHARE_TAKE, .step.step = w->said.step};

	ASSERT_HELD(&sh->lock);
	if (!sh->run.hello.grace_s || w->taken)
		return 0;
	/* If the host is gone, TAKE is not needed, because that host can no
	 * longer part this job. */
	if (w->area == sh->lending.area && sh->link.state == LINK_UP &&
		share_link_send(&sh->link.to, &msg) == -EAGAIN)
		return -EAGAIN;
	/* The host first writes this job's word and then reads its messages. So
	 * either the host sees this TAKE, or this job sees here that it was
	 * parted. */
	atomic_thread_fence(memory_order_seq_cst);
	if (is_parted(w->area))
		return -ESTALE;
	w->taken = true;
	return 0;
}

void shared_part(struct shared *sh)
{
	ASSERT_HELD(&sh->lock);
	if (sh->state != SHARED_FOLLOWING && sh->state != SHARED_LOST)
		return;
	LIST_FOREACH_SAFE(node, next, &sh->lending.queue) {
		struct shared_whole *w =
			CONTAINER_OF(node, struct shared_whole, node);

		if (w->taken)
			continue;
		if (w->said.step < sh->link.expect)
			sh->link.expect = w->said.step;
		list_del(&w->node);
		w->used = false;
		shared_area_unref(w->area);
	}
	sh->state = SHARED_PARTED;
	sh->link.stale = sh->link.state == LINK_UP;
	sh->count.parted++;
	sh->change_due = true;
}

/* Send the position only between two shared batches, because a job can follow
 * the share again only from the beginning of a shared batch. */
void shared_tell_alone(struct shared *sh)
{
	struct share_msg msg = {.type = SHARE_ALONE};
	uint64_t step = sh->lending.next / sh->run.slices;

	ASSERT_HELD(&sh->lock);
	if (sh->link.state != LINK_UP || sh->link.stale ||
		sh->lending.next % sh->run.slices ||
		sh->link.told_alone == step + 1)
		return;
	msg.step.step = step;
	if (share_link_send(&sh->link.to, &msg) == 0)
		sh->link.told_alone = step + 1;
}

/* Follow the host again, because it has announced a batch for this job. */
static void come_back(struct shared *sh, const struct share_batch *b)
{
	sh->state = SHARED_FOLLOWING;
	sh->link.expect = b->step;
	sh->link.asked = 0;
	sh->alone.retired = sh->alone.engine;
	sh->alone.engine = NULL;
	shared_poll(sh, batch_fd(sh->alone.retired), false);
	if (shared_seek(sh, sh->lending.next, &sh->message) < 0)
		sh->failed = -EBADMSG;
	sh->change_due = true;
}

/* -- More messages --------------------------------------------------------- */

/* Is this batch for this job? A job that made its own batches follows again
 * with the first batch that the host announces to it. After the last step of
 * its run it needs no batch. */
static bool is_for_us(struct shared *sh, const struct share_batch *b)
{
	if (sh->link.stale || sh->state == SHARED_PARTED)
		return false;
	if (sh->state != SHARED_ALONE)
		return true;
	if (sh->lending.next < shared_run_steps(&sh->run)) {
		come_back(sh, b);
		return true;
	}
	if (sh->lending.area && b->slot < sh->lending.area->slots) {
		sh->lending.area->wholes[b->slot].said = *b;
		sh->lending.area->wholes[b->slot].release_due = true;
		shared_tell_released(sh);
	}
	return false;
}

static void on_batch(struct shared *sh, const struct share_batch *b)
{
	struct shared_area *area = sh->lending.area;
	struct shared_whole *w;

	if (!is_for_us(sh, b))
		return;
	if (!area || b->slot >= area->slots || b->step != sh->link.expect ||
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
	w->taken = false;
	w->said = *b;
	w->lent = 0;
	w->left = shared_slices(sh, w);
	area->refs++;
	list_add_tail(&sh->lending.queue, &w->node);
	sh->link.expect++;
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
	if (sh->lending.area)
		shared_area_unref(sh->lending.area);
	sh->lending.area = area;
}

/* Apply a change of the echo factor. If the change is before the job's next
 * step, as after a late join, the position is computed again. */
static void on_change(struct shared *sh, const struct share_change *change)
{
	int rc = shared_run_change(&sh->run, change);

	if (rc == 0 && change->step < sh->lending.next)
		rc = shared_seek(sh, sh->lending.next, &sh->message);
	if (rc < 0)
		(void)shared_fail(sh, -EBADMSG,
			"the host announced a change of the echo factor that "
			"is not possible here");
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
		sh->link.view = msg->view;
		if (msg->view.begun || !sh->link.before.begun)
			sh->link.before = msg->view;
		sh->link.views++;
		break;
	case SHARE_CHANGE:
		on_change(sh, &msg->change);
		break;
	case SHARE_ALONE:
		shared_part(sh); /* does nothing if the job already knows */
		sh->link.stale = false;
		break;
	case SHARE_END:
		if (sh->course == SHARED_GOES_ON)
			sh->course = SHARED_ENDED;
		break;
	case SHARE_REFUSE:
		(void)shared_fail(sh, msg->refuse.error, msg->refuse.text);
		break;
	default: /* the host sends other messages only to other processes */
		(void)shared_fail(sh, -EBADMSG,
			"the host sent a message of an unknown type");
		break;
	}
}

bool shared_receive(struct shared *sh, bool all)
{
	struct share_msg msg;

	ASSERT_HELD(&sh->lock);
	while (sh->link.state == LINK_UP && !sh->failed &&
		(all || list_empty(&sh->lending.queue))) {
		CLEANUP_FD int fd = -1;
		int rc = share_link_recv(&sh->link.to, &msg, &fd, 0);

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

	if (w->area == sh->lending.area && sh->link.state == LINK_UP &&
		share_link_send(&sh->link.to, &msg) == -EAGAIN)
		return false;
	w->release_due = false;
	return true;
}

void shared_tell_released(struct shared *sh)
{
	ASSERT_HELD(&sh->lock);
	for (uint32_t i = 0; sh->lending.area && i < sh->lending.area->slots;
		i++)
		if (sh->lending.area->wholes[i].release_due &&
			!tell_released(sh, &sh->lending.area->wholes[i]))
			return;
}

/* -- End ------------------------------------------------------------------- */

void shared_free(struct shared *sh)
{
	int fds[] = {sh->poll_fd, sh->follower.stop_fd, sh->follower.lost_fd};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]); /* cannot lose data */
	ready_close(&sh->ready);
	share_link_close(&sh->link.to);
	hash_stream_free(sh->count.stream);
	shared_run_release(&sh->run);
	share_place_put(sh->place);
	free(sh->lending.slots);
	pthread_cond_destroy(&sh->follower.ended);
	pthread_mutex_destroy(&sh->lock);
	MAGIC_END(sh);
	free(sh);
}

/* Drop a reference. The caller holds the lock, and this releases it. */
void shared_unref(struct shared *sh)
{
	bool last = --sh->refs == 0;

	ASSERT_HELD(&sh->lock);
	last = last && !sh->left;
	pthread_mutex_unlock(&sh->lock);
	if (last)
		shared_free(sh);
}
