/* SPDX-License-Identifier: MIT */
/*
 * The echo stage: says which example to serve next, over a source that the
 * library does not read itself. The schedule (common/schedule) decides. This
 * file keeps the position in it, and asks the user for the examples that the
 * schedule needs. Called by one thread of the user at a time.
 */
#include "loader/api/echo_stage_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/magic.h"

#define HERE(e) OBJECT(refrain_echo, e)

static int null_error(const char *what)
{
	return error_set(
		settings_error(), -EINVAL, "%s must not be NULL", what);
}

/* -- Open and close -------------------------------------------------------- */

/* Make the settings of a loader from the members that the configuration of a
 * stage shares with that of a loader. A stage prepares no batches and reads
 * nothing ahead. */
static int take_settings(struct settings *s,
	const struct refrain_config *config, struct error *err)
{
	struct refrain_config given, c;

	if (config->size < sizeof(config->size))
		return error_set(err, -EINVAL,
			"size is not set: call refrain_config_init()");
	refrain_config_init(&given);
	memcpy(&given, config,
		config->size < sizeof(given) ? config->size : sizeof(given));
	refrain_config_init(&c);
	c.dataset = "the source of an echo stage";
	c.batch = given.batch;
	c.seed = given.seed;
	c.echo = given.echo;
	c.echo_max = given.echo_max;
	c.echo_log = given.echo_log;
	c.window = given.window;
	c.min_lag = given.min_lag;
	c.rank = given.rank;
	c.world = given.world;
	c.flags = (given.flags & REFRAIN_FLAG_ALLOW_DUPLICATES) |
		REFRAIN_FLAG_IN_ORDER;
	c.state = given.state;
	c.state_bytes = given.state_bytes;
	c.batches_ahead = c.reads_ahead = 1;
	c.threads = 1;
	return settings_init(s, &c, err);
}

void stage_schedule(const struct refrain_echo *e, struct schedule_config *out)
{
	uint64_t epoch = e->epoch;

	settings_open_schedule(&e->s,
		hash64(&epoch, sizeof(epoch), e->s.c.seed), e->first, out);
}

static int stage_begin(
	struct refrain_echo *e, uint64_t epoch, struct error *err)
{
	struct schedule_config c;
	int rc;

	e->epoch = epoch;
	e->first = e->newest;
	stage_schedule(e, &c);
	rc = schedule_init(&e->schedule, &c, err);
	if (rc == 0)
		rc = schedule_seek(&e->schedule, &e->at, 0);
	e->served = e->pulled = e->resumed = 0;
	e->untouched = true;
	e->state = STAGE_IDLE;
	return rc;
}

static int open_at(
	struct refrain_echo *e, const struct settings *s, struct error *err)
{
	int rc;

	e->newest = s->echo;
	rc = stage_begin(e, 0, err);
	if (rc == 0)
		e->window = schedule_spread(&e->schedule) + s->c.batch;
	if (rc == 0 && s->c.state)
		rc = stage_restore(e, s->c.state, s->c.state_bytes, err);
	if (rc == 0)
		rc = stage_take_log(e, s->c.echo_log, err);
	if (rc == 0 && s->measures)
		stage_meter_start(&e->meter, s->c.batch, e->window - s->c.batch,
			s->echo_max, e->newest);
	return rc;
}

int stage_open(struct refrain_echo **out, const struct refrain_config *config,
	uint64_t examples, uint64_t (*now_ns)(void), struct error *err)
{
	struct refrain_echo *e = calloc(1, sizeof(*e));
	int rc;

	*out = NULL;
	if (!e)
		return error_set(err, -ENOMEM, "no memory for an echo stage");
	MAGIC_BEGIN(e, refrain_echo);
	e->now_ns = now_ns;
	e->expected = examples;
	stage_meter_init(&e->meter);
	rc = take_settings(&e->s, config, err);
	if (rc == 0)
		rc = open_at(e, &e->s, err);
	e->s.c.state = e->s.c.echo_log = NULL;
	if (rc < 0)
		refrain_echo_close(e);
	else
		*out = e;
	return rc;
}

int refrain_echo_open(struct refrain_echo **out,
	const struct refrain_config *config, uint64_t examples)
{
	if (!out || !config)
		return null_error(out ? "config" : "out");
	return stage_open(
		out, config, examples, clock_now_ns, settings_error());
}

