/* SPDX-License-Identifier: MIT */
/* Defines the options of `refrain exporter`, which runs refrain-exporter. */
#include "exporter_options.h"

#include <stddef.h>

#include "command.h"

static const struct option_def exporter_table[] = {
	{
		.name = "listen",
		.letter = 'l',
		.arg = "ADDR:PORT|unix:PATH",
		.help = "Address to listen on; default " EXPORTER_LISTEN
			". There is no authentication, so give an address "
			"that only your Prometheus can reach.",
		.kind = OPTION_TEXT,
		.offset = offsetof(struct exporter_config, listen),
	},
	{
		.name = "until-unmounted",
		.arg = "MOUNTPOINT",
		.help = "End when MOUNTPOINT has been unmounted, as the "
			"exporter of 'refrain mount --metrics' does.",
		.kind = OPTION_TEXT,
		.offset = offsetof(struct exporter_config, mountpoint),
	},
	{
		.name = "mounted-by",
		.arg = "PID",
		.help = "With --until-unmounted: also end if process PID ends "
			"and nothing is mounted at MOUNTPOINT, as after a "
			"mount that is refused.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct exporter_config, mounter),
	},
	{.name = NULL},
};

const struct option_usage exporter_usage = {
	.name = "exporter",
	.operands = "",
	.summary = "Serve the metrics of all mounts of this host and of this "
		   "user's shares to Prometheus at /metrics, and to people "
		   "at /.",
	.options = exporter_table,
	.min_operands = 0,
	.max_operands = 0,
};
