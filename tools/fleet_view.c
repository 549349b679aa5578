/* SPDX-License-Identifier: MIT */
/* Prints one line for each mount and share. Dead mounts come first, because
 * their readers get errors. Then come the mounts whose readers have waited
 * longest. One thread. */
#include "fleet_view.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/fleet/fleet.h"
#include "analysis/fleet/request.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/latency.h"
#include "common/base/size.h"
#include "share_views.h"

struct fleet_view {
	struct fleet *fleet;
	bool again; /* there was an earlier look, so rates can be computed */
	struct share_questions *questions;
	struct share_seen *share;
	size_t nshares;
	struct error share_why; /* why shares cannot be listed, or "" */
};

int fleet_view_new(struct fleet_view **out, struct error *err)
{
	struct fleet_view *v = calloc(1, sizeof(*v));

	if (!v || fleet_new(&v->fleet) < 0) {
		free(v);
		return error_set(err, -ENOMEM, "cannot look: %m");
	}
	*out = v;
	return 0;
}

void fleet_view_free(struct fleet_view *v)
{
	if (!v)
		return;
	fleet_free(v->fleet);
	share_views_free(v->questions);
	free(v->share);
	free(v);
}

int fleet_view_look(struct fleet_view *v, struct error *err)
{
	uint64_t until_ns = clock_now_ns() + FLEET_TIMEOUT_MS * NS_PER_MS;
	int rc;

	free(v->share);
	v->share = NULL;
	v->nshares = 0;
	v->share_why.msg[0] = '\0';
	/* Ask the hosts of shares first: they answer while the mounts are
	 * asked. */
	rc = share_views_begin(&v->questions, NULL, &v->share_why);
	v->again = fleet_count(v->fleet) > 0;
	if (fleet_look(v->fleet, FLEET_TIMEOUT_MS, err) < 0) {
		if (rc == 0)
			(void)share_views_end(v->questions, 0, &v->share,
				&v->nshares, &v->share_why);
		return -EIO;
	}
	if (rc == 0)
		(void)share_views_end(v->questions, until_ns, &v->share,
			&v->nshares, &v->share_why);
	return 0;
}

bool fleet_view_failed(const struct fleet_view *v)
{
	for (size_t i = 0; i < fleet_count(v->fleet); i++) {
		enum fleet_state state = fleet_get(v->fleet, i).state;

		if (state == FLEET_DEAD || state == FLEET_HUNG)
			return true;
	}
	for (size_t i = 0; i < v->nshares; i++)
		if (v->share[i].rc < 0)
			return true;
	return false;
}

/* -- The order ------------------------------------------------------------- */

struct fleet_row {
	struct fleet_mount m;
	uint64_t waits_ms; /* time for which the first reader has waited */
};

static struct fleet_row row_of(struct fleet_mount m)
{
	struct fleet_row row = {.m = m};

	if (m.state == FLEET_DEAD)
		row.waits_ms = UINT64_MAX;
	else if (m.state == FLEET_HUNG)
		row.waits_ms = m.silent_ns / NS_PER_MS;
	else
		row.waits_ms = ask_number(m.status, "parked_longest_ms");
	return row;
}

static int compare_rows(const void *a, const void *b)
{
	const struct fleet_row *x = a, *y = b;

	if (x->waits_ms != y->waits_ms)
		return x->waits_ms > y->waits_ms ? -1 : 1;
	return strcmp(x->m.mountpoint, y->m.mountpoint);
}

/* Returns all mounts and shares in the order of printing; the caller frees
 * them. Returns NULL if memory is short. */
static struct fleet_row *rows_of(const struct fleet_view *v)
{
	size_t n = fleet_count(v->fleet);
	struct fleet_row *rows = calloc(n + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < n; i++)
		rows[i] = row_of(fleet_get(v->fleet, i));
	if (rows)
		qsort(rows, n, sizeof(*rows), compare_rows);
	return rows;
}

/* -- A line ---------------------------------------------------------------- */

/* Returns the growth of a counter per second; in the first look, the counter
 * itself. */
static uint64_t amount(const struct fleet_mount *m, const char *key)
{
	uint64_t now = ask_number(m->status, key);
	uint64_t then = ask_number(m->before, key);

	if (m->elapsed_ns == 0)
		return now;
	return now < then ? 0
			  : (uint64_t)((double)(now - then) * (double)NS_PER_S /
				    (double)m->elapsed_ns);
}

static void print_amount(FILE *to, const struct fleet_mount *m, const char *key)
{
	char text[SIZE_TEXT_MAX];
	uint64_t n = amount(m, key);

	(void)fprintf(to, " %9s", n ? size_format(n, text) : "-");
}

