/* SPDX-License-Identifier: MIT */
/* refrain warm: the daemon fills its cache, this shows how far it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "base/size.h"
#include "command.h"
#include "progress.h"

struct warm_args {
	bool json;
};

static const struct option_def warm_table[] = {
	{
		.name = "json",
		.help = "Print the result as one JSON object, and no progress.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct warm_args, json),
	},
	{.name = NULL},
};

const struct option_usage warm_usage = {
	.name = "warm",
	.operands = "MOUNTPOINT [PATH ...]",
	.summary = "Fetch the files below each PATH (all, if none is given) "
		   "into the cache, as far as they fit.",
	.options = warm_table,
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

static void show(void *arg, const json_t *line)
{
	bool scanning = json_is_true(json_object_get(line, "scanning"));

	progress_show(arg, ask_number(line, "items_done"),
		ask_number(line, "bytes_done"), ask_number(line, "bytes_total"),
		scanning ? " (still listing)" : "");
}

static void summarise(const json_t *r)
{
	char cached[SIZE_TEXT_MAX], rest[SIZE_TEXT_MAX];
	uint64_t rest_items = ask_number(r, "not_fitting_items");

	(void)printf("%" PRIu64 " items (%s) are cached, %" PRIu64
		     " of them were before\n",
		ask_number(r, "cached_items"),
		size_format(ask_number(r, "cached_bytes"), cached),
		ask_number(r, "already_items"));
	if (rest_items > 0)
		(void)printf("%" PRIu64 " items (%s) do not fit; they will be "
			     "read from the source each time\n",
			rest_items,
			size_format(ask_number(r, "not_fitting_bytes"), rest));
}

static int report(const json_t *reply, bool json)
{
	uint64_t failed = ask_number(reply, "failed_items");
	uint64_t unlisted = ask_number(reply, "unlisted");

	if (json) {
		(void)json_dumpf(reply, stdout, JSON_COMPACT);
		(void)putchar('\n');
	} else {
		summarise(reply);
	}
	if (failed > 0)
		(void)fprintf(stderr,
			"refrain: warm: %" PRIu64
			" %s could not be fetched: %s; run it again to retry\n",
			failed, failed == 1 ? "item" : "items",
			ask_text(reply, "failed_why"));
	if (unlisted > 0)
		(void)fprintf(stderr, "refrain: warm: %s; all else is done\n",
			ask_text(reply, "unlisted_why"));
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
		args.json ? NULL : show, &progress, &reply, &err);
	progress_end(&progress);
	if (rc < 0)
		return command_fail("warm", &err);
	status = report(reply, args.json);
	json_decref(reply);
	return status;
}
