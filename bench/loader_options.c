/* SPDX-License-Identifier: MIT */
/* Options and resource usage of the programs that measure the loader. */
#include "loader_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/err.h"

static int parse_echo(void *out, const char *value, struct error *err)
{
	struct loader_options *o = out;
	char *end;

	o->echo = strtod(value, &end);
	return *end || end == value || !(o->echo >= 1)
		? error_set(
			  err, -EINVAL, "--echo: '%s' is not 1 or more", value)
		: 0;
}

#define FIELD(f) offsetof(struct loader_options, f)

static const struct option_def options[] = {
	{"batch", 'b', "B", "Examples a step; default 64.", OPTION_NUMBER,
		FIELD(batch), NULL, false},
	{"echo", 'e', "E", "Servings of a decoded example; default 1.",
		OPTION_CALL, 0, parse_echo, false},
	{"epochs", 'n', "N", "Epochs of the run; default 4.", OPTION_NUMBER,
		FIELD(epochs), NULL, false},
	{"seed", 's', "S", "Another seed gives other batches; default 0.",
		OPTION_NUMBER, FIELD(seed), NULL, false},
	{"threads", 't', "T", "Workers of the loader; default 1.",
		OPTION_NUMBER, FIELD(threads), NULL, false},
	{"ahead", 'a', "N", "Batches ahead; default that of the loader.",
		OPTION_NUMBER, FIELD(ahead), NULL, false},
	{"memory", 'm', "SIZE", "Memory that the loader may take.", OPTION_SIZE,
		FIELD(memory_bytes), NULL, false},
	{"skip", 0, "N", "Steps before the measurement begins; default 0.",
		OPTION_NUMBER, FIELD(skip), NULL, false},
	{"steps", 0, "N", "Steps in all; default the whole run.", OPTION_NUMBER,
		FIELD(steps), NULL, false},
	{"u8", 0, NULL, "Make samples of bytes, not of normalised floats.",
		OPTION_FLAG, FIELD(u8), NULL, false},
	{"hash", 0, NULL, "Print a hash of all samples.", OPTION_FLAG,
		FIELD(hash), NULL, false},
	{"full", 0, NULL, "Time the decoding of whole images, too (bare).",
		OPTION_FLAG, FIELD(full), NULL, false},
	{"steady", 0, NULL,
		"Leave out where fresh examples are not evenly many (bare).",
		OPTION_FLAG, FIELD(steady), NULL, false},
	{.name = NULL},
};

int loader_options_parse(struct loader_options *o, const char *name,
	const char *summary, int argc, char **argv, bool *done)
{
	const struct option_usage usage = {
		.name = name,
		.operands = "DATASET",
		.summary = summary,
		.options = options,
		.min_operands = 1,
		.max_operands = 1,
		.alone = true,
	};
	struct error err;
	int rc;

	*o = (struct loader_options){
		.batch = 64, .epochs = 4, .threads = 1, .echo = 1};
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
	o->dataset = argv[1];
	return 0;
}

void loader_options_config(
	const struct loader_options *o, struct refrain_config *c)
{
	refrain_config_init(c);
	c->dataset = o->dataset;
	c->batch = o->batch;
	c->epochs = o->epochs;
	c->seed = o->seed;
	c->threads = o->threads;
	c->batches_ahead = o->ahead;
	c->memory_bytes = o->memory_bytes;
	c->echo = o->echo;
	c->type = o->u8 ? REFRAIN_U8 : REFRAIN_F32;
	c->layout = REFRAIN_NCHW;
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
