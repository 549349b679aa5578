/* SPDX-License-Identifier: MIT */
/*
 * The run of a share: the configuration and schedule of the shared stream, and
 * those of a job's own stream, whose batches may be slices of shared batches.
 * No threads.
 *
 * A stream with batches of B, a window of W and a lag of 1, whose batches are
 * cut into slices of b, is the same as a stream with batches of b, a window of
 * W - B + b and a lag of B / b (doc/schedule.md).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "loader/engine/engine_mix.h"
#include "loader/share/share_run_impl.h"

/* -- Configurations -------------------------------------------------------- */

static int keep_text(
	struct shared_run *run, unsigned n, const char *text, const char **out)
{
	*out = NULL;
	if (!text)
		return 0;
	*out = run->texts[n] = strdup(text);
	return *out ? 0 : -ENOMEM;
}

static int keep_cpus(struct shared_run *run, const struct refrain_config *c)
{
	size_t bytes = c->cpu_count * sizeof(*c->cpus);
	uint32_t *cpus;

	run->config.cpus = NULL;
	if (!bytes)
		return 0;
	run->texts[SHARED_CPUS] = cpus = malloc(bytes);
	if (!cpus)
		return -ENOMEM;
	memcpy(cpus, c->cpus, bytes);
	run->config.cpus = cpus;
	return 0;
}

/* Copy the configuration, without the members for the share and the saved
 * state. */
static int keep_config(struct shared_run *run, const struct refrain_config *c)
{
	struct refrain_config *to = &run->config;
	int rc;

	*to = *c;
	to->state = NULL;
	to->state_bytes = 0;
	to->share = NULL;
	to->share_jobs = to->share_batch = 0;
	to->share_slow = 0;
	if (c->share_batch)
		to->batch = c->share_batch;
	rc = keep_text(run, SHARED_DATASET, c->dataset, &to->dataset);
	if (rc == 0)
		rc = keep_text(run, SHARED_ROOT, c->root, &to->root);
	if (rc == 0)
		rc = keep_text(
			run, SHARED_ECHO_LOG, c->echo_log, &to->echo_log);
	if (rc == 0)
		rc = keep_text(run, SHARED_FIELDS, c->fields, &to->fields);
	if (rc == 0)
		rc = keep_text(run, SHARED_ANNOTATIONS, c->annotations,
			&to->annotations);
	if (rc == 0)
		rc = keep_cpus(run, c);
	run->own_config = *to;
	run->own_config.batch = c->batch;
	run->slices = to->batch / c->batch;
	return rc;
}

void shared_run_name(
	const struct refrain_config *c, char name[SHARE_FULL_NAME_MAX])
{
	if (c->world > 1)
		(void)snprintf(name, SHARE_FULL_NAME_MAX, "%.*s.%u-%u",
			SHARE_NAME_MAX, c->share, c->rank, c->world);
	else
		(void)snprintf(name, SHARE_FULL_NAME_MAX, "%.*s",
			SHARE_NAME_MAX, c->share);
}

/* -- Streams --------------------------------------------------------------- */

static int init_shared_stream(struct shared_run *run, struct error *err)
{
	struct schedule_config config;
	int rc = settings_init(&run->s, &run->config, err);

	if (rc == 0)
		rc = engine_open_dataset(&run->s, &run->dataset, err);
	if (rc < 0)
		return rc;
	rc = mixture_schedule(
		&run->s, run->dataset, &run->mixture, &config, err);
	if (rc < 0)
		return rc;
	return schedule_init(&run->schedule, &config, err);
}

static void map_slices(struct shared_run *run)
{
	struct refrain_config *own = &run->own_config;

	if (run->slices == 1)
		return;
	own->window = (uint32_t)(schedule_settings(&run->schedule)->window -
		run->config.batch + own->batch);
	own->min_lag = run->slices;
}

