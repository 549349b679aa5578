/* SPDX-License-Identifier: MIT */
/*
 * Stands in for a mount and its daemon in tests of commands. `stand_in DIR`
 * mounts an empty file system with refrain's type and attribute, prints a line
 * when it is ready, and answers on a control socket until SIGTERM. `stand_in
 * --socket DIR ATTRIBUTE` answers nothing: the attribute of its root names
 * another socket. The exit status is 77 if the mount fails. The threads of
 * connections only read data that main() set before it started the server.
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/counters.h"
#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "common/control/talk.h"

static const char *directory;
static const char *control; /* the value of the attribute */

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
		"source", "/src\033[31m\nforged", "mountpoint", directory,
		"uptime_s", (json_int_t)7500, "files_known", (json_int_t)1000,
		"cache_capacity_bytes", (json_int_t)4 << 20, "cache_used_bytes",
		(json_int_t)1 << 20, "entries", (json_int_t)10, "ready", 1,
		"scan", "incomplete", "scan_complete", 0,
		"unlisted_directories", (json_int_t)1, "fault", "");
	json_int_t value = 0;

	set_unlisted_why(s, "lost+\033[2Jfound");
	for (const struct counter_info *c = counter_table; c->name; c++)
		(void)json_object_set_new(s, c->name, json_integer(value++));
	(void)json_object_set_new(s, "limits",
		json_pack("[s]", "the kernel reads ahead 128 KiB only"));
	(void)json_object_set_new(s, "tiers",
		json_pack("[{s:s,s:I,s:I,s:I}]", "dir", "/cache/\"1\"\033[1m",
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

/* Answer `warm`. All files except "lost" can be fetched, and all directories
 * except "closed" can be listed. */
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
	set_unlisted_why(reply, "closed\n\033[5m");
	(void)json_object_set_new(reply, "failed_why",
		json_string("'lo\rst': No data available"));
	(void)ctl_send(conn, reply);
}

static void cmd_refresh(void *arg, struct ctl_conn *conn, const json_t *request)
{
	size_t n = json_array_size(json_object_get(request, "paths"));
	json_t *reply = json_pack("{s:b,s:I,s:i,s:i,s:i,s:i}", "ok", 1,
		"directories", (json_int_t)n, "changed", 1, "added", 2,
		"removed", 3, "unreachable", n > 2);

	(void)arg;
	set_unlisted_why(reply, "c\033[0m");
	(void)ctl_send(conn, reply);
}

static void cmd_fault(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const char *spec = json_string_value(json_object_get(request, "spec"));

	(void)arg;
	if (spec && strcmp(spec, "delay=5ms") == 0)
		(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
	else
		(void)ctl_fail(conn, "'%s' is not a fault", spec ? spec : "");
}

static const struct ctl_command commands[] = {
	{"status", cmd_status, NULL},
	{"warm", cmd_warm, NULL},
	{"refresh", cmd_refresh, NULL},
	{"fault", cmd_fault, NULL},
	{NULL, NULL, NULL},
};

/* -- The mount -- */

static void op_getattr(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = {.st_ino = ino, .st_mode = S_IFDIR | 0755};

	(void)fi;
	(void)fuse_reply_attr(req, &st, 60);
}

static void op_getxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	size_t len = strlen(control);

	(void)ino;
	if (strcmp(name, TALK_XATTR) != 0)
		(void)fuse_reply_err(req, ENODATA);
	else if (size < len)
		(void)fuse_reply_err(req, ERANGE);
	else
		(void)fuse_reply_buf(req, control, len);
}

static const struct fuse_lowlevel_ops operations = {
	.getattr = op_getattr,
	.getxattr = op_getxattr,
};

static int serve_mount(void)
{
	char *argv[] = {(char[]){"stand_in"},
		(char[]){"-ofsname=stand-in,subtype=refrain"}, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);
	struct fuse_session *s =
		fuse_session_new(&args, &operations, sizeof(operations), NULL);

	fuse_opt_free_args(&args);
	if (!s || fuse_set_signal_handlers(s) != 0 ||
		fuse_session_mount(s, directory) != 0)
		return 77;
	(void)puts("ready");
	(void)fflush(stdout);
	(void)fuse_session_loop(s); /* this returns after a signal */
	fuse_session_unmount(s);
	fuse_remove_signal_handlers(s);
	fuse_session_destroy(s);
	return 0;
}

int main(int argc, char **argv)
{
	struct ctl_server *server = NULL;
	struct error err = {""};
	int status;

	if (argc == 4 && strcmp(argv[1], "--socket") == 0) {
		directory = argv[2];
		control = argv[3];
		return serve_mount();
	}
	if (argc != 2)
		return 2;
	directory = argv[1];
	if (ctl_server_start(&server, directory, NULL, commands, 10000, &err) <
		0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	control = ctl_server_path(server);
	status = serve_mount();
	ctl_server_stop(server);
	return status;
}
