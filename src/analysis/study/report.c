/* SPDX-License-Identifier: MIT */
/* The report for people. It uses only the profile. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analysis/study/report_html_impl.h"
#include "common/base/escape.h"
#include "common/base/size.h"

/* If readers reach less than this share of the source's rate, they are too few.
 */
#define READERS_FEW 0.9

/* If an action raises the rate by less than this factor, the report does not
 * mention it. */
#define WORTH 1.02

/* If processors are used for less than this share of the time, they can prepare
 * more. */
#define CPUS_FREE 0.7

/* A cache needs this many times the bytes of its files. */
#define CACHE_ROOM 1.05

/* The text shows at most this many notes, because it is limited to 40 lines.
 * The HTML page and the profile contain all notes. */
#define NOTES 3

static const double sizes[] = {0, 0.25, 0.35, 0.5, 0.65, 0.8, 1};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

const char *report_time(double s, char buf[TIME_TEXT_MAX])
{
	if (s >= 7200)
		(void)snprintf(buf, TIME_TEXT_MAX, "%.1f h", s / 3600);
	else if (s >= 120)
		(void)snprintf(buf, TIME_TEXT_MAX, "%.1f min", s / 60);
	else
		(void)snprintf(buf, TIME_TEXT_MAX, "%.3g s", s);
	return buf;
}

static void put_source(const struct profile *p, FILE *to)
{
	char size[SIZE_TEXT_MAX];

	escape_print(to, p->source);
	(void)fprintf(to, ": %s, %.0f %s; %u processors\n",
		size_format(p->source_bytes, size), p->samples,
		profile_unit_name(p), p->cpus);
	(void)fputs("command: ", to);
	escape_print(to, p->command);
	(void)fputs("\n\n", to);
}

static void put_rate(const struct profile *p, const char *what,
	const char *sign, struct profile_rate r, const char *more, FILE *to)
{
	double mb = (double)p->source_bytes / p->samples / 1e6;

	(void)fprintf(to, "%-28s %2s%9.1f/s", what, sign, r.value);
	if (r.ci > 0)
		(void)fprintf(to, " +- %4.1f %%", 100 * r.ci / r.value);
	else
		(void)fputs("          ", to);
	(void)fprintf(to, " %9.1f MB/s%s\n", r.value * mb, more);
}

double report_more_readers(const struct profile *p)
{
	if (profile_limit(p, NULL) != LIMIT_FETCH)
		return 1;
	return p->r0.value < READERS_FEW * p->s.value ? p->s.value / p->r0.value
						      : 1;
}

static void put_rates(const struct profile *p, FILE *to)
{
	struct profile_rate r0 = {p->r0.value, 0};
	char few[64] = "";

	if (report_more_readers(p) > 1)
		(void)snprintf(few, sizeof(few), "; needs %.1f x the requests",
			report_more_readers(p));
	put_rate(p, "trainer alone (G)", p->g_bound ? ">=" : "", p->g, "", to);
	put_rate(p, "+ preparation (R1)", "", p->r1, "", to);
	put_rate(p, "+ source, not cached (R0)", "", p->r0, "", to);
	/* Otherwise the cache, and not the source, may have made the copy slow.
	 */
	if (p->s.value > p->r0.value)
		put_rate(p, "source alone (S)", "", p->s, few, to);
	else
		put_rate(p, "source alone (S)", ">=", r0, "", to);
	(void)fprintf(to, "processors used with everything cached: %.0f %%\n\n",
		100 * p->cpus_used);
}

static void put_epoch(
	const struct profile *p, const struct model_shares *s, FILE *to)
{
	double all = s->compute + s->prep + s->fetch + s->gaps;
	const char *most = p->g_bound ? "at most " : "";
	const char *least = p->g_bound ? "at least " : "";
	char text[TIME_TEXT_MAX];

	(void)fprintf(to,
		"An epoch with %.0f %% cached: %s = compute %s%.0f %% + prep "
		"%s%.0f %% + fetch %.0f %% (+- %.0f)",
		100 * p->cached, report_time(p->samples * all, text), most,
		100 * s->compute / all, least, 100 * s->prep / all,
		100 * s->fetch / all, 100 * profile_fetch_ci(p));
	if (s->gaps > 0)
		(void)fprintf(to, " + gaps %.0f %%", 100 * s->gaps / all);
	(void)fputc('\n', to);
}

