/* SPDX-License-Identifier: MIT */
/*
 * Shared by the subcommands of `refrain`: their entry points, the tables of
 * their options, and how they end.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/option.h"

/* Exit statuses. */
#define EXIT_OK 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2

/* Runs a command. argv[0] is its name; returns the exit status. */
typedef int command_fn(int argc, char **argv);

struct command {
	const char *name, *summary;
	command_fn *run;
	/* NULL: the command parses its options itself */
	const struct option_usage *usage;
};

/* All commands, in the order of --help; ends with name NULL. */
extern const struct command command_table[];

command_fn cmd_mount, cmd_umount, cmd_status, cmd_warm, cmd_refresh;
command_fn cmd_verify, cmd_clear, cmd_fault, cmd_index, cmd_plan, cmd_load;
command_fn cmd_hold, cmd_upgrade, cmd_serve, cmd_share, cmd_peers, cmd_analyze;
command_fn cmd_top, cmd_exporter, cmd_trace, cmd_doctor, cmd_work, cmd_caches;
command_fn cmd_recode;

extern const struct option_usage mount_usage, umount_usage, status_usage,
	warm_usage, refresh_usage, verify_usage, clear_usage, fault_usage,
	index_usage, plan_usage, load_usage, serve_usage, share_usage,
	peers_usage, analyze_usage, upgrade_usage, hold_usage, top_usage,
	exporter_usage, trace_usage, doctor_usage, work_usage, caches_usage,
	recode_usage;

/* Entry point for mount(8): mount.refrain SOURCE MOUNTPOINT [-sfnv] [-o
 * OPTIONS]. */
int mount_helper(int argc, char **argv);

/* Print the manual page from standard input with its tables filled in. */
int manual_fill(void);

/*
 * option_parse() for a subcommand. Returns the number of operands, or -1 if the
 * command should end with *status because help or an error was printed.
 */
int command_parse(const struct option_usage *usage, int argc, char **argv,
	void *out, int *status);

/* Returns the operands argv[1] to argv[n], one in a line, or NULL if memory is
 * short. The caller frees the text. */
char *command_lines(char **argv, int n);

/* Print "refrain: what: why" and return EXIT_FAILED. */
int command_fail(const char *what, const struct error *err);

/* Print the shares of this user; in share.c. */
void shares_print(void);

#endif
