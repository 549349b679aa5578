/* SPDX-License-Identifier: MIT */
/* The `refrain` command: finds the subcommand and runs it. If the program was
 * called as mount.refrain, it is the helper of mount(8). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/escape.h"
#include "common/base/near.h"
#include "command.h"
#include "make_dataset.h"

const struct command command_table[] = {
	{"mount", "mount a dataset behind a cache", cmd_mount, &mount_usage},
	{"umount", "unmount a dataset", cmd_umount, &umount_usage},
	{"upgrade", "replace the program of a mount", cmd_upgrade,
		&upgrade_usage},
	{"status", "show the state of a mount", cmd_status, &status_usage},
	{"top", "show all mounts and shares of this host", cmd_top, &top_usage},
	{"trace", "show each read of a mount", cmd_trace, &trace_usage},
	{"doctor", "look for faults of this host and its mounts", cmd_doctor,
		&doctor_usage},
	{"exporter", "serve metrics of this host to Prometheus", cmd_exporter,
		&exporter_usage},
	{"warm", "fill the cache now", cmd_warm, &warm_usage},
	{"plan",
		"announce the order in which files will be "
		"read",
		cmd_plan, &plan_usage},
	{"refresh", "look for changes at the source", cmd_refresh,
		&refresh_usage},
	{"verify", "check every byte of a cache", cmd_verify, &verify_usage},
	{"caches", "list or drop the caches of a root", cmd_caches,
		&caches_usage},
	{"clear", "empty a cache that no mount uses", cmd_clear, &clear_usage},
	{"load", "load a dataset as a trainer would, with echoes", cmd_load,
		&load_usage},
	{"serve", "prepare batches for several jobs on this host", cmd_serve,
		&serve_usage},
	{"share", "show who shares batches on this host", cmd_share,
		&share_usage},
	{"work", "prepare samples for loaders on other hosts", cmd_work,
		&work_usage},
	{"analyze", "measure where a trainer's time goes", cmd_analyze,
		&analyze_usage},
	{"peers", "check the servers of a partitioned cache", cmd_peers,
		&peers_usage},
	{"index", "list the files of a dataset", cmd_index, &index_usage},
	{"recode", "copy a dataset with its JPEGs re-coded", cmd_recode,
		&recode_usage},
	{"hold", "keep a mount whose daemon dies", cmd_hold, &hold_usage},
	{"fault", "change the injected faults of a mount", cmd_fault,
		&fault_usage},
	{"make-dataset", "generate a dataset of JPEGs for experiments",
		cmd_make_dataset, &make_dataset_usage},
	{NULL, NULL, NULL, NULL},
};

static const struct command *main_find_command(const char *name)
{
	for (const struct command *c = command_table; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static void print_usage(FILE *to)
{
	(void)fputs("Usage: refrain COMMAND [OPTION ...] [ARGUMENT ...]\n"
		    "A never-evict cache in front of slow storage.\n\n"
		    "Commands:\n",
		to);
	for (const struct command *c = command_table; c->name; c++)
		(void)fprintf(to, "  %-14s%s\n", c->name, c->summary);
	(void)fputs(
		"\nSee 'refrain help COMMAND' and refrain(1) for more.\n", to);
}

static int unknown(const char *name)
{
	struct near near = {.given = name, .len = strlen(name)};
	char text[NEAR_TEXT_MAX];

	for (const struct command *c = command_table; c->name; c++)
		near_try(&near, c->name);
	(void)fputs("refrain: unknown command '", stderr);
	escape_print(stderr, name);
	(void)fprintf(stderr, "'%s", near_text(&near, "", text));
	(void)fputs("; 'refrain --help' lists all commands\n", stderr);
	return EXIT_USAGE;
}

static int cmd_help(int argc, char **argv)
{
	static char help[] = "--help";
	const struct command *c;
	char *child[3] = {NULL, help, NULL};

	if (argc < 2) {
		print_usage(stdout);
		return EXIT_OK;
	}
	c = main_find_command(argv[1]);
	if (!c)
		return unknown(argv[1]);
	child[0] = argv[1];
	return c->run(2, child);
}

/* Print words for the completion of a shell: the commands, or the options of
 * one command. */
static int print_words(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		for (c = command_table; c->name; c++)
			(void)printf("%s\n", c->name);
		return EXIT_OK;
	}
	c = main_find_command(argv[1]);
	if (c && c->usage)
		option_print_words(c->usage, stdout);
	return c ? EXIT_OK : EXIT_USAGE;
}

static int print_version(void)
{
	(void)printf("refrain %s\n", PACKAGE_VERSION);
	return EXIT_OK;
}

static int main_run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *c;

	if (!name) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return print_version();
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
		strcmp(name, "help") == 0)
		return cmd_help(argc - 1, argv + 1);
	if (strcmp(name, "--words") == 0)
		return print_words(argc - 1, argv + 1);
	if (strcmp(name, "--fill-man") == 0)
		return manual_fill();
	c = main_find_command(name);
	/* For a remount, mount(8) calls mount.fuse, which calls this program
	 * without the name of a command: the first word is the source. */
	if (!c && argc > 3 && strchr(name, '/'))
		return mount_helper(argc, argv);
	return c ? c->run(argc - 1, argv + 1) : unknown(name);
}

/* Open /dev/null for standard descriptors that the caller has closed. Otherwise
 * other files would get their numbers, and a mount in the background would
 * close them: it replaces the standard descriptors. /dev/null is opened
 * read-only, so a write to a closed descriptor fails as before. */
static void fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
	int status;

	fill_standard();
	if (strcmp(name, "mount.refrain") == 0)
		return mount_helper(argc, argv);
	status = main_run(argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	(void)fprintf(stderr, "refrain: cannot write the output: %s\n",
		strerror(errno));
	return EXIT_FAILED;
}
