/* SPDX-License-Identifier: MIT */
/* refrain doctor: looks for faults, and collects facts for a report. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "analysis/fleet/doctor.h"
#include "command.h"
#include "holder.h"

struct doctor_args {
	const char *output;
};

static const struct option_def doctor_table[] = {
	{
		.name = "output",
		.letter = 'o',
		.arg = "FILE",
		.help = "Also write a tar archive for a report: the findings, "
			"status, options and ends of logs of the mounts, and "
			"facts about the host, without secrets.",
		.kind = OPTION_TEXT,
		.offset = offsetof(struct doctor_args, output),
	},
	{.name = NULL},
};

const struct option_usage doctor_usage = {
	.name = "doctor",
	.operands = "[MOUNTPOINT ...]",
	.summary = "Look for faults of this host and of its mounts, even dead "
		   "and hung ones, and say what to do about each.",
	.options = doctor_table,
	.min_operands = 0,
	.max_operands = OPTION_OPERANDS_ANY,
};

int cmd_doctor(int argc, char **argv)
{
	struct doctor_args args = {.output = NULL};
	char holder[PATH_MAX];
	bool found = helper_path("refrain-hold", holder, sizeof(holder)) == 0;
	enum doctor_level worst = DOCTOR_OK;
	struct doctor *d;
	struct error err = {""};
	int status, rc,
		prepared = 0,
		n = command_parse(&doctor_usage, argc, argv, &args, &status);

	if (n < 0)
		return status;
	d = doctor_new(&mount_usage);
	rc = d ? doctor_examine(d, argv + 1, n, found ? holder : NULL, &err)
	       : error_set(&err, -ENOMEM, "%m");
	if (rc == 0 && args.output)
		prepared = doctor_prepare(d, &err);
	if (rc == 0)
		worst = doctor_print(d, stdout);
	if (rc == 0)
		rc = prepared;
	if (rc == 0 && args.output)
		rc = doctor_archive(d, args.output, stdout, &err);
	doctor_free(d);
	if (rc < 0)
		return command_fail("doctor", &err);
	return worst == DOCTOR_BAD ? EXIT_FAILED : EXIT_OK;
}
