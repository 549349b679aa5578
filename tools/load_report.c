/* SPDX-License-Identifier: MIT */
/* Prints the final report of `refrain load` as a table or as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "load.h"

static const char *const stage_names[REFRAIN_STAGES] = {
	[REFRAIN_STAGE_READ] = "read",
	[REFRAIN_STAGE_DECODE] = "decode",
	[REFRAIN_STAGE_AUGMENT] = "augment",
	[REFRAIN_STAGE_TRAINER] = "trainer",
};

#define R_ECHOES 1.04	/* --echo auto makes no echoes if R is at most this */
#define ECHO_ADVISED 4. /* with R above this, more echoes have little use */

static double load_report_ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / NS_PER_MS;
}

static double images_per_s(const struct load_result *r)
{
	return load_report_ratio(
		(double)r->served, (double)r->run_ns / NS_PER_S);
}

/* -- For people -- */

static void print_stages(const struct refrain_stats *s)
{
	char size[SIZE_TEXT_MAX], cpu[32];

	(void)printf("\n%-10s%12s%12s%14s%14s%14s\n", "stage", "items", "bytes",
		"CPU ms", "ms an item", "wait ms each");
	for (int i = 0; i < REFRAIN_STAGES; i++) {
		const struct refrain_stage *st = &s->stages[i];

		if (i == REFRAIN_STAGE_TRAINER)
			(void)snprintf(cpu, sizeof(cpu), "-");
		else
			(void)snprintf(
				cpu, sizeof(cpu), "%.1f", ms(st->cpu_ns));
		(void)printf("%-10s%12" PRIu64 "%12s%14s%14.3f%14.3f\n",
			stage_names[i], st->items, size_format(st->bytes, size),
			cpu,
			load_report_ratio(ms(st->busy_ns), (double)st->items),
			load_report_ratio(ms(st->wait_ns), (double)st->items));
	}
}

/* Print the memory that would avoid rereads, rounded up, in the form that
 * --memory accepts. */
static void print_rereads(const struct refrain_stats *s)
{
	if (!s->rereads)
		return;
	(void)printf("rereads   %" PRIu64 " files were read again", s->rereads);
	if (s->memory_wanted_bytes)
		(void)printf(": too little memory to keep them; use --memory "
			     "%" PRIu64 "M, or a smaller --batch, "
			     "--batches-ahead or --window",
			(s->memory_wanted_bytes >> 20) + 1);
	(void)printf("\n");
}

static void print_damage(const struct refrain_stats *s)
{
	if (s->errors)
		(void)printf("damage    %" PRIu64 " examples, %" PRIu64
			     " times: %" PRIu64 " unreadable, %" PRIu64
			     " not images, %" PRIu64 " damaged, %" PRIu64
			     " too large; %" PRIu64
			     " servings substituted, %" PRIu64 " zeroed\n",
			s->damaged_examples, s->errors, s->errors_read,
			s->errors_format, s->errors_damaged,
			s->errors_too_large, s->substituted, s->zero_filled);
	if (s->dropped_examples || s->dropped_echoes)
		(void)printf("dropped   %" PRIu64 " examples of a short last "
			     "batch, %" PRIu64 " echoes because the world "
			     "changed\n",
			s->dropped_examples, s->dropped_echoes);
}

/* Print which files the loader does not use. No other output reports them. */
static void print_skipped(
	const struct load_result *r, const struct refrain_stats *s)
{
	if (s->skipped_files) {
		(void)printf("skipped   %" PRIu64 " files that are no "
			     "examples; the first is '",
			s->skipped_files);
		escape_print(stdout, s->skipped_first);
		(void)puts("'");
	}
	if (s->empty_classes) {
		(void)printf("empty     %" PRIu64 " of %" PRIu64
			     " classes have no example; the first is '",
			s->empty_classes, r->classes);
		escape_print(stdout, s->empty_first);
		(void)puts("'");
	}
}

static void print_echoes(
	const struct load_options *o, const struct refrain_stats *s)
{
	bool changes = o->config.echo == REFRAIN_ECHO_AUTO;

	if (!changes && o->config.echo <= 1)
		return;
	if (changes)
		(void)printf("factor    %.3f now, after %" PRIu64
			     " changes: %s\n",
			s->echo_factor, s->echo_changes, s->echo_reason);
	if (changes && !s->echo_changes && s->echo_needs_fresh)
		(void)printf("          a first change needs a run of %" PRIu64
			     " fresh examples; a smaller --window needs "
			     "fewer\n",
			s->echo_needs_fresh);
	(void)printf("echoes    at least %" PRIu64 " steps apart, %.1f on "
		     "average; %" PRIu64 " pairs in one batch, %" PRIu64
		     " of them at the end of the run\n",
		s->min_lag_steps, s->mean_lag_steps, s->in_batch_duplicates,
		s->end_duplicates);
}

/* Print advice. Echoes save no time if the trainer is slower than the reads. */
static void print_advice(
	const struct load_options *o, const struct refrain_stats *s)
{
	double factor = s->r < ECHO_ADVISED ? s->r : ECHO_ADVISED;
	bool chosen = o->config.echo == REFRAIN_ECHO_AUTO ||
		s->echo_factor >= factor - 0.1;

	if (s->r > R_ECHOES && chosen)
		(void)printf("\nslowest is %s\n", s->bottleneck);
	else if (s->r > R_ECHOES)
		(void)printf("\nslowest is %s; echoes from --echo-point %s "
			     "would help, --echo %.1f\n",
			s->bottleneck, s->suggested_point, factor);
	else if (s->r > 0) /* R is 0 if it was not measured */
		(void)printf("\nslowest is %s; a batch is produced faster "
			     "than it is consumed, so echoes would not help\n",
			s->bottleneck);
}

