/* SPDX-License-Identifier: MIT */
/* Parses the trainer's options; see options.h. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/config_options.h"
#include "common/base/err.h"
#include "common/base/option.h"
#include "lm.h"

/* Area of the smallest crop, relative to the image. Smaller crops of such small
 * images show too little. */
#define AREA_MIN 0.6F

/* names of the values, for printing */
static const char *const points[] = {"before", "after", "batch"};
static const char *const schedules[] = {"constant", "linear"};

static int parse_word(const char *const *words, int n, const char *value,
	int32_t *out, struct error *err)
{
	for (int i = 0; i < n; i++)
		if (strcmp(words[i], value) == 0) {
			*out = i;
			return 0;
		}
	return error_set(err, -EINVAL, "'%s' is not a valid value", value);
}

static int parse_real(
	const char *value, double least, double *out, struct error *err)
{
	char *end;

	*out = strtod(value, &end);
	if (end == value || *end || !isfinite(*out) || *out < least)
		return error_set(err, -EINVAL,
			"'%s' is not a number of at least %g", value, least);
	return 0;
}

#define PARSE_REAL(member, least)                                              \
	static int parse_##member(                                             \
		void *out, const char *value, struct error *err)               \
	{                                                                      \
		struct train_options *o = out;                                 \
                                                                               \
		return parse_real(value, least, &o->member, err);              \
	}
PARSE_REAL(rate, 0)
PARSE_REAL(momentum, 0)
PARSE_REAL(decay, 0)
PARSE_REAL(target, 0)

static int parse_schedule(void *out, const char *value, struct error *err)
{
	struct train_options *o = out;

	return parse_word(schedules, 2, value, &o->schedule, err);
}

#define FIELD(f) offsetof(struct train_options, f)

static const struct option_def own[] = {
	TEXT("held-out", "DATASET",
		"Score the model on DATASET at each report.", held_out),
	TEXT("test", "DATASET", "Score the model on DATASET once, at the end.",
		test),
	FLAG("text",
		"Datasets are raw records of text, not images; the score is in "
		"nats a byte.",
		text),
	NUMBER("steps", "N",
		"Stop after N steps (default: those of the epochs).", steps),
	NUMBER("width", "W",
		"Channels of the first layer, or units of the hidden layer of "
		"a text model (default: 8).",
		width),
	CALL("lr", "RATE", "Learning rate (default: 0.1).", parse_rate),
	CALL("momentum", "M", "Momentum (default: 0.9).", parse_momentum),
	CALL("decay", "D", "Weight decay (default: 0.0005).", parse_decay),
	CALL("schedule", "constant|linear",
		"Keep the learning rate (constant, the default), or let it "
		"decrease to 0 over the steps (linear).",
		parse_schedule),
	CALL("target", "SCORE",
		"Stop when the mean of the last scores is at least as good.",
		parse_target),
	NUMBER("smooth", "N", "Number of last scores to average (default: 5).",
		smooth),
	NUMBER("report-every", "N",
		"Examples served between two reports (default: 3200).",
		report_every),
	{.name = NULL},
};

static const struct config_choice choices[] = {
	{"root", NULL, 0, false, false},
	{"echo", NULL, 0, false, false},
	{"echo_max", NULL, 0, false, false},
	{"echo_point", "point", 0, false, false},
	{"window", NULL, 0, false, false},
	{"min_lag", NULL, 0, false, false},
	{"allow_duplicates", NULL, 0, false, false},
	{"batch", NULL, 0, false, false},
	{"epochs", NULL, 0, false, false},
	{"seed", NULL, 0, false, false},
	{"threads", NULL, 0, false, false},
	{"memory_bytes", "memory", 0, false, false},
	{"size", NULL, 0, false, false},
	{.member = NULL},
};

static struct config_options table = {.own = own, .choices = choices};

static const struct option_def *build_train_table(void)
{
	return config_options_table(&table);
}

static int set_train_option(void *out, const struct option_def *option,
	const char *value, struct error *err)
{
	struct train_options *o = out;

	return config_options_set(&table, &o->config, option, value, err);
}

static int check(const struct train_options *o, struct error *err)
{
	const struct refrain_config *c = &o->config;

	if (!c->batch || !o->width || !c->height)
		return error_set(
			err, -EINVAL, "--batch, --width, --size: none is 0");
	if (!o->smooth || o->smooth > SMOOTH_MAX)
		return error_set(err, -EINVAL, "--smooth: 1 to %d", SMOOTH_MAX);
	if (o->momentum >= 1)
		return error_set(err, -EINVAL, "--momentum must be below 1");
	if (o->report_every < c->batch)
		return error_set(
			err, -EINVAL, "--report-every is less than a batch");
	if (o->target > 0 && !o->held_out)
		return error_set(err, -EINVAL,
			"--target needs --held-out, to score the model by");
	if (c->echo == REFRAIN_ECHO_AUTO && o->schedule != SCHEDULE_CONSTANT)
		return error_set(err, -EINVAL,
			"--echo auto: the number of steps is not known, so "
			"the learning rate must be constant");
	return 0;
}

int train_options_parse(
	struct train_options *o, int argc, char **argv, bool *done)
{
	static const struct option_usage usage = {
		.name = "echo-train",
		.operands = "DATASET",
		.summary = "Train a small model through the loader, and print "
			   "a line of JSON each report.",
		.build = build_train_table,
		.set = set_train_option,
		.min_operands = 1,
		.max_operands = 1,
		.alone = true,
	};
	struct error err;
	int rc;

	*o = (struct train_options){
		.width = 8,
		.rate = 0.1,
		.momentum = 0.9,
		.decay = 5e-4,
		.smooth = 5,
		.report_every = 3200,
	};
	refrain_config_init(&o->config);
	o->config.echo = 1;
	o->config.batch = 64;
	o->config.epochs = 1;
	o->config.threads = 1;
	o->config.memory_bytes = 256 << 20;
	o->config.height = o->config.width = 24;
	rc = option_parse(&usage, argc, argv, o, &err);
	*done = rc < 0;
	if (rc == -ECANCELED) {
		option_print_help(&usage, stdout);
		return 0;
	}
	if (rc >= 0)
		rc = check(o, &err);
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.msg);
		*done = true;
		return 2;
	}
	o->config.dataset = argv[1];
	return 0;
}

static void set_kind(const struct train_options *o, struct refrain_config *c)
{
	if (o->text) {
		c->source = REFRAIN_SOURCE_RAW;
		c->record_bytes = LM_BYTES;
		c->height = c->width = 0;
		return;
	}
	c->type = REFRAIN_F32;
}

void train_config(const struct train_options *o, struct refrain_config *c)
{
	*c = o->config;
	set_kind(o, c);
	c->last = REFRAIN_LAST_DROP;
	if (!o->text)
		c->area_min = AREA_MIN;
}

void score_config(const struct train_options *o, const char *path,
	struct refrain_config *c)
{
	refrain_config_init(c);
	c->dataset = path;
	c->batch = o->config.batch;
	c->threads = o->config.threads;
	c->memory_bytes = o->config.memory_bytes;
	c->height = c->width = o->config.height;
	set_kind(o, c);
	c->flags = REFRAIN_FLAG_IN_ORDER;
	if (!o->text)
		c->augment = REFRAIN_AUGMENT_EVAL;
}

const char *train_point_name(const struct train_options *o)
{
	return points[o->config.echo_point];
}

const char *train_schedule_name(const struct train_options *o)
{
	return schedules[o->schedule];
}
