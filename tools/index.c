/* SPDX-License-Identifier: MIT */
/* refrain index: writes a table of the files of a source, without a mount. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "command.h"
#include "mount/daemon/daemon.h"
#include "far_options.h"
#include "progress.h"

struct index_args {
	const char *output;
	bool levels;
	struct stack_config source;
};

#define FIELD(f) offsetof(struct index_args, source.f)

static const struct option_def index_table[] = {
	{
		.name = "output",
		.letter = 'o',
		.arg = "FILE",
		.help = "Write the index to FILE instead of standard output. "
			"FILE is replaced only when the index is complete.",
		.kind = OPTION_TEXT,
		.offset = offsetof(struct index_args, output),
	},
	{
		.name = "levels",
		.help = "Read every file once, and add the levels of "
			"progressive JPEGs, for 'refrain mount --drop-bits'.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct index_args, levels),
	},
	FAR_OPTIONS(FIELD),
	{.name = NULL},
};

const struct option_usage index_usage = {
	.name = "index",
	.operands = "SOURCE",
	.summary = "List the files of the dataset SOURCE, one per line: path, "
		   "size, modification time and label.",
	.options = index_table,
	.min_operands = 1,
	.max_operands = 1,
};

static void index_show(void *arg, uint64_t files, uint64_t bytes)
{
	progress_show(arg, files, bytes, 0, " found");
}

static void index_show_read(void *arg, uint64_t files, uint64_t bytes)
{
	progress_show(arg, files, bytes, 0, " read");
}

static int index_to(const struct index_args *args, FILE *out, struct error *err)
{
	struct progress progress;
	struct index_progress show = {
		.found = index_show,
		.read = args->levels ? index_show_read : NULL,
		.arg = &progress,
	};
	int rc;

	progress_begin(&progress);
	rc = daemon_index(&args->source, out, &show, err);
	progress_end(&progress);
	return rc;
}

/* Write the index to a new file, which replaces the old one when it is
 * complete. */
static int index_to_file(const struct index_args *args, struct error *err)
{
	const char *output = args->output;
	CLEANUP_FREE char *fresh = NULL;
	FILE *out;
	int rc;

	if (asprintf(&fresh, "%s.new", output) < 0) {
		fresh = NULL;
		return error_set(err, -ENOMEM, "%m");
	}
	out = fopen(fresh, "we");
	if (!out)
		return error_set(err, -errno,
			"cannot write '%s': %m; give -o a file that you can "
			"write",
			fresh);
	rc = index_to(args, out, err);
	if (fclose(out) != 0 && rc == 0)
		rc = error_set(err, -errno, "cannot write '%s': %m", fresh);
	if (rc == 0 && rename(fresh, output) < 0)
		rc = error_set(err, -errno, "cannot write '%s': %m", output);
	if (rc < 0)
		/* the error of the write is reported, not of this call */
		(void)unlink(fresh);
	return rc;
}

int cmd_index(int argc, char **argv)
{
	struct index_args args = {.source.timeout_s = MOUNT_TIMEOUT_S};
	struct error err = {""};
	int status, rc;

	if (command_parse(&index_usage, argc, argv, &args, &status) < 0)
		return status;
	args.source.name = argv[1];
	if (args.output && strcmp(args.output, "-") != 0)
		rc = index_to_file(&args, &err);
	else
		rc = index_to(&args, stdout, &err);
	return rc < 0 ? command_fail("index", &err) : EXIT_OK;
}
