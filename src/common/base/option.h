/* SPDX-License-Identifier: MIT */
/* Command line options as data: one element of a table for each option.
 * Parsing, --help, usage errors, shell completion and the OPTIONS section of
 * the manual page all use the table. No state; tables are constant. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

/* How an option's argument is parsed, and the type of its field. */
enum option_kind {
	OPTION_FLAG,   /* bool, set to true; takes no argument */
	OPTION_TEXT,   /* const char *, points into argv */
	OPTION_NUMBER, /* unsigned */
	OPTION_SIZE,   /* uint64_t, bytes; not 0, no percentages */
	OPTION_CALL,   /* parsed by `call`; may be repeated */
	OPTION_SET,    /* parsed by `set` of the usage */
};

struct option_def {
	const char *name; /* name without the dashes */
	char letter;	  /* letter of the short form, or 0 */
	/* what --help calls the argument; NULL: the option has none */
	const char *arg;
	/* One sentence. NULL: the option is for tests, and --help does not show
	 * it. */
	const char *help;
	enum option_kind kind;
	size_t offset; /* offset of the field in the command's struct */
	/* For OPTION_CALL: parse `value` into the command's struct `out`.
	 * Returns 0, or -errno with err set. */
	int (*call)(void *out, const char *value, struct error *err);
	bool required;
};

#define OPTION_OPERANDS_ANY UINT_MAX

/* The options and operands of one command. All commands also understand --help,
 * which is in no table. */
struct option_usage {
	const char *name;     /* the command, as typed after `refrain` */
	const char *operands; /* for example "SOURCE MOUNTPOINT" */
	const char *summary;  /* one sentence about the command */
	/* The last element has no name. NULL: build() returns the table */
	const struct option_def *options;
	/* Returns the table, if `options` is NULL. */
	const struct option_def *(*build)(void);
	/* For OPTION_SET: set the option in the command's struct `out`. `value`
	 * is NULL if the option has no argument. Returns 0, or -errno with err
	 * set. */
	int (*set)(void *out, const struct option_def *option,
		const char *value, struct error *err);
	unsigned min_operands, max_operands;
	bool alone; /* a separate program, not a subcommand of `refrain` */
};

/*
 * Parse argv[1] to argv[argc - 1] into *out, which holds the defaults. Long
 * options are --name=value or --name value, short ones -nvalue or -n value.
 * Options may follow operands; "--" ends them. The words are reordered so that
 * the operands are argv[1], argv[2], ... Returns the number of operands;
 * -ECANCELED if --help was given; or -EINVAL for wrong usage, with a message
 * that names the command and the option.
 */
int option_parse(const struct option_usage *usage, int argc, char **argv,
	void *out, struct error *err);

/* Returns the table of options, whose last element has no name; or NULL. */
static inline const struct option_def *option_table(
	const struct option_usage *usage)
{
	return usage->build ? usage->build() : usage->options;
}

/* Find an option by its name, which has `len` bytes and may contain '_' in
 * place of '-'. Returns NULL if there is none. */
const struct option_def *option_find(
	const struct option_usage *usage, const char *name, size_t len);

/* Print the help text. */
void option_print_help(const struct option_usage *usage, FILE *to);

/* Print the entries of the manual page's OPTIONS section, in man(7). */
void option_print_man(const struct option_usage *usage, FILE *to);

/* Print one line per option for shell completion: "--name", with " ARG" if it
 * takes an argument. */
void option_print_words(const struct option_usage *usage, FILE *to);

#endif
