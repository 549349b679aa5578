/* SPDX-License-Identifier: MIT */
/* refrain load: reads batches from a loader as a trainer with a given step time
 * would, and reports the cost. Has one thread besides those of the library. */
#include "load.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "command.h"
#include "progress.h"

/* The signal that ended the run, or 0. A second signal ends the process. */
static volatile sig_atomic_t load_signal;

static void on_signal(int number)
{
	load_signal = number;
}

/* Catch signals, so that the results so far are printed. A signal ends a wait,
 * because waiting calls are not restarted. */
static void catch_signals(void)
{
	struct sigaction act = {
		.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	(void)sigemptyset(&act.sa_mask);
	(void)sigaction(SIGINT, &act, NULL); /* cannot fail */
	(void)sigaction(SIGTERM, &act, NULL);
}

#define SLICE_MS 100 /* interval at which a wait checks for signals */

struct load {
	struct load_options o;
	struct load_state state;
	struct load_echo echo;
	struct refrain_loader *loader;
	struct hash_stream *pixels, *fields;
	struct load_result r;
	FILE *steps; /* the log of --step-log, or NULL */
	struct progress progress;
	uint64_t begun_ns;
	uint64_t step_end_ns; /* end of the trainer's simulated step */
};

static int open_loader(struct load *ld, const char *dataset, struct error *err)
{
	struct refrain_config *c = &ld->o.config;
	uint64_t begun_ns = clock_now_ns();
	int rc;

	c->dataset = dataset;
	if (ld->o.list) /* --list needs no batches */
		c->flags |= REFRAIN_FLAG_NO_MOUNT_HELP;
	c->open_timeout_ms = config_timeout_ms(ld->o.timeout_s);
	if (ld->state.loader_bytes) {
		c->state = ld->state.loader;
		c->state_bytes = ld->state.loader_bytes;
	}
	rc = refrain_open(&ld->loader, c);
	if (rc < 0)
		return load_options_say(refrain_message(NULL), rc, err);
	ld->r.open_ns = clock_now_ns() - begun_ns;
	ld->r.examples = refrain_examples(ld->loader);
	ld->r.classes = refrain_classes(ld->loader);
	return 0;
}

static int load_open_log(struct load *ld, struct error *err)
{
	struct refrain_stats stats = {.size = sizeof(stats)};
	int rc = refrain_stats_get(ld->loader, &stats);

	if (rc < 0 || !ld->o.echo_log)
		return rc;
	return load_echo_open(
		&ld->echo, ld->o.echo_log, stats.echo_changes, err);
}

/* Simulate the step of an accelerator. The step begins when the batch arrives,
 * and ends after the step time, whatever this thread does during it. If one
 * sleep takes too long, the next one is shorter. */
static void load_step(struct load *ld, uint64_t waited_ns)
{
	uint64_t now_ns = clock_now_ns();
	struct timespec until;

	ld->step_end_ns += waited_ns + ld->o.step_ms * NS_PER_MS;
	if (ld->step_end_ns <= now_ns) {
		ld->step_end_ns = now_ns;
		return;
	}
	until.tv_sec = (time_t)(ld->step_end_ns / NS_PER_S);
	until.tv_nsec = (long)(ld->step_end_ns % NS_PER_S);
	while (!load_signal &&
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
			EINTR)
		;
}

static void load_show(struct load *ld, uint64_t total_bytes)
{
	const struct load_result *r = &ld->r;
	uint64_t ns = clock_now_ns() - ld->begun_ns;
	char note[64];

	(void)snprintf(note, sizeof(note), ", %" PRIu64 " images, %.0f/s",
		r->served, (double)r->served * NS_PER_S / (double)(ns + 1));
	progress_show(&ld->progress, r->served, r->bytes, total_bytes, note);
}

/* Hash the columns of the fields, which follow those of samples and classes. */
static void hash_fields(struct load *ld, const struct refrain_batch *b)
{
	const struct refrain_column *c;

	for (uint32_t i = 2; (c = refrain_column_at(b, i)); i++) {
		hash_stream_add(ld->fields, c->data, c->data_bytes);
		if (c->offsets)
			hash_stream_add(ld->fields, c->offsets,
				(b->count + (size_t)1) * sizeof(*c->offsets));
	}
}

static void load_count(struct load *ld, const struct refrain_batch *b)
{
	struct load_result *r = &ld->r;
	uint64_t left = refrain_steps_left(ld->loader);

	if (ld->o.steps && left > ld->o.steps - r->steps - 1)
		left = ld->o.steps - r->steps - 1;
	r->steps++;
	r->fresh += b->fresh;
	r->served += b->count;
	r->bytes += b->data_bytes;
	if (!ld->o.no_hash) {
		hash_stream_add(ld->pixels, b->data, b->data_bytes);
		hash_fields(ld, b);
	}
	/* Compute the bytes of the remaining steps anew each time, because
	 * --echo auto changes them. */
	load_show(ld, r->bytes + left * b->data_bytes);
}

/* Write errors are reported when the log is closed. */
static void log_step(
	struct load *ld, const struct refrain_batch *b, uint64_t waited_ns)
{
	if (!ld->steps)
		return;
	(void)fprintf(ld->steps,
		"%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t", b->step,
		clock_now_ns() / NS_PER_US, waited_ns / NS_PER_US, b->fresh,
		b->ends_epoch);
	if (b->ends_epoch)
		(void)fprintf(ld->steps, "%" PRIu64 "\n", b->ended_epoch);
	else
		(void)fputs("-\n", ld->steps);
}

static int open_steps(struct load *ld, struct error *err)
{
	if (!ld->o.step_log)
		return 0;
	ld->steps = fopen(ld->o.step_log, "we");
	if (!ld->steps)
		return error_set(
			err, -errno, "cannot write '%s': %m", ld->o.step_log);
	/* The log is buffered by lines: however this process ends, the log has
	 * all complete steps. */
	(void)setvbuf(ld->steps, NULL, _IOLBF, BUFSIZ);
	return 0;
}

static int close_steps(struct load *ld, struct error *err)
{
	FILE *steps = steal_ptr(&ld->steps);
	bool bad = steps && ferror(steps);

	if (steps && (fclose(steps) < 0 || bad))
		return error_set(
			err, -EIO, "cannot write '%s'", ld->o.step_log);
	return 0;
}

/* Like refrain_next(), but returns 0 after a signal, as at the end of the run.
 */
static int next_or_signal(struct load *ld, const struct refrain_batch **b)
{
	int left_ms = config_timeout_ms(ld->o.timeout_s), rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && left_ms && !load_signal) {
		int ms = left_ms < 0 || left_ms > SLICE_MS ? SLICE_MS : left_ms;

		rc = refrain_next(ld->loader, b, ms);
		left_ms -= left_ms < 0 ? 0 : ms;
	}
	return rc == -ETIMEDOUT && load_signal ? 0 : rc;
}

