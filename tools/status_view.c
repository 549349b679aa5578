/* SPDX-License-Identifier: MIT */
/* Prints a one-screen summary of a mount. No state. */
#include "status_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/counters.h"
#include "common/base/escape.h"
#include "common/base/latency.h"
#include "common/base/size.h"
#include "progress.h"

/* Format of the first column, which has the labels. */
#define LABEL "  %-10s"

/* The status to print, and the one before it. */
struct view {
	const json_t *now, *before;
	double elapsed_s;
};

static const char *size_of(const json_t *s, const char *key, char *buf)
{
	return size_format(ask_number(s, key), buf);
}

static bool has(const struct view *v, const char *key)
{
	return json_object_get(v->now, key) != NULL;
}

/* Returns the growth of a counter per second; 0 without an earlier status. */
static double rate(const struct view *v, const char *key)
{
	uint64_t now = ask_number(v->now, key);
	uint64_t then = ask_number(v->before, key);

	if (!v->before || v->elapsed_s <= 0 || now < then)
		return 0;
	return (double)(now - then) / v->elapsed_s;
}

static void print_byte_rate(const struct view *v, const char *key)
{
	char text[SIZE_TEXT_MAX];

	if (v->before)
		(void)printf(", now %s/s",
			size_format((uint64_t)rate(v, key), text));
}

static void print_time(uint64_t s)
{
	if (s < 120)
		(void)printf("%" PRIu64 " s", s);
	else if (s < 7200)
		(void)printf("%" PRIu64 " min", s / 60);
	else if (s < 2 * 86400)
		(void)printf("%" PRIu64 " h %" PRIu64 " min", s / 3600,
			s % 3600 / 60);
	else
		(void)printf("%" PRIu64 " days %" PRIu64 " h", s / 86400,
			s % 86400 / 3600);
}

static void print_ms(uint64_t ms)
{
	if (ms < 10000)
		(void)printf("%.1f s", (double)ms / 1000);
	else
		print_time(ms / 1000);
}

/* Print a line with a text that the daemon has sent. */
static void print_line(const char *label, const char *text)
{
	(void)printf(LABEL, label);
	escape_print(stdout, text);
	(void)putchar('\n');
}

static void status_view_print_head(const struct view *v)
{
	char known[SIZE_TEXT_MAX];

	ask_print(stdout, v->now, "source");
	(void)fputs(" on ", stdout);
	ask_print(stdout, v->now, "mountpoint");
	(void)fputs(", up ", stdout);
	print_time(ask_number(v->now, "uptime_s"));
	(void)printf("\n" LABEL "%" PRIu64 " known, %s", "files",
		ask_number(v->now, "files_known"),
		size_of(v->now, "bytes_known", known));
	if (*ask_text(v->now, "scan")) {
		(void)fputs(", scan ", stdout);
		ask_print(stdout, v->now, "scan");
	}
	if (json_is_false(json_object_get(v->now, "ready")))
		(void)printf(", cache is still being listed");
	(void)putchar('\n');
	if (ask_number(v->now, "unlisted_directories") > 0)
		print_line("", ask_text(v->now, "unlisted_why"));
}

static void print_fill(const char *label, const json_t *object,
	const char *used_key, const char *capacity_key, const char *name)
{
	uint64_t used = ask_number(object, used_key);
	uint64_t capacity = ask_number(object, capacity_key);
	uint64_t entries = ask_number(object, "entries");
	char bar[BAR_COLUMNS + 3], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	(void)printf(LABEL "%s %3.0f %%  %s of %s, %" PRIu64 " %s%s", label,
		progress_bar(used, capacity, bar),
		capacity ? 100.0 * (double)used / (double)capacity : 0,
		size_format(used, a), size_format(capacity, b), entries,
		ask_plural(entries, "entry", "entries"), *name ? "  " : "");
	escape_print(stdout, name);
	(void)putchar('\n');
}

static void print_cache(const struct view *v)
{
	const json_t *tiers = json_object_get(v->now, "tiers");
	const json_t *only = json_array_get(tiers, 0), *tier;
	size_t i;

	print_fill("cache", v->now, "cache_used_bytes", "cache_capacity_bytes",
		json_array_size(tiers) == 1 ? ask_text(only, "dir") : "");
	for (i = 0; json_array_size(tiers) > 1 && i < json_array_size(tiers);
		i++) {
		tier = json_array_get(tiers, i);
		print_fill(i == 0 ? "tiers" : "", tier, "used_bytes",
			"capacity_bytes", ask_text(tier, "dir"));
	}
}

