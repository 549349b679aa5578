/* SPDX-License-Identifier: MIT */
/*
 * A control socket without a mount, for tests of the commands that talk to
 * one: `stand_in DIR` gives the directory the attribute of a mount's root,
 * prints a line when it is ready and answers until SIGTERM. Exit status 77 if
 * the file system has no extended attributes. Connection threads only read
 * what main() set before it started the server.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/counters.h"
#include "ctl/ctl.h"

static const char *directory;

static void set_unlisted_why(json_t *reply, const char *path)
{
	(void)json_object_set_new(reply, "unlisted_why",
		json_sprintf("1 directory could not be listed: '%s': "
			     "Permission denied",
			path));
}

static json_t *make_status(void)
{
	json_t *s = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:b,s:s,s:b,s:I,"
			      "s:s}",
		"source", "/src", "mountpoint", directory, "uptime_s",
		(json_int_t)7500, "files_known", (json_int_t)1000,
		"cache_capacity_bytes", (json_int_t)4 << 20, "cache_used_bytes",
		(json_int_t)1 << 20, "entries", (json_int_t)10, "ready", 1,
		"scan", "incomplete", "scan_complete", 0,
		"unlisted_directories", (json_int_t)1, "fault", "");
	json_int_t value = 0;

	set_unlisted_why(s, "lost+found");
	for (const struct counter_info *c = counter_table; c->name; c++)
		(void)json_object_set_new(s, c->name, json_integer(value++));
	(void)json_object_set_new(s, "limits",
		json_pack("[s]", "the kernel reads ahead 128 KiB only"));
	(void)json_object_set_new(s, "tiers",
		json_pack("[{s:s,s:I,s:I,s:I}]", "dir", "/cache/\"1\"",
			"capacity_bytes", (json_int_t)4 << 20, "used_bytes",
			(json_int_t)1 << 20, "entries", (json_int_t)10));
	return s;
}

static void cmd_status(void *arg, struct ctl_conn *conn, const json_t *request)
{
	(void)arg;
	(void)request;
	(void)ctl_send(
		conn, json_pack("{s:b,s:o}", "ok", 1, "status", make_status()));
}

/* Everything but "lost" can be fetched, and all but "closed" listed. */
static void cmd_warm(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const json_t *paths = json_object_get(request, "paths");
	size_t n = json_array_size(paths);
	json_int_t lost = 0, closed = 0;
	json_t *reply;

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		char *path;

		if (ctl_path_get(json_array_get(paths, i), &path) < 0) {
			(void)ctl_fail(conn, "no path");
			return;
		}
		lost += strcmp(path, "lost") == 0;
		closed += strcmp(path, "closed") == 0;
		free(path);
	}
	(void)ctl_send(conn,
		json_pack("{s:b,s:i,s:i,s:i,s:i,s:b}", "progress", 1,
			"items_done", 1, "items_total", 2, "bytes_done", 1,
			"bytes_total", 2, "scanning", 0));
	reply = json_pack("{s:b,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I}", "ok", 1,
		"cached_items", 7, "cached_bytes", 2048, "already_items", 4,
		"not_fitting_items", 5, "not_fitting_bytes", 1024,
		"failed_items", lost, "files", (json_int_t)n, "unlisted",
		closed);
	set_unlisted_why(reply, "closed");
	(void)json_object_set_new(
		reply, "failed_why", json_string("'lost': No data available"));
	(void)ctl_send(conn, reply);
}

static void cmd_refresh(void *arg, struct ctl_conn *conn, const json_t *request)
{
	size_t n = json_array_size(json_object_get(request, "paths"));
	json_t *reply = json_pack("{s:b,s:I,s:i,s:i,s:i,s:i}", "ok", 1,
		"directories", (json_int_t)n, "changed", 1, "added", 2,
		"removed", 3, "unreachable", n > 2);

	(void)arg;
	set_unlisted_why(reply, "c");
	(void)ctl_send(conn, reply);
}

static void cmd_fault(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const char *spec = json_string_value(json_object_get(request, "spec"));

	(void)arg;
	if (spec && strcmp(spec, "delay=5ms") == 0)
		(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
	else
		(void)ctl_fail(conn, "'%s' is no fault", spec ? spec : "");
}

static const struct ctl_command commands[] = {
	{"status", cmd_status},
	{"warm", cmd_warm},
	{"refresh", cmd_refresh},
	{"fault", cmd_fault},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	struct ctl_server *server = NULL;
	struct error err = {""};
	sigset_t term;
	int signal_number;

	if (argc != 2)
		return 2;
	directory = argv[1];
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &term, NULL);
	if (ctl_server_start(&server, directory, NULL, commands, NULL, &err) <
		0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	if (setxattr(directory, CTL_XATTR, ctl_server_path(server),
		    strlen(ctl_server_path(server)), 0) < 0) {
		perror("setxattr");
		ctl_server_stop(server);
		return 77;
	}
	(void)puts("ready");
	(void)fflush(stdout);
	(void)sigwait(&term, &signal_number);
	ctl_server_stop(server);
	return 0;
}
