/* SPDX-License-Identifier: MIT */
/* Makes options of a program from the members of the loader's configuration.
 * The library gives the help texts of its members, so programs have no copy of
 * the texts. One thread. */
#ifndef TOOLS_CONFIG_OPTIONS_H
#define TOOLS_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/option.h"
#include "refrain/loader.h"

/* Rows for a table of a program's own options. The program defines FIELD(f) as
 * the offset of member f. */
#define OPTION_ROW(name, arg, help, kind, f)                                   \
	{                                                                      \
		name, 0, arg, help, kind, FIELD(f), NULL, false                \
	}
#define NUMBER(name, arg, help, f) OPTION_ROW(name, arg, help, OPTION_NUMBER, f)
#define FLAG(name, help, f) OPTION_ROW(name, NULL, help, OPTION_FLAG, f)
#define TEXT(name, arg, help, f) OPTION_ROW(name, arg, help, OPTION_TEXT, f)
#define CALL(name, arg, help, call)                                            \
	{                                                                      \
		name, 0, arg, help, OPTION_CALL, 0, call, false                \
	}

#define CONFIG_OPTIONS_MAX 128
#define CONFIG_OPTION_NAME_MAX 32

/* How a program changes the option of a member: another name or letter, or no
 * option. */
struct config_choice {
	const char *member;
	const char *name; /* name of the option; NULL: the name of the member */
	char letter;	  /* letter of the short form, or 0 */
	bool required, left_out;
};

#define CONFIG_CHOICE(member, name, letter)                                    \
	{                                                                      \
		member, name, letter, false, false                             \
	}
#define CONFIG_LEFT_OUT(member)                                                \
	{                                                                      \
		member, NULL, 0, false, true                                   \
	}

/* Choices of the commands that run a loader on a DATASET. These commands define
 * --drop-last and --timeout themselves. They leave out two members that need a
 * callback. */
#define CONFIG_RUN_CHOICES                                                     \
	{"batch", NULL, 'b', true, false}, CONFIG_CHOICE("echo", NULL, 'e'),   \
		CONFIG_CHOICE("epochs", NULL, 'n'),                            \
		CONFIG_CHOICE("window", NULL, 'w'),                            \
		CONFIG_CHOICE("size", NULL, 's'),                              \
		CONFIG_CHOICE("threads", NULL, 't'),                           \
		CONFIG_CHOICE("memory_bytes", "memory", 'm'),                  \
		CONFIG_CHOICE("pad_ranks", "pad", 0),                          \
		CONFIG_LEFT_OUT("dataset"), CONFIG_LEFT_OUT("last"),           \
		CONFIG_LEFT_OUT("open_timeout_ms"),                            \
		CONFIG_LEFT_OUT("decoded_max_bytes"),                          \
		CONFIG_LEFT_OUT("sample_bytes")

struct config_options {
	/* Set by the program. Each of these tables ends with a NULL name. */
	const struct option_def *own;
	const struct config_choice *choices;
	bool all; /* make options of members without a choice, too */
	/* Built by config_options_table(). */
	struct option_def table[CONFIG_OPTIONS_MAX + 1];
	char names[CONFIG_OPTIONS_MAX][CONFIG_OPTION_NAME_MAX];
	unsigned n;
};

/* Return the table, which is built on first use; for struct option_usage.build.
 * A member is left out if the program has an option with the same name. */
const struct option_def *config_options_table(struct config_options *o);

/* Set the member that an option stands for; for struct option_usage.set. */
int config_options_set(const struct config_options *o,
	struct refrain_config *config, const struct option_def *option,
	const char *value, struct error *err);

/* Returns the name of the option for the member `member`, which has n
 * characters; NULL if there is none. Call config_options_table() first. */
const char *config_options_name(
	const struct config_options *o, const char *member, size_t n);

/* Convert --timeout from seconds to milliseconds. 0 seconds is no time limit,
 * which is -1 for the library. */
int config_timeout_ms(unsigned seconds);

#endif
