/* SPDX-License-Identifier: MIT */
/* refrain exporter: executes refrain-exporter in place of this process, or
 * starts it in the background for a mount. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "common/base/cleanup.h"
#include "common/base/path.h"
#include "exporter_options.h"
#include "holder.h"

static int exporter_exec(
	const struct exporter_config *config, struct error *err)
{
	char program[PATH_MAX], mounter[16];
	const char *argv[] = {program, "--listen", config->listen,
		config->mountpoint ? "--until-unmounted" : NULL,
		config->mountpoint, config->mounter ? "--mounted-by" : NULL,
		mounter, NULL};

	if (helper_path(EXPORTER_PROGRAM, program, sizeof(program)) < 0)
		return error_set(err, -ENOENT,
			"there is no " EXPORTER_PROGRAM "; build refrain with "
			"libmicrohttpd");
	(void)snprintf(mounter, sizeof(mounter), "%u", config->mounter);
	(void)execv(program, (char **)(uintptr_t)argv);
	return error_set(err, -errno, "cannot run '%s': %m", program);
}

/* Runs in the child. Forks once more and ends, so that init reaps the exporter.
 */
static void exporter_detach(const struct exporter_config *config)
{
	struct error err = {""};
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid(); /* cannot fail: a child is no group leader */
		(void)exporter_exec(config, &err);
		(void)command_fail("exporter", &err);
	}
	_exit(pid < 0);
}

int exporter_start(const char *where, const char *mountpoint, struct error *err)
{
	CLEANUP_FREE char *path = path_of_mountpoint(mountpoint);
	struct exporter_config config = {.listen = where,
		.mountpoint = path,
		.mounter = (unsigned)getpid()};
	int status = 0;
	pid_t pid;

	if (!path)
		return error_set(
			err, -errno, "cannot find '%s': %m", mountpoint);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		exporter_detach(&config);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		return error_set(err, -EAGAIN, "cannot start an exporter: %m");
	return 0;
}

int cmd_exporter(int argc, char **argv)
{
	struct exporter_config config = {.listen = EXPORTER_LISTEN};
	struct error err = {""};
	int status;

	if (command_parse(&exporter_usage, argc, argv, &config, &status) < 0)
		return status;
	(void)exporter_exec(&config, &err);
	return command_fail("exporter", &err);
}
