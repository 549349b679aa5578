/* SPDX-License-Identifier: MIT */
/*
 * The trainer of the experiments with data echoing. It trains a small model on
 * batches of refrain's loader. It prints a line of JSON at the beginning, at
 * each report and at the end. The numbers of fresh, served, read and decoded
 * examples in these lines come from the loader.
 *
 * Scores during training vary much. So the target counts as reached only when
 * the mean of the last scores reaches it. One thread in addition to those of
 * the loader.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

#define STEP_TIMEOUT_MS 120000
#define STATS_BYTES 8192

struct run {
	const struct train_options *o;
	struct model *model;
	struct refrain_loader *loader;
	struct held_out held_out;
	/* number of steps of the whole run, and of those done */
	uint64_t steps, done;
	/* step of the last report; number of steps between reports */
	uint64_t reported, every;
	double loss;	   /* sum of the losses since the last report */
	double evaluating; /* seconds spent on scoring */
	struct timespec begun;
	double scores[SMOOTH_MAX]; /* ring of the last scores */
	uint64_t reports;
	bool reached, diverged;
};

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "echo-train: %s: %s\n", what, why);
	return 1;
}

static double seconds_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begun->tv_sec) +
		(double)(now.tv_nsec - begun->tv_nsec) * 1e-9;
}

static struct refrain_stats stats_of(struct run *r)
{
	struct refrain_stats s = {.size = sizeof(s)};

	/* fails only without a loader; then the sums are 0 */
	(void)refrain_stats_get(r->loader, &s);
	return s;
}

/* Returns the mean of the last scores; 0 if there are too few scores yet. */
static double mean_score(const struct run *r)
{
	double sum = 0;

	if (r->reports < r->o->smooth)
		return 0;
	for (unsigned i = 0; i < r->o->smooth; i++)
		sum += r->scores[(r->reports - 1 - i) % SMOOTH_MAX];
	return sum / r->o->smooth;
}

/* -- Lines of JSON -- */

/* Print a number. JSON has neither infinity nor NaN; null stands for them. */
static void print_real(const char *name, double v)
{
	if (isfinite(v))
		printf(",\"%s\":%.6g", name, v);
	else
		printf(",\"%s\":null", name);
}

static void print_count(const char *name, uint64_t v)
{
	printf(",\"%s\":%llu", name, (unsigned long long)v);
}

static void end_line(void)
{
	printf("}\n");
	fflush(stdout);
}

static void print_begin(struct run *r)
{
	const struct train_options *o = r->o;

	printf("{\"event\":\"begin\",\"model\":\"%s\"",
		o->text ? "text" : "images");
	print_count("examples", refrain_examples(r->loader));
	print_count("held_out", r->held_out.count);
	print_count("steps", r->steps == UINT64_MAX ? 0 : r->steps);
	print_count("batch", o->config.batch);
	if (o->config.echo == REFRAIN_ECHO_AUTO)
		printf(",\"echo\":\"auto\"");
	else
		print_real("echo", o->config.echo);
	printf(",\"point\":\"%s\",\"schedule\":\"%s\"", train_point_name(o),
		train_schedule_name(o));
	print_count("window", o->config.window);
	print_count("epochs", o->config.epochs);
	print_count("width", o->width);
	print_count("size", o->text ? 0 : o->config.height);
	print_real("lr", o->rate);
	print_real("momentum", o->momentum);
	print_real("decay", o->decay);
	print_count("seed", o->config.seed);
	print_real("target", o->target);
	print_count("smooth", o->smooth);
	print_count("report_every", o->report_every);
	end_line();
}

static void print_counts(const struct refrain_stats *s)
{
	print_count("step", s->steps);
	print_count("fresh", s->fresh);
	print_count("served", s->served);
	print_count("files_read", s->files_read);
	print_count("decodes", s->decodes);
}

static void print_report(
	struct run *r, const struct refrain_stats *s, double score)
{
	const struct refrain_stage *t = &s->stages[REFRAIN_STAGE_TRAINER];

