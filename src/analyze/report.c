/* SPDX-License-Identifier: MIT */
/* The report for people. All of it comes from the profile. */
#include <inttypes.h>
#include <string.h>

#include "analyze/html_impl.h"
#include "base/escape.h"
#include "base/size.h"

/* Readers that get less than this share of the rate of the source are few. */
#define READERS_FEW 0.9

/* Actions that shorten an epoch by less are not worth a line. */
#define WORTH 1.02

/*
 * The page and the profile have all of them; the text is limited to 40 lines.
 */
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
	/* Fetching it may have been slowed down by the cache, not by it. */
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
		"%s%.0f %% + fetch %.0f %%",
		100 * p->cached, report_time(p->samples * all, text), most,
		100 * s->compute / all, least, 100 * s->prep / all,
		100 * s->fetch / all);
	if (s->gaps > 0)
		(void)fprintf(to, " + gaps %.0f %%", 100 * s->gaps / all);
	(void)fputc('\n', to);
}

const char *report_verdict(const struct profile *p,
	const struct model_shares *s, char buf[VERDICT_TEXT_MAX])
{
	const char *verdict = model_verdict(s), *what = model_bottleneck(s);
	bool bound = profile_verdict_bound(p, s);

	if (bound && strcmp(what, "compute") == 0)
		(void)snprintf(buf, VERDICT_TEXT_MAX,
			"not bound by the source; preparation or compute is "
			"the limit, unknown which (processors %.0f %% busy)",
			100 * p->cpus_used);
	else
		(void)snprintf(buf, VERDICT_TEXT_MAX,
			"%s%s input-bound; the first limit is %s%s",
			bound ? "at least " : "", verdict, what,
			bound && strcmp(what, "prep") != 0
				? ", unless preparation takes more"
				: "");
	return buf;
}

const char *report_first(const struct profile *p, const struct model_shares *s)
{
	const char *what = model_bottleneck(s);

	if (profile_verdict_bound(p, s) && strcmp(what, "compute") == 0)
		return "First measure the trainer without preparation, for "
		       "example with made-up data";

	if (strcmp(what, "fetch") == 0)
		return "First reduce the wait for the source";
	if (strcmp(what, "prep") == 0)
		return "First make preparation cheaper, or use echoes";
	return "The trainer itself is the limit";
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

static void put_verdict(const struct profile *p, const struct model *m,
	const struct model_shares *s, FILE *to)
{
	char text[VERDICT_TEXT_MAX];

	(void)fprintf(to, "VERDICT%s: %s\n",
		p->repeats > REPORT_UNSURE
			? " (uncertain: the rates vary between "
			  "measurements)"
			: "",
		report_verdict(p, s, text));
	(void)fprintf(to, "%s; ", report_first(p, s));
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
	char text[TIME_TEXT_MAX];

	(void)fprintf(
		to, "\nAn epoch with %.0f %% cached, and\n", 100 * p->cached);
	for (unsigned i = 0; i < CHANGES; i++) {
		struct profile_rate r = profile_after(p, p->cached, i);
		double was = model_time(m, 1 - p->cached);

		if (!profile_change_known(p, i) ||
			(i != CHANGE_NONE && was < WORTH / r.value))
			continue;
		(void)fprintf(to, "  %-34s %10s +- %.0f %%\n",
			profile_change_name(i),
			report_time(p->samples / r.value, text),
			100 * r.ci / r.value);
	}
	(void)fprintf(to, "echo factor that hides the rest: %s%.1f\n",
		p->g_bound ? ">= " : "", model_echo(m, 1 - p->cached));
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

	/* A source that takes no time has no points between. */
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
	put_verdict(p, &m, &s, to);
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
