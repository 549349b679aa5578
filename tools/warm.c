/* SPDX-License-Identifier: MIT */
/* refrain warm: makes the daemon fill its cache and shows the progress. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fleet/request.h"
#include "common/base/size.h"
#include "command.h"
#include "progress.h"

struct warm_args {
	bool json;
};

static const struct option_def warm_table[] = {
	{
		.name = "json",
		.help = "Print the result as one JSON object, without "
			"progress.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct warm_args, json),
	},
	{.name = NULL},
};

const struct option_usage warm_usage = {
	.name = "warm",
	.operands = "MOUNTPOINT [PATH ...]",
	.summary = "Fetch the files below each PATH (default: all files) into "
		   "the cache until it is full.",
	.options = warm_table,
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

static void warm_show(void *arg, const json_t *line)
{
	bool scanning = json_is_true(json_object_get(line, "scanning"));

	progress_show(arg, ask_number(line, "items_done"),
		ask_number(line, "bytes_done"), ask_number(line, "bytes_total"),
		scanning ? " (still listing)" : "");
}

static void summarise(const json_t *r)
{
	char cached[SIZE_TEXT_MAX], rest[SIZE_TEXT_MAX];
	uint64_t items = ask_number(r, "cached_items");
	uint64_t already = ask_number(r, "already_items");
	uint64_t rest_items = ask_number(r, "not_fitting_items");

	(void)printf("%" PRIu64 " %s (%s) %s cached, %" PRIu64
		     " of them %s already cached\n",
		items, ask_plural(items, "item", "items"),
		size_format(ask_number(r, "cached_bytes"), cached),
		ask_plural(items, "is", "are"), already,
		ask_plural(already, "was", "were"));
	if (rest_items > 0)
		(void)printf("%" PRIu64 " %s (%s) %s not fit; reads of them "
			     "go to the source\n",
			rest_items, ask_plural(rest_items, "item", "items"),
			size_format(ask_number(r, "not_fitting_bytes"), rest),
			ask_plural(rest_items, "does", "do"));
}

static void complain_failed(const json_t *reply, uint64_t failed)
{
	(void)fprintf(stderr,
		"refrain: warm: %" PRIu64 " %s could not be fetched: ", failed,
		ask_plural(failed, "item", "items"));
	ask_print(stderr, reply, "failed_why");
	(void)fputs("; run it again to retry\n", stderr);
}

static int warm_report(const json_t *reply, bool json)
{
	uint64_t failed = ask_number(reply, "failed_items");
	uint64_t unlisted = ask_number(reply, "unlisted");

	if (json) {
		ask_print_json(reply);
	} else {
		summarise(reply);
	}
	if (failed > 0)
		complain_failed(reply, failed);
	if (unlisted > 0) {
		(void)fputs("refrain: warm: ", stderr);
		ask_print(stderr, reply, "unlisted_why");
		(void)fputs("; everything else is done\n", stderr);
	}
	return failed + unlisted > 0 ? EXIT_FAILED : EXIT_OK;
}

int cmd_warm(int argc, char **argv)
{
	struct warm_args args = {.json = false};
	struct error err = {""};
	struct progress progress;
	json_t *reply = NULL;
	int status, rc;
	int n = command_parse(&warm_usage, argc, argv, &args, &status);

	if (n < 0)
		return status;
	progress_begin(&progress);
	rc = ask(argv[1], ask_about_paths("warm", argv[1], argv + 2, n - 1),
		args.json ? NULL : warm_show, &progress, &reply, &err);
	progress_end(&progress);
	if (rc < 0)
		return command_fail("warm", &err);
	status = warm_report(reply, args.json);
	json_decref(reply);
	return status;
}
