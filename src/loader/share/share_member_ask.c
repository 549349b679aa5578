/* SPDX-License-Identifier: MIT */
/*
 * Answers queries about a loader with a share: positions, states, statistics,
 * and the job that the others wait for. Called by the user's threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/proc.h"
#include "loader/share/share_member_impl.h"

#define ASK_MS 50
#define VIEW_NS (500 * NS_PER_MS) /* a view is used for this time */

const struct settings *shared_settings(const struct batch_source *source)
{
	return &shared_of(source)->run.own_s;
}

const struct dataset *shared_dataset(const struct batch_source *source)
{
	return shared_of(source)->run.dataset;
}

uint64_t shared_steps_left(struct batch_source *source)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	if (engine && sh->lending.next < sh->alone.from)
		return engine->ops->steps_left(engine) + sh->alone.from -
			sh->lending.next;
	if (engine)
		return engine->ops->steps_left(engine);
	return shared_run_steps(&sh->run) - sh->lending.next;
}

uint64_t shared_step(struct batch_source *source)
{
	struct shared *sh = shared_of(source);

	LOCK_SCOPE(&sh->lock);
	return sh->lending.next;
}

uint64_t shared_epoch_end(struct batch_source *source, uint64_t epoch)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;
	uint64_t end;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	end = schedule_epoch_end_all(&sh->run.own, epoch);
	return engine && end > sh->alone.from
		? engine->ops->epoch_end(engine, epoch)
		: end;
}

int shared_fresh(struct batch_source *source, uint64_t f, uint64_t *index)
{
	struct shared *sh = shared_of(source);
	struct schedule_slot slot;
	uint64_t need_by;
	int rc;

	LOCK_SCOPE(&sh->lock);
	rc = schedule_fresh(&sh->run.own, f, &slot, &need_by);
	if (rc == 0)
		*index = slot.index;
	return rc;
}

void shared_failure(struct batch_source *source, struct refrain_failure *out)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;

	*out = (struct refrain_failure){.size = sizeof(*out)};
	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	if (engine)
		engine->ops->failure(engine, out);
}

/* -- States ---------------------------------------------------------------- */

static int save_shared(struct shared *sh, uint64_t step, void *buf, size_t size)
{
	struct state_of of = {
		.s = &sh->run.own_s,
		.fingerprint = dataset_fingerprint(sh->run.dataset),
		.changes = sh->run.changes,
		.step = sh->lending.next,
	};

	return state_save(&of, &sh->run.own, step, buf, size, &sh->message);
}

int shared_save(struct batch_source *source, void *buf, size_t size)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	if (engine && sh->lending.next >= sh->alone.from)
		return engine->ops->save(engine, buf, size);
	return save_shared(sh, sh->lending.next, buf, size);
}

int shared_save_at(
	struct batch_source *source, uint64_t step, void *buf, size_t size)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	if (engine && step >= sh->alone.from)
		return engine->ops->save_at(engine, step, buf, size);
	return save_shared(sh, step, buf, size);
}

int shared_echo_log(struct batch_source *source, char *buf, size_t size)
{
	struct shared *sh = shared_of(source);
	const struct shared_run *run = &sh->run;
	struct batch_source *engine;
	size_t used = 0;
	int alone = 0;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	if (!size)
		return -ENOSPC;
	*buf = '\0';
	for (uint64_t i = 0; i < run->changes - run->logged_from; i++) {
		const struct share_change *c = &run->log[i];
		int n = snprintf(buf + used, size - used, "%" PRIu64 " %u/%u\n",
			c->step, c->p, c->q);

		if ((size_t)n >= size - used)
			return -ENOSPC;
		used += (size_t)n;
	}
	if (engine) /* the log of the engine continues the share's log */
		alone = engine->ops->echo_log(engine, buf + used, size - used);
	return alone < 0 ? alone : (int)used + alone;
}

static int memory_of(struct shared *sh, const void **base, size_t *bytes)
{
	(void)shared_receive(sh, false);
	if (!sh->lending.area)
		return error_set(&sh->message, -ENODATA,
			"share '%s' has not started; call this after the first "
			"batch",
			sh->run.hello.name);
	*base = share_area_base(&sh->lending.area->memory);
	*bytes = sh->lending.area->memory.bytes;
	return 0;
}

int shared_memory(struct batch_source *source, const void **base, size_t *bytes)
{
	struct shared *sh = shared_of(source);
	int rc;

	pthread_mutex_lock(&sh->lock);
	rc = memory_of(sh, base, bytes);
	shared_unlock(sh);
	return rc;
}

/* -- Statistics ------------------------------------------------------------ */

static double ratio_of(double a, double b)
{
	return b > 0 ? a / b : 0;
}

void shared_add_work(struct refrain_stats *to, const struct refrain_stats *from)
{
	to->decodes += from->decodes;
	to->decoded_bytes += from->decoded_bytes;
	to->files_read += from->files_read;
	to->bytes_read += from->bytes_read;
	to->rows_cut += from->rows_cut;
}