const char *report_verdict(const struct profile *p, char buf[REPORT_TEXT_MAX])
{
	static const char *const name[LIMITS] = {
		[LIMIT_COMPUTE] = "compute",
		[LIMIT_PREP] = "preparation (prep)",
		[LIMIT_FETCH] = "the source (fetch)",
	};
	enum profile_limit likely, limit = profile_limit(p, &likely);

	if (limit == LIMIT_UNKNOWN && likely != LIMIT_FETCH &&
		profile_hides_source(p))
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"undecided between compute and preparation (prep); not "
			"bound by the source (processors %.0f %% busy)",
			100 * p->cpus_used);
	else if (limit == LIMIT_UNKNOWN)
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"undecided, perhaps %s: the parts of an epoch differ "
			"by less than their intervals",
			name[likely]);
	else
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"%s%s input-bound; the bottleneck is %s",
			p->g_bound && limit != LIMIT_COMPUTE ? "at least " : "",
			profile_verdict(p), name[limit]);
	return buf;
}

/* -- Advice ---------------------------------------------------------------- */

/* Is the effect of the change larger than the intervals of the rates? */
static bool is_worth(const struct profile *p, enum profile_change change)
{
	struct profile_rate now = profile_after(p, p->cached, CHANGE_NONE);
	struct profile_rate then = profile_after(p, p->cached, change);

	return profile_change_known(p, change) &&
		then.value > WORTH * now.value &&
		then.value - now.value > fmax(then.ci, now.ci);
}

/* Returns how to make the change: a command, or an option of the trainer. */
static const char *how_to(const struct profile *p, enum profile_change change,
	char buf[REPORT_TEXT_MAX])
{
	struct model m = profile_model(p);
	double part = change == CHANGE_ALL ? 1 : model_enough(&m);
	char size[SIZE_TEXT_MAX];

	switch (change) {
	case CHANGE_WORKERS:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			p->readers > 0 ? "num_workers=%.0f in the trainer"
				       : "a larger num_workers in the trainer",
			2 * p->readers);
		break;
	case CHANGE_PLAN:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"refrain plan MOUNTPOINT, or PlannedSampler in Python");
		break;
	case CHANGE_ECHO:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"refrain load SOURCE --echo auto");
		break;
	case CHANGE_ENOUGH:
	case CHANGE_ALL:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"refrain mount SOURCE MOUNTPOINT --cache DIR:%s",
			size_format((uint64_t)ceil(CACHE_ROOM * part *
					    (double)p->source_bytes),
				size));
		break;
	case CHANGE_RECODE:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"refrain recode SOURCE --try shows the quality");
		break;
	case CHANGE_NONE:
	case CHANGE_FASTER:
	case CHANGES:
		buf[0] = '\0';
		break;
	}
	return buf;
}

static void first_for_fetch(const struct profile *p, char buf[REPORT_TEXT_MAX])
{
	char how[REPORT_TEXT_MAX] = "";

	for (unsigned i = CHANGE_WORKERS; i <= CHANGE_ENOUGH && !*how; i++)
		if (is_worth(p, i))
			(void)how_to(p, i, how);
	(void)snprintf(buf, REPORT_TEXT_MAX,
		"First reduce the wait for the source%s%s", *how ? ": " : "",
		how);
}

static void first_for_prep(const struct profile *p, char buf[REPORT_TEXT_MAX])
{
	char more[REPORT_TEXT_MAX], echo[REPORT_TEXT_MAX];

	(void)how_to(p, CHANGE_WORKERS, more);
	(void)how_to(p, CHANGE_ECHO, echo);
	if (p->cpus_used < CPUS_FREE)
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"First prepare with more workers: %.80s; then repeat "
			"samples: %.80s",
			more, echo);
	else
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"First make preparation cheaper, or repeat samples: "
			"%.80s",
			echo);
}

const char *report_first(const struct profile *p, char buf[REPORT_TEXT_MAX])
{
	switch (profile_limit(p, NULL)) {
	case LIMIT_FETCH:
		first_for_fetch(p, buf);
		break;
	case LIMIT_PREP:
		first_for_prep(p, buf);
		break;
	case LIMIT_COMPUTE:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"The trainer itself is the limit: nothing about its "
			"input needs to change");
		break;
	case LIMIT_UNKNOWN:
	case LIMITS:
		(void)snprintf(buf, REPORT_TEXT_MAX,
			"First measure again for longer (--seconds 40), on a "
			"machine with less other work");
		break;
	}
	return buf;
}

