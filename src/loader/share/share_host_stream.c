/* SPDX-License-Identifier: MIT */
/*
 * The stream of a share's host: when it begins, and when a batch is taken from
 * its source. Runs on the host's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "loader/share/share_host_impl.h"

static uint32_t host_substituted(const struct refrain_batch *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->count; i++)
		n += b->status[i] != 0;
	return n;
}

/* Put a batch that the source has lent into its slot. */
static void host_take(struct share_host *h, struct lent_batch *lent)
{
	const struct refrain_batch *b = batch_public(lent);
	size_t at =
		(size_t)((const char *)b->data - share_area_base(host_area(h)));
	uint32_t n = (uint32_t)(at / h->stream.slot_bytes);
	struct host_slot *s = &h->slots[n];

	s->lent = lent;
	s->refs = host_wanted_by(h, b->step);
	s->taken = 0;
	s->begins_epoch = h->ended_epoch;
	h->ended_epoch = b->ends_epoch;
	s->announced = (struct share_batch){
		.step = b->step,
		.epoch = b->epoch,
		.ended_epoch = b->ended_epoch,
		.slot = n,
		.count = b->count,
		.fresh = b->fresh,
		.ends_epoch = b->ends_epoch,
		.substituted = host_substituted(b),
	};
	h->held++;
	h->end = b->step + 1;
	if (!s->refs)
		host_free_slot(h, s);
}

static int host_ask(
	struct share_host *h, struct lent_batch **lent, uint64_t since_ns)
{
	struct batch_source *source = h->stream.source;

	if (h->config.ops.next)
		return h->config.ops.next(h->config.ops.arg, lent, since_ns);
	return batch_next(source, lent, 0);
}

static void host_count_changes(struct share_host *h)
{
	struct share_change change;

	/* Count all changes, including those before the oldest known one. */
	while (h->config.ops.change &&
		h->config.ops.change(h->config.ops.arg, h->changes, &change) !=
			0)
		h->changes++;
}

/* Have the loop report when the source has another batch. */
static void host_arm_stream(struct share_host *h)
{
	struct batch_source *source = h->stream.source;

	if (!h->stream_armed)
		(void)host_watch(h, batch_fd(source), EPOLLIN | EPOLLONESHOT,
			EVENT_STREAM, 0);
	h->stream_armed = true;
}

static uint32_t host_followers(const struct share_host *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		n += host_follows(h, i);
	return n;
}

/* Should the host take another batch? Only if a member needs it and a slot is
 * free. */
static bool host_wants_batch(const struct share_host *h, uint64_t since_ns)
{
	return h->state == HOST_RUNS && host_followers(h) > 0 &&
		h->held < host_slots(h) && (since_ns || !h->config.on_demand);
}

/* Take all batches that are ready. */
void host_pump(struct share_host *h)
{
	struct batch_source *source = h->stream.source;
	struct lent_batch *lent;
	uint64_t since_ns;

	while (since_ns = host_demand_ns(h), host_wants_batch(h, since_ns)) {
		struct error why = {""};
		int rc = host_ask(h, &lent, since_ns);

		if (rc == -ETIMEDOUT) {
			host_arm_stream(h);
			return;
		}
		/* All slabs are lent, although a slot is free: one of them is
		 * just being released */
		if (rc == -EBUSY)
			return;
		if (rc == 1) {
			host_count_changes(h);
			host_take(h, lent);
		} else if (rc == 0) {
			h->state = HOST_OVER;
		} else {
			batch_message(source, &why);
			host_fail(h, rc, &why);
		}
		host_tell_all(h);
	}
}

/* -- Begin ----------------------------------------------------------------- */

/* Have all jobs joined that the host waits for? */
static bool host_is_complete(const struct share_host *h)
{
	if (host_has_begun(h) || !host_followers(h) || host_missing(h) ||
		h->own)
		return false;
	return h->config.begun || h->joined >= h->config.jobs;
}

static uint64_t host_least(const struct share_host *h)
{
	uint64_t least = NO_STEP;

	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (host_follows(h, i) && h->members[i].next < least)
			least = h->members[i].next;
	return least;
}

static int host_open_stream(struct share_host *h, struct error *err)
{
	int rc = h->config.ops.begin(
		h->config.ops.arg, host_least(h), &h->stream, err);

	if (rc < 0)
		return rc;
	h->first = h->end = host_least(h);
	h->slots = calloc(host_slots(h), sizeof(*h->slots));
	if (!h->slots)
		return error_set(err, -ENOMEM, "no memory for a share");
	rc = host_watch(h, batch_fd(h->stream.source), 0, EVENT_STREAM, 0);
	return rc < 0 ? error_set(err, rc, "cannot wait for batches: %m") : 0;
}

/* Refuse or part a job whose saved state is so far ahead of the others that it
 * would wait long for them. */
static void host_refuse_ahead(struct share_host *h, uint32_t n)
{
	char text[SHARE_TEXT_MAX];

	(void)snprintf(text, sizeof(text), HOST_AHEAD,
		share_place_name(h->place), (unsigned long long)h->first,
		(unsigned long long)h->members[n].next, host_slots(h));
	host_refuse(h->members[n].fd, -ESTALE, text);
	host_member_leave(h, n);
}

static void host_part_ahead(struct share_host *h)
{
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++) {
		const struct host_member *m = &h->members[i];

		if (!host_follows(h, i) || m->wish != SHARE_WISH_STEP ||
			m->next <= h->first + host_slots(h))
			continue;
		if (m->grace_s)
			host_part(h, i);
		else
			host_refuse_ahead(h, i);
	}
}

void host_begin(struct share_host *h)
{
	struct error err = {""};
	int rc;

	if (!host_is_complete(h))
		return;
	rc = host_open_stream(h, &err);
	h->state = HOST_RUNS;
	if (rc < 0)
		host_fail(h, rc, &err);
	h->judged_ns = clock_now_ns();
	if (rc == 0)
		host_part_ahead(h);
	host_tell_view(h);
	host_tell_all(h);
}