int refrain_echo_begin(struct refrain_echo *e, uint64_t epoch)
{
	uint32_t batch;

	if (!e)
		return null_error("the stage");
	batch = HERE(e)->s.c.batch;
	e->steps_before += e->served / batch + (e->served % batch > 0);
	stage_meter_paused(&e->meter);
	stage_meter_ended(&e->meter);
	return stage_begin(e, epoch, settings_error());
}

void refrain_echo_close(struct refrain_echo *e)
{
	if (!e)
		return;
	echo_log_free(&HERE(e)->log);
	MAGIC_END(e);
	free(e);
}

/* -- Continuing from a state ----------------------------------------------- */

/* Returns the first example that a stage with a restored state still needs.
 * Blocks of a lane are at most as long as the spread, so the last serving of an
 * example is less than two spreads after its fresh one. Earlier examples need
 * not be checked. */
uint64_t refrain_echo_needs(struct refrain_echo *e)
{
	uint64_t f, back;

	if (!e)
		return 0;
	back = 2 * schedule_spread(&HERE(e)->schedule) + e->s.c.batch;
	f = e->resumed > back ? e->resumed - back : 0;
	while (f < e->resumed && !schedule_is_owed(&e->schedule, &e->at, f))
		f++;
	return f;
}

int refrain_echo_from(struct refrain_echo *e, uint64_t example)
{
	if (!e)
		return null_error("the stage");
	if (!HERE(e)->untouched || e->state != STAGE_IDLE ||
		example > refrain_echo_needs(e))
		return error_set(settings_error(), -EINVAL,
			"the source is too far, or in use already");
	e->pulled = example;
	return 0;
}

/* -- The next action ------------------------------------------------------- */

/* Ask for the next example of the source. If it was already served before the
 * state was saved, it is only skipped. */
static void ask_for_example(struct refrain_echo *e)
{
	e->state = STAGE_PULLING;
	e->now.example = e->pulled;
	e->now.seed = 0;
	e->now.echo = 0;
	e->now.last = e->pulled < e->resumed &&
		!schedule_is_owed(&e->schedule, &e->at, e->pulled);
}

static void lend_serving(struct refrain_echo *e, const struct schedule_slot *s)
{
	e->state = STAGE_SERVING;
	e->now.example = s->fresh;
	e->now.seed = s->augment_seed;
	e->now.echo = s->echo;
	e->now.last = s->last;
}

/* In IDLE: go to PULLING or SERVING, or stay in IDLE at the end of the
 * epoch. */
static void find_next(struct refrain_echo *e)
{
	bool probes = stage_meter_probes(&e->meter) &&
		!schedule_has_end(&e->schedule);
	struct schedule_slot slot;

	stage_meter_called(&e->meter, e->now_ns());
	if (!schedule_peek(&e->schedule, &e->at, &slot))
		return;
	e->now.serving = e->served;
	e->now.epoch = e->epoch;
	if (probes || slot.fresh >= e->pulled)
		ask_for_example(e);
	else
		lend_serving(e, &slot);
}

int refrain_echo_next(struct refrain_echo *e, struct refrain_serving *out)
{
	size_t room;

	if (!e || !out)
		return null_error(e ? "out" : "the stage");
	if (HERE(e)->failed)
		return error_set(settings_error(), e->failed, "%s", e->why.msg);
	if (e->state == STAGE_IDLE)
		find_next(e);
	if (e->state == STAGE_IDLE)
		return REFRAIN_ECHO_END;
	room = out->size < sizeof(*out) ? out->size : sizeof(*out);
	e->now.size = room;
	memcpy(out, &e->now, room);
	if (e->state == STAGE_PULLING) {
		stage_meter_pull(&e->meter, e->now_ns());
		return REFRAIN_ECHO_PULL;
	}
	stage_meter_lend(&e->meter, e->now_ns());
	return REFRAIN_ECHO_SERVE;
}

/* -- The end of an action -------------------------------------------------- */

static int check_state(struct refrain_echo *e, enum stage_state state)
{
	if (!e)
		return null_error("the stage");
	if (HERE(e)->state == state)
		return 0;
	return error_set(settings_error(), -EINVAL,
		"refrain_echo_next() has not asked for that");
}

