/* SPDX-License-Identifier: MIT */
/* Draws the plots of the HTML report; see report_html_impl.h. */
#include "analysis/study/report_html_impl.h"

#include <math.h>

#define LEFT 64
#define RIGHT 24
#define TOP 14
#define BELOW 40
#define CURVE_POINTS 60
#define STARVED_HEIGHT 50

/* The scale of a plot. */
struct axes {
	double x_most, y_most, height;
};

static double at_x(const struct axes *a, double x)
{
	return LEFT + x / a->x_most * (PLOT_WIDTH - LEFT - RIGHT);
}

static double at_y(const struct axes *a, double y)
{
	return TOP + a->height * (1 - y / a->y_most);
}

/* Returns the smallest step of 1, 2, 5, 10, ... with which there are at most
 * five lines. */
static double round_step(double most)
{
	double step = pow(10, floor(log10(most / 5)));

	if (most / step > 25)
		return 10 * step;
	if (most / step > 10)
		return 5 * step;
	return most / step > 5 ? 2 * step : step;
}

static void begin_plot(FILE *to, const char *heading, const char *about,
	const struct axes *a, double more)
{
	(void)fprintf(to,
		"<h2>%s</h2>\n<p class=\"about\">%s</p>\n"
		"<svg viewBox=\"0 0 %d %.0f\" role=\"img\" "
		"aria-label=\"%s\">\n",
		heading, about, PLOT_WIDTH, TOP + a->height + BELOW + more,
		heading);
}

void plot_table_begin(FILE *to, const char *columns)
{
	(void)fprintf(to,
		"<details><summary>Figures</summary><table><tr>%s</tr>\n",
		columns);
}

void plot_table_end(FILE *to)
{
	(void)fputs("</table></details>\n", to);
}

/* Draw horizontal lines with values at the left. */
static void put_levels(FILE *to, const struct axes *a, double times)
{
	double step = round_step(a->y_most * times) / times;

	for (double y = 0; y <= a->y_most * 1.001; y += step)
		(void)fprintf(to,
			"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
			"y2=\"%.1f\"/><text class=\"right\" x=\"%d\" "
			"y=\"%.1f\">%.6g</text>\n",
			LEFT, PLOT_WIDTH - RIGHT, at_y(a, y), at_y(a, y),
			LEFT - 8, at_y(a, y) + 4, y * times);
}

static void put_values(
	FILE *to, const struct axes *a, double times, const char *name)
{
	double step = round_step(a->x_most * times) / times;
	double y = TOP + a->height;

	for (double x = 0; x <= a->x_most * 1.001; x += step)
		(void)fprintf(to,
			"<text class=\"mid\" x=\"%.1f\" y=\"%.1f\">%.6g</text>"
			"\n",
			at_x(a, x), y + 17, x * times);
	(void)fprintf(to, "<text class=\"mid\" x=\"%d\" y=\"%.1f\">%s</text>\n",
		(LEFT + PLOT_WIDTH - RIGHT) / 2, y + 34, name);
}

/* Draw a measured rate with its interval. */
static void put_dot(FILE *to, const struct axes *a, double x,
	struct profile_rate r, const char *x_name)
{
	double low = fmax(r.value - r.ci, 0);
	double high = fmin(r.value + r.ci, a->y_most);

	(void)fprintf(to,
		"<line class=\"dot\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
		"y2=\"%.1f\"/><circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" "
		"r=\"4\"><title>%.1f/s &#177; %.1f at %.1f %s</title></circle>"
		"\n",
		at_x(a, x), at_x(a, x), at_y(a, low), at_y(a, high), at_x(a, x),
		at_y(a, r.value), r.value, r.ci,
		x * (a->x_most > 1.5 ? 1 : 100), x_name);
}

/* -- Rates ----------------------------------------------------------------- */

typedef double time_fn(const struct model *m, double miss);

static void put_model_line(FILE *to, const struct axes *a,
	const struct model *m, time_fn *time, bool back)
{
	for (unsigned i = 0; i <= CURVE_POINTS; i++) {
		double x = (double)(back ? CURVE_POINTS - i : i) / CURVE_POINTS;

		(void)fprintf(to, "%.1f,%.1f ", at_x(a, x),
			at_y(a, 1 / time(m, 1 - x)));
	}
}

