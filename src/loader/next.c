/* SPDX-License-Identifier: MIT */
/*
 * Handing batches over: waiting for the next one, lending it, and the
 * descriptor that says whether one would wait. The user's threads, under the
 * loader's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "loader/loader_impl.h"
#include "mount_help/mount_help.h"

/* From so many on, or from an epoch on, it is looked at how many are damaged.
 */
#define DAMAGE_EXAMPLES 1000

static struct step *finished(const struct refrain_loader *l)
{
	struct step *st = step_of(l, l->step_first);

	return l->step_first < l->step_end && !st->left ? st : NULL;
}

static bool all_lent(const struct refrain_loader *l)
{
	return lender_all_lent(l->lender);
}

static bool at_end(const struct refrain_loader *l)
{
	return l->planner.at_end && l->step_first == l->step_end;
}

bool loader_is_ready(const struct refrain_loader *l)
{
	return l->closing || l->stopped || finished(l) || at_end(l) ||
		all_lent(l);
}

/* A batch has failed for good. */
static int stop(struct refrain_loader *l, const struct step *st)
{
	l->stopped = st->error;
	l->failure = (struct refrain_failure){
		.error = st->error,
		.stage = st->error_stage,
		.index = st->error_index,
		.step = st->number,
	};
	(void)error_set(&l->message, st->error, "step %" PRIu64 ": %s",
		st->number, st->why ? st->why : "%m");
	return l->stopped;
}

/*
 * With this batch, is more of what was served damaged than may be? Counted
 * batch by batch, so that it is the same one at any number of threads; from a
 * number on that says something.
 */
static bool is_too_damaged(
	const struct refrain_loader *l, const struct step *st)
{
	uint64_t share = l->examples / l->s.c.world;
	uint64_t least = share < DAMAGE_EXAMPLES ? share : DAMAGE_EXAMPLES;
	uint64_t fresh = l->meter.out.fresh + st->fresh;
	uint64_t damaged = l->meter.damaged_fresh + st->damaged;

	return l->s.c.policy != REFRAIN_FAIL && fresh >= least &&
		(double)damaged > l->s.c.max_damage * (double)fresh;
}

static int stop_too_damaged(struct refrain_loader *l, const struct step *st)
{
	l->stopped = -EBADMSG;
	(void)error_set(&l->message, -EBADMSG,
		"step %" PRIu64 ": %" PRIu64 " of %" PRIu64
		" examples are damaged, more than max_damage allows (%g %%); "
		"the last: %s",
		st->number, l->meter.damaged_fresh + st->damaged,
		l->meter.out.fresh + st->fresh, 100 * l->s.c.max_damage,
		l->damage.msg);
	return l->stopped;
}

/* 1, 0, -errno, or -EAGAIN: it would wait. */
static int look(struct refrain_loader *l)
{
	struct step *st = finished(l);

	if (l->closing)
		return error_set(&l->message, -ESHUTDOWN, "it is closed");
	if (l->stopped)
		return l->stopped;
	if (st && st->error)
		return stop(l, st);
	if (st)
		return is_too_damaged(l, st) ? stop_too_damaged(l, st) : 1;
	if (at_end(l))
		return 0;
	if (all_lent(l))
		return error_set(&l->message, -EBUSY,
			"all %u batches are lent: release one",
			lender_count(l->lender));
	return -EAGAIN;
}

static int timed_out(struct refrain_loader *l, uint64_t called_ns)
{
	watch_describe(l, &l->message, -ETIMEDOUT,
		l->waited_ns + clock_now_ns() - called_ns);
	return -ETIMEDOUT;
}

static int wait_for_step(
	struct refrain_loader *l, int timeout_ms, uint64_t called_ns)
{
	uint64_t until_ns = called_ns + (uint64_t)timeout_ms * NS_PER_MS;
	int rc;

	while ((rc = look(l)) == -EAGAIN) {
		if (timeout_ms < 0)
			turn_wait(&l->turn, TURN_CALLERS);
		else if (clock_now_ns() >= until_ns)
			return timed_out(l, called_ns);
		else
			(void)turn_wait_until(&l->turn, TURN_CALLERS, until_ns);
	}
	return rc;
}

static void set_shape(const struct refrain_loader *l, struct refrain_batch *b)
{
	const struct refrain_config *c = &l->s.c;
	uint64_t nhwc[] = {b->count, c->height, c->width, 3};
	uint64_t nchw[] = {b->count, 3, c->height, c->width};

	if (!l->s.image_sample) {
		b->ndim = 2;
		b->shape[0] = b->count;
		b->shape[1] = l->s.sample_bytes;
		return;
	}
	b->ndim = 4;
	memcpy(b->shape, c->layout == REFRAIN_NHWC ? nhwc : nchw,
		sizeof(b->shape));
}

static const struct refrain_batch *hand_over(
	struct refrain_loader *l, uint64_t called_ns)
{
	struct step *st = step_of(l, l->step_first);
	struct refrain_batch *b = &st->slab->batch;

	b->count = st->count;
	b->data_bytes = st->count * l->s.sample_bytes;
	b->step = st->number;
	b->epoch = st->epoch;
	b->fresh = st->fresh;
	b->ends_epoch = st->epochs_ended > 0;
	b->ended_epoch = st->epochs_ended ? st->ended_epoch : UINT64_MAX;
	set_shape(l, b);
	slab_lend(st->slab);
	st->slab = NULL;
	meter_returned(l, st, called_ns, clock_now_ns());
	l->step_first++;
	l->returned++;
	help_moved(l->help);
	return b;
}

/* The last that a call does, as the loader may be gone then. */
static void leave(struct refrain_loader *l)
{
	LOCK_SCOPE(&l->turn.lock);
	l->callers--;
	if (l->closing)
		turn_wake_closer(&l->turn);
}

int refrain_next(struct refrain_loader *l, const struct refrain_batch **out,
	int timeout_ms)
{
	uint64_t called_ns = clock_now_ns();
	int rc;

	*out = NULL;
	if (l->pid != getpid())
		return -ECHILD;
	turn_lock(&l->turn);
	l->callers++;
	l->failure.error = l->stopped ? l->failure.error : 0;
	rc = wait_for_step(l, timeout_ms, called_ns);
	/* Who waits in several calls has waited in all of them. */
	if (rc == -ETIMEDOUT)
		l->waited_ns += clock_now_ns() - called_ns;
	if (rc == 1)
		*out = hand_over(l, called_ns - l->waited_ns);
	if (rc == 1)
		l->waited_ns = 0;
	turn_unlock(&l->turn);
	leave(l);
	return rc;
}

int refrain_next_into(struct refrain_loader *l, void *data, size_t data_bytes,
	int64_t *labels, size_t label_count, int timeout_ms)
{
	const struct refrain_batch *b;
	size_t needed = l->s.c.batch * l->s.sample_bytes;
	int rc;

	if (l->pid != getpid())
		return -ECHILD;
	if (data_bytes < needed || (labels && label_count < l->s.c.batch)) {
		LOCK_SCOPE(&l->turn.lock);
		return error_set(&l->message, -ENOSPC,
			"a batch needs %zu bytes and %u labels", needed,
			l->s.c.batch);
	}
	rc = refrain_next(l, &b, timeout_ms);
	if (rc <= 0)
		return rc;
	memcpy(data, b->data, b->data_bytes);
	if (labels)
		memcpy(labels, b->labels, b->count * sizeof(*labels));
	rc = (int)b->count;
	refrain_release(b);
	return rc;
}