static void print_share(
	const struct load_options *o, const struct refrain_stats *s)
{
	if (!o->config.share)
		return;
	(void)printf("share     '%s' of %" PRIu64 " jobs, hosted by process "
		     "%" PRIu64 ", after %" PRIu64 " takeovers%s; reads and "
		     "decodes are counted at the host\n",
		o->config.share, s->share_jobs, s->share_host_pid,
		s->share_takeovers,
		s->share_solo		  ? "; this job continued alone"
			: s->share_parted ? "; this job ran alone for a while"
					  : "");
}

static void print_fields(const struct refrain_stats *s)
{
	if (s->rows_cut)
		(void)printf("fields    %" PRIu64
			     " rows were cut; raise the max "
			     "of their field to keep them\n",
			s->rows_cut);
	if (s->tail_tokens)
		(void)printf("tokens    %" PRIu64
			     " tokens at the ends of files are in no window of "
			     "a pass\n",
			s->tail_tokens);
}

static void print_hashes(
	const struct load_options *o, const struct load_result *r)
{
	(void)printf("hashes    stream %016" PRIx64, r->stats.stream_hash);
	if (!o->no_hash)
		(void)printf(", pixels %016" PRIx64, r->pixel_hash);
	if (!o->no_hash && o->config.fields)
		(void)printf(", fields %016" PRIx64, r->fields_hash);
	(void)printf("\n");
}

void load_print(const struct load_options *o, const struct load_result *r)
{
	const struct refrain_stats *s = &r->stats;
	char read[SIZE_TEXT_MAX], peak[SIZE_TEXT_MAX], pool[SIZE_TEXT_MAX];

	if (!r->steps) {
		(void)printf("the run has already ended; there is nothing "
			     "left to load\n");
		return;
	}
	(void)printf("served    %" PRIu64 " examples in %" PRIu64
		     " steps, %" PRIu64
		     " of them fresh (echo %.2f), %.1f a second\n",
		r->served, r->steps, r->fresh,
		load_report_ratio((double)r->served, (double)r->fresh),
		images_per_s(r));
	(void)printf("read      %s of %" PRIu64 " files, %" PRIu64
		     " decodes (%" PRIu64 " of them again)\n",
		size_format(s->bytes_read, read), s->files_read, s->decodes,
		s->redecodes);
	(void)printf("a batch   %.2f ms to produce, %.2f ms to consume: r = "
		     "%.2f; stalled %.1f %% of the time\n",
		s->t_upstream_ms, s->t_downstream_ms, s->r, s->stall_pct);
	print_echoes(o, s);
	(void)printf("memory    peak %s, %s of it decoded examples\n",
		size_format(s->memory_bytes_peak, peak),
		size_format(s->pool_bytes_peak, pool));
	print_skipped(r, s);
	print_rereads(s);
	print_damage(s);
	print_fields(s);
	print_share(o, s);
	(void)printf("time      %.2f s in all; started in %.1f ms, first batch "
		     "after %.1f ms\n",
		ms(r->open_ns + r->run_ns) / 1000, ms(r->open_ns),
		ms(r->first_ns));
	print_hashes(o, r);
	print_stages(s);
	print_advice(o, s);
}

/* -- For programs -- */

static void set_count(json_t *o, const char *name, uint64_t value)
{
	(void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void set_real(json_t *o, const char *name, double value)
{
	(void)json_object_set_new(o, name, json_real(value));
}

/* Add the results that the loader does not count. */
static void add_run(json_t *o, const struct load_options *options,
	const struct load_result *r)
{
	char hash[17];

	set_count(o, "examples", r->examples);
	set_count(o, "classes", r->classes);
	set_count(o, "batch", options->config.batch);
	set_real(o, "realised_echo",
		load_report_ratio((double)r->served, (double)r->fresh));
	set_real(o, "echo_factor_last", r->stats.echo_factor);
	set_real(o, "seconds", (double)r->run_ns / NS_PER_S);
	set_real(o, "open_ms", ms(r->open_ns));
	set_real(o, "first_batch_ms", ms(r->first_ns));
	set_real(o, "images_per_s", images_per_s(r));
	(void)snprintf(hash, sizeof(hash), "%016" PRIx64, r->pixel_hash);
	if (!options->no_hash)
		(void)json_object_set_new(o, "pixel_hash", json_string(hash));
	(void)snprintf(hash, sizeof(hash), "%016" PRIx64, r->fields_hash);
	if (!options->no_hash && options->config.fields)
		(void)json_object_set_new(o, "fields_hash", json_string(hash));
}

static void add_shared_run(json_t *o, const struct load_options *options,
	const struct refrain_stats *s)
{
	json_t *share = json_object();

	if (!options->config.share) {
		json_decref(share);
		return;
	}
	(void)json_object_set_new(
		share, "name", json_string(options->config.share));
	set_count(share, "host_pid", s->share_host_pid);
	set_count(share, "jobs", s->share_jobs);
	set_count(share, "takeovers", s->share_takeovers);
	set_count(share, "solo", s->share_solo);
	set_count(share, "parted", s->share_parted);
	(void)json_object_set_new(o, "share", share);
}

int load_print_json(
	const struct load_options *options, const struct load_result *r)
{
	CLEANUP_FREE char *text = NULL;
	json_t *o = json_loads(r->stats_json, 0, NULL);

	if (!o)
		return -ENOMEM;
	add_run(o, options, r);
	add_shared_run(o, options, &r->stats);
	/* If memory for a value was short, the value is missing in the object.
	 */
	text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	(void)puts(text); /* main() checks for write errors */
	return 0;
}
