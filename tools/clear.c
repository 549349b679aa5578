/* SPDX-License-Identifier: MIT */
/* refrain clear: empties a cache directory that no mount uses. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/fleet/request.h"
#include "command.h"
#include "mount/store/store.h"

const struct option_usage clear_usage = {
	.name = "clear",
	.operands = "DIR",
	.summary = "Delete all contents of the cache directory DIR, but not "
		   "DIR itself. Fails if a mount uses it.",
	.min_operands = 1,
	.max_operands = 1,
};

int cmd_clear(int argc, char **argv)
{
	struct error err = {""};
	uint64_t removed = 0;
	int status;

	if (command_parse(&clear_usage, argc, argv, NULL, &status) < 0)
		return status;
	if (store_clear_dir(argv[1], &removed, &err) < 0)
		return command_fail("clear", &err);
	(void)printf("%" PRIu64 " %s removed\n", removed,
		ask_plural(removed, "entry", "entries"));
	return EXIT_OK;
}
