/* SPDX-License-Identifier: MIT */
/* The final report of `refrain load`: a table or a JSON object. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "load.h"

static const char *const stage_names[REFRAIN_STAGES] = {
	[REFRAIN_STAGE_READ] = "read",
	[REFRAIN_STAGE_DECODE] = "decode",
	[REFRAIN_STAGE_AUGMENT] = "augment",
	[REFRAIN_STAGE_TRAINER] = "trainer",
};

#define R_ECHOES 1.04	/* at or below it --echo auto makes no echoes */
#define ECHO_ADVISED 4. /* above it an echo is worth visibly less */

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

/* Echoes save nothing if the trainer is the slower side. */
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
	else if (s->r > 0) /* 0: nothing was measured */
		(void)printf("\nslowest is %s; a batch is produced faster "
			     "than it is consumed, so echoes would not help\n",
			s->bottleneck);
}

static void print_hashes(
	const struct load_options *o, const struct load_result *r)
{
	(void)printf("hashes    stream %016" PRIx64, r->stats.stream_hash);
	if (!o->no_hash)
		(void)printf(", pixels %016" PRIx64, r->pixel_hash);
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
	(void)printf("memory    %s at most, %s of it decoded examples\n",
		size_format(s->memory_bytes_peak, peak),
		size_format(s->pool_bytes_peak, pool));
	print_damage(s);
	(void)printf("time      %.2f s in all; started in %.1f ms, first batch "
		     "after %.1f ms\n",
		ms(r->open_ns + r->run_ns) / 1000, ms(r->open_ns),
		ms(r->first_ns));
	print_hashes(o, r);
	print_stages(s);
	print_advice(o, s);
}

/* -- For programs -- */

static json_t *stage_json(const struct refrain_stage *s)
{
	return json_pack("{s:I,s:I,s:f,s:f}", "items", (json_int_t)s->items,
		"bytes", (json_int_t)s->bytes, "busy_ms", ms(s->busy_ns),
		"wait_ms", ms(s->wait_ns));
}

static void load_report_set_int(json_t *o, const char *name, uint64_t value)
{
	(void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void set_real(json_t *o, const char *name, double value)
{
	(void)json_object_set_new(o, name, json_real(value));
}

static void set_hash(json_t *o, const char *name, uint64_t value)
{
	char text[17];

	(void)snprintf(text, sizeof(text), "%016" PRIx64, value);
	(void)json_object_set_new(o, name, json_string(text));
}

/* Add the configuration and results of the run. */
static void add_run(json_t *o, const struct load_options *options,
	const struct load_result *r)
{
	const struct refrain_stats *s = &r->stats;

	load_report_set_int(o, "examples", r->examples);
	load_report_set_int(o, "classes", r->classes);
	load_report_set_int(o, "epochs", s->epochs);
	load_report_set_int(o, "steps", r->steps);
	load_report_set_int(o, "batch", options->config.batch);
	load_report_set_int(o, "fresh", r->fresh);
	load_report_set_int(o, "served", r->served);
	set_real(o, "realised_echo",
		load_report_ratio((double)r->served, (double)r->fresh));
	load_report_set_int(o, "decodes", s->decodes);
	load_report_set_int(o, "redecodes", s->redecodes);
	load_report_set_int(o, "bytes_read", s->bytes_read);
	load_report_set_int(o, "files_read", s->files_read);
	load_report_set_int(o, "direct_hits", s->direct_hits);
	load_report_set_int(o, "rereads", s->rereads);
	load_report_set_int(o, "in_batch_duplicates", s->in_batch_duplicates);
	load_report_set_int(o, "end_duplicates", s->end_duplicates);
	load_report_set_int(o, "min_lag_steps", s->min_lag_steps);
	set_real(o, "mean_lag_steps", s->mean_lag_steps);
	set_hash(o, "stream_hash", s->stream_hash);
	if (!options->no_hash)
		set_hash(o, "pixel_hash", r->pixel_hash);
}

static void add_damage(json_t *o, const struct refrain_stats *s)
{
	load_report_set_int(o, "errors", s->errors);
	load_report_set_int(o, "damaged_examples", s->damaged_examples);
	load_report_set_int(o, "substitute_errors", s->substitute_errors);
	load_report_set_int(o, "errors_read", s->errors_read);
	load_report_set_int(o, "errors_format", s->errors_format);
	load_report_set_int(o, "errors_damaged", s->errors_damaged);
	load_report_set_int(o, "errors_too_large", s->errors_too_large);
	load_report_set_int(o, "substituted", s->substituted);
	load_report_set_int(o, "zero_filled", s->zero_filled);
	load_report_set_int(o, "dropped_examples", s->dropped_examples);
	load_report_set_int(o, "dropped_echoes", s->dropped_echoes);
	load_report_set_int(o, "dropped_fresh", s->dropped_fresh);
}

static void add_speed(json_t *o, const struct load_result *r)
{
	const struct refrain_stats *s = &r->stats;

	set_real(o, "seconds", (double)r->run_ns / NS_PER_S);
	set_real(o, "open_ms", ms(r->open_ns));
	set_real(o, "first_batch_ms", ms(r->first_ns));
	set_real(o, "images_per_s", images_per_s(r));
	set_real(o, "stall_pct", s->stall_pct);
	set_real(o, "t_upstream_ms", s->t_upstream_ms);
	set_real(o, "t_downstream_ms", s->t_downstream_ms);
	set_real(o, "r", s->r);
	set_real(o, "echo_factor_last", s->echo_factor);
	load_report_set_int(o, "echo_changes", s->echo_changes);
	load_report_set_int(o, "echo_needs_fresh", s->echo_needs_fresh);
	(void)json_object_set_new(
		o, "echo_reason", json_string(s->echo_reason));
	load_report_set_int(o, "pool_bytes_peak", s->pool_bytes_peak);
	load_report_set_int(o, "memory_bytes_peak", s->memory_bytes_peak);
	(void)json_object_set_new(o, "bottleneck", json_string(s->bottleneck));
	(void)json_object_set_new(
		o, "suggested_point", json_string(s->suggested_point));
}

static void add_stages(json_t *o, const struct refrain_stats *s)
{
	json_t *stages = json_object();

	for (int i = 0; i < REFRAIN_STAGES; i++) {
		json_t *stage = stage_json(&s->stages[i]);

		if (i != REFRAIN_STAGE_TRAINER) /* its CPU time is not ours */
			set_real(stage, "cpu_ms", ms(s->stages[i].cpu_ns));
		(void)json_object_set_new(stages, stage_names[i], stage);
	}
	(void)json_object_set_new(o, "stages", stages);
}

int load_print_json(
	const struct load_options *options, const struct load_result *r)
{
	CLEANUP_FREE char *text = NULL;
	json_t *o = json_object();

	add_run(o, options, r);
	add_damage(o, &r->stats);
	add_speed(o, r);
	add_stages(o, &r->stats);
	/* Without memory for a value, the object lacks it. */
	text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	(void)puts(text); /* main() checks for write errors */
	return 0;
}
