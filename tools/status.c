/* SPDX-License-Identifier: MIT */
/* refrain status: prints one screen, JSON or Prometheus text, once or every
 * second. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "analysis/fleet/metrics.h"
#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"
#include "common/base/clock.h"
#include "command.h"
#include "fleet_view.h"
#include "status_view.h"
#include "top.h"

struct status_args {
	bool json, prometheus, watch, debug, all;
};

#define FIELD(f) offsetof(struct status_args, f)

static const struct option_def status_table[] = {
	{
		.name = "all",
		.letter = 'a',
		.help = "Show all mounts of this host and this user's shares, "
			"one line each, as 'refrain top' does.",
		.kind = OPTION_FLAG,
		.offset = FIELD(all),
	},
	{
		.name = "json",
		.help = "Print everything as one JSON object.",
		.kind = OPTION_FLAG,
		.offset = FIELD(json),
	},
	{
		.name = "prometheus",
		.help = "Print everything in the Prometheus text format.",
		.kind = OPTION_FLAG,
		.offset = FIELD(prometheus),
	},
	{
		.name = "debug",
		.help = "Show what the mount is doing now: the oldest fills "
			"and requests with their ages, the readers that wait, "
			"plans, and this user's shares. With --json, one JSON "
			"object.",
		.kind = OPTION_FLAG,
		.offset = FIELD(debug),
	},
	{
		.name = "watch",
		.letter = 'w',
		.help = "Refresh each second, with rates, until interrupted "
			"or unmounted.",
		.kind = OPTION_FLAG,
		.offset = FIELD(watch),
	},
	{.name = NULL},
};

const struct option_usage status_usage = {
	.name = "status",
	.operands = "MOUNTPOINT|--all",
	.summary = "Show the state of the mount at MOUNTPOINT, or of all "
		   "mounts.",
	.options = status_table,
	.min_operands = 0,
	.max_operands = 1,
};

static void print(const struct status_args *args, const json_t *status)
{
	if (args->json) {
		ask_print_json(status);
	} else if (args->prometheus) {
		metrics_print(stdout,
			&(struct metrics){
				.mount =
					&(struct metrics_mount){
						ask_text(status, "mountpoint"),
						status, false},
				.nmounts = 1,
			});
	} else {
		status_print(status, NULL, 0);
	}
}

static int show_debug(const struct status_args *args, struct ctl_client *client,
	struct error *err)
{
	const json_t *debug;
	json_t *reply = NULL;
	int rc = ctl_request(client, json_pack("{s:s}", "cmd", "debug"),
		STATUS_TIMEOUT_S, NULL, NULL, &reply, err);

	if (rc < 0)
		return rc;
	debug = json_object_get(reply, "debug");
	if (args->json)
		ask_print_json(debug);
	else
		status_print_debug(debug);
	json_decref(reply);
	return 0;
}

static void redraw(const json_t *now, const json_t *before, double elapsed_s)
{
	if (isatty(STDOUT_FILENO) == 1)
		(void)fputs("\033[H\033[2J", stdout);
	status_print(now, before, elapsed_s);
	(void)fflush(stdout);
}

static int watch(struct ctl_client *client, struct error *err)
{
	const struct timespec second = {.tv_sec = 1};
	json_t *before = NULL, *now = NULL;
	uint64_t before_ns = 0, now_ns;
	int rc;

	while ((rc = ask_status(client, &now, err)) == 0 && !ferror(stdout)) {
		now_ns = clock_now_ns();
		redraw(now, before, (double)(now_ns - before_ns) / NS_PER_S);
		json_decref(before);
		before = now;
		before_ns = now_ns;
		(void)nanosleep(
			/* it does no harm if the call returns early */
			&second, NULL);
	}
	json_decref(before);
	/* -EPIPE: the daemon ended, because the mount was unmounted */
	return rc == -EPIPE ? 0 : rc;
}

static int status_show(const struct status_args *args, const char *mountpoint,
	struct error *err)
{
	struct ctl_client *client = NULL;
	json_t *status = NULL;
	int rc = ctl_connect(&client, mountpoint, err);

	if (rc < 0)
		return rc;
	if (args->watch) {
		rc = watch(client, err);
	} else if (args->debug) {
		rc = show_debug(args, client, err);
	} else {
		rc = ask_status(client, &status, err);
		if (rc == 0)
			print(args, status);
		json_decref(status);
	}
	ctl_disconnect(client);
	return rc;
}

/* Print all mounts and shares. Returns the exit status. */
static int status_show_all(const struct status_args *args, struct error *err)
{
	struct fleet_view *view;
	int status = EXIT_OK;

	if (args->watch)
		return top_run(0, 1, err) < 0 ? command_fail("status", err)
					      : EXIT_OK;
	if (fleet_view_new(&view, err) < 0)
		return command_fail("status", err);
	if (fleet_view_look(view, err) < 0)
		status = command_fail("status", err);
	else if ((args->json ? fleet_view_print_json(view)
			     : fleet_view_print(view, false)) < 0 ||
		fleet_view_failed(view))
		status = EXIT_FAILED;
	fleet_view_free(view);
	return status;
}

/* Check the options. Returns -EINVAL for options that exclude each other. */
static int status_check(
	const struct status_args *args, int operands, struct error *err)
{
	if (args->json + args->prometheus + args->watch > 1 ||
		(args->debug && (args->prometheus || args->watch)))
		return error_set(err, -EINVAL,
			"give only one of --json, --prometheus and --watch, "
			"and --debug alone or with --json");
	if (args->all && (args->prometheus || args->debug || operands > 0))
		return error_set(err, -EINVAL,
			"give --all alone, or with --json or --watch");
	if (!args->all && operands == 0)
		return error_set(err, -EINVAL,
			"give a MOUNTPOINT, or --all for all mounts");
	return 0;
}

int cmd_status(int argc, char **argv)
{
	struct status_args args = {.json = false};
	struct error err = {""};
	int status;
	int n = command_parse(&status_usage, argc, argv, &args, &status);

	if (n < 0)
		return status;
	if (status_check(&args, n, &err) < 0) {
		(void)command_fail("status", &err);
		return EXIT_USAGE;
	}
	if (args.all)
		return status_show_all(&args, &err);
	if (status_show(&args, argv[1], &err) < 0)
		return command_fail("status", &err);
	return EXIT_OK;
}
