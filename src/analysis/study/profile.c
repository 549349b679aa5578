/* SPDX-License-Identifier: MIT */
/* Writes a profile as JSON, and reads it. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/study/study.h"
#include "common/base/escape.h"

static const char *const units[UNITS] = {
	[UNIT_SAMPLES] = "samples",
	[UNIT_FILES] = "files",
	[UNIT_MB] = "MB",
};

/* The number of cache sizes at which policies are compared, without 0. */
#define SIZES 20

const char *profile_unit_name(const struct profile *p)
{
	return units[p->unit];
}

void profile_note(struct profile *p, const char *text)
{
	if (p->nnotes < PROFILE_NOTES_MAX)
		(void)escape_text(
			p->notes[p->nnotes++], PROFILE_TEXT_MAX, text);
}

/* -- Writing --------------------------------------------------------------- */

static json_t *rate_json(struct profile_rate r)
{
	if (r.value <= 0)
		return json_null();
	return json_pack("{s:f, s:f}", "value", r.value, "ci", r.ci);
}

static json_t *point_json(const struct profile *p, unsigned i)
{
	const struct profile_point *q = &p->points[i];
	struct profile_forecast f;

	/* cannot fail, because the points at the ends are measured */
	(void)profile_forecast(p, i, &f);
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "x", q->x,
		"miss", q->miss, "rate", q->rate.value, "ci", q->rate.ci,
		"predicted", f.model, "serial", f.serial, "overlapped",
		f.overlapped);
}

static json_t *waits_json(const struct profile_waits *w)
{
	if (w->n <= 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f}", "intervals", w->n, "mean_s",
		w->each_s, "busy_s", w->busy_s, "ran", w->ran);
}

/* Returns the readers as JSON; null if they could not be seen. */
static json_t *readers_json(const struct profile *p)
{
	json_t *delay = p->delay.ci > 0
		? json_pack("{s:f, s:f}", "value", p->delay.value, "ci",
			  p->delay.ci)
		: json_null();

	return json_pack("{s:f, s:o, s:o, s:o}", "number", p->readers, "warm",
		waits_json(&p->warm), "cold", waits_json(&p->cold), "delay",
		delay);
}

static json_t *predicted_json(const struct profile *p, const struct model *m)
{
	struct profile_rate r = profile_after(p, p->cached, CHANGE_NONE);

	return json_pack("{s:f, s:f, s:f, s:f}", "rate", r.value, "ci", r.ci,
		"serial", 1 / model_serial(m, 1 - p->cached), "overlapped",
		1 / model_overlapped(m, 1 - p->cached));
}

static json_t *actions_json(const struct profile *p)
{
	json_t *actions = json_array();

	for (unsigned i = 0; i < CHANGES; i++) {
		struct profile_rate r = profile_after(p, p->cached, i);

		if (profile_change_known(p, i))
			(void)json_array_append_new(actions,
				json_pack("{s:s, s:f, s:f}", "name",
					profile_change_name(i), "epoch_s",
					p->samples / r.value, "ci_s",
					p->samples * r.ci / r.value / r.value));
	}
	return actions;
}

/* Returns the series as JSON. Each element contains: seconds, samples a second,
 * the share of the time in which a reader waited, and the share cached (-1 with
 * tiny images). */
static json_t *series_json(const struct profile *p)
{
	json_t *series = json_array();

	for (unsigned i = 0; i < p->nticks; i++)
		(void)json_array_append_new(series,
			json_pack("[f, f, f, f]", p->ticks[i].time_s,
				p->ticks[i].rate, p->ticks[i].starved,
				p->ticks[i].x));
	return series;
}

static json_t *shares_json(const struct model_shares *s)
{
	double all = (s->compute + s->prep + s->fetch + s->gaps) / 100;

	return json_pack("{s:f, s:f, s:f, s:f}", "compute_pct",
		s->compute / all, "prep_pct", s->prep / all, "fetch_pct",
		s->fetch / all, "gaps_pct", s->gaps / all);
}

/* Returns seconds and rates of an epoch with a share `cached`, for each way in
 * which a cache evicts. */
static json_t *policy_json(
	const struct profile *p, const struct model *m, double cached)
{
	double never = model_time(m, 1 - cached);
	double random = model_time(m, 1 - model_hits_random(cached));
	double lru = model_time(m, 1 - model_hits_lru(cached));

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "cached",
		cached, "never_evict_s", p->samples * never, "random_s",
		p->samples * random, "lru_s", p->samples * lru, "never_evict",
		1 / never, "random", 1 / random, "lru", 1 / lru);
}