static void put_level(FILE *to, const struct axes *a, double rate,
	const char *name, const char *sign)
{
	if (rate <= a->y_most)
		(void)fprintf(to,
			"<line class=\"level\" x1=\"%d\" x2=\"%d\" "
			"y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\">"
			"%s %s%.0f/s</text>\n",
			LEFT, PLOT_WIDTH - RIGHT, at_y(a, rate), at_y(a, rate),
			LEFT + 6, at_y(a, rate) - 4, name, sign, rate);
}

void plot_rates(const struct profile *p, const struct model *m, FILE *to)
{
	struct axes a = {1, 1.15 * p->r1.value, 230};
	double enough = model_enough(m);
	const char *least = p->g_bound ? "&#8805; " : "";

	for (unsigned i = 0; i < p->npoints; i++)
		a.y_most = fmax(a.y_most,
			p->points[i].rate.value + p->points[i].rate.ci);
	a.y_most = fmin(a.y_most, 1.6 * p->r1.value);
	if (!p->g_bound && m->g < 1.6 * p->r1.value)
		a.y_most = fmax(a.y_most, 1.1 * m->g);
	begin_plot(to, "Rate over the share cached",
		"Line: the model. Band: from fetching and preparing in turn to "
		"doing both at once. Dots: measurements, with 95 % intervals.",
		&a, 0);
	put_levels(to, &a, 1);
	put_values(to, &a, 100,
		"% of the dataset cached; rate per second at left");
	(void)fputs("<polygon class=\"band\" points=\"", to);
	put_model_line(to, &a, m, model_serial, false);
	put_model_line(to, &a, m, model_overlapped, true);
	(void)fputs("\"/>\n<polyline class=\"model\" points=\"", to);
	put_model_line(to, &a, m, model_time, false);
	(void)fputs("\"/>\n", to);
	put_level(to, &a, m->g, "trainer alone (G)", least);
	if (enough > 0.02 && enough < 0.99)
		(void)fprintf(to,
			"<line class=\"level\" x1=\"%.1f\" x2=\"%.1f\" "
			"y1=\"%d\" y2=\"%.1f\"/><text class=\"%s\" "
			"x=\"%.1f\" y=\"%.1f\">enough: %.0f %%</text>\n",
			at_x(&a, enough), at_x(&a, enough), TOP, TOP + a.height,
			enough > 0.7 ? "right" : "",
			at_x(&a, enough) + (enough > 0.7 ? -6 : 6),
			TOP + a.height - 8, 100 * enough);
	for (unsigned i = 0; i < p->npoints; i++)
		put_dot(to, &a, 1 - p->points[i].miss, p->points[i].rate,
			"% hits");
	(void)fputs("</svg>\n", to);
}

/* -- Hits ------------------------------------------------------------------ */

static double keep_hits(double cached)
{
	return cached;
}

static void put_policy(FILE *to, const struct axes *a, double (*hits)(double),
	const char *name, const char *colour)
{
	(void)fprintf(to,
		"<polyline class=\"model\" style=\"stroke:var(--%s)\" "
		"points=\"",
		colour);
	for (unsigned i = 0; i <= CURVE_POINTS; i++) {
		double x = (double)i / CURVE_POINTS;

		(void)fprintf(to, "%.1f,%.1f ", at_x(a, x), at_y(a, hits(x)));
	}
	(void)fprintf(to,
		"\"/>\n<text class=\"right\" x=\"%.1f\" y=\"%.1f\" "
		"style=\"fill:var(--%s)\">%s</text>\n",
		at_x(a, 0.72) - 8, at_y(a, hits(0.72)) - 3, colour, name);
}

