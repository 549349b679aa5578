/* SPDX-License-Identifier: MIT */
/* Prints tables of options: as --help, as man(7), and as words for completion.
 */
#include "common/base/option.h"

#include <string.h>

#define LINE_COLUMNS 79
#define HELP_COLUMN 28

/* Print `text`, wrapped at spaces. The first line begins at column `at`, all
 * others at `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent, FILE *to)
{
	const char *space = "";

	while (*text) {
		size_t len = strcspn(text, " ");

		if (at + strlen(space) + len > LINE_COLUMNS && at > indent) {
			(void)fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
			space = "";
		}
		(void)fprintf(to, "%s%.*s", space, (int)len, text);
		at += strlen(space) + len;
		text += len;
		text += strspn(text, " ");
		space = " ";
	}
	(void)fputc('\n', to);
}

static void print_option(const struct option_def *o, FILE *to)
{
	char left[128];
	int n;

	n = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s",
		o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
		o->letter ? ',' : ' ', o->name, o->arg ? " " : "",
		o->arg ? o->arg : "");
	(void)fputs(left, to);
	if (n >= HELP_COLUMN - 1) {
		(void)fputc('\n', to);
		n = 0;
	}
	(void)fprintf(to, "%*s", HELP_COLUMN - n, "");
	print_wrapped(o->help, HELP_COLUMN, HELP_COLUMN, to);
}

static const struct option_def help_entry = {
	.name = "help",
	.letter = 'h',
	.help = "Print this and exit.",
};

void option_print_help(const struct option_usage *usage, FILE *to)
{
	const struct option_def *o = option_table(usage);

	(void)fprintf(to, "Usage: %s%s [OPTION ...] %s\n",
		usage->alone ? "" : "refrain ", usage->name, usage->operands);
	print_wrapped(usage->summary, 0, 0, to);
	(void)fputs("\nOptions:\n", to);
	for (; o && o->name; o++)
		if (o->help)
			print_option(o, to);
	print_option(&help_entry, to);
	if (!usage->alone)
		(void)fprintf(to, "\nSee refrain-%s(1).\n", usage->name);
}

/* Escape characters that have a meaning in troff. */
static void print_roff(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '-')
			(void)fputs("\\-", to);
		else if (*text == '\\')
			(void)fputs("\\e", to);
		else
			(void)fputc(*text, to);
	}
}

static void print_man_entry(const struct option_def *o, FILE *to)
{
	(void)fputs(".TP\n", to);
	if (o->letter)
		(void)fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
	(void)fputs("\\fB\\-\\-", to);
	print_roff(o->name, to);
	(void)fputs("\\fR", to);
	if (o->arg) {
		(void)fputs(" \\fI", to);
		print_roff(o->arg, to);
		(void)fputs("\\fR", to);
	}
	/* \& keeps a sentence that begins with a dot from being a troff
	 * request. */
	(void)fputs("\n\\&", to);
	print_roff(o->help, to);
	(void)fputc('\n', to);
}

void option_print_man(const struct option_usage *usage, FILE *to)
{
	const struct option_def *o = option_table(usage);

	for (; o && o->name; o++)
		if (o->help)
			print_man_entry(o, to);
	print_man_entry(&help_entry, to);
}

void option_print_words(const struct option_usage *usage, FILE *to)
{
	const struct option_def *o = option_table(usage);

	for (; o && o->name; o++)
		if (o->help)
			(void)fprintf(to, "--%s%s%s\n", o->name,
				o->arg ? " " : "", o->arg ? o->arg : "");
	(void)fputs("--help\n", to);
}
