/* SPDX-License-Identifier: MIT */
/* The report as one page of HTML that is also well-formed XML: inline SVG,
 * colours for light and dark, no script, no reference to other files. It uses
 * only the profile. */
#include "analysis/study/report_html_impl.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "common/base/escape.h"
#include "common/base/size.h"

#define BAR_LEFT 210
#define BAR_RIGHT 130
#define BAR_HEIGHT 22
#define BAR_EACH 30
#define BARS_MAX 8

static const char page_head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
	"<meta name=\"viewport\" content=\"width=device-width\"/>"
	"<title>refrain analyze</title><style>\n"
	":root{color-scheme:light dark;--bg:#fff;--fg:#1d2126;--soft:#5b6570;"
	"--line:#dde1e6;--shade:#f3f5f7;--compute:#2f6fb0;--prep:#b87400;"
	"--fetch:#c03a4b;--gaps:#8a929b}\n"
	"@media (prefers-color-scheme:dark){:root{--bg:#16191d;--fg:#e4e7ea;"
	"--soft:#9aa4ae;--line:#343a41;--shade:#1f242a;--compute:#6fb0ee;"
	"--prep:#e6b04a;--fetch:#f07f8c;--gaps:#79828c}}\n"
	"body{background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,"
	"sans-serif;max-width:760px;margin:2em auto;padding:0 1em}\n"
	"h1{font-size:1.5em;margin:0 0 .2em}h2{font-size:1.1em;"
	"margin:2em 0 .2em}\n"
	".about{color:var(--soft);margin:0 0 .6em}"
	"code{overflow-wrap:anywhere}\n"
	"svg{width:100%;height:auto}svg text{fill:var(--fg);font-size:12px}\n"
	".mid{text-anchor:middle}.right{text-anchor:end}"
	".grid{stroke:var(--line)}\n"
	".level{stroke:var(--soft);stroke-dasharray:5 4}"
	".band{fill:var(--compute);opacity:.16}\n"
	".model{fill:none;stroke:var(--compute);stroke-width:2}\n"
	".dot{fill:var(--fg);stroke:var(--fg)}.whisker{stroke:var(--fg);"
	"stroke-width:1.5}\n"
	".odd{fill:var(--shade)}.even{fill:none}.starved{fill:var(--fetch)}\n"
	"summary{color:var(--soft);cursor:pointer;margin:.2em 0}\n"
	"table{border-collapse:collapse;display:block;overflow-x:auto}"
	"td+td,th+th{white-space:nowrap}td,th{padding:3px 14px 3px 0;"
	"text-align:right;border-bottom:1px solid var(--line);"
	"font-variant-numeric:tabular-nums}"
	"td:first-child,th:first-child{text-align:left}\n"
	"</style></head><body>\n";

/* Is the character valid in XML? U+FFFE and U+FFFF are valid in UTF-8, but not
 * in XML. */
static bool is_xml(const char *c)
{
	return strncmp(c, "\xef\xbf\xbe", 3) != 0 &&
		strncmp(c, "\xef\xbf\xbf", 3) != 0;
}

static void put_xml(FILE *to, const char *text)
{
	char shown[4 * PROFILE_TEXT_MAX];

	for (const char *c = escape_text(shown, sizeof(shown), text); *c; c++)
		if (!is_xml(c)) {
			(void)fputc('?', to);
			c += 2;
		} else if (*c == '<' || *c == '>' || *c == '&' || *c == '"')
			(void)fprintf(to, "&#%d;", *c);
		else
			(void)fputc(*c, to);
}

/* -- The head of the page -------------------------------------------------- */

