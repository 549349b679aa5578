/* SPDX-License-Identifier: MIT */
/* The options of `refrain load`: members of a loader's configuration. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "load.h"

/* A word of a list "a|b|c" to its number. */
static int parse_word(
	const char *words, const char *value, int32_t *out, struct error *err)
{
	size_t len = strlen(value);
	const char *w = words;

	for (int32_t i = 0; *w; i++) {
		size_t n = strcspn(w, "|");

		*out = i;
		if (n == len && memcmp(w, value, n) == 0)
			return 0;
		w += n + (w[n] == '|');
	}
	return error_set(err, -EINVAL, "'%s' is none of %s", value, words);
}

#define SOURCES "auto|folder|list|tar|raw"
#define POINTS "before|after|batch"
#define AUGMENTS "train|eval|none"
#define TYPES "u8|f16|f32"
#define LAYOUTS "nhwc|nchw"
#define POLICIES "substitute|zero|fail"

/* The words of each are in the order of its enum in refrain/loader.h. */
#define PARSE_WORD(member, words)                                              \
	static int parse_##member(                                             \
		void *out, const char *value, struct error *err)               \
	{                                                                      \
		struct load_options *o = out;                                  \
                                                                               \
		return parse_word(words, value, &o->config.member, err);       \
	}
PARSE_WORD(source, SOURCES)
PARSE_WORD(echo_point, POINTS)
PARSE_WORD(augment, AUGMENTS)
PARSE_WORD(type, TYPES)
PARSE_WORD(layout, LAYOUTS)
PARSE_WORD(policy, POLICIES)

static int parse_u64(const char *value, uint64_t *out, struct error *err)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end)
		return error_set(
			err, -EINVAL, "'%s' is not a whole number", value);
	if (errno)
		return error_set(err, -ERANGE, "'%s' is too large", value);
	return 0;
}

#define PARSE_U64(name, member)                                                \
	static int parse_##name(                                               \
		void *out, const char *value, struct error *err)               \
	{                                                                      \
		struct load_options *o = out;                                  \
                                                                               \
		return parse_u64(value, &o->member, err);                      \
	}
PARSE_U64(seed, config.seed)
PARSE_U64(max_pixels, config.max_pixels)
PARSE_U64(steps, steps)

/* 2, 2.5 or 5/2. */
static int parse_factor(const char *value, double *out, struct error *err)
{
	double over = 1;
	char *end;

	*out = strtod(value, &end);
	if (end != value && *end == '/') {
		value = end + 1;
		over = strtod(value, &end);
	}
	*out /= over;
	if (end == value || *end || !isfinite(*out) || *out < 1)
		return error_set(err, -EINVAL,
			"it must be a number from 1 on, as 2, 2.5 or 5/2");
	return 0;
}

static int parse_echo(void *out, const char *value, struct error *err)
{
	struct load_options *o = out;

	if (strcmp(value, "auto") == 0) {
		o->config.echo = REFRAIN_ECHO_AUTO;
		return 0;
	}
	return parse_factor(value, &o->config.echo, err);
}

static int parse_echo_max(void *out, const char *value, struct error *err)
{
	struct load_options *o = out;

	return parse_factor(value, &o->config.echo_max, err);
}

/* 224, or WxH. */
static int parse_size(void *out, const char *value, struct error *err)
{
	struct load_options *o = out;
	unsigned width, height;
	char end;
	int n = sscanf(value, "%5ux%5u%c", &width, &height, &end);

	if (n == 1 && strspn(value, "0123456789") == strlen(value))
		height = width;
	else if (n != 2)
		width = height = 0;
	if (!width || !height)
		return error_set(err, -EINVAL,
			"'%s' is no size; write 224, or WxH as 320x240", value);
	o->config.width = width;
	o->config.height = height;
	return 0;
}

#define FIELD(f) offsetof(struct load_options, f)
#define NUMBER(n, l, a, h, f)                                                  \
	{                                                                      \
		n, l, a, h, OPTION_NUMBER, FIELD(f), NULL, false               \
	}
#define FLAG(n, h, f)                                                          \
	{                                                                      \
		n, 0, NULL, h, OPTION_FLAG, FIELD(f), NULL, false              \
	}
#define TEXT(n, a, h, f)                                                       \
	{                                                                      \
		n, 0, a, h, OPTION_TEXT, FIELD(f), NULL, false                 \
	}
#define CALL(n, l, a, h, c)                                                    \
	{                                                                      \
		n, l, a, h, OPTION_CALL, 0, c, false                           \
	}

