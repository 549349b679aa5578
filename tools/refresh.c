/* SPDX-License-Identifier: MIT */
/* refrain refresh: lets the daemon look for changes at the origin. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/fleet/request.h"
#include "command.h"

const struct option_usage refresh_usage = {
	.name = "refresh",
	.operands = "MOUNTPOINT [PATH ...]",
	.summary = "Look for changes at the source, below each PATH (default: "
		   "everywhere), and report them.",
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

static int refresh_report(const json_t *reply)
{
	uint64_t directories = ask_number(reply, "directories");
	uint64_t changed = ask_number(reply, "changed");
	uint64_t unreachable = ask_number(reply, "unreachable");

	(void)printf("%" PRIu64 " %s: %" PRIu64 " %s changed, "
		     "%" PRIu64 " added, %" PRIu64 " removed\n",
		directories,
		ask_plural(directories, "directory", "directories"), changed,
		ask_plural(changed, "file", "files"),
		ask_number(reply, "added"), ask_number(reply, "removed"));
	if (unreachable == 0)
		return EXIT_OK;
	(void)fputs("refrain: refresh: ", stderr);
	ask_print(stderr, reply, "unlisted_why");
	(void)fputs("; the old listing is kept there; run the command again\n",
		stderr);
	return EXIT_FAILED;
}

int cmd_refresh(int argc, char **argv)
{
	struct error err = {""};
	json_t *reply = NULL;
	int status;
	int n = command_parse(&refresh_usage, argc, argv, NULL, &status);

	if (n < 0)
		return status;
	if (ask(argv[1], ask_about_paths("refresh", argv[1], argv + 2, n - 1),
		    NULL, NULL, &reply, &err) < 0)
		return command_fail("refresh", &err);
	status = refresh_report(reply);
	json_decref(reply);
	return status;
}
