/* SPDX-License-Identifier: MIT */
/* Parses the options of the programs that measure the loader, and measures
 * processor time and memory. */
#include "loader_options.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "../tools/config_options.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#define FIELD(f) offsetof(struct loader_options, f)

static const struct option_def own[] = {
	{"skip", 0, "N", "Steps before the measurement begins (default: 0).",
		OPTION_NUMBER, FIELD(skip), NULL, false},
	{"steps", 0, "N",
		"Total number of steps (default: the whole "
		"run).",
		OPTION_NUMBER, FIELD(steps), NULL, false},
	{"hash", 0, NULL, "Print a hash of all samples.", OPTION_FLAG,
		FIELD(hash), NULL, false},
	{"full", 0, NULL, "Time the decoding of whole images, too (bare).",
		OPTION_FLAG, FIELD(full), NULL, false},
	{"steady", 0, NULL,
		"Leave out steps with an uneven number of fresh examples "
		"(bare).",
		OPTION_FLAG, FIELD(steady), NULL, false},
	{.name = NULL},
};

/* The members of the configuration that loader-bare supports, too. */
static const struct config_choice choices[] = {
	{"batch", NULL, 'b', false, false},
	{"echo", NULL, 'e', false, false},
	{"epochs", NULL, 'n', false, false},
	{"seed", NULL, 's', false, false},
	{"threads", NULL, 't', false, false},
	{"batches_ahead", NULL, 'a', false, false},
	{"memory_bytes", "memory", 'm', false, false},
	{"type", NULL, 0, false, false},
	{"fields", NULL, 0, false, false},
	{"annotations", NULL, 0, false, false},
	{.member = NULL},
};

static struct config_options table = {.own = own, .choices = choices};

static const struct option_def *build_loader_table(void)
{
	return config_options_table(&table);
}

static int set_loader_option(void *out, const struct option_def *option,
	const char *value, struct error *err)
{
	struct loader_options *o = out;

	return config_options_set(&table, &o->config, option, value, err);
}

static void set_defaults(struct loader_options *o)
{
	*o = (struct loader_options){.skip = 0};
	refrain_config_init(&o->config);
	o->config.batch = 64;
	o->config.epochs = 4;
	o->config.threads = 1;
	o->config.echo = 1;
	o->config.type = REFRAIN_F32;
	o->config.layout = REFRAIN_NCHW;
}

int loader_options_parse(struct loader_options *o, const char *name,
	const char *summary, int argc, char **argv, bool *done)
{
	const struct option_usage usage = {
		.name = name,
		.operands = "DATASET",
		.summary = summary,
		.build = build_loader_table,
		.set = set_loader_option,
		.min_operands = 1,
		.max_operands = 1,
		.alone = true,
	};
	struct error err;
	int rc;

	set_defaults(o);
	rc = option_parse(&usage, argc, argv, o, &err);
	*done = rc < 0;
	if (rc == -ECANCELED) {
		option_print_help(&usage, stdout);
		return 0;
	}
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	o->config.dataset = argv[1];
	return 0;
}

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * 1000;
}

void loader_usage_now(struct loader_usage *u)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage); /* cannot fail */
	u->wall_ns = clock_now_ns();
	u->cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
	u->faults = (uint64_t)usage.ru_minflt;
}

void loader_usage_since(struct loader_usage *begin)
{
	struct loader_usage now;

	loader_usage_now(&now);
	begin->wall_ns = now.wall_ns - begin->wall_ns;
	begin->cpu_ns = now.cpu_ns - begin->cpu_ns;
	begin->faults = now.faults - begin->faults;
}

uint64_t loader_peak_bytes(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}