static void put_hits_table(FILE *to)
{
	plot_table_begin(to,
		"<th>cached</th><th>never evict</th><th>random</th>"
		"<th>LRU</th>");
	for (unsigned i = 0; i <= 10; i++)
		(void)fprintf(to,
			"<tr><td>%u %%</td><td>%u %%</td><td>%.1f %%</td>"
			"<td>%.1f %%</td></tr>\n",
			10 * i, 10 * i, 100 * model_hits_random(i / 10.0),
			100 * model_hits_lru(i / 10.0));
	plot_table_end(to);
}

/* Draw the hits at a measured point over the share that was cached there. */
static void put_measured_hits(
	FILE *to, const struct axes *a, const struct profile_point *q)
{
	(void)fprintf(to,
		"<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">"
		"<title>%.1f %% hits with %.1f %% cached</title></circle>\n",
		at_x(a, q->x), at_y(a, 1 - q->miss), 100 * (1 - q->miss),
		100 * q->x);
}

void plot_hits(const struct profile *p, FILE *to)
{
	struct axes a = {1, 1, 180};

	begin_plot(to, "Hits over the share cached",
		"A cache that evicts drops files just before they are read "
		"again. The kernel's page cache lies between random and LRU. "
		"Dots: measurements.",
		&a, 0);
	put_levels(to, &a, 100);
	put_values(to, &a, 100, "% of the dataset cached; % hits at left");
	put_policy(to, &a, keep_hits, "never evict", "compute");
	put_policy(to, &a, model_hits_random, "random", "prep");
	put_policy(to, &a, model_hits_lru, "LRU", "fetch");
	for (unsigned i = 0; i < p->npoints; i++)
		put_measured_hits(to, &a, &p->points[i]);
	(void)fputs("</svg>\n", to);
	put_hits_table(to);
}

/* -- The run --------------------------------------------------------------- */

static void put_settings(
	FILE *to, const struct profile *p, const struct axes *a)
{
	double from = 0;

	for (unsigned i = 0, n = 0; i < p->nticks; i++) {
		const struct profile_tick *t = &p->ticks[i];

		if (i + 1 < p->nticks && t[1].x == t->x)
			continue;
		(void)fprintf(to,
			"<rect class=\"%s\" x=\"%.1f\" y=\"%d\" "
			"width=\"%.1f\" height=\"%.1f\"/>",
			n++ % 2 ? "odd" : "even", at_x(a, from), TOP,
			at_x(a, t->time_s) - at_x(a, from),
			a->height + STARVED_HEIGHT + 10);
		(void)fprintf(to, "<text class=\"mid\" x=\"%.1f\" y=\"%d\">",
			(at_x(a, from) + at_x(a, t->time_s)) / 2, TOP - 3);
		if (t->x < 0)
			(void)fputs("tiny", to);
		else
			(void)fprintf(to, "%.0f %%", 100 * t->x);
		(void)fputs("</text>\n", to);
		from = t->time_s;
	}
}

static void put_starved(FILE *to, const struct profile *p, const struct axes *a)
{
	double base = TOP + a->height + 10 + STARVED_HEIGHT, before = 0;

	for (unsigned i = 0; i < p->nticks; i++) {
		const struct profile_tick *t = &p->ticks[i];

		(void)fprintf(to,
			"<rect class=\"starved\" x=\"%.1f\" y=\"%.1f\" "
			"width=\"%.1f\" height=\"%.1f\"/>\n",
			at_x(a, before), base - STARVED_HEIGHT * t->starved,
			at_x(a, t->time_s) - at_x(a, before),
			STARVED_HEIGHT * t->starved);
		before = t->time_s;
	}
	(void)fprintf(to,
		"<text class=\"right\" x=\"%d\" y=\"%.1f\">waiting</text>\n",
		LEFT - 8, base - STARVED_HEIGHT / 2.0 + 4);
}