static void put_page_summary(const struct profile *p, const struct model *m,
	const struct model_shares *s, FILE *to)
{
	double all = s->compute + s->prep + s->fetch + s->gaps;
	char text[TIME_TEXT_MAX], size[SIZE_TEXT_MAX];
	char verdict[REPORT_TEXT_MAX], first[REPORT_TEXT_MAX];

	(void)report_verdict(p, verdict);
	(void)fprintf(to,
		"<h1>%c%s</h1>\n"
		"<p>An epoch with %.0f %% cached takes %s.",
		toupper(verdict[0]), verdict + 1, 100 * p->cached,
		report_time(p->samples * all, text));
	if (p->cached < model_enough(m))
		(void)fprintf(to, " A cache of %.0f %% (%s) brings it to %s.",
			100 * model_enough(m),
			size_format((uint64_t)(model_enough(m) *
					    (double)p->source_bytes),
				size),
			report_time(
				p->samples * model_time(m, 1 - model_enough(m)),
				text));
	(void)fprintf(
		to, " %s.</p>\n<p class=\"about\">", report_first(p, first));
	put_xml(to, p->source);
	(void)fprintf(to, ": %s, %.0f %s; %u processors; <code>",
		size_format(p->source_bytes, size), p->samples,
		profile_unit_name(p), p->cpus);
	put_xml(to, p->command);
	(void)fputs("</code></p>\n", to);
}

static void put_rate_row(const struct profile *p, const char *name,
	const char *sign, struct profile_rate r, FILE *to)
{
	(void)fprintf(to, "<tr><td>%s</td><td>%s%.1f/s</td><td>", name, sign,
		r.value);
	if (r.ci > 0)
		(void)fprintf(to, "&#177; %.1f %%", 100 * r.ci / r.value);
	(void)fprintf(to, "</td><td>%.1f MB/s</td></tr>\n",
		r.value * (double)p->source_bytes / p->samples / 1e6);
}

static void put_rate_table(const struct profile *p, FILE *to)
{
	struct profile_rate s = p->s;

	if (s.value < p->r0.value)
		s = (struct profile_rate){p->r0.value, 0};
	(void)fprintf(to,
		"<table><tr><th>rate</th><th>%s</th><th>95 %%</th>"
		"<th>data</th></tr>\n",
		profile_unit_name(p));
	put_rate_row(
		p, "trainer alone (G)", p->g_bound ? "&#8805; " : "", p->g, to);
	put_rate_row(p, "with preparation, all cached (R1)", "", p->r1, to);
	put_rate_row(p, "from the source, nothing cached (R0)", "", p->r0, to);
	put_rate_row(p, "source alone (S)",
		p->s.value < p->r0.value ? "&#8805; " : "", s, to);
	(void)fputs("</table>\n", to);
	if (report_more_readers(p) > 1)
		(void)fprintf(to,
			"<p class=\"about\">The readers keep too few requests "
			"waiting for the source: %.1f times as many would use "
			"all of it.</p>\n",
			report_more_readers(p));
}

/* -- Bars ------------------------------------------------------------------ */

struct bar {
	const char *name;
	struct model_shares s;
	double time_s, ci_s; /* times of an epoch, in seconds */
	bool known;
};

static double put_part(FILE *to, double x, double y, double width,
	const char *name, double seconds)
{
	char text[TIME_TEXT_MAX];

	if (width <= 0)
		return x;
	(void)fprintf(to,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
		"fill=\"var(--%s)\"><title>%s: %s</title></rect>\n",
		x, y, width, BAR_HEIGHT, name, name,
		report_time(seconds, text));
	return x + width;
}

