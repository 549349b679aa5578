/* SPDX-License-Identifier: MIT */
/* Defines the options of `refrain load`: members of a loader's configuration,
 * and options about how the command runs the loader. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "load.h"

static int parse_steps(void *out, const char *value, struct error *err)
{
	struct load_options *o = out;
	char *end;

	errno = 0;
	o->steps = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end)
		return error_set(
			err, -EINVAL, "'%s' is not a whole number", value);
	if (errno)
		return error_set(err, -ERANGE, "'%s' is too large", value);
	return 0;
}

#define FIELD(f) offsetof(struct load_options, f)

static const struct option_def own[] = {
	FLAG("drop-last", "Drop the last batch of the run if it is short.",
		drop_last),
	TEXT("echo-log", "FILE",
		"Write one line to FILE for each change of the factor with "
		"--echo auto.",
		echo_log),
	TEXT("echo-replay", "FILE",
		"Make the changes in a FILE written by --echo-log instead of "
		"measuring, so that the stream is the same.",
		echo_replay),
	CALL("steps", "N", "Stop after N steps.", parse_steps),
	NUMBER("step-ms", "T",
		"Simulate a trainer whose step takes T milliseconds (default: "
		"0).",
		step_ms),
	NUMBER("timeout", "SECONDS",
		"Fail after SECONDS without a batch, or without an answer "
		"from the dataset when it is opened (default: 60; 0 waits "
		"for ever).",
		timeout_s),
	TEXT("state", "FILE",
		"Save the position to FILE after each batch. If FILE exists, "
		"resume from it.",
		state),
	/* For tests and benchmarks: write a line for each sample, with step,
	 * index, echo number and augmentation seed. */
	TEXT("trace", "FILE", NULL, trace),
	/* Write a line for each step: when its batch came, how long the step
	 * waited for it, its fresh examples, and whether an epoch ends. */
	TEXT("step-log", "FILE", NULL, step_log),
	FLAG("no-hash",
		"Do not hash the batches. At high rates the hash takes most "
		"of the time.",
		no_hash),
	FLAG("list-examples",
		"Load nothing. Print the paths of the files that contain the "
		"examples of the run, members included, for 'refrain warm "
		"MOUNTPOINT -'.",
		list),
	FLAG("json", "Print one JSON object.", json),
	{.name = NULL},
};

static const struct config_choice choices[] = {
	CONFIG_RUN_CHOICES,
	{.member = NULL},
};

static struct config_options options = {
	.own = own, .choices = choices, .all = true};

static const struct option_def *build_load_table(void)
{
	return config_options_table(&options);
}

static int set_load_option(void *out, const struct option_def *option,
	const char *value, struct error *err)
{
	struct load_options *o = out;

	return config_options_set(&options, &o->config, option, value, err);
}

const struct option_usage load_usage = {
	.name = "load",
	.operands = "DATASET ...",
	.summary = "Load DATASET as a trainer would, with echoes, and report "
		   "the speed and the amount read.",
	.build = build_load_table,
	.set = set_load_option,
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

/* Returns the option for a member, without dashes; NULL if the member has none.
 */
static const char *option_of(const char *word, size_t n)
{
	static const char *const others[][2] = {{"last", "drop-last"},
		{"open_timeout_ms", "timeout"}, {"echo_log", "echo-replay"}};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strlen(others[i][0]) == n &&
			memcmp(word, others[i][0], n) == 0)
			return others[i][1];
	return config_options_name(&options, word, n);
}

/* Replaces members by options. A word counts as the name of a member only if it
 * has a '_' or is the first word. */
int load_options_say(const char *message, int rc, struct error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	const char *at = message;
	char text[sizeof(err->msg)];
	size_t used = 0;

	while (*at && used + 1 < sizeof(text)) {
		size_t n = strspn(at, letters), room = sizeof(text) - used;
		const char *name = NULL;

		if (n && (at == message || memchr(at, '_', n)))
			name = option_of(at, n);
		if (!n)
			n = 1;
		if (name)
			(void)snprintf(text + used, room, "--%s", name);
		else
			(void)snprintf(text + used, room, "%.*s", (int)n, at);
		used += strlen(text + used);
		at += n;
	}
	return error_set(err, rc, "%s", text);
}

int load_options_finish(struct load_options *o, struct error *err)
{
	struct refrain_config *c = &o->config;

	if (!c->batch)
		return error_set(err, -EINVAL, "--batch must not be 0");
	if (c->world && c->rank >= c->world)
		return error_set(err, -EINVAL,
			"--rank is %u, but must be from 0 to %u", c->rank,
			c->world - 1);
	if (!c->world && c->rank)
		return error_set(err, -EINVAL,
			"--rank needs --world, the number of "
			"ranks");
	if (c->echo != REFRAIN_ECHO_AUTO &&
		(o->echo_log || o->echo_replay || c->echo_max > 0))
		return error_set(err, -EINVAL, "%s needs --echo auto",
			o->echo_log		 ? "--echo-log"
				: o->echo_replay ? "--echo-replay"
						 : "--echo-max");
	if (o->drop_last)
		c->last = REFRAIN_LAST_DROP;
	return 0;
}