static void add_consumed(struct shared *sh, struct refrain_stats *out)
{
	const struct shared_count *c = &sh->count;
	struct refrain_stage *trainer = &out->stages[REFRAIN_STAGE_TRAINER];
	struct schedule_echo e =
		schedule_echo_at(&sh->run.own, sh->lending.next);
	double steps = (double)(c->steps > 1 ? c->steps - 1 : 0);

	out->epochs = c->epochs;
	out->steps = c->steps;
	out->fresh = c->fresh;
	out->served = c->served;
	out->substituted = c->substituted;
	*trainer = (struct refrain_stage){.items = c->steps,
		.bytes = c->bytes,
		.busy_ns = c->trainer_ns,
		.wait_ns = c->wait_ns};
	out->t_downstream_ms = ratio_of((double)c->trainer_ns, steps * 1e6);
	out->r = ratio_of(out->t_upstream_ms, out->t_downstream_ms);
	out->stall_pct = 100 *
		ratio_of(
			(double)c->wait_ns, (double)(c->last_ns - c->first_ns));
	out->stream_hash = hash_stream_value(c->stream);
	shared_add_work(out, &c->work);
	if (sh->alone.engine)
		return;
	out->echo_factor = ratio_of(e.p, e.q);
	out->echo_changes = sh->run.changes;
}

/* Add the statistics of the host in this process. */
static void add_host(struct shared *sh, struct refrain_stats *out)
{
	struct refrain_stats host;

	shared_host_stats(sh->host, &host);
	shared_add_work(out, &host);
}

static void add_share(struct shared *sh, struct refrain_stats *out)
{
	out->share_host_pid = sh->state == SHARED_FOLLOWING
		? (uint64_t)sh->link.to.host_pid
		: 0;
	out->share_jobs = sh->link.view.jobs_n;
	out->share_takeovers = sh->link.generation;
	out->share_solo =
		sh->state == SHARED_ALONE || sh->state == SHARED_PARTED;
	out->share_parted = sh->count.parted;
}

void shared_stats(struct batch_source *source, struct refrain_stats *out)
{
	struct shared *sh = shared_of(source);
	struct batch_source *engine;

	LOCK_SCOPE(&sh->lock);
	engine = sh->alone.engine;
	*out = (struct refrain_stats){
		.bottleneck = "", .suggested_point = "", .echo_reason = ""};
	if (engine)
		engine->ops->stats(engine, out);
	else if (sh->host)
		shared_host_stats(sh->host, out);
	if (engine && sh->host)
		add_host(sh, out);
	out->size = sizeof(*out);
	add_consumed(sh, out);
	add_share(sh, out);
}

/* -- The job that the others wait for -------------------------------------- */

static int say_waits(struct shared *sh, double waited_s)
{
	const struct share_view *v = &sh->link.view;
	const struct share_job *job = share_view_slowest(v);
	const char *name = sh->run.hello.name;

	if (!v->begun && v->missing)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: the new host of share '%s' "
			"waits for %u jobs of the previous host: %s",
			waited_s, name, v->missing, v->text);
	if (!v->begun)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: share '%s' has %u of %u jobs",
			waited_s, name, v->jobs_n, v->wanted);
	if (job)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: step %" PRIu64
			" waits for job '%s' (process %u%s), which holds %u of "
			"%u batches",
			waited_s, sh->link.expect, job->label, job->pid,
			proc_state((pid_t)job->pid) == 'T' ? ", stopped" : "",
			job->held, v->slots);
	return error_set(&sh->message, -ETIMEDOUT,
		"no batch after %.3f s: step %" PRIu64
		" of share '%s' is not ready; its host (process %u) says: %s",
		waited_s, sh->link.expect, name, v->host_pid,
		v->text[0] ? v->text : "nothing");
}

/* Wait for a view from the host, for at most ASK_MS. */
static bool await_view(struct shared *sh)
{
	uint64_t until_ns = clock_now_ns() + ASK_MS * NS_PER_MS;
	uint64_t views = sh->link.views;

	while (sh->link.views == views && sh->course != SHARED_CLOSING) {
		struct pollfd p = {.fd = sh->link.to.fd, .events = POLLIN};

		if (clock_now_ns() >= until_ns || !shared_receive(sh, true))
			return false;
		if (sh->link.views != views)
			break;
		shared_unlock(sh);
		/* The result does not matter, because the loop checks again */
		(void)poll(&p, 1, ASK_MS);
		pthread_mutex_lock(&sh->lock);
		if (sh->state != SHARED_FOLLOWING)
			return false;
	}
	return true;
}

static void ask_for_view(struct shared *sh)
{
	struct share_msg msg = {.type = SHARE_ASK};

	sh->link.answered =
		share_link_send(&sh->link.to, &msg) == 0 && await_view(sh);
	sh->link.viewed_ns = clock_now_ns();
}

int shared_timed_out(struct shared *sh, uint64_t waited_ns, bool ask)
{
	double waited_s = (double)waited_ns / 1e9;

	if (sh->state == SHARED_LOST)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: the host of share '%s' has "
			"ended, and no other job has replaced it yet",
			waited_s, sh->run.hello.name);
	if (sh->state == SHARED_PARTED)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: this job continues without "
			"share '%s' and is opening its dataset",
			waited_s, sh->run.hello.name);
	if (sh->state == SHARED_ALONE) {
		batch_message(sh->alone.engine, &sh->message);
		return -ETIMEDOUT;
	}
	if (ask && clock_now_ns() >= sh->link.viewed_ns + VIEW_NS)
		ask_for_view(sh);
	if (!sh->link.answered && ask && sh->state == SHARED_FOLLOWING)
		return error_set(&sh->message, -ETIMEDOUT,
			"no batch after %.3f s: the host of share '%s' "
			"(process %d%s) does not answer",
			waited_s, sh->run.hello.name, (int)sh->link.to.host_pid,
			proc_state(sh->link.to.host_pid) == 'T' ? ", stopped"
								: "");
	return say_waits(sh, waited_s);
}
