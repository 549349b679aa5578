/* SPDX-License-Identifier: MIT */
/* Parses the options of a subcommand, and prints its errors. No state. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

char *command_lines(char **argv, int n)
{
	size_t bytes = 1;
	char *text, *at;

	for (int i = 1; i <= n; i++)
		bytes += strlen(argv[i]) + 1;
	text = at = calloc(1, bytes);
	for (int i = 1; text && i <= n; i++)
		at += sprintf(at, "%s%s", i > 1 ? "\n" : "", argv[i]);
	return text;
}

int command_fail(const char *what, const struct error *err)
{
	(void)fprintf(stderr, "refrain: %s: %s\n", what, err->msg);
	return EXIT_FAILED;
}
