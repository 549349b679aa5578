/* SPDX-License-Identifier: MIT */
/* refrain trace: prints the READs of a mount, or a summary of where their time
 * went. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "analysis/fleet/follow.h"
#include "analysis/fleet/read_groups.h"
#include "analysis/fleet/request.h"
#include "command.h"
#include "common/base/clock.h"
#include "common/base/escape.h"

struct trace_args {
	unsigned slow_ms, process, seconds;
	bool summary, json;
};

static const struct option_def trace_table[] = {
	{
		.name = "slow",
		.arg = "MS",
		.help = "Show only READs that took at least MS milliseconds.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct trace_args, slow_ms),
	},
	{
		.name = "pid",
		.arg = "N",
		.help = "Show only READs of the process N, as the daemon "
			"numbers it.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct trace_args, process),
	},
	{
		.name = "seconds",
		.letter = 'n',
		.arg = "N",
		.help = "End after N seconds; without it, go on until "
			"interrupted.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct trace_args, seconds),
	},
	{
		.name = "summary",
		.help = "At the end, show where the time went: by process, by "
			"directory and by source.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct trace_args, summary),
	},
	{
		.name = "json",
		.help = "Print one JSON object per READ, or with --summary one "
			"for all.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct trace_args, json),
	},
	{.name = NULL},
};

const struct option_usage trace_usage = {
	.name = "trace",
	.operands = "MOUNTPOINT",
	.summary = "Show each READ that the mount answers: time, duration, "
		   "source, process, range and path. READs that the kernel "
		   "answers from its page cache are not seen.",
	.options = trace_table,
	.min_operands = 1,
	.max_operands = 1,
};

struct tracer {
	const struct trace_args *args;
	struct read_groups *groups; /* NULL: no summary was asked for */
	uint64_t until_ns, lost;
};

static volatile sig_atomic_t trace_stopped;

static void on_trace_signal(int number)
{
	(void)number;
	trace_stopped = 1;
}

static bool trace_over(void *arg)
{
	const struct tracer *t = arg;

	if (t->groups || fflush(stdout) == 0)
		return trace_stopped || clock_now_ns() >= t->until_ns;
	return true; /* main() reports the error */
}

static void trace_begun(void *arg)
{
	const struct tracer *t = arg;

	(void)fprintf(stderr, "tracing; interrupt to %s\n",
		t->groups ? "see the summary" : "end");
	if (!t->groups && !t->args->json)
		(void)printf("%-15s %9s %-7s %7s %-15s %12s %8s  %s\n", "TIME",
			"DURATION", "SOURCE", "PID", "PROGRAM", "OFFSET",
			"LENGTH", "PATH");
}

static void trace_lost(void *arg, uint64_t reads)
{
	struct tracer *t = arg;

	t->lost += reads;
	if (t->groups)
		read_groups_lost(t->groups, reads);
	else if (t->args->json)
		(void)printf("{\"lost\":%" PRIu64 "}\n", reads);
	else
		(void)printf(
			"%" PRIu64 " READs were lost by the trace\n", reads);
}

static void print_json(const struct followed_read *r)
{
	json_t *o = json_pack("{s:f, s:I, s:s, s:i, s:s, s:I, s:I, s:s}",
		"time", (double)r->end_us / 1e6, "us", (json_int_t)r->us,
		"source", read_trace_source(r->source), "pid", (int)r->process,
		"program", r->program, "offset", (json_int_t)r->off, "length",
		(json_int_t)r->len, "path", r->path);

	ask_print_json(o);
	json_decref(o);
}

static void trace_read(void *arg, const struct followed_read *r)
{
	const struct tracer *t = arg;
	time_t second = (time_t)(r->end_us / 1000000);
	char clock[16], took[TIME_TEXT_MAX], program[64];
	struct tm tm;

	if (t->groups) {
		read_groups_add(t->groups, r);
		return;
	}
	if (t->args->json) {
		print_json(r);
		return;
	}
	if (!localtime_r(&second, &tm) ||
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm) == 0)
		clock[0] = '\0';
	(void)printf("%s.%06u %9s %-7s %7d %-15s %12" PRIu64 " %8" PRIu64 "  ",
		clock, (unsigned)(r->end_us % 1000000),
		ask_time_text(r->us, took), read_trace_source(r->source),
		(int)r->process,
		escape_text(program, sizeof(program), r->program), r->off,
		r->len);
	escape_print(stdout, r->path);
	(void)putchar('\n');
}

static void print_groups(struct tracer *t)
{
	json_t *o;

	if (!t->args->json) {
		read_groups_print(t->groups, stdout);
		return;
	}
	o = read_groups_json(t->groups);
	ask_print_json(o);
	json_decref(o);
}

static int trace_mount(
	const char *mountpoint, struct tracer *t, struct error *err)
{
	const struct read_follow how = {
		.slow_us = (uint64_t)t->args->slow_ms * 1000,
		.process = (pid_t)t->args->process,
		.read = trace_read,
		.lost = trace_lost,
		.over = trace_over,
		.begun = trace_begun,
		.arg = t,
	};
	struct ctl_client *client;
	int rc = ctl_connect(&client, mountpoint, err);

	if (rc < 0)
		return rc;
	rc = follow_reads(client, &how, err);
	ctl_disconnect(client);
	if (t->groups)
		print_groups(t);
	return rc;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_args args = {.seconds = 0};
	struct tracer t = {.args = &args, .until_ns = UINT64_MAX};
	struct sigaction act = {.sa_handler = on_trace_signal};
	struct error err = {""};
	int status, rc = 0;

	if (command_parse(&trace_usage, argc, argv, &args, &status) < 0)
		return status;
	if (args.slow_ms > INT_MAX / 1000 || args.process > INT_MAX) {
		(void)error_set(&err, -EINVAL, "--slow or --pid is too large");
		(void)command_fail("trace", &err);
		return EXIT_USAGE;
	}
	if (args.seconds > 0)
		t.until_ns = clock_now_ns() + args.seconds * NS_PER_S;
	if (args.summary) {
		t.groups = read_groups_new();
		if (!t.groups)
			rc = error_set(&err, -ENOMEM, "%m");
	}
	(void)sigaction(SIGINT, &act, NULL);  /* cannot fail */
	(void)sigaction(SIGTERM, &act, NULL); /* cannot fail */
	if (rc == 0)
		rc = trace_mount(argv[1], &t, &err);
	read_groups_free(t.groups);
	return rc < 0 ? command_fail("trace", &err) : EXIT_OK;
}
