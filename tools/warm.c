/* SPDX-License-Identifier: MIT */
/* refrain warm: asks the daemon to fill its cache, and shows the progress. */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/cleanup.h"
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
	.operands = "MOUNTPOINT [PATH ...|-]",
	.summary =
		"Fetch the files below each PATH (default: all files) into "
		"the cache until it is full. With -, the paths are the lines "
		"of standard input.",
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

/* -- Paths from standard input --------------------------------------------- */

/* Requests to the daemon are limited to 1 MiB, and a byte of a path may take
 * six bytes there. */
#define GROUP_BYTES ((size_t)128 << 10)

/* Paths that go to the daemon in one request. */
struct group {
	char *path[4096];
	int count;
	size_t bytes;
	void *seen; /* tree of all paths; owns them */
};

static int compare_paths(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Add a path that no group has had. Takes it. */
static int group_take(struct group *g, char *path)
{
	void *node = tsearch(path, &g->seen, compare_paths);

	if (!node || *(char **)node != path) {
		free(path);
		return node ? 0 : -ENOMEM;
	}
	g->path[g->count++] = path;
	g->bytes += strlen(path);
	return 0;
}

/* Read the next paths, one in a line. Returns 0 at the end of the input, 1, or
 * -ENOMEM. */
static int group_read(struct group *g)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	int rc = 0;
	ssize_t n;

	g->count = 0;
	g->bytes = 0;
	while (rc == 0 &&
		g->count < (int)(sizeof(g->path) / sizeof(*g->path)) &&
		g->bytes < GROUP_BYTES &&
		(n = getline(&line, &room, stdin)) >= 0) {
		if (n > 0 && line[n - 1] == '\n')
			line[--n] = '\0';
		if (n > 0) /* an empty line is not the root */
			rc = group_take(g, steal_ptr(&line));
	}
	return rc < 0 ? rc : g->count > 0;
}

/* Add the numbers of a reply to those of the replies before it. Of texts, such
 * as reasons, the first is kept. */
static void add_reply(json_t **sum, json_t *reply)
{
	const char *key;
	json_t *value;

	if (!*sum) {
		*sum = reply;
		return;
	}
	json_object_foreach(reply, key, value)
	{
		json_t *old = json_object_get(*sum, key);

		if (json_is_integer(value) && json_is_integer(old))
			(void)json_integer_set(old,
				json_integer_value(old) +
					json_integer_value(value));
		else if (!old)
			(void)json_object_set(*sum, key, value);
	}
	json_decref(reply);
}

static int warm_lines(const char *mountpoint, ctl_line_fn *show,
	struct progress *progress, json_t **sum, struct error *err)
{
	struct group g = {0};
	int rc;

	while ((rc = group_read(&g)) > 0) {
		json_t *reply = NULL;

		rc = ask(mountpoint,
			ask_about_paths("warm", mountpoint, g.path, g.count),
			show, progress, &reply, err);
		if (rc < 0)
			break;
		add_reply(sum, reply);
	}
	tdestroy(g.seen, free);
	if (rc == -ENOMEM)
		return error_set(err, rc, "%m");
	if (rc >= 0 && ferror(stdin))
		return error_set(err, -EIO, "cannot read the paths");
	if (rc >= 0 && !*sum)
		return error_set(err, -ENODATA,
			"standard input has no path, one in a line");
	return rc;
}

/* -- The report ------------------------------------------------------------ */

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

static void complain_unknown(const json_t *reply, uint64_t unknown)
{
	(void)fputs("refrain: warm: cannot warm ", stderr);
	if (unknown > 1)
		(void)fprintf(
			stderr, "%" PRIu64 " paths, the first is ", unknown);
	ask_print(stderr, reply, "unknown_why");
	(void)fputc('\n', stderr);
}

static int warm_report(const json_t *reply, bool json)
{
	uint64_t failed = ask_number(reply, "failed_items");
	uint64_t unlisted = ask_number(reply, "unlisted");
	uint64_t unknown = ask_number(reply, "unknown");

	if (json)
		ask_print_json(reply);
	else if (!unknown || ask_number(reply, "files"))
		summarise(reply);
	if (unknown > 0)
		complain_unknown(reply, unknown);
	if (failed > 0)
		complain_failed(reply, failed);
	if (unlisted > 0) {
		(void)fputs("refrain: warm: ", stderr);
		ask_print(stderr, reply, "unlisted_why");
		(void)fputs("; everything else is done\n", stderr);
	}
	return failed + unlisted + unknown > 0 ? EXIT_FAILED : EXIT_OK;
}

int cmd_warm(int argc, char **argv)
{
	struct warm_args args = {.json = false};
	struct error err = {""};
	struct progress progress;
	json_t *reply = NULL;
	ctl_line_fn *show;
	int status, rc;
	int n = command_parse(&warm_usage, argc, argv, &args, &status);

	if (n < 0)
		return status;
	show = args.json ? NULL : warm_show;
	progress_begin(&progress);
	if (n == 2 && strcmp(argv[2], "-") == 0)
		rc = warm_lines(argv[1], show, &progress, &reply, &err);
	else
		rc = ask(argv[1],
			ask_about_paths("warm", argv[1], argv + 2, n - 1), show,
			&progress, &reply, &err);
	progress_end(&progress);
	if (rc < 0)
		return command_fail("warm", &err);
	status = warm_report(reply, args.json);
	json_decref(reply);
	return status;
}
