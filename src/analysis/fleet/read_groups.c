/* SPDX-License-Identifier: MIT */
/*
 * Sums of READs; see read_groups.h. A group is found by a hash of its name. The
 * time of a group is the sum over its READs, which overlap if several are
 * answered at once, so it may exceed the time that has passed.
 */
#include "analysis/fleet/read_groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/hash.h"
#include "common/base/latency.h"
#include "common/base/size.h"
#include "common/base/table.h"

/* Maximum number of groups. The limit is needed because there may be millions
 * of directories. */
#define GROUPS_MAX 100000u
/* Number of lines of a table. */
#define GROUPS_SHOWN 10u

struct read_group {
	char *name;
	uint32_t hash;
	pid_t process;
	uint64_t reads, bytes, us, longest_us;
	uint64_t count[LATENCY_BUCKETS];
};

enum grouping {
	BY_PROCESS,
	BY_DIRECTORY,
	BY_SOURCE,
	GROUPINGS,
};

struct read_table {
	struct read_group *at; /* element n is number n + 1 of the table */
	size_t room;
	uint32_t n;
	struct table index;
};

struct read_groups {
	struct read_table by[GROUPINGS];
	struct read_group all;
	uint64_t lost;
};

struct read_groups *read_groups_new(void)
{
	return calloc(1, sizeof(struct read_groups));
}

void read_groups_free(struct read_groups *g)
{
	if (!g)
		return;
	for (int i = 0; i < GROUPINGS; i++) {
		for (uint32_t j = 0; j < g->by[i].n; j++)
			free(g->by[i].at[j].name);
		free(g->by[i].at);
		table_release(&g->by[i].index);
	}
	free(g);
}

static uint32_t group_hash(const void *arg, uint32_t n)
{
	const struct read_table *t = arg;

	return t->at[n - 1].hash;
}

static struct read_group *group_new(struct read_table *t, const char *name,
	size_t len, uint32_t hash, pid_t process)
{
	struct read_group *g;

	if (t->n >= GROUPS_MAX || ARRAY_ROOM_ZEROED(t->at, t->n, &t->room) < 0)
		return NULL;
	g = &t->at[t->n];
	*g = (struct read_group){
		.name = strndup(name, len), .hash = hash, .process = process};
	if (!g->name)
		return NULL;
	t->n++;
	if (table_add(&t->index, t->n, group_hash, t) < 0) {
		free(g->name);
		t->n--;
		return NULL;
	}
	return g;
}

static struct read_group *group_of(
	struct read_table *t, const char *name, size_t len, pid_t process)
{
	uint32_t hash = (uint32_t)hash64(name, len, (uint64_t)process);

	TABLE_FOREACH(n, &t->index, hash) {
		struct read_group *g = &t->at[n - 1];

		if (g->hash == hash && g->process == process &&
			strncmp(g->name, name, len) == 0 && !g->name[len])
			return g;
	}
	return group_new(t, name, len, hash, process);
}

static void group_add(struct read_group *g, const struct followed_read *r)
{
	if (!g)
		return;
	g->reads++;
	g->bytes += r->len;
	g->us += r->us;
	if (r->us > g->longest_us)
		g->longest_us = r->us;
	g->count[latency_bucket(r->us * NS_PER_US)]++;
}

void read_groups_add(struct read_groups *g, const struct followed_read *r)
{
	const char *slash = strrchr(r->path, '/');
	const char *source = read_trace_source(r->source);

	group_add(&g->all, r);
	group_add(group_of(&g->by[BY_PROCESS], r->program, strlen(r->program),
			  r->process),
		r);
	group_add(group_of(&g->by[BY_DIRECTORY], slash ? r->path : ".",
			  slash ? (size_t)(slash - r->path) : 1, 0),
		r);
	group_add(group_of(&g->by[BY_SOURCE], source, strlen(source), 0), r);
}

void read_groups_lost(struct read_groups *g, uint64_t reads)
{
	g->lost += reads;
}

static int takes_longer(const void *a, const void *b)
{
	const struct read_group *const *x = a, *const *y = b;

	return ((*x)->us < (*y)->us) - ((*x)->us > (*y)->us);
}

/* Returns the groups, the one with the longest time first. Returns NULL if
 * there are none, or if memory is short. */