/* Write a row for each setting, with means over its time. */
static void put_run_table(FILE *to, const struct profile *p)
{
	double from = 0, before = 0, samples = 0, starved = 0;

	plot_table_begin(to,
		"<th>from</th><th>to</th><th>cached</th><th>rate</th>"
		"<th>waiting</th>");
	for (unsigned i = 0; i < p->nticks; i++) {
		const struct profile_tick *t = &p->ticks[i];

		samples += t->rate * (t->time_s - before);
		starved += t->starved * (t->time_s - before);
		before = t->time_s;
		if (i + 1 < p->nticks && t[1].x == t->x)
			continue;
		(void)fprintf(
			to, "<tr><td>%.1f s</td><td>%.1f s</td>", from, before);
		if (t->x < 0)
			(void)fputs("<td>tiny images</td>", to);
		else
			(void)fprintf(to, "<td>%.0f %%</td>", 100 * t->x);
		(void)fprintf(to, "<td>%.1f/s</td><td>%.0f %%</td></tr>\n",
			samples / (before - from),
			100 * starved / (before - from));
		from = before;
		samples = starved = 0;
	}
	plot_table_end(to);
}

void plot_run(const struct profile *p, FILE *to)
{
	struct axes a = {1, 1, 150}, low;

	if (p->nticks < 2)
		return;
	a.x_most = p->ticks[p->nticks - 1].time_s;
	if (a.x_most <= 0)
		return;
	for (unsigned i = 0; i < p->nticks; i++)
		a.y_most = fmax(a.y_most, 1.05 * p->ticks[i].rate);
	begin_plot(to, "The run",
		"Above: the rate. Below: share of the time in which a reader "
		"waited for the source. At the top: the share that was cached.",
		&a, STARVED_HEIGHT + 10);
	put_settings(to, p, &a);
	put_levels(to, &a, 1);
	low = a;
	low.height += STARVED_HEIGHT + 10;
	put_values(to, &low, 1, "seconds");
	(void)fputs("<polyline class=\"model\" points=\"", to);
	for (unsigned i = 0; i < p->nticks; i++)
		(void)fprintf(to, "%.1f,%.1f ", at_x(&a, p->ticks[i].time_s),
			at_y(&a, p->ticks[i].rate));
	(void)fputs("\"/>\n", to);
	put_starved(to, p, &a);
	(void)fputs("</svg>\n", to);
	put_run_table(to, p);
}

/* -- Errors ---------------------------------------------------------------- */

static void put_error_table(FILE *to, const struct profile *p)
{
	struct profile_forecast f;

	plot_table_begin(to,
		"<th>misses</th><th>measured</th><th>predicted</th>"
		"<th>error</th>");
	for (unsigned i = 0; i < p->npoints; i++) {
		const struct profile_point *q = &p->points[i];

		if (profile_forecast(p, i, &f))
			(void)fprintf(to,
				"<tr><td>%.1f %%</td><td>%.1f/s</td>"
				"<td>%.1f/s</td><td>%+.1f %%</td></tr>\n",
				100 * q->miss, q->rate.value, f.model,
				100 * (f.model / q->rate.value - 1));
	}
	plot_table_end(to);
}

void plot_errors(const struct profile *p, FILE *to)
{
	struct profile_forecast f;
	struct axes a = {1, 1, 200};
	double most = 0;

	for (unsigned i = 0; i < p->npoints; i++)
		most = fmax(most, p->points[i].rate.value);
	/* If the source takes no time, no points between the ends were
	 * measured. */
	if (!report_has_errors(p))
		return;
	a.x_most = a.y_most = 1.1 * most;
	begin_plot(to, "Predicted and measured",
		"Dots: measured rates, each predicted from the others. Band: "
		"4 % around the prediction.",
		&a, 0);
	put_levels(to, &a, 1);
	put_values(to, &a, 1, "rate per second predicted; measured at left");
	(void)fprintf(to,
		"<polygon class=\"band\" points=\"%.1f,%.1f %.1f,%.1f "
		"%.1f,%.1f\"/>\n",
		at_x(&a, 0), at_y(&a, 0), at_x(&a, a.x_most / 1.04),
		at_y(&a, a.y_most), at_x(&a, a.x_most),
		at_y(&a, a.y_most / 1.04));
	for (unsigned i = 0; i < p->npoints; i++)
		if (profile_forecast(p, i, &f))
			put_dot(to, &a, f.model, p->points[i].rate,
				"predicted");
	(void)fputs("</svg>\n", to);
	put_error_table(to, p);
}
