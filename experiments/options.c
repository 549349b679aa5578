/* SPDX-License-Identifier: MIT */
/* The trainer's options; see options.h. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/option.h"
#include "lm.h"

/* Of the crops: of pictures this small less says little. */
#define AREA_MIN 0.6F

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
	return error_set(err, -EINVAL, "'%s' is none of its words", value);
}

static int parse_real(
	const char *value, double least, double *out, struct error *err)
{
	char *end;

	*out = strtod(value, &end);
	if (end == value || *end || !isfinite(*out) || *out < least)
		return error_set(err, -EINVAL, "'%s' is no number from %g on",
			value, least);
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
PARSE_REAL(echo_max, 1)
PARSE_REAL(rate, 0)
PARSE_REAL(momentum, 0)
PARSE_REAL(decay, 0)
PARSE_REAL(target, 0)

static int parse_echo(void *out, const char *value, struct error *err)
{
	struct train_options *o = out;

	o->echo = REFRAIN_ECHO_AUTO;
	return strcmp(value, "auto") == 0 ? 0
					  : parse_real(value, 1, &o->echo, err);
}

static int parse_point(void *out, const char *value, struct error *err)
{
	struct train_options *o = out;

	return parse_word(points, 3, value, &o->point, err);
}

static int parse_schedule(void *out, const char *value, struct error *err)
{
	struct train_options *o = out;

	return parse_word(schedules, 2, value, &o->schedule, err);
}

#define FIELD(f) offsetof(struct train_options, f)
#define NUMBER(n, a, h, f)                                                     \
	{                                                                      \
		n, 0, a, h, OPTION_NUMBER, FIELD(f), NULL, false               \
	}
#define FLAG(n, h, f)                                                          \
	{                                                                      \
		n, 0, NULL, h, OPTION_FLAG, FIELD(f), NULL, false              \
	}
#define TEXT(n, a, h, f)                                                       \
	{                                                                      \
		n, 0, a, h, OPTION_TEXT, FIELD(f), NULL, false                 \
	}
#define CALL(n, a, h, c)                                                       \
	{                                                                      \
		n, 0, a, h, OPTION_CALL, 0, c, false                           \
	}

static const struct option_def table[] = {
	TEXT("root", "DIR", "Where the paths of a list DATASET begin.", root),
	TEXT("held-out", "DATASET", "Score the model by it at each report.",
		held_out),
	TEXT("test", "DATASET", "Score the model by it once, at the end.",
		test),
	FLAG("text",
		"Datasets are raw records of text, not images; the score is in "
		"nats a byte.",
		text),
	CALL("echo", "E",
		"Servings of an example, as 2 or 2.5, or auto; default 1.",
		parse_echo),
	CALL("echo-max", "E", "Of --echo auto at most; default 4.",
		parse_echo_max),
	CALL("point", "before|after|batch",
		"Where echoes are made; default before augmentation.",
		parse_point),
	NUMBER("window", "N",
		"Examples with echoes outstanding; default the loader's.",
		window),
	NUMBER("min-lag", "N", "Steps between two servings of an example.",
		min_lag),
	FLAG("allow-duplicates", "Take a window that is too small.",
		allow_duplicates),
	NUMBER("batch", "B", "Examples a step; default 64.", batch),
	NUMBER("epochs", "N", "How often each example is fresh; default 1.",
		epochs),
	NUMBER("steps", "N", "Steps at most; default those of the epochs.",
		steps),
	NUMBER("seed", "S", "Of order, augmentation and first weights.", seed),
	NUMBER("threads", "N", "Of the loader; default 1. The model has one.",
		threads),
	NUMBER("memory", "MIB", "For the loader; default 256.", memory_mb),
	NUMBER("width", "W",
		"Channels of the first layer, or the hidden layer of a model "
		"of text; default 8.",
		width),
	NUMBER("size", "PIXELS",
		"Side of an image, a multiple of 8; default 24.", size),
	CALL("lr", "RATE", "Learning rate; default 0.1.", parse_rate),
	CALL("momentum", "M", "Default 0.9.", parse_momentum),
	CALL("decay", "D", "Of weights; default 0.0005.", parse_decay),
	CALL("schedule", "constant|linear",
		"The learning rate stays, or falls to 0 over the steps; "
		"default constant.",
		parse_schedule),
	CALL("target", "SCORE",
		"Stop when the mean of the last scores is as good.",
		parse_target),
	NUMBER("smooth", "N", "Scores of which the mean is taken; default 5.",
		smooth),
	NUMBER("report-every", "N",
		"Examples served between two reports; default 3200.",
		report_every),
	{.name = NULL},
};

static int check(const struct train_options *o, struct error *err)
{
	if (!o->batch || !o->width || !o->size)
		return error_set(
			err, -EINVAL, "--batch, --width, --size: none is 0");
	if (!o->smooth || o->smooth > SMOOTH_MAX)
		return error_set(err, -EINVAL, "--smooth: 1 to %d", SMOOTH_MAX);
	if (o->momentum >= 1)
		return error_set(err, -EINVAL, "--momentum must be below 1");
	if (o->report_every < o->batch)
		return error_set(
			err, -EINVAL, "--report-every is less than a batch");
	if (o->target > 0 && !o->held_out)
		return error_set(err, -EINVAL,
			"--target needs --held-out, to score the model by");
	if (o->echo == REFRAIN_ECHO_AUTO && o->schedule != SCHEDULE_CONSTANT)
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
		.options = table,
		.min_operands = 1,
		.max_operands = 1,
		.alone = true,
	};
	struct error err;
	int rc;

	*o = (struct train_options){
		.echo = 1,
		.batch = 64,
		.epochs = 1,
		.threads = 1,
		.memory_mb = 256,
		.width = 8,
		.size = 24,
		.rate = 0.1,
		.momentum = 0.9,
		.decay = 5e-4,
		.smooth = 5,
		.report_every = 3200,
	};
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
	o->dataset = argv[1];
	return 0;
}

static void common_config(const struct train_options *o, const char *path,
	struct refrain_config *c)
{
	refrain_config_init(c);
	c->dataset = path;
	c->batch = o->batch;
	c->threads = o->threads;
	c->memory_bytes = (uint64_t)o->memory_mb << 20;
	if (o->text) {
		c->source = REFRAIN_SOURCE_RAW;
		c->record_bytes = LM_BYTES;
		return;
	}
	c->height = c->width = o->size;
	c->type = REFRAIN_F32;
}

void train_config(const struct train_options *o, struct refrain_config *c)
{
	common_config(o, o->dataset, c);
	c->root = o->root;
	c->epochs = o->epochs;
	c->seed = o->seed;
	c->echo = o->echo;
	c->echo_max = o->echo == REFRAIN_ECHO_AUTO ? o->echo_max : 0;
	c->echo_point = o->point;
	c->window = o->window;
	c->min_lag = o->min_lag;
	c->last = REFRAIN_LAST_DROP;
	if (!o->text)
		c->area_min = AREA_MIN;
	if (o->allow_duplicates)
		c->flags |= REFRAIN_FLAG_ALLOW_DUPLICATES;
}

void score_config(const struct train_options *o, const char *path,
	struct refrain_config *c)
{
	common_config(o, path, c);
	c->flags = REFRAIN_FLAG_IN_ORDER;
	if (!o->text)
		c->augment = REFRAIN_AUGMENT_EVAL;
}

const char *train_point_name(const struct train_options *o)
{
	return points[o->point];
}

const char *train_schedule_name(const struct train_options *o)
{
	return schedules[o->schedule];
}