static const struct read_group **groups_sorted(const struct read_table *t)
{
	const struct read_group **sorted = calloc(t->n + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < t->n; i++)
		sorted[i] = &t->at[i];
	qsort(sorted, t->n, sizeof(const struct read_group *), takes_longer);
	return sorted;
}

static void print_group(const struct read_group *g, uint64_t all_us, FILE *to)
{
	char time[TIME_TEXT_MAX], size[SIZE_TEXT_MAX], half[TIME_TEXT_MAX];
	char most[TIME_TEXT_MAX], longest[TIME_TEXT_MAX];

	(void)fprintf(to, "%5.1f %% %9s %9" PRIu64 " %12s %9s %9s %9s  ",
		all_us ? 100.0 * (double)g->us / (double)all_us : 0,
		ask_time_text(g->us, time), g->reads,
		size_format(g->bytes, size),
		ask_time_text(latency_quantile_us(g->count, 0.5), half),
		ask_time_text(latency_quantile_us(g->count, 0.99), most),
		ask_time_text(g->longest_us, longest));
	if (g->process > 0)
		(void)fprintf(to, "%d ", (int)g->process);
	escape_print(to, *g->name ? g->name : "?");
	(void)fputc('\n', to);
}

static void print_table(const struct read_table *t, const char *title,
	uint64_t all_us, FILE *to)
{
	const struct read_group **sorted = groups_sorted(t);

	(void)fprintf(to, "\n%7s %9s %9s %12s %9s %9s %9s  %s\n", "SHARE",
		"TIME", "READS", "BYTES", "MEDIAN", "P99", "LONGEST", title);
	for (uint32_t i = 0; sorted && i < t->n && i < GROUPS_SHOWN; i++)
		print_group(sorted[i], all_us, to);
	if (t->n > GROUPS_SHOWN)
		(void)fprintf(
			to, "and %" PRIu32 " more\n", t->n - GROUPS_SHOWN);
	free(sorted);
}

void read_groups_print(struct read_groups *g, FILE *to)
{
	char time[TIME_TEXT_MAX], size[SIZE_TEXT_MAX];

	(void)fprintf(to,
		"%" PRIu64 " READ%s of %s took %s together; %" PRIu64
		" more were lost by the trace\n",
		g->all.reads, ask_plural(g->all.reads, "", "s"),
		size_format(g->all.bytes, size), ask_time_text(g->all.us, time),
		g->lost);
	if (g->all.reads == 0)
		return;
	print_table(&g->by[BY_PROCESS], "PROCESS", g->all.us, to);
	print_table(&g->by[BY_DIRECTORY], "DIRECTORY", g->all.us, to);
	print_table(&g->by[BY_SOURCE], "SOURCE", g->all.us, to);
}

static json_t *group_json(const struct read_group *g, const char *key)
{
	json_t *buckets = json_array();
	json_t *o = json_pack("{s:I, s:I, s:I, s:I}", "reads",
		(json_int_t)g->reads, "bytes", (json_int_t)g->bytes, "us",
		(json_int_t)g->us, "longest_us", (json_int_t)g->longest_us);

	if (key)
		(void)json_object_set_new(o, key, json_string(g->name));
	if (g->process > 0)
		(void)json_object_set_new(o, "pid", json_integer(g->process));
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		(void)json_array_append_new(
			buckets, json_integer((json_int_t)g->count[i]));
	(void)json_object_set_new(o, "buckets", buckets);
	return o;
}

json_t *read_groups_json(struct read_groups *g)
{
	static const char *const names[GROUPINGS][2] = {
		{"processes", "program"},
		{"directories", "directory"},
		{"sources", "source"},
	};
	json_t *o = group_json(&g->all, NULL);

	(void)json_object_set_new(o, "lost", json_integer((json_int_t)g->lost));
	for (int i = 0; i < GROUPINGS; i++) {
		const struct read_group **sorted = groups_sorted(&g->by[i]);
		json_t *list = json_array();

		for (uint32_t j = 0; sorted && j < g->by[i].n; j++)
			(void)json_array_append_new(
				list, group_json(sorted[j], names[i][1]));
		(void)json_object_set_new(o, names[i][0], list);
		free(sorted);
	}
	return o;
}
