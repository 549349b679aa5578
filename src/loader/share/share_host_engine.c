/* SPDX-License-Identifier: MIT */
/* Hosts a share in this process: an ordinary engine, whose slabs are in the
 * memory of the share. The host's thread calls most functions; other threads
 * start and stop the host, and get its statistics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "loader/share/share_host_engine_impl.h"

static int shared_check(
	void *arg, const struct share_hello *hello, struct error *err)
{
	struct shared_host *h = OBJECT(shared_host, arg);
	struct shared_run *run = &h->copy;
	int rc = shared_run_check(run, hello, err);

	if (rc < 0)
		return rc;
	/* The previous host was able to send the last change only to this job,
	 * so take the change from the job. */
	if (hello->changes == run->changes + 1 && !h->engine &&
		shared_run_change(run, &hello->change) == 0)
		return 0;
	if (hello->changes > run->changes ||
		(hello->changes < run->logged_from))
		return error_set(err, -ESTALE,
			"this job's state has %u changes of the echo factor, "
			"but share '%s' has %llu; restore a state of the same "
			"run, or choose another name",
			hello->changes, hello->name,
			(unsigned long long)run->changes);
	return 0;
}

static int shared_begin(
	void *arg, uint64_t step, struct share_stream *out, struct error *err)
{
	struct shared_host *h = OBJECT(shared_host, arg);
	struct slab_place place;
	struct batch_source *engine;
	int rc = engine_place(&h->copy.config, &out->slots, &place.bytes, err);

	if (rc < 0)
		return rc;
	rc = share_area_new(&out->area, place.bytes);
	if (rc < 0)
		return error_set(err, rc,
			"cannot allocate %zu bytes for the batches of a share: "
			"%m",
			place.bytes);
	place.base = share_area_base(&out->area);
	h->begun_changes = h->copy.changes;
	rc = shared_run_open(&h->copy, false, step, &place, &engine, err);
	if (rc < 0) {
		share_area_release(&out->area);
		return rc;
	}
	out->source = engine;
	out->slot_bytes = place.bytes / out->slots;
	LOCK_SCOPE(&h->lock);
	h->engine = engine;
	return 0;
}

static uint64_t shared_epoch_from(void *arg, uint64_t step)
{
	struct shared_host *h = OBJECT(shared_host, arg);
	const struct schedule *s = &h->copy.schedule;
	uint64_t steps = schedule_steps(s);

	for (uint64_t e = 0; e < h->copy.s.c.epochs; e++) {
		uint64_t from = schedule_epoch_end_all(s, e);

		if (from >= steps)
			break;
		if (from >= step && e + 1 < h->copy.s.c.epochs)
			return from;
	}
	return UINT64_MAX;
}

static int shared_next(void *arg, struct lent_batch **out, uint64_t since_ns)
{
	struct shared_host *h = OBJECT(shared_host, arg);
	int rc;

	if (since_ns && since_ns < h->taken_ns)
		since_ns = h->taken_ns;
	rc = engine_next(h->engine, out, 0, since_ns);
	if (rc == 1)
		h->taken_ns = clock_now_ns();
	return rc;
}

/* -- Changes of the echo factor -------------------------------------------- */

/* Append new changes from the engine's log to that of the run. The engine's log
 * begins at the state with which the engine was opened. */
static void read_log(struct shared_host *h)
{
	struct shared_run *run = &h->copy;
	CLEANUP_FREE char *text = NULL;
	size_t room = 4096;
	uint64_t n = h->begun_changes;
	int rc = -ENOSPC;

	while (rc == -ENOSPC && room < (size_t)64 << 20) {
		free(text);
		room *= 2;
		text = malloc(room);
		rc = text ? h->engine->ops->echo_log(h->engine, text, room)
			  : -ENOMEM;
	}
	if (rc < 0)
		return;
	for (const char *at = text; at && *at; n++) {
		struct share_change change;
		unsigned long long step;

		if (sscanf(at, "%llu %u/%u", &step, &change.p, &change.q) != 3)
			return;
		change.step = step;
		if (n >= run->changes)
			(void)shared_run_change(run, &change);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
}

static int shared_change(void *arg, uint32_t n, struct share_change *out)
{
	struct shared_host *h = OBJECT(shared_host, arg);
	struct shared_run *run = &h->copy;

	if (!run->s.changes)
		return 0;
	if (n >= run->changes && h->engine)
		read_log(h);
	if (n >= run->changes)
		return 0;
	if (n < run->logged_from)
		return -ESTALE;
	*out = run->log[n - run->logged_from];
	return 1;
}

static void shared_ending(void *arg)
{
	struct shared_host *h = OBJECT(shared_host, arg);

	LOCK_SCOPE(&h->lock);
	h->engine->ops->stats(h->engine, &h->last);
	h->engine = NULL;
}

/* -- Start and end --------------------------------------------------------- */

/* Copy the run, because the host's thread needs schedules of its own. */
static int copy_run(struct shared_host *h, const struct shared_run *run)
{
	uint32_t n = (uint32_t)(run->changes - run->logged_from);

	h->copy = *run;
	h->copy.log = NULL;
	h->copy.log_room = 0;
	if (!n)
		return 0;
	h->copy.log = malloc(n * sizeof(*run->log));
	if (!h->copy.log)
		return -ENOMEM;
	memcpy(h->copy.log, run->log, n * sizeof(*run->log));
	h->copy.log_room = n;
	return 0;
}

static void shared_host_free(struct shared_host *h)
{
	free(h->copy.log);
	pthread_mutex_destroy(&h->lock);
	MAGIC_END(h);
	free(h);
}

int shared_host_start(struct shared_host **out, const struct shared_run *run,
	struct share_host_config *config, struct error *err)
{
	struct shared_host *h = calloc(1, sizeof(*h));
	int rc = h ? copy_run(h, run) : -ENOMEM;

	if (rc < 0) {
		free(h);
		return error_set(err, rc, "no memory for a share");
	}
	MAGIC_BEGIN(h, shared_host);
	lock_init(&h->lock, RANK_SHARED_HOST);
	h->last = (struct refrain_stats){
		.bottleneck = "", .suggested_point = "", .echo_reason = ""};
	config->ops = (struct share_host_ops){shared_check, shared_begin,
		shared_epoch_from, shared_next, shared_change, shared_ending,
		h};
	config->batch = run->config.batch;
	config->on_demand = run->s.changes;
	rc = share_host_start(&h->host, config, err);
	if (rc < 0) {
		shared_host_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

int shared_host_stop(struct shared_host *host)
{
	int rc = share_host_stop(host->host);

	/* If a thread hangs, it may still use the host, so the host stays. */
	if (rc == 0)
		shared_host_free(host);
	return rc;
}

void shared_host_stats(struct shared_host *host, struct refrain_stats *out)
{
	LOCK_SCOPE(&host->lock);
	*out = host->last;
	if (host->engine)
		host->engine->ops->stats(host->engine, out);
}
