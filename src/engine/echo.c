/* SPDX-License-Identifier: MIT */
/*
 * The echo factor that changes in mid-run: as measured (auto_impl.h), or as a
 * log says. The planner asks before each of its turns, under the loader's lock;
 * a change concerns only examples that are not planned yet. What was changed is
 * logged, and the log, given to another run, makes the same stream.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/engine_impl.h"
#include "mount_help/mount_help.h"

/* One a window: a run with more keeps the last factor. */
#define CHANGES_MAX (UINT32_C(1) << 20)
#define LINE_MAX_BYTES 32

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

static int reserve(struct echoes *e)
{
	uint32_t room = e->room ? 2 * e->room : 16;
	struct echo_change *more;

	if (e->logged < e->room)
		return 0;
	if (room > CHANGES_MAX)
		return -ENOSPC;
	more = realloc(e->log, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	e->log = more;
	e->room = room;
	return 0;
}

/* Examples already read ahead are served by the new factor. */
static void look_again(struct engine *engine)
{
	const struct planner *p = &engine->planner;
	struct schedule_slot slot;
	uint64_t f = schedule_change_begins(&p->schedule), need_by;

	for (; f < p->read_fresh; f++) {
		struct entry *e = entry_find(engine, f);

		if (e && schedule_fresh(&p->schedule, f, &slot, &need_by) == 0)
			entry_serve(e, &slot);
	}
}

static void changed(struct engine *engine)
{
	struct schedule_facts facts;

	engine->echoes.made++;
	look_again(engine);
	schedule_facts(&engine->planner.schedule, &facts);
	engine->planner.steps = facts.steps;
	if (engine->s.c.last == REFRAIN_LAST_DROP)
		meter_stats(engine->meter)->dropped_examples =
			facts.slots_dropped;
	meter_stats(engine->meter)->dropped_fresh = facts.fresh_dropped;
}

/* -- As measured ----------------------------------------------------------- */

void echo_returned(struct engine *engine)
{
	struct meter_view view;
	const struct sums *now = &view.now;
	struct auto_sums sums;

	if (!engine->s.measures)
		return;
	meter_view(engine->meter, &view);
	sums = (struct auto_sums){
		.steps = meter_stats(engine->meter)->steps,
		.fresh = meter_stats(engine->meter)->fresh,
		.full_ns = now->full_ns,
		.full_reads = now->full_reads,
		.long_ns = now->long_ns,
		.long_reads = now->long_reads,
		.bursts = now->bursts,
		.in_burst = engine->reader.full,
		.read_ns = now->reading_ns,
		.reads = now->reads,
		.decode_ns = now->decode_ns,
		.decodes = now->decoded,
		.augment_ns = now->augment_ns,
		.trainer_ns = now->trainer_ns,
		.wait_ns = now->wait_ns,
		.planned = help_plans(engine->help),
	};
	if (sums.planned)
		help_rates_get(engine->help, &sums.rates, &sums.in_burst);
	auto_step(&engine->echoes.measured, &sums);
	engine->echoes.due = true;
}

static void follow(struct engine *engine)
{
	struct echoes *e = &engine->echoes;
	struct planner *p = &engine->planner;
	uint64_t step;
	int rc;

	if (!e->due || e->ended)
		return;
	e->due = false;
	rc = reserve(e);
	if (rc == 0)
		rc = auto_change(
			&e->measured, &p->schedule, p->planned_fresh, &step);
	if (rc < 0)
		e->ended = true; /* the factor stays as it is */
	if (rc <= 0)
		return;
	e->log[e->logged++] = (struct echo_change){step, e->measured.asked};
	changed(engine);
}

/*
 * A first change begins a spread of fresh examples after the start, when three
 * eighths of one were measured, and a spread must be left for it.
 */
static uint64_t needs_fresh(const struct engine *engine)
{
	const struct schedule *s = &engine->planner.schedule;
	uint64_t spread = s->spread * s->unit_examples;

	return 2 * spread +
		((uint64_t)engine->s.c.batches_ahead + 2) * engine->s.c.batch;
}

const char *echo_reason(const struct engine *engine, uint64_t *needs)
{
	const struct echoes *e = &engine->echoes;
	struct auto_part m;

	*needs = 0;
	if (!engine->s.changes)
		return "";
	if (!engine->s.measures)
		return "it changes where echo_log says";
	*needs = needs_fresh(engine);
	if (e->made > 0)
		return "it follows r";
	if (e->ended || engine->planner.schedule.fresh < *needs)
		return "the run is too short for a change";
	if (!auto_measured(&e->measured, &m))
		return "too little is measured so far";
	if (m.up_ns <= m.down_ns * AUTO_R_BEGIN)
		return "the trainer is the slower one: r is at most " TEXT_OF(
			AUTO_R_BEGIN);
	return "a change begins after the first window of examples";
}

/* -- As a log says --------------------------------------------------------- */

static int parse_line(const char *line, size_t n, struct echo_change *out)
{
	char text[LINE_MAX_BYTES + 1], *end;
	unsigned long long step;

	if (n > LINE_MAX_BYTES || *line < '0' || *line > '9')
		return -EINVAL;
	memcpy(text, line, n);
	text[n] = '\0';
	errno = 0;
	step = strtoull(text, &end, 10);
	if (errno || *end != ' ')
		return -EINVAL;
	out->step = step;
	return schedule_echo_parse(end + 1, &out->echo, NULL);
}

static int parse_log(struct echoes *e, const char *text, struct error *err)
{
	for (; *text; text += text[0] == '\n') {
		size_t n = strcspn(text, "\n");
		struct echo_change change;

		if (parse_line(text, n, &change) < 0)
			return error_set(err, -EINVAL,
				"echo_log line %u is not \"STEP P/Q\"",
				e->logged + 1);
		if (reserve(e) < 0)
			return error_set(
				err, -ENOMEM, "no memory for the echo_log");
		e->log[e->logged++] = change;
		text += n;
	}
	return 0;
}

/* The first fresh number that the change would be for. */
static uint64_t begins(const struct planner *p, const struct echo_change *c)
{
	const struct schedule *s = &p->schedule;
	uint64_t asked = schedule_fresh_before(s, c->step);
	uint64_t due = schedule_change_begins(s) + s->spread * s->unit_examples;

	return asked > due ? asked : due;
}

/* Called as soon as the previous change has begun, so at most one is pending.
 */
static void replay(struct engine *engine)
{
	struct echoes *e = &engine->echoes;
	struct planner *p = &engine->planner;

	while (e->made < e->logged &&
		schedule_change_begins(&p->schedule) <= p->planned_fresh) {
		const struct echo_change *c = &e->log[e->made];
		int rc = -ESTALE;

		if (begins(p, c) >= p->planned_fresh)
			rc = schedule_change(&p->schedule, c->step, c->echo);
		if (rc < 0) {
			engine->stopped = error_set(&engine->message, -ESTALE,
				"echo_log line %" PRIu64 " is of another "
				"configuration: no change is possible at step "
				"%" PRIu64,
				e->made + 1, c->step);
			return;
		}
		changed(engine);
	}
}

void echo_plan(struct engine *engine)
{
	if (engine->s.measures)
		follow(engine);
	else if (engine->s.changes)
		replay(engine);
}

/* -- Life ------------------------------------------------------------------ */

int echo_init(struct engine *engine, struct error *err)
{
	const struct schedule *s = &engine->planner.schedule;
	struct echoes *e = &engine->echoes;
	int rc;

	e->made = e->before;
	if (engine->s.measures) {
		e->base = e->before;
		auto_init(&e->measured, engine->s.c.batch, engine->s.c.threads,
			s->spread * s->unit_examples, engine->s.echo_max,
			schedule_echo_at(s, UINT64_MAX));
		return 0;
	}
	if (!engine->s.changes)
		return 0;
	rc = parse_log(e, engine->s.c.echo_log, err);
	if (rc == 0 && e->logged < e->before)
		rc = error_set(err, -ESTALE,
			"the state is of a run with %" PRIu64
			" changes of the echo factor, echo_log has %u",
			e->before, e->logged);
	return rc;
}

void echo_release(struct engine *engine)
{
	free(engine->echoes.log);
}

/* -- The log --------------------------------------------------------------- */

static int print_log(const struct echoes *e, char *buf, size_t size)
{
	size_t used = 0;

	if (!size)
		return -ENOSPC;
	*buf = '\0';
	for (uint64_t i = e->before - e->base; i < e->made - e->base; i++) {
		const struct echo_change *c = &e->log[i];
		int n = snprintf(buf + used, size - used, "%" PRIu64 " %u/%u\n",
			c->step, c->echo.p, c->echo.q);

		if ((size_t)n >= size - used)
			return -ENOSPC;
		used += (size_t)n;
	}
	return (int)used;
}

int engine_echo_log(struct engine *engine, char *buf, size_t size)
{
	LOCK_SCOPE(&engine->turn.lock);
	return print_log(&engine->echoes, buf, size);
}