/* Print a part of a whole in percent. A small part is not rounded to 0 %, nor a
 * large one to 100 %. */
static void print_part(uint64_t part, uint64_t whole)
{
	double pct = 100.0 * (double)part / (double)whole;

	if (pct < 1)
		(void)fputs("less than 1 % of ", stdout);
	else if (part < whole)
		(void)printf("%.0f %% of ", pct < 99 ? pct : 99);
	else if (pct < 100.5)
		(void)fputs("100 % of ", stdout);
	else
		(void)printf("%.2f times ", pct / 100);
}

/* Print which part of the dataset the source had to deliver. The part of all
 * reads would mislead, because reads that the kernel answers do not reach the
 * mount. */
static void print_delivered(const struct view *v)
{
	bool epoch = has(v, "epoch_origin_bytes");
	const char *key = epoch ? "epoch_origin_bytes" : "origin_bytes";
	uint64_t bytes = ask_number(v->now, key);
	uint64_t known = ask_number(v->now, "bytes_known");
	const char *scan = ask_text(v->now, "scan");
	const char *so_far = epoch ? " so far" : "";
	/* If the first daemon of a mount has crashed, the next daemon counts
	 * from 0. */
	const char *since = ask_number(v->now, "recoveries") > 0
		? "since the daemon's start"
		: "since the mount";
	char text[SIZE_TEXT_MAX];

	(void)size_format(bytes, text);
	(void)printf(LABEL "%s: ", "data", epoch ? "this epoch" : since);
	if (bytes == 0) {
		(void)printf("nothing read from the source%s\n", so_far);
	} else if (known == 0 || strcmp(scan, "running") == 0) {
		(void)printf("%s read from the source%s; the size of the "
			     "dataset is not known yet\n",
			text, so_far);
	} else {
		print_part(bytes, known);
		(void)printf("the %s read from the source%s, %s\n",
			strcmp(scan, "complete") == 0 ? "dataset"
						      : "listed files",
			so_far, text);
	}
}

/* Print the reads that have reached the mount. No percentage of hits is
 * printed: the kernel may answer all hits from its page cache, so that the
 * mount sees only misses. */
static void print_reads(const struct view *v)
{
	uint64_t hits = ask_number(v->now, "hits");
	uint64_t all = hits + ask_number(v->now, "misses");
	double all_rate = rate(v, "hits") + rate(v, "misses");
	char bytes[SIZE_TEXT_MAX];

	if (all == 0)
		(void)printf(LABEL "none reached refrain", "reads");
	else if (hits == 0)
		(void)printf(LABEL "%" PRIu64 " reached refrain; the cache had "
				   "none of them",
			"reads", all);
	else
		(void)printf(LABEL "%" PRIu64 " reached refrain; the cache had "
				   "%" PRIu64 " of them, %s",
			"reads", all, hits,
			size_of(v->now, "hit_bytes", bytes));
	print_byte_rate(v, "hit_bytes");
	(void)printf("\n" LABEL "reads that the kernel answered from its page "
		     "cache do not reach refrain\n",
		"");
	if (all_rate > 0)
		(void)printf(LABEL "now %.0f items/s, the cache has %.0f of "
				   "them\n",
			"", all_rate, rate(v, "hits"));
}

/* Print the hits of loaders that opened files of a tier without the mount. The
 * other lines do not count these hits. */
static void print_direct(const struct view *v)
{
	uint64_t items = ask_number(v->now, "direct_hits");
	char bytes[SIZE_TEXT_MAX];

	if (!items)
		return;
	(void)printf(LABEL "%" PRIu64 " more opened directly by loaders, %s",
		"", items, size_of(v->now, "direct_hit_bytes", bytes));
	print_byte_rate(v, "direct_hit_bytes");
	(void)putchar('\n');
}

static void print_peer(const char *label, const json_t *peer)
{
	char used[SIZE_TEXT_MAX], capacity[SIZE_TEXT_MAX];

	(void)printf(LABEL, label);
	escape_print(stdout, ask_text(peer, "host"));
	(void)printf(": %s, %s of %s%s", ask_text(peer, "state"),
		size_of(peer, "used_bytes", used),
		size_of(peer, "capacity_bytes", capacity),
		json_is_true(json_object_get(peer, "self")) ? ", this host"
							    : "");
	if (*ask_text(peer, "reason")) {
		(void)fputs(": ", stdout);
		escape_print(stdout, ask_text(peer, "reason"));
	}
	(void)putchar('\n');
}

/* The maximum number of servers that are printed. */
#define PEER_LINES 16

