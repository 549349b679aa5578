/* SPDX-License-Identifier: MIT */
/* Parses command lines by a table. It does not use getopt_long(), which has
 * global state and accepts abbreviations, which would break when an option is
 * added. Messages name the command and the option. option_print.c prints
 * tables. */
#include "common/base/option.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/near.h"
#include "common/base/size.h"

/* The state of one call of option_parse(). */
struct parse {
	const struct option_usage *usage;
	const struct option_def *options;
	char **argv;
	int argc, at; /* index of the next word */
	void *out;
	uint64_t seen; /* bit i: required option i was given */
	struct error *err;
};

static const struct option_def help_option = {
	.name = "help",
	.letter = 'h',
};

static bool name_equal(const char *name, const char *given, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = given[i] == '_' ? '-' : given[i];

		if (!name[i] || name[i] != c)
			return false;
	}
	return !name[len];
}

const struct option_def *option_find(
	const struct option_usage *usage, const char *name, size_t len)
{
	const struct option_def *o = option_table(usage);

	for (; o && o->name; o++)
		if (name_equal(o->name, name, len))
			return o;
	return NULL;
}

static const struct option_def *find_letter(const struct parse *p, char letter)
{
	const struct option_def *o = p->options;

	for (; o && o->name; o++)
		if (o->letter == letter)
			return o;
	return letter == help_option.letter ? &help_option : NULL;
}

/* Set the error "NAME: OPTION: why: see ...". Returns -EINVAL. */
static int wrong(const struct parse *p, const char *what, const char *why)
{
	return error_set(p->err, -EINVAL, "%s: %s: %s: see '%s%s --help'",
		p->usage->name, what, why, p->usage->alone ? "" : "refrain ",
		p->usage->name);
}

static int wrong_option(
	const struct parse *p, const char *given, size_t len, const char *why)
{
	char what[160];

	(void)snprintf(what, sizeof(what), "option '%.*s'",
		(int)(len < 120 ? len : 120), given); /* the text may be cut */
	return wrong(p, what, why);
}

static int option_parse_number(
	const char *value, unsigned *number, struct error *err)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end)
		return error_set(
			err, -EINVAL, "'%s' is not a whole number", value);
	if (errno || v > UINT_MAX)
		return error_set(err, -ERANGE, "'%s' is too large", value);
	*number = (unsigned)v;
	return 0;
}

static int option_parse_size(
	const char *value, uint64_t *bytes, struct error *err)
{
	int rc = size_parse(value, 0, bytes, err);

	if (rc == 0 && *bytes == 0)
		rc = error_set(err, -EINVAL, "the size must not be 0");
	return rc;
}

static int store(
	const struct parse *p, const struct option_def *o, const char *value)
{
	void *field = (char *)p->out + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_NUMBER:
		return option_parse_number(value, field, p->err);
	case OPTION_SIZE:
		return option_parse_size(value, field, p->err);
	case OPTION_CALL:
		return o->call(p->out, value, p->err);
	case OPTION_SET:
		return p->usage->set(p->out, o, value, p->err);
	}
	return error_set(p->err, -EINVAL, "bad table");
}

static uint64_t required_bit(
	const struct parse *p, const struct option_def *option)
{
	uint64_t bit = 1;

	for (const struct option_def *o = p->options; o < option; o++)
		bit <<= o->required;
	return option->required ? bit : 0;
}

/* Handle option `o`. `given` is the option as typed, with its dashes; it has
 * `len` bytes. */
static int option_take(struct parse *p, const struct option_def *o,
	const char *given, size_t len, const char *value)
{
	char what[64];

	if (o == &help_option)
		return -ECANCELED;
	if (o->arg && !value && p->at < p->argc)
		value = p->argv[p->at++];
	if (o->arg && !value) {
		(void)snprintf(what, sizeof(what), "needs %s", o->arg);
		return wrong_option(p, given, len, what);
	}
	if (!o->arg && value)
		return wrong_option(p, given, len, "takes no argument");
	p->seen |= required_bit(p, o);
	if (store(p, o, value) < 0)
		return error_wrap(
			p->err, -EINVAL, "%s: --%s", p->usage->name, o->name);
	return 0;
}

/* Report an option that is not in the table. `word` begins with two dashes. */
static int unknown_long(const struct parse *p, const char *word, size_t len)
{
	struct near near = {.given = word + 2, .len = len - 2};
	char why[NEAR_TEXT_MAX + 16], text[NEAR_TEXT_MAX];

	for (const struct option_def *o = p->options; o && o->name; o++)
		if (o->help)
			near_try(&near, o->name);
	near_try(&near, help_option.name);
	(void)snprintf(
		why, sizeof(why), "unknown%s", near_text(&near, "--", text));
	return wrong_option(p, word, len, why);
}

static int take_long(struct parse *p, const char *word)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct option_def *o = option_find(p->usage, name, len);

	if (!o && name_equal(help_option.name, name, len))
		o = &help_option;
	if (!o)
		return unknown_long(p, word, len + 2);
	return option_take(p, o, word, len + 2, value);
}

/* Parse the forms -v, -vs (both flags), -oVALUE and -o VALUE. */
static int take_short(struct parse *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		char given[3] = {'-', *c, '\0'};
		const struct option_def *o = find_letter(p, *c);
		int rc;

		if (!o)
			return wrong_option(p, given, 2, "unknown");
		if (o->arg)
			return option_take(p, o, given, 2, c[1] ? c + 1 : NULL);
		rc = option_take(p, o, given, 2, NULL);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_complete(const struct parse *p, int noperands)
{
	const struct option_def *o = p->options;
	char what[96];

	for (; o && o->name; o++) {
		if (!o->required || (p->seen & required_bit(p, o)))
			continue;
		(void)snprintf(what, sizeof(what), "option '--%s %s'", o->name,
			o->arg ? o->arg : "");
		return wrong(p, what, "required");
	}
	if ((unsigned)noperands < p->usage->min_operands)
		return wrong(p, "operand missing", p->usage->operands);
	if ((unsigned)noperands > p->usage->max_operands)
		return wrong(p, "too many operands",
			p->argv[1 + p->usage->max_operands]);
	return 0;
}

/* Swap two words. They are not overwritten, because the caller may have to free
 * them. */
static void swap_words(char **argv, int a, int b)
{
	char *word = argv[a];

	argv[a] = argv[b];
	argv[b] = word;
}

int option_parse(const struct option_usage *usage, int argc, char **argv,
	void *out, struct error *err)
{
	struct parse p = {.usage = usage,
		.options = option_table(usage),
		.argv = argv,
		.argc = argc,
		.at = 1,
		.out = out,
		.err = err};
	bool ended = false;
	int n = 0, rc = 0;

	while (p.at < argc) {
		char *word = argv[p.at++];

		if (ended || word[0] != '-' || !word[1])
			swap_words(argv, 1 + n++, p.at - 1);
		else if (strcmp(word, "--") == 0)
			ended = true;
		else if (word[1] == '-')
			rc = take_long(&p, word);
		else
			rc = take_short(&p, word);
		if (rc < 0)
			return rc;
	}
	rc = check_complete(&p, n);
	return rc < 0 ? rc : n;
}
