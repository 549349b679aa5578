/* SPDX-License-Identifier: MIT */
/* The batches of a loader with a share, as a batch source. The thread of the
 * caller reads the host's messages itself, so that a message wakes the trainer
 * directly. Any thread. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "loader/share/share_member_impl.h"

/* -- Lending --------------------------------------------------------------- */

/* Move the beginnings of the arrays to index `first`. */
static void advance_arrays(struct refrain_batch *b, uint32_t first)
{
	b->data = (const char *)b->data + first * b->sample_bytes;
	b->labels += first;
	b->indices += first;
	b->substitutes += first;
	b->echoes += first;
	b->seeds += first;
	b->status += first;
	b->crops += first;
}

/* Check that a slice contains the examples that the schedule of this job names.
 */
static int check_slice(const struct shared *sh, const struct refrain_batch *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (b->indices[i] != sh->lending.slots[i].index ||
			b->echoes[i] != sh->lending.slots[i].echo ||
			b->seeds[i] != sh->lending.slots[i].augment_seed)
			return -EBADMSG;
	return 0;
}

/* Set which examples of a slice are fresh, and which epochs end in it. */
static void describe_slice(struct shared *sh, struct refrain_batch *b)
{
	uint64_t first_epoch = sh->lending.epoch;

	b->fresh = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		if (sh->lending.slots[i].echo)
			continue;
		b->fresh++;
		sh->lending.epoch = sh->lending.slots[i].epoch;
	}
	b->epoch = sh->lending.epoch;
	b->ends_epoch = 0;
	b->ended_epoch = UINT64_MAX;
	for (uint64_t e = first_epoch; b->fresh && e <= sh->lending.epoch;
		e++) {
		if (schedule_epoch_end(&sh->run.own, e) != sh->lending.next + 1)
			continue;
		b->ends_epoch = 1;
		b->ended_epoch = e;
		sh->count.epochs++;
	}
}

static int fill_slice(
	struct shared *sh, struct shared_whole *w, struct shared_slice *p)
{
	struct refrain_batch *b = &p->lent_batch.batch;
	uint32_t first = w->lent * sh->run.own_config.batch;
	uint32_t n = schedule_next(
		&sh->run.own, &sh->lending.cursor, sh->lending.slots);
	const char *at;

	at = share_area_base(&w->area->memory) +
		w->said.slot * w->area->slot_bytes;
	slab_describe(&sh->run.s, at, b);
	advance_arrays(b, first);
	b->count = w->said.count - first;
	if (b->count > sh->run.own_config.batch)
		b->count = sh->run.own_config.batch;
	if (n != b->count || check_slice(sh, b) < 0)
		return shared_fail(sh, -EBADMSG,
			"the host sent a batch that does not belong to this "
			"job's stream");
	b->step = sh->lending.next;
	slab_shape(&sh->run.own_s, &p->lent_batch);
	slab_fields(&sh->run.s, at, first, shared_area_offsets(w->area, p),
		&p->lent_batch);
	describe_slice(sh, b);
	return 0;
}

static int lend_slice(struct shared *sh, struct lent_batch **out)
{
	struct shared_whole *w =
		LIST_FIRST(&sh->lending.queue, struct shared_whole, node);
	struct shared_slice *p =
		&w->area->slice[w->said.slot * sh->run.slices + w->lent];
	int rc = fill_slice(sh, w, p);

	if (rc < 0)
		return rc;
	p->lent = true;
	sh->lending.lent++;
	sh->refs++;
	sh->lending.next++;
	if (++w->lent == shared_slices(sh, w))
		list_del(&w->node);
	*out = &p->lent_batch;
	return 1;
}

/* Skip slices before this job's next step. There are some if the job has
 * restored a state that was saved within a shared batch, or if it was alone and
 * is ahead of the others. Returns true if no slice of the batch is left. */
static bool pass_slices(struct shared *sh, struct shared_whole *w)
{
	while (w->lent < shared_slices(sh, w) &&
		w->said.step * sh->run.slices + w->lent < sh->lending.next) {
		w->lent++;
		w->left--;
	}
	return w->lent == shared_slices(sh, w);
}

static void pass_over(struct shared *sh)
{
	LIST_FOREACH_SAFE(node, next, &sh->lending.queue) {
		struct shared_whole *w =
			CONTAINER_OF(node, struct shared_whole, node);

		if (!pass_slices(sh, w))
			return;
		list_del(&w->node);
		w->used = false;
		w->release_due = true;
		shared_tell_released(sh);
		shared_area_unref(w->area);
	}
}

/* -- The next batch -------------------------------------------------------- */

static void ask_for_batch(struct shared *sh)
{
	struct share_msg msg = {
		.type = SHARE_WAIT, .step.step = sh->link.expect};

	if (sh->state != SHARED_FOLLOWING ||
		sh->link.asked == sh->link.expect + 1)
		return;
	if (share_link_send(&sh->link.to, &msg) == 0)
		sh->link.asked = sh->link.expect + 1;
}

