/* SPDX-License-Identifier: MIT */
/*
 * The report as one page of HTML that is well-formed XML: inline SVG, colours
 * for light and dark, no script, no reference to anything outside. All of it
 * comes from the profile.
 */
#include "analyze/analyze.h"

/* Plots, in units of their view boxes. */
#define WIDTH 640
#define BAR_LEFT 190
#define BAR_HEIGHT 22
#define PLOT_LEFT 60
#define PLOT_TOP 12
#define PLOT_HEIGHT 220
#define CURVE_POINTS 50

static const char page_head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
	"<title>refrain analyze</title><style>\n"
	":root{--bg:#fff;--fg:#222;--line:#bbb;--compute:#4477aa;"
	"--prep:#cc8800;--fetch:#cc3344;--gaps:#999}\n"
	"@media (prefers-color-scheme:dark){:root{--bg:#181818;--fg:#ddd;"
	"--line:#555;--compute:#77aadd;--prep:#eebb44;--fetch:#ee7777}}\n"
	"body{background:var(--bg);color:var(--fg);font:15px sans-serif;"
	"max-width:720px;margin:2em auto;padding:0 1em}\n"
	"svg{width:100%;height:auto}svg text{fill:var(--fg);font-size:13px}\n"
	"table{border-collapse:collapse}td,th{padding:2px 12px;"
	"text-align:right;border-bottom:1px solid var(--line)}\n"
	"</style></head><body>\n";

static void put_xml(FILE *to, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < ' ' || *c > '~')
			(void)fputc('?', to);
		else if (*c == '<' || *c == '>' || *c == '&' || *c == '"')
			(void)fprintf(to, "&#%d;", *c);
		else
			(void)fputc(*c, to);
}

/* -- Bars ------------------------------------------------------------------ */

struct bar {
	const char *name;
	struct model_shares s;
};

static double bar_sum(const struct bar *b)
{
	return b->s.compute + b->s.prep + b->s.fetch + b->s.gaps;
}

static double put_part(
	FILE *to, double x, unsigned row, double width, const char *name)
{
	if (width <= 0)
		return x;
	(void)fprintf(to,
		"<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\" "
		"fill=\"var(--%s)\"><title>%s</title></rect>\n",
		x, row * (BAR_HEIGHT + 6), width, BAR_HEIGHT, name, name);
	return x + width;
}

/* The longest epoch first. */
static void sort_bars(struct bar *bar, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i;
			k > 0 && bar_sum(&bar[k]) > bar_sum(&bar[k - 1]); k--) {
			struct bar swap = bar[k];

			bar[k] = bar[k - 1];
			bar[k - 1] = swap;
		}
}

static void put_bars(
	const struct profile *p, const struct bar *bar, unsigned n, FILE *to)
{
	double scale = (WIDTH - BAR_LEFT - 70) / bar_sum(&bar[0]);

	(void)fprintf(to, "<svg viewBox=\"0 0 %d %u\" role=\"img\">\n", WIDTH,
		n * (BAR_HEIGHT + 6));
	for (unsigned i = 0; i < n; i++) {
		const struct model_shares *s = &bar[i].s;
		unsigned y = i * (BAR_HEIGHT + 6) + 16;
		double x = BAR_LEFT;

		(void)fprintf(to, "<text x=\"0\" y=\"%u\">%s</text>\n", y,
			bar[i].name);
		x = put_part(to, x, i, s->compute * scale, "compute");
		x = put_part(to, x, i, s->prep * scale, "prep");
		x = put_part(to, x, i, s->fetch * scale, "fetch");
		x = put_part(to, x, i, s->gaps * scale, "gaps");
		(void)fprintf(to, "<text x=\"%.1f\" y=\"%u\">%.3g s</text>\n",
			x + 6, y, p->samples * bar_sum(&bar[i]));
	}
	(void)fputs("</svg>\n<p>", to);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const part[] = {
			"compute", "prep", "fetch", "gaps"};

		(void)fprintf(to,
			"<span style=\"color:var(--%s)\">&#9632;</span> %s ",
			part[i], part[i]);
	}
	(void)fputs("</p>\n", to);
}

static void put_epochs(const struct profile *p, const struct model *m, FILE *to)
{
	struct model planned = model_planned(m);
	struct model workers = model_workers(m, 2);
	struct model faster = model_faster(m, 2);
	double miss = 1 - p->cached, enough = 1 - model_enough(m);
	struct bar bar[] = {
		{"as analysed", model_share(m, miss, p->gaps)},
		{"enough cache", model_share(m, enough, p->gaps)},
		{"a plan", model_share(&planned, miss, p->gaps)},
		{"twice the readers", model_share(&workers, miss, p->gaps)},
		{"source twice as fast", model_share(&faster, miss, p->gaps)},
	};
	unsigned n = sizeof(bar) / sizeof(bar[0]);

	(void)fprintf(to, "<h2>An epoch with %.0f %% cached, and after</h2>\n",
		100 * p->cached);
	sort_bars(bar, n);
	put_bars(p, bar, n, to);
}

