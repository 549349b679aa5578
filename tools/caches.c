/* SPDX-License-Identifier: MIT */
/* refrain caches: lists the caches of a root, and drops those that nobody uses.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/fleet/request.h"
#include "command.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "mount/store/root_caches.h"

/* The cache of a mount whose daemon was killed is not locked until the next
 * daemon has begun. Daemons note every 30 s that they use a cache. */
#define UNUSED_LEAST_S 120

struct caches_args {
	time_t unused_s;
	bool drop, dry_run, json;
};

static int set_unused(void *out, const char *value, struct error *err)
{
	struct caches_args *args = out;
	char *end;
	unsigned long n = strtoul(value, &end, 10);
	static const char units[] = "smhd";
	static const unsigned seconds[] = {1, 60, 3600, 86400};
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == value || n > 1000000 || !unit || end[1])
		return error_set(err, -EINVAL,
			"'%s' is not a time such as 30d, 12h, 5m or 10s",
			value);
	if (n * seconds[unit - units] < UNUSED_LEAST_S)
		return error_set(err, -EINVAL,
			"'%s' is too short: give at least 2m, because a mount "
			"whose daemon was killed goes on using its cache",
			value);
	args->unused_s = (time_t)(n * seconds[unit - units]);
	args->drop = true;
	return 0;
}

static const struct option_def caches_table[] = {
	{
		.name = "drop-unused",
		.arg = "TIME",
		.help = "Delete the caches that no mount has used for TIME, "
			"such as 30d, 12h or 5m; at least 2m. Caches in use "
			"stay.",
		.kind = OPTION_CALL,
		.call = set_unused,
	},
	{
		.name = "dry-run",
		.help = "Only list what --drop-unused would delete.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct caches_args, dry_run),
	},
	{
		.name = "json",
		.help = "Print one JSON object.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct caches_args, json),
	},
	{.name = NULL},
};

const struct option_usage caches_usage = {
	.name = "caches",
	.operands = "ROOT",
	.summary = "List the caches in a cache root, or delete those that no "
		   "mount has used for some time.",
	.options = caches_table,
	.min_operands = 1,
	.max_operands = 1,
};

static void print_root_cache(void *arg, const struct root_cache *c)
{
	char size[SIZE_TEXT_MAX], used[32] = "never";
	struct tm tm;

	(void)arg;
	if (c->in_use)
		(void)snprintf(used, sizeof(used), "in use");
	else if (c->used && localtime_r(&c->used, &tm))
		(void)strftime(used, sizeof(used), "%Y-%m-%d %H:%M", &tm);
	(void)printf("%12s  %-16s  %-12s  ",
		size_format(c->granted_bytes, size), used, c->dir);
	escape_print(stdout, c->dataset);
	(void)putchar('\n');
}

static void add_root_cache(void *arg, const struct root_cache *c)
{
	(void)json_array_append_new(arg,
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:b}", "dir", c->dir,
			"dataset", c->dataset, "granted_bytes",
			(json_int_t)c->granted_bytes, "granted_inodes",
			(json_int_t)c->granted_inodes, "used",
			(json_int_t)c->used, "in_use", c->in_use));
}

static int show_caches(
	const char *root, const struct caches_args *args, struct error *err)
{
	json_t *list = json_array();
	struct root_size size = {0};
	char all[SIZE_TEXT_MAX], granted[SIZE_TEXT_MAX];
	root_cache_fn *fn = args->json ? add_root_cache : print_root_cache;
	int rc;

	if (args->drop)
		rc = root_caches_drop(root, time(NULL) - args->unused_s,
			args->dry_run, fn, list, err);
	else
		rc = root_caches_list(root, fn, list, &size, err);
	if (args->json && (rc == 0 || json_array_size(list) > 0)) {
		json_t *o = json_pack("{s:O}", "caches", list);

		if (!args->drop) {
			(void)json_object_set_new(o, "size_bytes",
				json_integer((json_int_t)size.bytes));
			(void)json_object_set_new(o, "granted_bytes",
				json_integer((json_int_t)size.granted_bytes));
		}
		ask_print_json(o);
		json_decref(o);
	} else if (rc == 0 && !args->drop) {
		(void)printf("%s of %s are granted\n",
			size_format(size.granted_bytes, granted),
			size_format(size.bytes, all));
	}
	json_decref(list);
	return rc;
}

int cmd_caches(int argc, char **argv)
{
	struct caches_args args = {.drop = false};
	struct error err = {""};
	int status;

	if (command_parse(&caches_usage, argc, argv, &args, &status) < 0)
		return status;
	if (args.dry_run && !args.drop) {
		(void)error_set(&err, -EINVAL, "--dry-run needs --drop-unused");
		(void)command_fail("caches", &err);
		return EXIT_USAGE;
	}
	return show_caches(argv[1], &args, &err) < 0
		? command_fail("caches", &err)
		: EXIT_OK;
}
