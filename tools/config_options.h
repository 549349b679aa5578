/* SPDX-License-Identifier: MIT */
/*
 * Options of a program that are members of the loader's configuration. The
 * library says which members there are, what texts they take and what they
 * mean, so that no program has a copy of that. One thread.
 */
#ifndef TOOLS_CONFIG_OPTIONS_H
#define TOOLS_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/option.h"
#include "refrain/loader.h"

#define CONFIG_OPTIONS_MAX 128
#define CONFIG_OPTION_NAME_MAX 32

/* A member that a program names or leaves out. */
struct config_choice {
	const char *member;
	const char *name; /* of the option; NULL: that of the member */
	char letter;	  /* or 0 */
	bool required, left_out;
};

struct config_options {
	/* Set by the program; each ends with a name that is NULL. */
	const struct option_def *own;
	const struct config_choice *choices;
	bool all; /* members that are not among the choices, too */
	/* Made of that. */
	struct option_def table[CONFIG_OPTIONS_MAX + 1];
	char names[CONFIG_OPTIONS_MAX][CONFIG_OPTION_NAME_MAX];
	unsigned n;
};

/* Make the table, if it is not there yet: for struct option_usage.build. A
 * member whose name is that of an own option is left out. */
const struct option_def *config_options_table(struct config_options *o);

/* Set the member that an option stands for; for struct option_usage.set. */
int config_options_set(const struct config_options *o,
	struct refrain_config *config, const struct option_def *option,
	const char *value, struct error *err);

/* The name of the option for a member, of n characters; NULL: there is none.
 * After config_options_table(). */
const char *config_options_name(
	const struct config_options *o, const char *member, size_t n);

#endif
