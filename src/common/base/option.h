/* SPDX-License-Identifier: MIT */
/*
 * Command line options as data: one table entry per option. Parsing, --help,
 * usage errors, shell completion and the OPTIONS section of the manual page all
 * come from it. No state; tables are constant.
 */
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
	const char *name; /* without the dashes */
	char letter;	  /* of the short form, or 0 */
	/* what --help calls the argument; NULL: it takes none */
	const char *arg;
	/* One sentence. NULL: the option is for tests, and shown nowhere. */
	const char *help;
	enum option_kind kind;
	size_t offset; /* offset of the field in the command's struct */
	/* For OPTION_CALL: set the command's struct `out`. Returns 0, or -errno
	 * with err set. */
	int (*call)(void *out, const char *value, struct error *err);
	bool required;
};

#define OPTION_OPERANDS_ANY UINT_MAX

/* The options and operands of one command. --help is always understood and in
 * no table. */
struct option_usage {
	const char *name;		  /* as typed after `refrain` */
	const char *operands;		  /* "SOURCE MOUNTPOINT" */
	const char *summary;		  /* one sentence */
	const struct option_def *options; /* ends with name NULL; or NULL */
	/* Builds the table, if `options` is NULL. */
	const struct option_def *(*build)(void);
	/* For OPTION_SET: set the command's struct `out`. `value` is NULL if
	 * the option has no argument. Returns 0, or -errno with err set. */
	int (*set)(void *out, const struct option_def *option,
		const char *value, struct error *err);
	unsigned min_operands, max_operands;
	bool alone; /* a separate program, not a subcommand of `refrain` */
};

/*
 * Parse argv[1] to argv[argc - 1] into *out, which holds the defaults. Long
 * options are --name=value or --name value, short ones -nvalue or -n value.
 * Options may follow operands; "--" ends them. The words are reordered so that
 * the operands are argv[1], argv[2], ...; returns their number. Returns
 * -ECANCELED if --help was given, and -EINVAL for wrong usage, with a message
 * that names the command and the option.
 */
int option_parse(const struct option_usage *usage, int argc, char **argv,
	void *out, struct error *err);

/* The option table, which ends with name NULL; or NULL. */
static inline const struct option_def *option_table(
	const struct option_usage *usage)
{
	return usage->build ? usage->build() : usage->options;
}

/* Find the entry for a name of `len` bytes, in which '_' stands for '-', or
 * NULL. */
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