const struct option_def load_table[] = {
	{"batch", 'b', "B", "Examples a step.", OPTION_NUMBER,
		FIELD(config.batch), NULL, true},
	CALL("echo", 'e', "E",
		"Serve each decoded example E times, as 2, 2.5 or 5/2; "
		"default 1. With auto, as often as hides the time it takes "
		"to be made.",
		parse_echo),
	CALL("echo-max", 0, "E", "Of --echo auto at most; default 4.",
		parse_echo_max),
	TEXT("echo-log", "FILE",
		"Write a line for each change that --echo auto makes.",
		echo_log),
	TEXT("echo-replay", "FILE",
		"Make the changes that --echo-log wrote, and so the same "
		"stream, instead of measuring.",
		echo_replay),
	CALL("echo-point", 0, POINTS,
		"What is served again: the decoded example with a new crop "
		"(default), the augmented example, or the whole batch.",
		parse_echo_point),
	NUMBER("window", 'w', "N",
		"The most examples with echoes outstanding; default 16 "
		"batches, at least 1024.",
		config.window),
	NUMBER("min-lag", 0, "N",
		"Steps between two servings of one example, at least; "
		"default 1.",
		config.min_lag),
	FLAG("allow-duplicates",
		"Take a window that is too small, and count what meets in one "
		"batch.",
		duplicates),
	NUMBER("epochs", 'n', "N",
		"How often each example is fresh; default 1.", config.epochs),
	CALL("steps", 0, "N", "Stop after N steps.", parse_steps),
	CALL("seed", 0, "S", "Of order and augmentation; default 0.",
		parse_seed),
	FLAG("in-order", "Do not shuffle.", in_order),
	NUMBER("shuffle-window", 0, "N",
		"Shuffle within N examples at a time, for media that must be "
		"read in sequence.",
		config.shuffle_window),
	NUMBER("rank", 0, "R", "Which of --world trainers this is; default 0.",
		config.rank),
	NUMBER("world", 0, "W",
		"How many trainers share the dataset; default 1.",
		config.world),
	FLAG("pad", "Give all ranks equally many examples: some twice.", pad),
	FLAG("drop-last", "Drop the run's last batch if it is short.",
		drop_last),
	CALL("source", 0, SOURCES, "What the dataset is; default auto.",
		parse_source),
	TEXT("root", "DIR",
		"Where the paths of a list begin; default the list's "
		"directory.",
		config.root),
	NUMBER("record-bytes", 0, "N", "Size of a raw record.",
		config.record_bytes),
	NUMBER("label-bytes", 0, "N",
		"Size of the label that begins a raw record; default 0.",
		config.label_bytes),
	CALL("size", 's', "N",
		"Side of an image in a batch, or WxH; default 224.",
		parse_size),
	CALL("type", 0, TYPES, "Of the pixels; default u8.", parse_type),
	CALL("layout", 0, LAYOUTS, "Of the pixels; default nhwc.",
		parse_layout),
	CALL("augment", 0, AUGMENTS,
		"Random crop and flip (default), centre crop, or the whole "
		"image resized.",
		parse_augment),
	FLAG("no-augment", "The same as --augment none.", no_augment),
	CALL("policy", 0, POLICIES,
		"What becomes of a damaged example; default substitute.",
		parse_policy),
	CALL("max-pixels", 0, "N",
		"Larger images count as damaged; default 200 million.",
		parse_max_pixels),
	{"memory", 'm', "SIZE",
		"For everything that is held; default a quarter of what the "
		"process may use.",
		OPTION_SIZE, FIELD(config.memory_bytes), NULL, false},
	NUMBER("threads", 't', "N",
		"Threads that decode and augment; default one a processor.",
		config.threads),
	NUMBER("batches-ahead", 0, "N",
		"Batches that are ready or being made; default 4.",
		config.batches_ahead),
	NUMBER("reads-ahead", 0, "N",
		"Examples that are being read at a time; default 64.",
		config.reads_ahead),
	NUMBER("step-ms", 0, "T",
		"A step takes the trainer T milliseconds; default 0.", step_ms),
	NUMBER("timeout", 0, "SECONDS",
		"Fail if a batch does not come, or the dataset does not "
		"answer when it is opened, for so long; default 60, 0 waits "
		"for ever.",
		timeout_s),
	FLAG("no-mount-help",
		"On a mount of refrain: do not tell it the order, and read all "
		"through it.",
		no_mount_help),
	TEXT("state", "FILE",
		"Save the position after each batch, and go on from there if "
		"FILE exists.",
		state),
	TEXT("trace", "FILE",
		"Write a line for each sample: step, index, echo number, "
		"augmentation seed.",
		trace),
	TEXT("step-log", "FILE",
		"Write a line for each step: when its batch was there, how "
		"long it was waited for, fresh examples, whether an epoch "
		"ends.",
		step_log),
	FLAG("json", "Print one JSON object.", json),
	{.name = NULL},
};

int load_options_finish(struct load_options *o, struct error *err)
{
	struct refrain_config *c = &o->config;

	if (!c->batch)
		return error_set(err, -EINVAL, "--batch must not be 0");
	if (c->world && c->rank >= c->world)
		return error_set(err, -EINVAL,
			"--rank %u: ranks go from 0 to %u", c->rank,
			c->world - 1);
	if (!c->world && c->rank)
		return error_set(
			err, -EINVAL, "--rank needs --world, their number");
	if (c->echo != REFRAIN_ECHO_AUTO &&
		(o->echo_log || o->echo_replay || c->echo_max > 0))
		return error_set(err, -EINVAL, "%s needs --echo auto",
			o->echo_log		 ? "--echo-log"
				: o->echo_replay ? "--echo-replay"
						 : "--echo-max");
	if (o->no_augment)
		c->augment = REFRAIN_AUGMENT_NONE;
	if (o->drop_last)
		c->last = REFRAIN_LAST_DROP;
	if (o->in_order)
		c->flags |= REFRAIN_FLAG_IN_ORDER;
	if (o->pad)
		c->flags |= REFRAIN_FLAG_PAD_RANKS;
	if (o->no_mount_help)
		c->flags |= REFRAIN_FLAG_NO_MOUNT_HELP;
	if (o->duplicates)
		c->flags |= REFRAIN_FLAG_ALLOW_DUPLICATES;
	return 0;
}