static void print_peers(const struct view *v)
{
	const json_t *peers = json_object_get(v->now, "peers");
	size_t n = json_array_size(peers);
	char hits[SIZE_TEXT_MAX], fills[SIZE_TEXT_MAX];

	if (n == 0)
		return;
	for (size_t i = 0; i < n && i < PEER_LINES; i++)
		print_peer(i == 0 ? "peers" : "", json_array_get(peers, i));
	if (n > PEER_LINES)
		(void)printf(LABEL "%zu more; --json has them\n", "",
			n - PEER_LINES);
	(void)printf(LABEL "%s read from them, %s pushed to them", "",
		size_of(v->now, "peer_hit_bytes", hits),
		size_of(v->now, "peer_fill_bytes", fills));
	print_byte_rate(v, "peer_hit_bytes");
	(void)putchar('\n');
}

static void print_gain(const struct view *v, const char *bytes_key,
	const char *least_key, const char *most_key)
{
	char size[SIZE_TEXT_MAX];

	(void)printf(
		LABEL "with %s cached: ", "", size_of(v->now, bytes_key, size));
	print_ms(ask_number(v->now, least_key));
	(void)fputs(" to ", stdout);
	print_ms(ask_number(v->now, most_key));
	(void)fputs(" an epoch\n", stdout);
}

/* Print the figures of the epoch that are known; there may be none. */
static void print_epoch(const struct view *v)
{
	if (!has(v, "epoch_waited_pct"))
		return;
	(void)printf(LABEL, "epoch");
	if (has(v, "epoch"))
		(void)printf("%" PRIu64 ", ", ask_number(v->now, "epoch"));
	if (has(v, "epoch_done_pct"))
		(void)printf("%" PRIu64 " %% done, ",
			ask_number(v->now, "epoch_done_pct"));
	(void)printf("readers waited for the source %" PRIu64
		     " %% of the time\n",
		ask_number(v->now, "epoch_waited_pct"));
	/* Print no 0: either no hits were expected, or the kernel has answered
	 * them. */
	if (ask_number(v->now, "epoch_hits_pct") > 0 &&
		ask_number(v->now, "epoch_expected_hits_pct") > 0)
		(void)printf(LABEL "%" PRIu64 " %% of its bytes hit, %" PRIu64
				   " %% were expected\n",
			"", ask_number(v->now, "epoch_hits_pct"),
			ask_number(v->now, "epoch_expected_hits_pct"));
	if (!has(v, "epoch_ms"))
		return;
	(void)printf(LABEL, "");
	print_ms(ask_number(v->now, "epoch_ms"));
	(void)fputs(" an epoch with this cache\n", stdout);
	print_gain(v, "larger_cache_bytes", "larger_cache_least_ms",
		"larger_cache_most_ms");
	print_gain(v, "whole_cache_bytes", "whole_cache_least_ms",
		"whole_cache_most_ms");
}

static void print_origin(const struct view *v)
{
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], c[SIZE_TEXT_MAX];

	(void)printf(LABEL "%s in %" PRIu64 " reads, %" PRIu64 " in flight, "
			   "%" PRIu64 " readers wait",
		"origin", size_of(v->now, "origin_bytes", a),
		ask_number(v->now, "origin_reads"),
		ask_number(v->now, "inflight"), ask_number(v->now, "parked"));
	print_byte_rate(v, "origin_bytes");
	(void)printf("\n" LABEL "%s of %s, peak %s\n", "staging",
		size_of(v->now, "staging_bytes", a),
		size_of(v->now, "staging_capacity_bytes", b),
		size_of(v->now, "staging_peak_bytes", c));
	(void)printf(LABEL "%s of memory, %" PRIu64 " descriptors\n", "daemon",
		size_of(v->now, "memory_rss_bytes", a),
		ask_number(v->now, "open_fds"));
}

/* -- Latency --------------------------------------------------------------- */

/* Print the quantiles of a duration. Returns the label for the next line. */
static const char *print_quantiles(const struct view *v, const char *label,
	const char *name, const char *what)
{
	uint64_t count[LATENCY_BUCKETS] = {0};
	char half[TIME_TEXT_MAX], most[TIME_TEXT_MAX];

	ask_latency(v->now, v->before, name, count);
	if (latency_quantile_us(count, 1) == 0)
		return label;
	(void)printf(LABEL "%s: half within %s, 99 %% within %s\n", label, what,
		ask_time_text(latency_quantile_us(count, 0.5), half),
		ask_time_text(latency_quantile_us(count, 0.99), most));
	return "";
}

/* Print durations since the last screen; in the first screen, since the mount.
 */