/* Run one step. Returns 1; 0 at the end of the run; or -errno. */
static int one_step(struct load *ld, struct error *err)
{
	const struct refrain_batch *b;
	uint64_t asked_ns = clock_now_ns();
	int rc = next_or_signal(ld, &b);
	uint64_t waited_ns = clock_now_ns() - asked_ns;

	if (rc < 0)
		return load_options_say(refrain_message(ld->loader), rc, err);
	if (rc == 0)
		return 0;
	if (!ld->r.steps)
		ld->r.first_ns = waited_ns;
	log_step(ld, b, waited_ns);
	load_count(ld, b);
	load_step(ld, waited_ns);
	rc = load_state_used(&ld->state, ld->loader, b, err);
	refrain_release(b);
	return rc < 0 ? rc : 1;
}

static int load_run(struct load *ld, struct error *err)
{
	uint64_t begun_ns = clock_now_ns();
	int rc = 1;

	ld->step_end_ns = ld->begun_ns = begun_ns;
	catch_signals();
	progress_begin(&ld->progress);
	while (rc > 0 && !load_signal &&
		(!ld->o.steps || ld->r.steps < ld->o.steps))
		rc = one_step(ld, err);
	progress_end(&ld->progress);
	ld->r.run_ns = clock_now_ns() - begun_ns;
	ld->r.pixel_hash = hash_stream_value(ld->pixels);
	ld->r.fields_hash = hash_stream_value(ld->fields);
	ld->r.stats.size = sizeof(ld->r.stats);
	if (rc >= 0)
		rc = refrain_stats_get(ld->loader, &ld->r.stats);
	if (rc >= 0)
		rc = refrain_stats_json(
			ld->loader, ld->r.stats_json, sizeof(ld->r.stats_json));
	return rc;
}

static int load_load(struct load *ld, const char *dataset, struct error *err)
{
	int rc;

	ld->state.echo = &ld->echo;
	rc = load_state_open(&ld->state, ld->o.state, ld->o.trace, err);

	if (rc < 0)
		return rc;
	ld->pixels = hash_stream_new();
	ld->fields = hash_stream_new();
	if (!ld->pixels || !ld->fields)
		return error_set(err, -ENOMEM, "%m");
	if (ld->o.echo_replay)
		rc = load_echo_replay(&ld->echo, ld->o.echo_replay, err);
	ld->o.config.echo_log = ld->echo.replayed;
	if (rc == 0)
		rc = open_loader(ld, dataset, err);
	if (rc == 0 && ld->o.list)
		return load_list(&ld->o, ld->loader, err);
	if (rc == 0)
		rc = load_open_log(ld, err);
	if (rc == 0)
		rc = open_steps(ld, err);
	if (rc == 0)
		rc = load_run(ld, err);
	return rc < 0 ? rc : close_steps(ld, err);
}

/* Report that the loader could not be opened. Returns the exit status; an
 * invalid configuration is a usage error. */
static int load_failed(int rc, const struct error *err)
{
	(void)command_fail("load", err);
	return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* End this process by the signal that it has caught, so that a shell sees that
 * signal. */
static void end_by_signal(void)
{
	(void)fflush(stdout);
	(void)signal(load_signal, SIG_DFL);
	(void)raise(load_signal);
}

int cmd_load(int argc, char **argv)
{
	struct load ld = {.o.timeout_s = 60};
	CLEANUP_FREE char *datasets = NULL;
	struct error err = {""};
	int status, rc, n;

	refrain_config_init(&ld.o.config);
	n = command_parse(&load_usage, argc, argv, &ld.o, &status);
	if (n < 0)
		return status;
	datasets = command_lines(argv, n);
	rc = datasets ? load_options_finish(&ld.o, &err)
		      : error_set(&err, -ENOMEM, "%m");
	if (rc < 0)
		return load_failed(rc, &err);
	rc = load_load(&ld, datasets, &err);
	if (rc >= 0 && ld.o.json && !ld.o.list)
		rc = load_print_json(&ld.o, &ld.r);
	else if (rc >= 0 && !ld.o.list)
		load_print(&ld.o, &ld.r);
	/* if reads hang, the end of the process ends them */
	(void)refrain_close(ld.loader);
	load_state_close(&ld.state);
	load_echo_close(&ld.echo);
	hash_stream_free(ld.pixels);
	hash_stream_free(ld.fields);
	if (rc >= 0 && load_signal)
		end_by_signal();
	return rc < 0 ? load_failed(rc, &err) : EXIT_OK;
}