/* Print the time within which 99 % of the reads were answered. */
static void print_p99(FILE *to, const struct fleet_mount *m)
{
	uint64_t count[LATENCY_BUCKETS] = {0}, us;
	char text[TIME_TEXT_MAX];

	for (unsigned i = LATENCY_TIER; i <= LATENCY_ORIGIN; i++)
		ask_latency(m->status, m->before, latency_table[i].name, count);
	us = latency_quantile_us(count, 0.99);
	(void)fprintf(to, " %7s", us ? ask_time_text(us, text) : "-");
}

static void print_pct(FILE *to, uint64_t part, uint64_t whole)
{
	if (whole == 0)
		(void)fprintf(to, " %5s", "-");
	else
		(void)fprintf(
			to, " %3.0f %%", 100.0 * (double)part / (double)whole);
}

/* Print for how long the first reader has waited. */
static void print_waits(FILE *to, uint64_t ms)
{
	if (ms == 0)
		(void)fprintf(to, " %7s", "-");
	else if (ms < 1000)
		(void)fprintf(to, " %4" PRIu64 " ms", ms);
	else if (ms < 600 * 1000)
		(void)fprintf(to, " %5" PRIu64 " s", ms / 1000);
	else
		(void)fprintf(to, " %3" PRIu64 " min", ms / 60000);
}

static void print_up(FILE *to, const struct fleet_row *row)
{
	const struct fleet_mount *m = &row->m;
	uint64_t hits = amount(m, "hits"), misses = amount(m, "misses");
	uint64_t readers = ask_number(m->status, "parked");

	print_waits(to, row->waits_ms);
	if (readers)
		(void)fprintf(to, " %7" PRIu64, readers);
	else
		(void)fprintf(to, " %7s", "-");
	print_amount(to, m, "hit_bytes");
	print_amount(to, m, "peer_hit_bytes");
	print_amount(to, m, "origin_bytes");
	print_p99(to, m);
	print_pct(to, hits, hits + misses);
	print_pct(to, ask_number(m->status, "cache_used_bytes"),
		ask_number(m->status, "cache_capacity_bytes"));
	if (ask_number(m->status, "errors_present") > 0)
		(void)fprintf(to, " %6" PRIu64,
			ask_number(m->status, "errors_present"));
	else
		(void)fprintf(to, " %6s", "-");
}

static void print_row(FILE *to, const struct fleet_row *row)
{
	const struct fleet_mount *m = &row->m;

	(void)fprintf(to, "%-7s", fleet_state_name(m->state));
	if (m->state == FLEET_UP) {
		print_up(to, row);
	} else {
		print_waits(to, m->silent_ns / NS_PER_MS);
		(void)fprintf(to, "%64s", "");
	}
	(void)fputs("  ", to);
	escape_print(to, m->mountpoint);
	if (m->why[0]) {
		(void)fputs(": ", to);
		escape_print(to, m->why);
	}
	(void)fputc('\n', to);
}

static void print_share_line(FILE *to, const struct share_seen *s)
{
	const struct share_view *v = &s->view;
	const struct share_job *slowest;

	(void)fputs(s->rc < 0 ? "share?   " : "share    ", to);
	escape_print(to, s->name);
	if (s->rc < 0) {
		(void)fputs(": ", to);
		escape_print(to, s->err.msg);
		(void)fputc('\n', to);
		return;
	}
	(void)fprintf(to,
		": process %u hosts, %u of %u jobs, step %" PRIu64
		", %u of %u batches held",
		v->host_pid, v->jobs_n, v->wanted ? v->wanted : v->jobs_n,
		v->step, v->slots_held, v->slots);
	slowest = v->jobs_n > 1 ? share_view_slowest(v) : NULL;
	if (slowest)
		(void)fprintf(
			to, ", the others wait for process %u", slowest->pid);
	(void)fputc('\n', to);
}

static void print_summary(FILE *to, const struct fleet_view *v)
{
	unsigned counts[FLEET_REFUSED + 1] = {0};
	size_t n = fleet_count(v->fleet);
	const char *before = ": ";

	for (size_t i = 0; i < n; i++)
		counts[fleet_get(v->fleet, i).state]++;
	(void)fprintf(to, "%zu %s", n, ask_plural(n, "mount", "mounts"));
	for (unsigned i = 0; i <= FLEET_REFUSED; i++) {
		if (counts[i] == 0)
			continue;
		(void)fprintf(to, "%s%u %s", before, counts[i],
			fleet_state_name((enum fleet_state)i));
		before = ", ";
	}
	(void)fprintf(to, "; %zu %s of this user\n", v->nshares,
		ask_plural(v->nshares, "share", "shares"));
}

