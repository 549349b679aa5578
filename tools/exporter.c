/* SPDX-License-Identifier: MIT */
/* refrain exporter: becomes refrain-exporter. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

#include "command.h"
#include "exporter_options.h"
#include "holder.h"

static int exporter_exec(
	const struct exporter_config *config, struct error *err)
{
	char program[PATH_MAX];
	const char *argv[] = {program, "--listen", config->listen,
		config->mountpoint ? "--until-unmounted" : NULL,
		config->mountpoint, NULL};

	if (helper_path(EXPORTER_PROGRAM, program, sizeof(program)) < 0)
		return error_set(err, -ENOENT,
			"there is no " EXPORTER_PROGRAM "; build refrain with "
			"libmicrohttpd");
	(void)execv(program, (char **)(uintptr_t)argv);
	return error_set(err, -errno, "cannot run '%s': %m", program);
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