static void print_latency(const struct view *v)
{
	const char *label = "times";

	label = print_quantiles(v, label, "read_tier", "reads from the cache");
	label = print_quantiles(v, label, "read_staging", "reads from memory");
	label = print_quantiles(v, label, "read_peer", "reads from peers");
	label = print_quantiles(
		v, label, "read_origin", "reads from the source");
	(void)print_quantiles(
		v, label, "origin_read", "requests to the source");
}

/* status reports the source as silent if it has not answered for this time. */
#define SILENT_MS 1000
#define ERROR_LINES 6

static const char *ago(const json_t *error, char *buf, size_t size)
{
	uint64_t s = ask_number(error, "age_ms") / 1000;
	uint64_t n = ask_number(error, "events");
	const char *unit = s < 120 ? "s" : s < 7200 ? "min" : "h";
	uint64_t value = s < 120 ? s : s < 7200 ? s / 60 : s / 3600;

	(void)snprintf(buf, size, "%" PRIu64 " %s ago, %" PRIu64 " %s", value,
		unit, n, ask_plural(n, "time", "times"));
	return buf;
}

static void print_error(const char *label, const json_t *error)
{
	char when[64];

	(void)printf(LABEL, label);
	escape_print(stdout, ask_text(error, "message"));
	(void)printf(" (%s)\n", ago(error, when, sizeof(when)));
}

/* Print for how long the source has been silent. Returns the label for the next
 * line. */
static const char *print_silence(const struct view *v)
{
	uint64_t ms = ask_number(v->now, "origin_silent_ms");
	uint64_t readers = ask_number(v->now, "parked");
	uint64_t n = readers ? readers : ask_number(v->now, "origin_waiting");

	if (ms < SILENT_MS)
		return "errors";
	(void)printf(LABEL "the source has not answered for ", "errors");
	print_time(ms / 1000);
	(void)printf(", %" PRIu64 " %s\n", n,
		readers ? ask_plural(n, "reader waits", "readers wait")
			: ask_plural(n, "request waits", "requests wait"));
	return "";
}

/* Print the errors that still happen. If there are none, print the last error.
 */
static void print_errors(const struct view *v)
{
	const json_t *errors = json_object_get(v->now, "errors");
	const char *label = print_silence(v);
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(errors); i++) {
		const json_t *error = json_array_get(errors, i);

		if (!json_is_true(json_object_get(error, "present")))
			continue;
		if (n++ < ERROR_LINES)
			print_error(label, error);
		label = "";
	}
	if (n > ERROR_LINES)
		(void)printf(LABEL "%zu more; --json has them\n", "",
			n - ERROR_LINES);
	if (n == 0 && json_array_size(errors) > 0)
		print_error("earlier", json_array_get(errors, 0));
}

/* Counters that are 0 if no trouble has happened. */
static const char *const trouble[] = {"origin_errors", "origin_timeouts",
	"origin_failures", "reader_errors", "stale_reads", "checksum_errors",
	"entries_lost", "tier_errors", "staging_dropped", "evictions",
	"peer_bad", "peer_foreign", "peer_errors", "peer_dropped", NULL};

static const char *explain(const char *counter)
{
	for (const struct counter_info *c = counter_table; c->name; c++)
		if (strcmp(c->name, counter) == 0)
			return c->help;
	return "";
}

static void print_trouble(const struct view *v)
{
	const char *fault = ask_text(v->now, "fault");
	const char *label = "counted";

	print_errors(v);
	for (const char *const *t = trouble; *t; t++) {
		uint64_t n = ask_number(v->now, *t);

		if (n == 0)
			continue;
		(void)printf(LABEL "%" PRIu64 " %s: %s\n", label, n, *t,
			explain(*t));
		label = "";
	}
	if (*fault)
		print_line("drill", fault);
}

static void print_limits(const struct view *v)
{
	const json_t *limits = json_object_get(v->now, "limits"), *limit;

	for (size_t i = 0; i < json_array_size(limits); i++) {
		limit = json_array_get(limits, i);
		print_line(i == 0 ? "limits" : "",
			json_is_string(limit) ? json_string_value(limit) : "");
	}
}

void status_print(const json_t *now, const json_t *before, double elapsed_s)
{
	const struct view v = {now, before, elapsed_s};

	status_view_print_head(&v);
	print_delivered(&v);
	print_cache(&v);
	print_reads(&v);
	print_direct(&v);
	print_peers(&v);
	print_epoch(&v);
	print_origin(&v);
	print_latency(&v);
	print_trouble(&v);
	print_limits(&v);
}