static json_t *policies_json(const struct profile *p, const struct model *m)
{
	json_t *policies = policy_json(p, m, p->cached), *sizes = json_array();

	for (unsigned i = 0; i <= SIZES; i++)
		(void)json_array_append_new(
			sizes, policy_json(p, m, (double)i / SIZES));
	(void)json_object_set_new(policies, "sizes", sizes);
	return policies;
}

static void set_limit(json_t *o, const struct profile *p)
{
	enum profile_limit likely, limit = profile_limit(p, &likely);

	(void)json_object_set_new(
		o, "verdict", json_string(profile_verdict(p)));
	(void)json_object_set_new(
		o, "bottleneck", json_string(profile_limit_name(limit)));
	(void)json_object_set_new(
		o, "likely", json_string(profile_limit_name(likely)));
	(void)json_object_set_new(o, "verdict_bound",
		json_boolean(p->g_bound && limit == LIMIT_UNKNOWN));
}

json_t *profile_json(const struct profile *p)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);
	json_t *points = json_array(), *notes = json_array(), *o;

	for (unsigned i = 0; i < p->npoints; i++)
		(void)json_array_append_new(points, point_json(p, i));
	for (unsigned i = 0; i < p->nnotes; i++)
		(void)json_array_append_new(notes, json_string(p->notes[i]));
	o = json_pack(
		"{s:i, s:s, s:s, s:{s:s, s:I, s:I, s:f, s:s}, s:I, s:f, s:f}",
		"version", PROFILE_VERSION, "machine", p->machine, "command",
		p->command, "source", "name", p->source, "bytes",
		(json_int_t)p->source_bytes, "items",
		(json_int_t)p->source_items, "samples", p->samples, "unit",
		profile_unit_name(p), "cpus", (json_int_t)p->cpus, "cpus_used",
		p->cpus_used, "cache", p->cached);
	if (!o)
		return NULL;
	(void)json_object_set_new(o, "G",
		json_pack("{s:f, s:b, s:f}", "value", p->g.value, "bound",
			p->g_bound, "ci", p->g.ci));
	(void)json_object_set_new(o, "R1", rate_json(p->r1));
	(void)json_object_set_new(o, "R0", rate_json(p->r0));
	(void)json_object_set_new(o, "S", rate_json(p->s));
	(void)json_object_set_new(o, "P", json_real(profile_prep(p)));
	/* compute is a part of R1 */
	(void)json_object_set_new(o, "C", json_null());
	(void)json_object_set_new(
		o, "L", json_real(model_l(&m, model_knee(&m))));
	(void)json_object_set_new(o, "gaps", json_real(p->gaps));
	(void)json_object_set_new(o, "repeats", json_real(p->repeats));
	(void)json_object_set_new(o, "shares", shares_json(&s));
	(void)json_object_set_new(o, "readers", readers_json(p));
	set_limit(o, p);
	(void)json_object_set_new(
		o, "enough_share", json_real(model_enough(&m)));
	(void)json_object_set_new(o, "predicted", predicted_json(p, &m));
	(void)json_object_set_new(o, "points", points);
	(void)json_object_set_new(o, "policies", policies_json(p, &m));
	(void)json_object_set_new(o, "actions", actions_json(p));
	(void)json_object_set_new(
		o, "echo", json_real(model_echo(&m, 1 - p->cached)));
	(void)json_object_set_new(o, "series", series_json(p));
	(void)json_object_set_new(o, "prices", json_null());
	(void)json_object_set_new(o, "notes", notes);
	return o;
}

/* -- Reading --------------------------------------------------------------- */

/* Limits for numbers, because a plot could have no scale for larger or smaller
 * ones. */
#define NUMBER_LEAST 1e-18
#define NUMBER_MOST 1e18
#define TICK_LEAST_S 1e-3
#define TIME_MOST_S 1e9

static double number_in(const json_t *o, const char *name)
{
	double v = json_number_value(json_object_get(o, name));

	return v > NUMBER_LEAST && v < NUMBER_MOST ? v : 0;
}

static struct profile_rate get_rate(const json_t *o, const char *name)
{
	const json_t *r = json_object_get(o, name);

	return (struct profile_rate){number_in(r, "value"), number_in(r, "ci")};
}

static struct profile_waits get_times(const json_t *readers, const char *name)
{
	const json_t *w = json_object_get(readers, name);
	struct profile_waits waits = {number_in(w, "intervals"),
		number_in(w, "mean_s"), number_in(w, "busy_s"),
		fmin(number_in(w, "ran"), 1)};

	if (waits.each_s <= 0)
		waits.n = 0;
	return waits;
}