	printf("{\"event\":\"report\"");
	print_counts(s);
	print_real("loss", r->loss / (double)(r->done - r->reported));
	if (r->o->held_out) {
		print_real("score", score);
		print_real("mean", mean_score(r));
	}
	print_real("echo_factor", s->echo_factor);
	print_real("r", s->r);
	print_real("seconds", seconds_since(&r->begun));
	print_real("evaluating", r->evaluating);
	print_real("waited", (double)t->wait_ns * 1e-9);
	end_line();
}

static void print_end(struct run *r, double test)
{
	char json[STATS_BYTES];

	printf("{\"event\":\"end\",\"reached\":%s,\"diverged\":%s",
		r->reached ? "true" : "false", r->diverged ? "true" : "false");
	if (r->o->test)
		print_real("test", test);
	print_real("seconds", seconds_since(&r->begun));
	print_real("evaluating", r->evaluating);
	if (refrain_stats_json(r->loader, json, sizeof(json)) >= 0)
		printf(",\"stats\":%s", json);
	end_line();
}

/* -- Training -- */

static double rate_at(const struct run *r)
{
	double left = 1 - (double)r->done / (double)r->steps;

	return r->o->schedule == SCHEDULE_LINEAR ? r->o->rate * left
						 : r->o->rate;
}

/* Score the model and print a report. */
static void report(struct run *r)
{
	struct refrain_stats s = stats_of(r);
	struct timespec begun;
	double score = 0;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	if (r->o->held_out)
		score = model_score(r->model, &r->held_out, r->o);
	r->evaluating += seconds_since(&begun);
	r->diverged = !isfinite(r->loss) || !isfinite(score);
	r->scores[r->reports++ % SMOOTH_MAX] = score;
	r->reached = model_reaches(r->o, mean_score(r));
	print_report(r, &s, score);
	r->loss = 0;
	r->reported = r->done;
}

static bool ended(const struct run *r)
{
	return r->reached || r->diverged || r->done == r->steps;
}

static int train(struct run *r)
{
	const struct refrain_batch *b;
	int rc = 1;

	while (!ended(r) &&
		(rc = refrain_next(r->loader, &b, STEP_TIMEOUT_MS)) > 0) {
		r->loss += model_step(r->model, b, rate_at(r));
		refrain_release(b);
		r->done++;
		if (r->done - r->reported == r->every)
			report(r);
	}
	if (rc < 0)
		return fail(r->o->config.dataset, refrain_message(r->loader));
	if (r->done > r->reported)
		report(r);
	return 0;
}

static int finish(struct run *r)
{
	struct held_out test;
	double score = 0;

	if (r->o->test) {
		if (held_out_read(&test, r->o, r->o->test) == 0)
			score = model_score(r->model, &test, r->o);
		held_out_release(&test);
		if (test.count == 0)
			return 1;
	}
	print_end(r, score);
	return 0;
}

static int prepare(struct run *r)
{
	const struct train_options *o = r->o;
	struct refrain_config c;
	int rc;

	if (o->held_out && held_out_read(&r->held_out, o, o->held_out) < 0)
		return 1;
	train_config(o, &c);
	clock_gettime(CLOCK_MONOTONIC, &r->begun);
	if (refrain_open(&r->loader, &c) < 0)
		return fail(o->config.dataset, refrain_message(NULL));
	r->every = o->report_every / o->config.batch;
	/* With --echo auto the number of steps is not known in advance. */
	r->steps = o->config.echo == REFRAIN_ECHO_AUTO
		? UINT64_MAX
		: refrain_steps_left(r->loader);
	if (o->steps && o->steps < r->steps)
		r->steps = o->steps;
	rc = model_new(&r->model, o, refrain_classes(r->loader));
	return rc < 0 ? fail("model", strerror(-rc)) : 0;
}

int main(int argc, char **argv)
{
	struct train_options o;
	struct run r = {.o = &o};
	bool done;
	int status = train_options_parse(&o, argc, argv, &done);

	if (done)
		return status;
	status = prepare(&r);
	if (status == 0) {
		print_begin(&r);
		status = train(&r);
	}
	if (status == 0)
		status = finish(&r);
	model_free(r.model);
	refrain_close(r.loader);
	held_out_release(&r.held_out);
	return status;
}