static void put_first(const struct profile *p, const struct model *m, FILE *to)
{
	double enough = model_enough(m);
	char size[SIZE_TEXT_MAX];

	if (p->cached >= enough) {
		(void)fputs("a larger cache would not help\n", to);
		return;
	}
	(void)fprintf(to, "caching %.0f %% = %s hides the source\n",
		100 * enough,
		size_format(
			(uint64_t)(enough * (double)p->source_bytes), size));
}

static void put_verdict(
	const struct profile *p, const struct model *m, FILE *to)
{
	enum profile_limit limit = profile_limit(p, NULL);
	char text[REPORT_TEXT_MAX];

	(void)fprintf(to, "VERDICT: %s\n", report_verdict(p, text));
	(void)fprintf(to, "%s%s", report_first(p, text),
		limit == LIMIT_FETCH ? "; " : "\n");
	if (limit == LIMIT_FETCH)
		put_first(p, m, to);
}

static void put_sizes(const struct profile *p, const struct model *m, FILE *to)
{
	char text[TIME_TEXT_MAX];

	(void)fputs("\ncached     never-evict    random       LRU\n", to);
	for (size_t i = 0; i < SIZES; i++) {
		double hits[] = {sizes[i], model_hits_random(sizes[i]),
			model_hits_lru(sizes[i])};

		(void)fprintf(to, "%4.0f %%  ", 100 * sizes[i]);
		for (size_t k = 0; k < 3; k++)
			(void)fprintf(to, "%12s",
				report_time(
					p->samples * model_time(m, 1 - hits[k]),
					text));
		(void)fputc('\n', to);
	}
}

static void put_actions(
	const struct profile *p, const struct model *m, FILE *to)
{
	char text[TIME_TEXT_MAX], how[REPORT_TEXT_MAX];

	(void)fprintf(to,
		"\nAn epoch with %.0f %% cached, and (cheapest first)\n",
		100 * p->cached);
	for (unsigned i = 0; i < CHANGES; i++) {
		struct profile_rate r = profile_after(p, p->cached, i);

		if (i != CHANGE_NONE && !is_worth(p, i))
			continue;
		(void)fprintf(to, "  %-26s %9s +- %2.0f %%%s%s\n",
			profile_change_name(i),
			report_time(p->samples / r.value, text),
			100 * r.ci / r.value, *how_to(p, i, how) ? "  " : "",
			how);
	}
	if (is_worth(p, CHANGE_ECHO))
		(void)fprintf(to, "echo factor that hides the rest: %.1f\n",
			model_echo(m, 1 - p->cached));
}

bool report_has_errors(const struct profile *p)
{
	struct profile_forecast f;

	for (unsigned i = 0; i < p->npoints; i++)
		if (profile_forecast(p, i, &f))
			return true;
	return false;
}

static void put_errors(const struct profile *p, const struct model *m, FILE *to)
{
	struct profile_forecast f;

	/* If the source takes no time, no points between the ends were
	 * measured. */
	if (!report_has_errors(p))
		return;
	(void)fprintf(to,
		"\nmodel: L = %.2f at %.0f %% misses; each rate predicted from "
		"the others\n",
		model_l(m, model_knee(m)), 100 * model_knee(m));
	(void)fputs("misses   measured    model   serial  overlapped\n", to);
	for (unsigned i = 0; i < p->npoints; i++) {
		const struct profile_point *q = &p->points[i];
		double rate = q->rate.value;

		if (profile_forecast(p, i, &f))
			(void)fprintf(to,
				"%5.1f %% %8.1f/s %+6.1f %% %+6.1f %% %+9.1f "
				"%%\n",
				100 * q->miss, rate, 100 * (f.model / rate - 1),
				100 * (f.serial / rate - 1),
				100 * (f.overlapped / rate - 1));
	}
}

void profile_report(const struct profile *p, FILE *to)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);
	unsigned notes = p->nnotes > NOTES ? NOTES - 1 : p->nnotes;

	put_source(p, to);
	put_rates(p, to);
	put_epoch(p, &s, to);
	put_verdict(p, &m, to);
	put_sizes(p, &m, to);
	put_actions(p, &m, to);
	put_errors(p, &m, to);
	for (unsigned i = 0; i < notes; i++) {
		(void)fputs("note: ", to);
		escape_print(to, p->notes[i]);
		(void)fputc('\n', to);
	}
	if (p->nnotes > notes)
		(void)fprintf(to, "%u more notes: see --html or --json\n",
			p->nnotes - notes);
}