static int print_lines(FILE *to, const struct fleet_view *v)
{
	CLEANUP_FREE struct fleet_row *rows = rows_of(v);
	size_t n = fleet_count(v->fleet);
	const char *s = v->again ? "/s" : "";
	char cache[16], peers[16], source[16];

	if (!rows)
		return -ENOMEM;
	print_summary(to, v);
	(void)snprintf(cache, sizeof(cache), "CACHE%s", s);
	(void)snprintf(peers, sizeof(peers), "PEERS%s", s);
	(void)snprintf(source, sizeof(source), "SOURCE%s", s);
	if (n > 0)
		(void)fprintf(to,
			"%-7s %7s %7s %9s %9s %9s %7s %5s %5s %6s  %s\n",
			"STATE", "WAITS", "READERS", cache, peers, source,
			"P99", "HITS", "FULL", "ERRORS", "MOUNTPOINT");
	for (size_t i = 0; i < n; i++)
		print_row(to, &rows[i]);
	for (size_t i = 0; i < v->nshares; i++)
		print_share_line(to, &v->share[i]);
	if (v->share_why.msg[0])
		(void)fprintf(to, "share?   %s\n", v->share_why.msg);
	return 0;
}

/* -- The screen ------------------------------------------------------------ */

/* Print up to `columns` characters of a line. */
static void print_cut(const char *line, size_t len, unsigned columns)
{
	size_t end = 0;

	for (unsigned n = 0; end < len; end++) {
		bool begins = ((unsigned char)line[end] & 0xc0) != 0x80;

		if (begins && ++n > columns)
			break;
	}
	(void)fwrite(line, 1, end, stdout);
	(void)fputs("\033[K\n", stdout);
}

/* Draw the text over the last screen. The screen is not erased first, so it
 * does not flicker. */
static void screen_draw(const char *text, const struct winsize *w)
{
	unsigned left = w->ws_row > 2 ? w->ws_row - 2U : 1;

	(void)fputs("\033[H", stdout);
	while (*text && left-- > 0) {
		size_t len = strcspn(text, "\n");

		print_cut(text, len, w->ws_col ? w->ws_col : 80);
		text += len + (text[len] == '\n');
	}
	(void)fputs(*text ? "...\033[K\033[J" : "\033[J", stdout);
}

int fleet_view_print(const struct fleet_view *v, bool redraw)
{
	CLEANUP_FREE char *text = NULL;
	struct winsize w;
	size_t size;
	FILE *to;
	int rc;

	if (!redraw || isatty(STDOUT_FILENO) != 1 ||
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		return print_lines(stdout, v);
	to = open_memstream(&text, &size);
	if (!to)
		return -ENOMEM;
	rc = print_lines(to, v);
	if (fclose(to) != 0 || rc < 0)
		return -ENOMEM;
	screen_draw(text, &w);
	return 0;
}

/* -- For programs ---------------------------------------------------------- */

static json_t *mount_json(const struct fleet_mount *m)
{
	char path[4 * PATH_MAX], why[4 * sizeof(struct error)];
	json_t *o = json_pack("{s:s, s:s}", "mountpoint",
		escape_text(path, sizeof(path), m->mountpoint), "state",
		fleet_state_name(m->state));

	if (m->state == FLEET_HUNG)
		(void)json_object_set_new(o, "silent_ms",
			json_integer((json_int_t)(m->silent_ns / NS_PER_MS)));
	if (m->status)
		(void)json_object_set(
			o, "status", (json_t *)(uintptr_t)m->status);
	else
		(void)json_object_set_new(o, "why",
			json_string(escape_text(why, sizeof(why), m->why)));
	return o;
}

int fleet_view_print_json(const struct fleet_view *v)
{
	CLEANUP_FREE struct fleet_row *rows = rows_of(v);
	json_t *mounts = json_array(), *shares = json_array(), *o;

	for (size_t i = 0; rows && i < fleet_count(v->fleet); i++)
		(void)json_array_append_new(mounts, mount_json(&rows[i].m));
	for (size_t i = 0; i < v->nshares; i++)
		(void)json_array_append_new(
			shares, share_seen_json(&v->share[i]));
	o = json_pack("{s:o, s:o}", "mounts", mounts, "shares", shares);
	if (!rows || !o) {
		json_decref(o);
		return -ENOMEM;
	}
	ask_print_json(o);
	json_decref(o);
	return 0;
}