/* Does this job hold all slots? Then no batch can come before it releases
 * one. */
static bool holds_all(const struct shared *sh)
{
	for (uint32_t i = 0; sh->lending.area && i < sh->lending.area->slots;
		i++)
		if (!sh->lending.area->wholes[i].used)
			return false;
	return sh->lending.area != NULL;
}

static int look_alone(struct shared *sh, struct lent_batch **out)
{
	int rc = batch_next(sh->alone.engine, out, 0);

	if (rc == 1) {
		sh->lending.next++;
		sh->count.epochs += (*out)->batch.ends_epoch;
		shared_tell_alone(sh);
	}
	if (rc == -ETIMEDOUT)
		return -EAGAIN;
	if (rc < 0)
		batch_message(sh->alone.engine, &sh->message);
	return rc;
}

/* Lend a slice of the first batch in the queue. Returns -EAGAIN if this job was
 * parted. */
static int lend_taken(struct shared *sh, struct lent_batch **out)
{
	struct shared_whole *w =
		LIST_FIRST(&sh->lending.queue, struct shared_whole, node);
	int rc = shared_take(sh, w);

	if (rc == -ESTALE) {
		shared_part(sh);
		return -EAGAIN;
	}
	return rc < 0 ? rc : lend_slice(sh, out);
}

/* Get the next batch without waiting. Returns 1 with a batch, 0 at the end of
 * the stream, -EAGAIN if the call would have to wait, or another -errno. */
static int look_shared(struct shared *sh, struct lent_batch **out)
{
	if (sh->course == SHARED_CLOSING)
		return error_set(
			&sh->message, -ESHUTDOWN, "the loader is closed");
	shared_tell_released(sh);
	if (!shared_receive(sh, false))
		shared_lose(sh);
	pass_over(sh);
	if (!sh->failed && !list_empty(&sh->lending.queue))
		return lend_taken(sh, out);
	if (sh->failed)
		return sh->failed;
	if (sh->state == SHARED_PARTED)
		return -EAGAIN;
	if (sh->state == SHARED_ALONE)
		return look_alone(sh, out);
	if (sh->course == SHARED_ENDED)
		return 0;
	if (holds_all(sh))
		return error_set(&sh->message, -EBUSY,
			"all batches are lent, %u in this job; release one",
			sh->lending.lent);
	return -EAGAIN;
}

static void wait_shared(struct shared *sh, int ms)
{
	struct pollfd p = {.fd = sh->poll_fd, .events = POLLIN};

	ask_for_batch(sh);
	shared_unlock(sh);
	/* The result does not matter, because the caller checks again */
	(void)poll(&p, 1, ms);
	pthread_mutex_lock(&sh->lock);
}

static int shared_left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1
				 : 0;
}

static void count_shared(
	struct shared *sh, const struct refrain_batch *b, uint64_t called_ns)
{
	struct shared_count *c = &sh->count;
	uint64_t now_ns = clock_now_ns();

	for (uint32_t i = 0; i < b->count; i++) {
		uint64_t of[3] = {b->indices[i], b->echoes[i], b->seeds[i]};

		hash_stream_add(c->stream, of, sizeof(of));
	}
	c->steps++;
	c->fresh += b->fresh;
	c->served += b->count;
	c->bytes += b->data_bytes;
	for (uint32_t i = 0; i < b->count; i++)
		c->substituted += b->status[i] != 0;
	if (c->last_ns) {
		c->trainer_ns += called_ns - c->last_ns;
		c->wait_ns += now_ns - called_ns;
	} else {
		c->first_ns = now_ns;
	}
	c->last_ns = now_ns;
}

static int shared_next_batch(
	struct shared *sh, struct lent_batch **out, int timeout_ms)
{
	uint64_t called_ns = clock_now_ns();
	uint64_t until_ns = called_ns + (uint64_t)timeout_ms * NS_PER_MS;
	int rc;

	while ((rc = look_shared(sh, out)) == -EAGAIN) {
		int ms = timeout_ms < 0 ? -1 : shared_left_ms(until_ns);

		if (timeout_ms >= 0 && ms == 0) {
			ask_for_batch(sh);
			rc = shared_timed_out(sh,
				sh->waited_ns + clock_now_ns() - called_ns,
				timeout_ms > 0);
			break;
		}
		wait_shared(sh, ms);
	}
	if (rc == -ETIMEDOUT)
		sh->waited_ns += clock_now_ns() - called_ns;
	if (rc == 1)
		count_shared(sh, &(*out)->batch, called_ns - sh->waited_ns);
	if (rc == 1)
		sh->waited_ns = sh->link.viewed_ns = 0;
	return rc;
}

static int shared_source_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	struct shared *sh = shared_of(source);
	int rc;

	pthread_mutex_lock(&sh->lock);
	atomic_fetch_add_explicit(&sh->callers, 1, memory_order_relaxed);
	rc = shared_next_batch(sh, out, timeout_ms);
	shared_unlock(sh);
	atomic_fetch_sub_explicit(&sh->callers, 1, memory_order_release);
	return rc;
}