static int begin_own(struct shared_run *run, const struct refrain_config *c,
	struct error *err)
{
	struct state_of of = {.s = &run->own_s,
		.fingerprint = dataset_fingerprint(run->dataset)};
	struct schedule_config config;
	struct state_begun begun;
	int rc;

	run->own_config.state = c->state;
	run->own_config.state_bytes = c->state_bytes;
	rc = settings_init(&run->own_s, &run->own_config, err);
	run->own_config.state = NULL;
	run->own_config.state_bytes = 0;
	if (rc < 0)
		return rc;
	rc = mixture_schedule(
		&run->own_s, run->dataset, &run->mixture, &config, err);
	if (rc < 0)
		return rc;
	rc = state_begin(&of, &config, &run->own, &begun, err);
	run->own_s.c.state = NULL;
	run->own_s.c.state_bytes = 0;
	if (rc < 0)
		return rc;
	run->begin = begun.step;
	run->changes = run->logged_from = begun.changes;
	if (run->slices == 1)
		run->schedule = run->own;
	else if (run->own.base || run->own.step_base)
		return error_set(err, -EINVAL,
			"state: it was saved with another world and cannot be "
			"continued with a share_batch");
	return 0;
}

/* -- Options that must be equal -------------------------------------------- */

static bool is_printed(const struct member *m)
{
	return m->kind && !m->bit && m->kind != KIND_POINTER &&
		(m->saved == SAVED_SCHEDULE || m->saved >= SAVED_HASH);
}

static uint32_t print_of_member(
	const struct shared_run *run, const struct member *m)
{
	struct refrain_config c = run->s.c;
	double echo = run->s.changes ? REFRAIN_ECHO_AUTO : c.echo;

	c.echo = echo;
	c.flags &= ~(uint32_t)(REFRAIN_FLAG_NO_MOUNT_HELP |
		REFRAIN_FLAG_ADMIT_PLANNED);
	if (m->kind == KIND_TEXT)
		return (uint32_t)settings_text_hash(&run->s, m);
	return (uint32_t)hash64((const char *)&c + m->offset, m->bytes, 1);
}

/* Fill in the hashes that jobs compare: first the members of the configuration
 * in the order of the table, then the log of echo factors, then the positions
 * in a saved state. */
static void fill_prints(struct shared_run *run)
{
	const char *log = run->config.echo_log ? run->config.echo_log : "";
	uint64_t base[2] = {run->schedule.base, run->schedule.step_base};
	struct share_hello *hello = &run->hello;
	const struct member *m;

	for (size_t i = 0; (m = member_at(i)); i++)
		if (is_printed(m) && hello->prints_n < SHARE_PRINTS_MAX - 2)
			hello->prints[hello->prints_n++] =
				print_of_member(run, m);
	hello->prints[hello->prints_n++] =
		(uint32_t)hash64(log, strlen(log), 1);
	hello->prints[hello->prints_n++] =
		(uint32_t)hash64(base, sizeof(base), 1);
}

static const char *name_of_print(uint32_t n)
{
	const struct member *m;
	uint32_t at = 0;

	for (size_t i = 0; (m = member_at(i)); i++)
		if (is_printed(m) && at++ == n)
			return m->name;
	return at == n ? "echo_log" : "the world of the state";
}

int shared_run_check(const struct shared_run *run,
	const struct share_hello *hello, struct error *err)
{
	const struct share_hello *ours = &run->hello;

	if (hello->dataset != ours->dataset)
		return error_set(err, -ESTALE,
			"share '%s' uses another dataset: names, positions or "
			"labels differ; choose another name",
			ours->name);
	if (hello->prints_n != ours->prints_n)
		return error_set(err, -ESTALE,
			"share '%s' is hosted by another version of refrain",
			ours->name);
	for (uint32_t i = 0; i < ours->prints_n; i++)
		if (hello->prints[i] != ours->prints[i])
			return error_set(err, -ESTALE,
				"share '%s' uses another configuration: %s "
				"differs; choose another name",
				ours->name, name_of_print(i));
	return 0;
}