static void put_bar(const struct profile *p, const struct bar *b, double y,
	double scale, FILE *to)
{
	const struct model_shares *s = &b->s;
	double n = p->samples, x = BAR_LEFT, end;
	char text[TIME_TEXT_MAX];

	(void)fprintf(to,
		"<text class=\"right\" x=\"%d\" y=\"%.1f\">%s</text>\n",
		BAR_LEFT - 10, y + 15, b->name);
	if (!b->known) {
		(void)fprintf(to,
			"<text x=\"%d\" y=\"%.1f\">unknown: G is only a lower "
			"bound</text>\n",
			BAR_LEFT + 4, y + 15);
		return;
	}
	x = put_part(
		to, x, y, n * s->compute * scale, "compute", n * s->compute);
	x = put_part(to, x, y, n * s->prep * scale, "prep", n * s->prep);
	x = put_part(to, x, y, n * s->fetch * scale, "fetch", n * s->fetch);
	x = put_part(to, x, y, n * s->gaps * scale, "gaps", n * s->gaps);
	end = fmax(x, BAR_LEFT + (b->time_s + b->ci_s) * scale);
	if (b->ci_s > 0)
		(void)fprintf(to,
			"<line class=\"whisker\" x1=\"%.1f\" x2=\"%.1f\" "
			"y1=\"%.1f\" y2=\"%.1f\"/>\n",
			BAR_LEFT + fmax(b->time_s - b->ci_s, 0) * scale, end,
			y + BAR_HEIGHT / 2.0, y + BAR_HEIGHT / 2.0);
	(void)fprintf(to, "<text x=\"%.1f\" y=\"%.1f\">%s", end + 6, y + 15,
		report_time(b->time_s, text));
	if (b->ci_s > 0)
		(void)fprintf(to, " &#177; %.0f %%", 100 * b->ci_s / b->time_s);
	(void)fputs("</text>\n", to);
}

static void put_legend(FILE *to)
{
	static const char *const part[] = {"compute", "prep", "fetch", "gaps"};

	(void)fputs("<p class=\"about\">", to);
	for (unsigned i = 0; i < 4; i++)
		(void)fprintf(to,
			"<span style=\"color:var(--%s)\">&#9632;</span> %s "
			"&#160; ",
			part[i], part[i]);
	(void)fputs("</p>\n", to);
}

static void put_bar_table(
	const struct profile *p, const struct bar *bar, unsigned n, FILE *to)
{
	char text[TIME_TEXT_MAX];

	plot_table_begin(to,
		"<th>change</th><th>epoch</th><th>95 %</th><th>compute</th>"
		"<th>prep</th><th>fetch</th><th>gaps</th>");
	for (unsigned i = 0; i < n; i++) {
		const struct model_shares *s = &bar[i].s;
		const double part[] = {s->compute, s->prep, s->fetch, s->gaps};

		if (!bar[i].known)
			continue;
		(void)fprintf(to, "<tr><td>%s</td><td>%s</td><td>", bar[i].name,
			report_time(bar[i].time_s, text));
		if (bar[i].ci_s > 0)
			(void)fprintf(to, "&#177; %.0f %%",
				100 * bar[i].ci_s / bar[i].time_s);
		(void)fputs("</td>", to);
		for (unsigned k = 0; k < 4; k++)
			(void)fprintf(to, "<td>%s</td>",
				report_time(p->samples * part[k], text));
		(void)fputs("</tr>\n", to);
	}
	plot_table_end(to);
}

static void put_bars(const struct profile *p, const char *heading,
	const char *about, const struct bar *bar, unsigned n, FILE *to)
{
	double most = 0;

	for (unsigned i = 0; i < n; i++)
		if (bar[i].known)
			most = fmax(most, bar[i].time_s + bar[i].ci_s);
	(void)fprintf(to,
		"<h2>%s</h2>\n<p class=\"about\">%s</p>\n"
		"<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"%s\">\n",
		heading, about, PLOT_WIDTH, n * BAR_EACH, heading);
	for (unsigned i = 0; i < n && most > 0; i++)
		put_bar(p, &bar[i], i * BAR_EACH + 4.0,
			(PLOT_WIDTH - BAR_LEFT - BAR_RIGHT) / most, to);
	(void)fputs("</svg>\n", to);
	put_legend(to);
	put_bar_table(p, bar, n, to);
}

