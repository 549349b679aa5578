/* SPDX-License-Identifier: MIT */
/* Starts and finds refrain-hold; see holder.h. */
#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "common/base/cleanup.h"

static int program_path(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

int helper_path(const char *name, char *path, size_t size)
{
	char self[PATH_MAX];
	int n;

	/* In a build directory, refrain-hold is beside the program `refrain`.
	 */
	if (program_path(self, sizeof(self)) == 0) {
		*strrchr(self, '/') = '\0';
		n = snprintf(path, size, "%s/%s", self, name);
		if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
			return 0;
	}
	n = snprintf(path, size, PKGLIBEXECDIR "/%s", name);
	if (n < 0 || (size_t)n >= size || access(path, X_OK) < 0)
		return -ENOENT;
	return 0;
}

/* Execute refrain-hold. Runs in the child. */
static void holder_exec(
	const char *program, char **words, int n, unsigned recover_s, int fd)
{
	char ready[16], timeout[16], self[PATH_MAX];
	char option_ready[] = "--ready-fd",
	     option_timeout[] = "--recover-timeout", end[] = "--";
	char **argv = calloc((size_t)n + 8, sizeof(*argv));
	char *first[] = {(char *)(uintptr_t)program, option_ready, ready,
		option_timeout, timeout, end, self};

	(void)snprintf(ready, sizeof(ready), "%d", fd);
	(void)snprintf(timeout, sizeof(timeout), "%u", recover_s);
	if (!argv || program_path(self, sizeof(self)) < 0)
		_exit(127);
	memcpy(argv, first, sizeof(first));
	memcpy(argv + 7, words, (size_t)n * sizeof(*words));
	(void)setsid(); /* cannot fail: a child is no group leader */
	(void)execv(program, argv);
	(void)fprintf(stderr, "refrain: cannot run '%s': %s\n", program,
		strerror(errno));
	_exit(127);
}

static int holder_wait(pid_t pid, int fd, struct error *err)
{
	char said;
	int status;
	ssize_t n;

	do
		n = read(fd, &said, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(err, -errno, "cannot wait: %m");
	if (WIFEXITED(status) && WEXITSTATUS(status) < 127)
		return WEXITSTATUS(status);
	return error_set(err, -EIO,
		"the daemon died while starting; try --foreground to see why");
}

int holder_start(char **words, int n, unsigned recover_s, struct error *err)
{
	char program[PATH_MAX];
	int fd[2], rc = helper_path(HOLDER_PROGRAM, program, sizeof(program));
	pid_t pid;

	if (rc < 0)
		return error_set(err, rc, "cannot find " HOLDER_PROGRAM);
	if (pipe(fd) < 0)
		return error_set(err, -errno, "cannot start the daemon: %m");
	(void)fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		holder_exec(program, words, n, recover_s, fd[1]);
	rc = pid < 0 ? error_set(err, -errno, "cannot start the daemon: %m")
		     : 0;
	(void)close(fd[1]);
	if (rc == 0)
		rc = holder_wait(pid, fd[0], err);
	(void)close(fd[0]);
	return rc;
}

pid_t holder_of(pid_t daemon)
{
	char path[64], name[64] = "", line[256];
	long parent = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon);
	f = daemon > 0 ? fopen(path, "re") : NULL;
	while (f && parent == 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, "PPid:", 5) == 0)
			parent = strtol(line + 5, NULL, 10);
	if (f)
		(void)fclose(f);
	(void)snprintf(path, sizeof(path), "/proc/%ld/comm", parent);
	f = parent > 1 ? fopen(path, "re") : NULL;
	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	if (f)
		(void)fclose(f);
	return strcmp(name, HOLDER_PROGRAM) == 0 ? (pid_t)parent : 0;
}

/* -- The command ----------------------------------------------------------- */

static const struct option_def hold_table[] = {
	{
		.name = "recover-timeout",
		.arg = "SECONDS",
		.help = "Give up when no daemon has served for SECONDS "
			"(default: 30).",
		.kind = OPTION_TEXT,
	},
	{
		.name = "socket",
		.arg = "PATH",
		.help = "Run no COMMAND, but listen at PATH for a daemon that "
			"joins.",
		.kind = OPTION_TEXT,
	},
	{
		.name = "join",
		.arg = "PATH",
		.help = "Let the holder that listens at PATH hold COMMAND. The "
			"process becomes COMMAND.",
		.kind = OPTION_TEXT,
	},
	{.name = NULL},
};

const struct option_usage hold_usage = {
	.name = "hold",
	.operands = "[-- COMMAND [ARGUMENT ...]]",
	.summary = "Run COMMAND, the daemon of a mount, and keep the mount if "
		   "the daemon dies.",
	.options = hold_table,
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

int cmd_hold(int argc, char **argv)
{
	char program[PATH_MAX];
	struct error err;
	int status;

	/* refrain-hold parses its options itself. */
	if (argc < 2 || strcmp(argv[1], "--help") == 0)
		return command_parse(&hold_usage, argc, argv, NULL, &status) < 0
			? status
			: EXIT_USAGE;
	if (helper_path(HOLDER_PROGRAM, program, sizeof(program)) < 0) {
		(void)error_set(
			&err, -ENOENT, HOLDER_PROGRAM " is not installed");
		return command_fail("hold", &err);
	}
	argv[0] = program;
	(void)execv(program, argv);
	(void)error_set(&err, -errno, "cannot run '%s': %m", program);
	return command_fail("hold", &err);
}