/* -- Creation and end ------------------------------------------------------ */

static void fill_hello(struct shared_run *run, const struct refrain_config *c)
{
	struct share_hello *hello = &run->hello;
	uint64_t seed[3] = {(uint64_t)getpid(), clock_now_ns(), (uintptr_t)run};

	hello->id = hash64(seed, sizeof(seed), 0);
	hello->dataset = dataset_fingerprint(run->dataset);
	hello->wish = c->state ? SHARE_WISH_STEP : SHARE_WISH_NEW;
	hello->step = run->begin / run->slices;
	hello->batch = c->batch;
	hello->jobs = c->share_jobs;
	hello->changes = (uint32_t)run->changes;
	hello->grace_s = c->share_slow ? run->s.c.share_grace_s : 0;
	shared_run_name(c, hello->name);
	(void)snprintf(hello->label, sizeof(hello->label), "%.*s",
		SHARE_LABEL_MAX - 1, program_invocation_short_name);
	fill_prints(run);
}

int shared_run_init(struct shared_run *run, const struct refrain_config *c,
	struct error *err)
{
	int rc;

	memset(run, 0, sizeof(*run));
	if (keep_config(run, c) < 0)
		return error_set(err, -ENOMEM, "no memory for a share");
	rc = init_shared_stream(run, err);
	if (rc < 0)
		return rc;
	map_slices(run);
	rc = begin_own(run, c, err);
	if (rc == 0)
		fill_hello(run, c);
	return rc;
}

void shared_run_release(struct shared_run *run)
{
	mixture_free(run->mixture);
	dataset_close(run->dataset);
	for (unsigned i = 0; i < SHARED_TEXTS; i++)
		free(run->texts[i]);
	free(run->log);
	memset(run, 0, sizeof(*run));
}

int shared_run_open(struct shared_run *run, bool own, uint64_t step,
	const struct slab_place *place, struct batch_source **out,
	struct error *err)
{
	struct refrain_config c = own ? run->own_config : run->config;
	const struct schedule *schedule = own ? &run->own : &run->schedule;
	struct state_of of = {.s = own ? &run->own_s : &run->s,
		.fingerprint = dataset_fingerprint(run->dataset),
		.changes = run->changes,
		.step = step};
	uint8_t state[REFRAIN_STATE_MAX];
	int n = state_save(&of, schedule, step, state, sizeof(state), err);
	int rc;

	if (n < 0)
		return n;
	/* Pass a state even at step 0, because the state contains the
	 * fingerprint of the dataset. */
	c.state = state;
	c.state_bytes = (size_t)n;
	rc = engine_open(out, &c, place, err);
	return rc == -ESTALE
		? error_set(err, rc,
			  "dataset: names, positions or labels have changed "
			  "since share '%s' was joined",
			  run->hello.name)
		: rc;
}

uint64_t shared_run_steps(const struct shared_run *run)
{
	uint64_t own = schedule_steps(&run->own);
	uint64_t shared = schedule_steps(&run->schedule) * run->slices;

	return own < shared ? own : shared;
}

/* -- Changes of the echo factor -------------------------------------------- */

int shared_run_change(struct shared_run *run, const struct share_change *change)
{
	struct schedule_echo echo = {change->p, change->q};
	uint32_t n = (uint32_t)(run->changes - run->logged_from);
	int rc = ARRAY_ROOM(run->log, n, &run->log_room);

	if (rc == 0)
		rc = schedule_change(&run->schedule, change->step, echo);
	if (rc < 0)
		return rc;
	/* A share whose factor changes has no slices, so the streams are
	 * equal */
	run->own = run->schedule;
	run->log[n] = *change;
	run->changes++;
	run->hello.changes = (uint32_t)run->changes;
	run->hello.change = *change;
	return 0;
}