static void put_epochs(const struct profile *p, const struct model *m, FILE *to)
{
	double c = p->cached;
	const struct {
		const char *name;
		double miss;
	} at[] = {
		{"nothing cached", 1},
		{"the requested cache", 1 - c},
		{"same size, LRU", 1 - model_hits_lru(c)},
		{"same size, random", 1 - model_hits_random(c)},
		{"a sufficient cache", fmin(1 - c, 1 - model_enough(m))},
		{"everything cached", 0},
	};
	struct bar bar[BARS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		/* If nothing is cached, the bars of all policies are the same,
		 * so these are left out. */
		if (c <= 0 && i >= 1 && i <= 3)
			continue;
		bar[n] = (struct bar){.name = at[i].name,
			.s = model_share(m, at[i].miss, p->gaps),
			.time_s = p->samples * model_time(m, at[i].miss),
			.known = true};
		n++;
	}
	put_bars(p, "Where the time of an epoch goes",
		p->g_bound ? "Compute may take less than shown, because G is "
			     "only a lower bound."
			   : "Only the time of compute cannot be saved.",
		bar, n, to);
}

/* Sort by the time of an epoch, the longest first; unknown times come last. */
static void sort_bars(struct bar *bar, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0; k--) {
			struct bar swap = bar[k];

			if (bar[k - 1].known &&
				(!swap.known ||
					swap.time_s <= bar[k - 1].time_s))
				break;
			bar[k] = bar[k - 1];
			bar[k - 1] = swap;
		}
}

static struct model_shares shares_after(
	const struct profile *p, enum profile_change change, double time_s)
{
	struct model m = profile_model(p);
	struct model_shares s;

	if (change == CHANGE_WORKERS)
		m = model_workers(&m, 2);
	s = model_share(&m, 1, p->gaps);
	s.fetch = fmax(0, time_s - s.compute - s.prep - s.gaps);
	if (s.prep > time_s - s.compute - s.gaps)
		s.prep = fmax(0, time_s - s.compute - s.gaps);
	return s;
}

static void put_action_bars(const struct profile *p, FILE *to)
{
	struct bar bar[CHANGES];

	for (unsigned i = 0; i < CHANGES; i++) {
		struct profile_rate r = profile_after(p, p->cached, i);

		bar[i] = (struct bar){.name = profile_change_name(i),
			.s = shares_after(p, i, 1 / r.value),
			.time_s = p->samples / r.value,
			.ci_s = p->samples * r.ci / r.value / r.value,
			.known = profile_change_known(p, i)};
	}
	sort_bars(bar, CHANGES);
	put_bars(p, "An epoch after each change",
		"Lines: 95 % intervals. The best change is at the bottom.", bar,
		CHANGES, to);
}

/* -- The page -------------------------------------------------------------- */

static void put_point_table(const struct profile *p, FILE *to)
{
	struct profile_forecast f;

	(void)fputs("<table><tr><th>hits</th><th>measured</th>"
		    "<th>95 %</th><th>model</th><th>serial</th>"
		    "<th>overlapped</th></tr>\n",
		to);
	for (unsigned i = 0; i < p->npoints; i++) {
		const struct profile_point *q = &p->points[i];

		/* cannot fail, because the points at the ends are measured */
		(void)profile_forecast(p, i, &f);
		(void)fprintf(to,
			"<tr><td>%.1f %%</td><td>%.1f/s</td><td>&#177; "
			"%.1f</td><td>%.1f/s</td><td>%.1f/s</td>"
			"<td>%.1f/s</td></tr>\n",
			100 * (1 - q->miss), q->rate.value, q->rate.ci, f.model,
			f.serial, f.overlapped);
	}
	(void)fputs("</table>\n", to);
}

void profile_html(const struct profile *p, FILE *to)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);

	(void)fputs(page_head, to);
	put_page_summary(p, &m, &s, to);
	put_rate_table(p, to);
	put_action_bars(p, to);
	put_epochs(p, &m, to);
	plot_rates(p, &m, to);
	put_point_table(p, to);
	plot_hits(p, to);
	plot_run(p, to);
	plot_errors(p, to);
	for (unsigned i = 0; i < p->nnotes; i++) {
		(void)fputs("<p>Note: ", to);
		put_xml(to, p->notes[i]);
		(void)fputs("</p>\n", to);
	}
	(void)fputs("</body></html>\n", to);
}
