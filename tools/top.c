/* SPDX-License-Identifier: MIT */
/* refrain top: prints all mounts and shares of the host, one line each, again
 * and again. One thread. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "common/base/clock.h"
#include "fleet_view.h"
#include "top.h"

struct top_args {
	unsigned count, delay_s;
};

static const struct option_def top_table[] = {
	{
		.name = "count",
		.letter = 'n',
		.arg = "N",
		.help = "End after N screens; without it, go on until "
			"interrupted.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct top_args, count),
	},
	{
		.name = "delay",
		.letter = 'd',
		.arg = "SECONDS",
		.help = "Time between two screens; default 1.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct top_args, delay_s),
	},
	{.name = NULL},
};

const struct option_usage top_usage = {
	.name = "top",
	.operands = "",
	.summary = "Show all mounts of this host and this user's shares, one "
		   "line each, and refresh them. Those whose readers wait "
		   "longest come first.",
	.options = top_table,
	.min_operands = 0,
	.max_operands = 0,
};

/* Sleep until the next screen is due. */
static void pause_until(uint64_t due_ns)
{
	uint64_t now = clock_now_ns(), left = due_ns > now ? due_ns - now : 0;
	struct timespec t = {
		.tv_sec = (time_t)(left / NS_PER_S),
		.tv_nsec = (long)(left % NS_PER_S),
	};

	/* it does no harm if the call returns early */
	(void)nanosleep(&t, NULL);
}

int top_run(unsigned count, unsigned delay_s, struct error *err)
{
	struct fleet_view *view;
	uint64_t due_ns = clock_now_ns();
	int rc = fleet_view_new(&view, err);

	if (rc < 0)
		return rc;
	if (isatty(STDOUT_FILENO) == 1)
		(void)fputs("\033[2J", stdout);
	for (unsigned i = 0; count == 0 || i < count; i++) {
		if (i > 0)
			pause_until(due_ns);
		due_ns = clock_now_ns() + delay_s * NS_PER_S;
		rc = fleet_view_look(view, err);
		if (rc < 0)
			break;
		if (i > 0 && isatty(STDOUT_FILENO) != 1)
			(void)putchar('\n');
		if (fleet_view_print(view, true) < 0 || fflush(stdout) != 0)
			break; /* main() checks for write errors */
	}
	fleet_view_free(view);
	return rc;
}

int cmd_top(int argc, char **argv)
{
	struct top_args args = {.delay_s = 1};
	struct error err = {""};
	int status;

	if (command_parse(&top_usage, argc, argv, &args, &status) < 0)
		return status;
	if (args.delay_s == 0) {
		(void)error_set(&err, -EINVAL, "--delay is at least 1");
		(void)command_fail("top", &err);
		return EXIT_USAGE;
	}
	if (top_run(args.count, args.delay_s, &err) < 0)
		return command_fail("top", &err);
	return EXIT_OK;
}
