/* SPDX-License-Identifier: MIT */
/* Parses the options of a subcommand, and prints its errors. No state. */
#include "command.h"

#include <errno.h>
#include <stdio.h>

int command_parse(const struct option_usage *usage, int argc, char **argv,
	void *out, int *status)
{
	struct error err = {""};
	int n = option_parse(usage, argc, argv, out, &err);

	if (n >= 0)
		return n;
	if (n == -ECANCELED) {
		option_print_help(usage, stdout);
		*status = EXIT_OK;
	} else {
		(void)fprintf(stderr, "refrain: %s\n", err.msg);
		*status = EXIT_USAGE;
	}
	return -1;
}

int command_fail(const char *what, const struct error *err)
{
	(void)fprintf(stderr, "refrain: %s: %s\n", what, err->msg);
	return EXIT_FAILED;
}
