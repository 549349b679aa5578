/* SPDX-License-Identifier: MIT */
/* refrain upgrade: replaces the program of a daemon, or its options, while it
 * serves. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/fleet/request.h"
#include "command.h"
#include "upgrade.h"
#include "common/base/cleanup.h"

struct upgrade_args {
	json_t *options; /* [[NAME, VALUE], ...] */
};

static int add_change(void *out, const char *name, const char *value)
{
	struct upgrade_args *args = out;

	return json_array_append_new(
		args->options, json_pack("[s, s]", name, value));
}

static int change_cache(void *out, const char *value, struct error *err)
{
	if (add_change(out, "cache", value) < 0)
		return error_set(err, -EINVAL, "'%s' is not UTF-8", value);
	return 0;
}

static int change_level(void *out, const char *value, struct error *err)
{
	if (add_change(out, "log-level", value) < 0)
		return error_set(err, -EINVAL, "'%s' is not UTF-8", value);
	return 0;
}

static int change_timeout(void *out, const char *value, struct error *err)
{
	if (add_change(out, "timeout", value) < 0)
		return error_set(err, -EINVAL, "'%s' is not UTF-8", value);
	return 0;
}

static const struct option_def upgrade_table[] = {
	{
		.name = "cache",
		.arg = "DIR:SIZE",
		.help = "Change the size of the cache in DIR, which must hold "
			"what is in it.",
		.kind = OPTION_CALL,
		.call = change_cache,
	},
	{
		.name = "log-level",
		.arg = "LEVEL",
		.help = "Change the level of the log.",
		.kind = OPTION_CALL,
		.call = change_level,
	},
	{
		.name = "timeout",
		.arg = "SECONDS",
		.help = "Change the time-out of requests to the origin.",
		.kind = OPTION_CALL,
		.call = change_timeout,
	},
	{.name = NULL},
};

const struct option_usage upgrade_usage = {
	.name = "upgrade",
	.operands = "MOUNTPOINT [PROGRAM]",
	.summary = "Replace the program of the daemon of MOUNTPOINT by PROGRAM "
		   "(default: this one), or change options, while programs "
		   "read.",
	.options = upgrade_table,
	.min_operands = 1,
	.max_operands = 2,
};

static int upgrade_program(const char *typed, char *path, struct error *err)
{
	if (realpath(typed ? typed : "/proc/self/exe", path))
		return 0;
	return error_set(err, -errno, "cannot find '%s': %m",
		typed ? typed : "this program");
}

/* Ask until the new program answers. Until it does, a request waits in the
 * queue of the socket. */
static int upgrade_wait(
	const char *mountpoint, uint64_t before, struct error *err)
{
	json_t *reply = NULL;
	uint64_t now;

	for (int i = 0; i < 600; i++) {
		int rc = ask(mountpoint, json_pack("{s:s}", "cmd", "status"),
			NULL, NULL, &reply, err);

		now = rc < 0 ? 0
			     : ask_number(json_object_get(reply, "status"),
				       "recoveries");
		json_decref(reply);
		reply = NULL;
		if (now > before)
			return 0;
		(void)usleep(50000);
	}
	return error_set(err, -ETIMEDOUT,
		"the new program does not answer; see the log of '%s'",
		mountpoint);
}

int upgrade_run(const char *mountpoint, const char *typed, json_t *options)
{
	char program[PATH_MAX];
	struct error err = {""};
	json_t *reply = NULL;
	uint64_t before;
	int rc = upgrade_program(typed, program, &err);

	if (rc == 0)
		rc = ask(mountpoint, json_pack("{s:s}", "cmd", "status"), NULL,
			NULL, &reply, &err);
	before = ask_number(json_object_get(reply, "status"), "recoveries");
	json_decref(reply);
	reply = NULL;
	if (rc == 0)
		rc = ask(mountpoint,
			json_pack("{s:s, s:s, s:O}", "cmd", "upgrade",
				"program", program, "options", options),
			NULL, NULL, &reply, &err);
	json_decref(reply);
	if (rc == 0)
		rc = upgrade_wait(mountpoint, before, &err);
	return rc < 0 ? command_fail("upgrade", &err) : EXIT_OK;
}

int cmd_upgrade(int argc, char **argv)
{
	struct upgrade_args args = {.options = json_array()};
	int status;
	int n = command_parse(&upgrade_usage, argc, argv, &args, &status);

	if (n >= 0)
		status = upgrade_run(
			argv[1], n > 1 ? argv[2] : NULL, args.options);
	json_decref(args.options);
	return status;
}