static int shared_source_fd(struct batch_source *source)
{
	return shared_of(source)->poll_fd;
}

static void shared_source_message(
	struct batch_source *source, struct error *out)
{
	struct shared *sh = shared_of(source);

	LOCK_SCOPE(&sh->lock);
	*out = sh->message;
}

/* -- Close ----------------------------------------------------------------- */

/* Remove slices that were not lent from the queue, and release batches of which
 * no slice is in use. */
static void drop_queue(struct shared *sh)
{
	LIST_FOREACH_SAFE(node, next, &sh->lending.queue) {
		struct shared_whole *w =
			CONTAINER_OF(node, struct shared_whole, node);

		list_del(&w->node);
		w->left -= shared_slices(sh, w) - w->lent;
		if (w->left > 0)
			continue;
		w->used = false;
		shared_area_unref(w->area);
	}
}

/* Leave the host. It will reuse the slots, so lent slices are first copied to
 * private memory. If there is not enough memory, the connection stays open, so
 * that the host does not reuse slots of this process. */
static void leave_host(struct shared *sh)
{
	drop_queue(sh);
	if (!sh->lending.area ||
		shared_area_keep(sh->lending.area, sh->run.slices) == 0)
		shared_hang_up(sh);
	if (sh->lending.area)
		shared_area_unref(sh->lending.area);
	sh->lending.area = NULL;
}

static int shared_source_close(struct batch_source *source)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engines[2];
	int rc, hung = 0;

	pthread_mutex_lock(&sh->lock);
	sh->course = SHARED_CLOSING;
	shared_unlock(sh);
	rc = shared_leave(sh);
	if (rc != 0) /* if a thread hangs, it may still use the loader */
		return rc;
	pthread_mutex_lock(&sh->lock);
	leave_host(sh);
	pthread_mutex_unlock(&sh->lock);
	/* Stop the host of this process only now, so that the other jobs first
	 * see that this job has left. */
	rc = sh->host ? shared_host_stop(sh->host) : 0;
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&sh->lock);
	engines[0] = sh->alone.retired;
	engines[1] = sh->alone.engine;
	hung = sh->left;
	shared_unref(sh);
	for (int i = 0; i < 2; i++)
		if (engines[i])
			hung += batch_close(engines[i]);
	return hung;
}

static const struct loader_ops shared_ops = {
	.next = shared_source_next,
	.fd = shared_source_fd,
	.close = shared_source_close,
	.message = shared_source_message,
	.settings = shared_settings,
	.dataset = shared_dataset,
	.steps_left = shared_steps_left,
	.step = shared_step,
	.epoch_end = shared_epoch_end,
	.fresh = shared_fresh,
	.failure = shared_failure,
	.stats = shared_stats,
	.save = shared_save,
	.save_at = shared_save_at,
	.echo_log = shared_echo_log,
	.memory = shared_memory,
};

static int shared_new(struct shared **out, struct error *err)
{
	struct shared *sh = calloc(1, sizeof(*sh));
	int rc;

	if (!sh)
		return error_set(err, -ENOMEM, "no memory for a loader");
	MAGIC_BEGIN(sh, shared);
	lock_init(&sh->lock, RANK_SHARED);
	cond_init(&sh->follower.ended);
	sh->source.ops = &shared_ops;
	sh->pid = getpid();
	sh->refs = 1;
	sh->link.to = (struct share_link){-1, -1, 0};
	list_init(&sh->lending.queue);
	sh->count.stream = hash_stream_new();
	sh->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = ready_open(&sh->ready);
	sh->follower.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sh->follower.lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*out = sh;
	if (!sh->count.stream)
		return error_set(err, -ENOMEM, "no memory for a loader");
	if (rc < 0 || sh->poll_fd < 0 || sh->follower.stop_fd < 0 ||
		sh->follower.lost_fd < 0)
		return error_set(err, rc < 0 ? rc : -errno,
			"cannot wait for events: %m");
	shared_poll(sh, ready_fd(&sh->ready), true);
	return 0;
}

int shared_open(struct batch_source **out, const struct refrain_config *c,
	struct error *err)
{
	char name[SHARE_FULL_NAME_MAX];
	struct shared *sh = NULL;
	int rc = share_name_check(c->share, err);

	if (rc == 0)
		rc = shared_new(&sh, err);
	if (rc == 0)
		rc = shared_run_init(&sh->run, c, err);
	if (rc == 0) {
		sh->lending.slots =
			calloc(c->batch, sizeof(*sh->lending.slots));
		if (!sh->lending.slots)
			rc = error_set(err, -ENOMEM, "no memory for a loader");
	}
	if (rc == 0) {
		shared_run_name(c, name);
		rc = share_place_get(&sh->place, name, err);
	}
	if (rc == 0)
		rc = shared_join(sh, err);
	if (rc < 0 && sh && !sh->left)
		shared_free(sh);
	*out = rc < 0 ? NULL : &sh->source;
	return rc;
}