/* -- The curve ------------------------------------------------------------- */

static double plot_x(double cached)
{
	return PLOT_LEFT + cached * (WIDTH - PLOT_LEFT - 20);
}

static double plot_y(double rate, double most)
{
	return PLOT_TOP + PLOT_HEIGHT * (1 - rate / most);
}

static void put_curve_line(const struct model *m, double most,
	double (*time)(const struct model *m, double miss), const char *style,
	FILE *to)
{
	(void)fprintf(to, "<polyline fill=\"none\" %s points=\"", style);
	for (unsigned i = 0; i <= CURVE_POINTS; i++) {
		double cached = (double)i / CURVE_POINTS;

		(void)fprintf(to, "%.1f,%.1f ", plot_x(cached),
			plot_y(1 / time(m, 1 - cached), most));
	}
	(void)fputs("\"/>\n", to);
}

static void put_dots(const struct profile *p, double most, FILE *to)
{
	for (unsigned i = 0; i < p->npoints; i++) {
		const struct profile_point *q = &p->points[i];

		(void)fprintf(to,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" "
			"fill=\"var(--fetch)\"><title>%.1f/s at %.0f %% "
			"hits</title></circle>\n",
			plot_x(1 - q->miss), plot_y(q->rate.value, most),
			q->rate.value, 100 * (1 - q->miss));
	}
}

static void put_curve(const struct profile *p, const struct model *m, FILE *to)
{
	double most = 1.1 * p->r1.value;

	for (unsigned i = 0; i < p->npoints; i++)
		if (p->points[i].rate.value > most)
			most = p->points[i].rate.value;
	(void)fprintf(to,
		"<h2>Rate over the share cached</h2>\n"
		"<svg viewBox=\"0 0 %d %d\" role=\"img\">\n",
		WIDTH, PLOT_TOP + PLOT_HEIGHT + 30);
	for (unsigned i = 0; i <= 4; i++)
		(void)fprintf(to,
			"<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"var(--line)\"/><text x=\"0\" "
			"y=\"%.1f\">%.0f/s</text><text x=\"%.1f\" "
			"y=\"%d\">%u %%</text>\n",
			PLOT_LEFT, WIDTH - 20, plot_y(most * i / 4, most),
			plot_y(most * i / 4, most),
			plot_y(most * i / 4, most) + 4, most * i / 4,
			plot_x(i / 4.0) - 20, PLOT_TOP + PLOT_HEIGHT + 22,
			25 * i);
	put_curve_line(m, most, model_serial,
		"stroke=\"var(--line)\" stroke-dasharray=\"4\"", to);
	put_curve_line(m, most, model_overlapped,
		"stroke=\"var(--line)\" stroke-dasharray=\"4\"", to);
	put_curve_line(m, most, model_time,
		"stroke=\"var(--compute)\" stroke-width=\"2\"", to);
	put_dots(p, most, to);
	(void)fputs(
		"</svg>\n<p>Line: the model; dashed: fetching and preparing "
		"never or fully at the same time; dots: measured.</p>\n",
		to);
}

static void put_table(const struct profile *p, const struct model *m, FILE *to)
{
	(void)fputs("<table><tr><th>hits</th><th>measured</th>"
		    "<th>95 %</th><th>model</th></tr>\n",
		to);
	for (unsigned i = 0; i < p->npoints; i++) {
		const struct profile_point *q = &p->points[i];

		(void)fprintf(to,
			"<tr><td>%.1f %%</td><td>%.1f/s</td><td>&#177; "
			"%.1f</td><td>%.1f/s</td></tr>\n",
			100 * (1 - q->miss), q->rate.value, q->rate.ci,
			1 / model_time(m, q->miss));
	}
	(void)fputs("</table>\n", to);
}

void profile_html(const struct profile *p, FILE *to)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);

	(void)fputs(page_head, to);
	(void)fprintf(to, "<h1>%s input-bound: %s</h1>\n<p>", model_verdict(&s),
		model_bottleneck(&s));
	put_xml(to, p->source);
	(void)fprintf(to, ", %.0f samples<br/>", p->samples);
	put_xml(to, p->command);
	(void)fputs("</p>\n", to);
	put_epochs(p, &m, to);
	put_curve(p, &m, to);
	put_table(p, &m, to);
	for (unsigned i = 0; i < p->nnotes; i++) {
		(void)fputs("<p>Note: ", to);
		put_xml(to, p->notes[i]);
		(void)fputs("</p>\n", to);
	}
	(void)fputs("</body></html>\n", to);
}