int refrain_echo_pulled(struct refrain_echo *e)
{
	int rc = check_state(e, STAGE_PULLING);

	if (rc < 0)
		return rc;
	stage_meter_pulled(&e->meter, e->now_ns());
	e->pulled++;
	e->untouched = false;
	e->state = STAGE_IDLE;
	return 0;
}

int refrain_echo_ended(struct refrain_echo *e)
{
	int rc = check_state(e, STAGE_PULLING);

	if (rc < 0)
		return rc;
	if (schedule_has_end(&e->schedule) || e->pulled < e->resumed)
		return error_set(settings_error(), -ESTALE,
			"the source ended after %" PRIu64
			" examples: it had more when the state was saved",
			e->pulled);
	e->untouched = false;
	e->state = STAGE_IDLE;
	stage_meter_ended(&e->meter);
	return schedule_end(&e->schedule, e->pulled);
}

/* Count a serving if its example is in this batch already. This is possible
 * only if duplicates are allowed, or after the source has ended. */
static void count_duplicates(struct refrain_echo *e)
{
	uint64_t here = e->served / e->s.c.batch, before;
	bool may = (e->s.c.flags & REFRAIN_FLAG_ALLOW_DUPLICATES) ||
		schedule_has_end(&e->schedule);

	if (may && e->now.echo > 0 &&
		schedule_serving_step(&e->schedule, e->now.example,
			e->now.echo - 1, &before) == 0)
		e->duplicates += here == before;
}

int refrain_echo_served(struct refrain_echo *e)
{
	int rc = check_state(e, STAGE_SERVING);

	if (rc < 0)
		return rc;
	count_duplicates(e);
	schedule_advance(&e->schedule, &e->at);
	e->served++;
	e->untouched = false;
	e->state = STAGE_IDLE;
	stage_meter_served(&e->meter, e->now_ns(), e->now.echo == 0);
	if (e->served % e->s.c.batch)
		return 0;
	stage_meter_step(&e->meter);
	e->failed = stage_step(e, &e->why);
	/* This serving succeeded; the next call returns the failure */
	return 0;
}

/* -- Queries --------------------------------------------------------------- */

uint64_t refrain_echo_servings(struct refrain_echo *e, uint64_t examples)
{
	if (!e || examples > SCHEDULE_GLOBAL_MAX)
		return 0;
	return examples / HERE(e)->first.q * e->first.p +
		examples % e->first.q * e->first.p / e->first.q;
}

static struct refrain_echo_stats stage_stats(const struct refrain_echo *e)
{
	const struct auto_sums *sums = &e->meter.sums;
	struct schedule_echo now = schedule_echo_at(&e->schedule, e->at.step);
	struct refrain_echo_stats out = {
		.epoch = e->epoch,
		.serving = e->served,
		.fresh = sums->fresh,
		.served = e->meter.servings,
		.pulled = sums->reads,
		.duplicates = e->duplicates,
		.pull_ns = sums->read_ns,
		.augment_ns = sums->augment_ns,
		.trainer_ns = sums->trainer_ns,
		.window = e->window,
		.echo_factor = (double)now.p / now.q,
		.echo_changes = e->made,
	};
	struct auto_part m;

	if (!e->meter.measures || !auto_measured(&e->meter.echo, &m))
		return out;
	out.t_upstream_ms = m.up_ns / (double)NS_PER_MS;
	out.t_downstream_ms = m.down_ns / (double)NS_PER_MS;
	out.r = m.down_ns > 0 ? m.up_ns / m.down_ns : 0;
	return out;
}

int refrain_echo_stats_get(
	struct refrain_echo *e, struct refrain_echo_stats *out)
{
	struct refrain_echo_stats all;
	size_t size;

	if (!e || !out)
		return null_error(e ? "out" : "the stage");
	all = stage_stats(HERE(e));
	size = out->size < sizeof(all) ? out->size : sizeof(all);
	if (size < sizeof(out->size))
		return -EINVAL;
	all.size = size;
	memcpy(out, &all, size);
	return 0;
}

int refrain_echo_changes(struct refrain_echo *e, char *buf, size_t size)
{
	if (!e || !buf)
		return null_error(e ? "buf" : "the stage");
	return echo_log_print(&HERE(e)->log, e->began - e->base,
		e->made - e->base, buf, size);
}