/* Read the members about readers. Profiles of earlier builds lack them. */
static void get_readers(const json_t *json, struct profile *p)
{
	const json_t *readers = json_object_get(json, "readers");
	const json_t *delay = json_object_get(readers, "delay");
	double effect = json_number_value(json_object_get(delay, "value"));

	p->readers = number_in(readers, "number");
	p->warm = get_times(readers, "warm");
	p->cold = get_times(readers, "cold");
	p->delay = (struct profile_rate){
		fmax(-NUMBER_MOST, fmin(effect, NUMBER_MOST)),
		number_in(delay, "ci")};
}

static void get_text(const json_t *o, const char *name, char *to)
{
	const char *text = json_string_value(json_object_get(o, name));

	(void)escape_text(to, PROFILE_TEXT_MAX, text ? text : "");
}

/* Read the series. Returns false if its times do not rise, or begin at 0 or
 * below. */
static bool get_series(const json_t *series, struct profile *p)
{
	const json_t *tick;
	double before = 0;
	size_t i;

	json_array_foreach(series, i, tick)
	{
		double v[4];

		for (size_t k = 0; k < 4; k++)
			v[k] = json_number_value(json_array_get(tick, k));
		if (p->nticks == PROFILE_TICKS_MAX)
			break;
		if (v[0] - before < TICK_LEAST_S || v[0] > TIME_MOST_S)
			return false;
		before = v[0];
		p->ticks[p->nticks++] = (struct profile_tick){v[0],
			fmin(fmax(v[1], 0), NUMBER_MOST),
			fmin(fmax(v[2], 0), 1), fmin(fmax(v[3], -1), 1)};
	}
	return true;
}

/* Read the points. Returns false if a point has no rate. */
static bool get_points(const json_t *json, struct profile *p)
{
	const json_t *points = json_object_get(json, "points"), *q;
	const json_t *notes = json_object_get(json, "notes");
	size_t i;

	json_array_foreach(points, i, q)
	{
		if (p->npoints == PROFILE_POINTS_MAX)
			break;
		p->points[p->npoints++] = (struct profile_point){
			.x = number_in(q, "x"),
			.miss = number_in(q, "miss"),
			.rate = {number_in(q, "rate"), number_in(q, "ci")}};
		if (p->points[i].rate.value <= 0)
			return false;
	}
	json_array_foreach(notes, i, q)
	{
		const char *text = json_string_value(q);

		if (text)
			profile_note(p, text);
	}
	return true;
}

/* Get the unit. A profile without a unit is of an earlier version, which counts
 * samples. */
static enum profile_unit get_unit(const json_t *source)
{
	const char *text = json_string_value(json_object_get(source, "unit"));

	for (enum profile_unit u = 0; text && u < UNITS; u++)
		if (strcmp(text, units[u]) == 0)
			return u;
	return UNIT_SAMPLES;
}

int profile_parse(const json_t *json, struct profile *p, struct error *err)
{
	const json_t *source = json_object_get(json, "source");

	*p = (struct profile){.cpus = 1};
	if (json_integer_value(json_object_get(json, "version")) !=
		PROFILE_VERSION)
		return error_set(err, -EINVAL,
			"it is not a profile of version %d", PROFILE_VERSION);
	get_text(json, "machine", p->machine);
	get_text(json, "command", p->command);
	get_text(source, "name", p->source);
	p->source_bytes = (uint64_t)number_in(source, "bytes");
	p->source_items = (uint64_t)number_in(source, "items");
	p->samples = number_in(source, "samples");
	p->unit = get_unit(source);
	p->cpus_used = number_in(json, "cpus_used");
	p->cached = fmin(number_in(json, "cache"), 1);
	p->cpus = (unsigned)fmin(number_in(json, "cpus"), 65536);
	p->g = get_rate(json, "G");
	p->g_bound = json_is_true(
		json_object_get(json_object_get(json, "G"), "bound"));
	p->r1 = get_rate(json, "R1");
	p->r0 = get_rate(json, "R0");
	p->s = get_rate(json, "S");
	p->gaps = number_in(json, "gaps");
	p->repeats = number_in(json, "repeats");
	get_readers(json, p);
	if (!get_points(json, p))
		return error_set(err, -EINVAL, "a point in it has no rate");
	if (!get_series(json_object_get(json, "series"), p))
		return error_set(
			err, -EINVAL, "the times of its series do not rise");
	if (p->samples <= 0 || p->g.value <= 0 || p->r1.value <= 0 ||
		p->r0.value <= 0 || p->s.value <= 0 || p->source_bytes == 0)
		return error_set(err, -EINVAL, "rates are missing from it");
	return 0;
}
