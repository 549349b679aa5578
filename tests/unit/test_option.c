/* SPDX-License-Identifier: MIT */
/* Tests of common/base/option: parsing by a table, and printing tables. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/option.h"
#include "suite.h"

struct sample {
	bool quiet, verbose;
	const char *group, *drill;
	unsigned seconds;
	uint64_t limit_bytes;
	const char *caches[4];
	size_t ncaches;
};

static int add_cache(void *out, const char *value, struct error *err)
{
	struct sample *s = out;

	if (!strchr(value, ':'))
		return error_set(err, -EINVAL, "'%s' has no colon", value);
	s->caches[s->ncaches++] = value;
	return 0;
}

#define FIELD(f) offsetof(struct sample, f)

static const struct option_def sample_options[] = {
	{"cache", 'c', "DIR:SIZE", "Keep SIZE of items in DIR.", OPTION_CALL, 0,
		add_cache, true},
	{"quiet", 'q', NULL, "Say nothing.", OPTION_FLAG, FIELD(quiet), NULL,
		false},
	{"verbose", 'v', NULL, "Say more.", OPTION_FLAG, FIELD(verbose), NULL,
		false},
	{"group", 0, "GROUP", "A group that may, too.", OPTION_TEXT,
		FIELD(group), NULL, false},
	{"time-out", 't', "SECONDS", "How long to wait.", OPTION_NUMBER,
		FIELD(seconds), NULL, false},
	{"drill", 0, "TEXT", NULL, OPTION_TEXT, FIELD(drill), NULL, false},
	{"limit", 0, "SIZE", "The largest item.", OPTION_SIZE,
		FIELD(limit_bytes), NULL, false},
	{.name = NULL},
};

static const struct option_usage sample_usage = {
	.name = "sample",
	.operands = "SOURCE MOUNTPOINT",
	.summary = "Do what the tests want.",
	.options = sample_options,
	.min_operands = 1,
	.max_operands = 2,
};

static struct error err;

/* Parse the words of `line` (split at spaces). The words are valid until the
 * next call. */
static int parse(const char *line, struct sample *out, char **argv)
{
	static char words[512];
	int argc = 1;
	char *save = NULL;

	memset(out, 0, sizeof(*out));
	memset(&err, 0, sizeof(err));
	(void)snprintf(words, sizeof(words), "%s", line);
	argv[0] = words + sizeof(words) - 1;
	for (char *w = strtok_r(words, " ", &save); w;
		w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	return option_parse(&sample_usage, argc, argv, out, &err);
}

START_TEST(test_option_takes_values_after_equals_or_as_next_word)
{
	struct sample s;
	char *argv[32];

	ck_assert_int_eq(parse("--cache=/a:1G --cache /b:2G --group=g"
			       " --time-out 7 --limit=64K src mnt",
				 &s, argv),
		2);
	ck_assert_uint_eq(s.ncaches, 2);
	ck_assert_str_eq(s.caches[0], "/a:1G");
	ck_assert_str_eq(s.caches[1], "/b:2G");
	ck_assert_str_eq(s.group, "g");
	ck_assert_uint_eq(s.seconds, 7);
	ck_assert_uint_eq(s.limit_bytes, 65536);
	ck_assert_str_eq(argv[1], "src");
	ck_assert_str_eq(argv[2], "mnt");
}
END_TEST

START_TEST(test_option_takes_short_forms_alone_clustered_and_joined)
{
	struct sample s;
	char *argv[32];

	ck_assert_int_eq(parse("-qvt9 -c/a:1 -c /b:2 src", &s, argv), 1);
	ck_assert(s.quiet && s.verbose);
	ck_assert_uint_eq(s.seconds, 9);
	ck_assert_uint_eq(s.ncaches, 2);
	ck_assert_str_eq(s.caches[0], "/a:1");
}
END_TEST

START_TEST(test_option_follows_operands_until_two_dashes)
{
	struct sample s;
	char *argv[32];

	ck_assert_int_eq(parse("src -q --cache=a:1 -- --quiet", &s, argv), 2);
	ck_assert(s.quiet);
	ck_assert_str_eq(argv[1], "src");
	ck_assert_str_eq(argv[2], "--quiet");
	ck_assert_int_eq(parse("-c a:1 -", &s, argv), 1);
	ck_assert_str_eq(argv[1], "-");
}
END_TEST

/* Wrong command lines, and the words that the one-line error for each must
 * contain. */
static const struct {
	const char *line, *says;
} wrong_lines[] = {
	{"--cach=a:1 src", "option '--cach': unknown"},
	{"--cach=a:1 src", "did you mean --cache?"},
	{"--chace=a:1 src", "unknown (did you mean --cache?): see"},
	{"--tiem_out 1 src", "did you mean --time-out?"},
	{"--hepl", "did you mean --help?"},
	{"--drlil x src", "option '--drlil': unknown: see"},
	{"--nothing src", "option '--nothing': unknown: see"},
	{"-c a:1 --limit 1GB src", "did you mean 1G?"},
	{"-c a:1 --limit 1.5GiB src", "did you mean 1.5G?"},
	{"-c a:1 --limit 1g src", "did you mean 1G?"},
	{"-c a:1 --limit 1Gx src", "is not a valid size; write"},
	{"-c a:1 -x src", "option '-x': unknown"},
	{"-c a:1 -qx src", "option '-x': unknown"},
	{"-c a:1 src --group", "option '--group': needs GROUP"},
	{"src -c", "option '-c': needs DIR:SIZE"},
	{"-c a:1 --quiet=yes src", "option '--quiet': takes no argument"},
	{"-c a:1 -t 1x src", "--time-out: '1x' is not a whole number"},
	{"-c a:1 -t -1 src", "--time-out: '-1' is not a whole number"},
	{"-c a:1 -t 4294967296 src", "--time-out: '4294967296' is too large"},
	{"-c a:1 --limit nonsense src", "--limit: "},
	{"-c a:1 --limit 0 src", "--limit: "},
	{"-c a:1 --limit 10% src", "--limit: "},
	{"-c nocolon src", "--cache: 'nocolon' has no colon"},
	{"src mnt", "option '--cache DIR:SIZE': required"},
	{"-c a:1", "operand missing: SOURCE MOUNTPOINT"},
	{"-c a:1 src mnt more", "too many operands: more"},
};

START_TEST(test_option_refuses_wrong_usage_in_one_line_that_names_it)
{
	struct sample s;
	char *argv[32];
	const char *line = wrong_lines[_i].line;

	ck_assert_int_eq(parse(line, &s, argv), -EINVAL);
	ck_assert_msg(strstr(err.msg, wrong_lines[_i].says) != NULL,
		"'%s' said: %s", line, err.msg);
	ck_assert_msg(strncmp(err.msg, "sample: ", 8) == 0, "%s", err.msg);
	ck_assert_ptr_null(strchr(err.msg, '\n'));
}
END_TEST

START_TEST(test_option_reports_that_help_was_asked_for)
{
	struct sample s;
	char *argv[32];

	ck_assert_int_eq(parse("--help", &s, argv), -ECANCELED);
	ck_assert_int_eq(parse("src -h", &s, argv), -ECANCELED);
}
END_TEST

START_TEST(test_option_is_found_with_underscores_for_dashes)
{
	ck_assert_ptr_eq(option_find(&sample_usage, "time_out=3", 8),
		&sample_options[4]);
	ck_assert_ptr_null(option_find(&sample_usage, "time", 4));
	ck_assert_ptr_null(option_find(&sample_usage, "time-outs", 9));
}
END_TEST

typedef void print_fn(const struct option_usage *usage, FILE *to);

static char *printed(print_fn *print)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(to);
	print(&sample_usage, to);
	ck_assert_int_eq(fclose(to), 0);
	return text;
}

START_TEST(test_option_help_fits_80_columns_and_has_every_option)
{
	CLEANUP_FREE char *text = printed(option_print_help);

	for (const struct option_def *o = sample_options; o->name; o++) {
		char want[64];

		(void)snprintf(want, sizeof(want), "--%s", o->name);
		if (!o->help) {
			ck_assert_ptr_null(strstr(text, want));
			continue;
		}
		ck_assert_ptr_nonnull(strstr(text, want));
		ck_assert_ptr_nonnull(strstr(text, o->help));
	}
	for (const char *p = text; *p; p += strcspn(p, "\n") + 1)
		ck_assert_uint_lt(strcspn(p, "\n"), 80);
}
END_TEST

START_TEST(test_option_man_page_escapes_dashes)
{
	CLEANUP_FREE char *text = printed(option_print_man);

	ck_assert_ptr_nonnull(strstr(text, "\\-\\-time\\-out"));
	ck_assert_ptr_null(strstr(text, "--"));
}
END_TEST

START_TEST(test_option_words_say_which_take_an_argument)
{
	CLEANUP_FREE char *text = printed(option_print_words);

	ck_assert_ptr_nonnull(strstr(text, "--cache DIR:SIZE\n"));
	ck_assert_ptr_nonnull(strstr(text, "--quiet\n"));
	ck_assert_ptr_nonnull(strstr(text, "--help\n"));
}
END_TEST

START_TEST(test_option_without_help_is_taken_and_shown_nowhere)
{
	CLEANUP_FREE char *words = printed(option_print_words);
	CLEANUP_FREE char *man = printed(option_print_man);
	struct sample s;
	char *argv[32];

	ck_assert_int_eq(parse("-c a:1 --drill x src", &s, argv), 1);
	ck_assert_str_eq(s.drill, "x");
	ck_assert_ptr_null(strstr(words, "drill"));
	ck_assert_ptr_null(strstr(man, "drill"));
}
END_TEST

/* -- A table that is built, and options that one function sets ------------- */

static struct option_def built[80];

/* A table with more than 64 options, one of which is required; `seen` has only
 * 64 bits. */
static const struct option_def *build_table(void)
{
	static char names[79][8];

	for (unsigned i = 0; i < 79; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "o%u", i);
		built[i] = (struct option_def){.name = names[i],
			.arg = i % 2 ? "X" : NULL,
			.help = "An option.",
			.kind = OPTION_SET,
			.required = i == 77};
	}
	return built;
}

static int set_built(void *out, const struct option_def *option,
	const char *value, struct error *e)
{
	const char **seen = out;

	if (value && strcmp(value, "bad") == 0)
		return error_set(e, -EINVAL, "'bad' is refused");
	seen[option - built] = value ? value : "flag";
	return 0;
}

static const struct option_usage built_usage = {
	.name = "built",
	.operands = "",
	.summary = "Have options that are made.",
	.build = build_table,
	.set = set_built,
};

/* Parse a copy of up to four words. */
static int parse_built(const char *const *words, int argc, const char **seen)
{
	/* the parsed values point into these copies */
	static char copies[5][12];
	char *argv[6] = {copies[0]};

	for (int i = 0; i < argc; i++) {
		(void)snprintf(copies[i], sizeof(copies[i]), "%s", words[i]);
		argv[i] = copies[i];
	}
	return option_parse(&built_usage, argc, argv, seen, &err);
}

START_TEST(test_option_table_may_be_built_and_set_by_one_function)
{
	const char *const words[] = {
		"built", "--o1", "one", "--o78", "--o77=x"};
	const char *seen[80] = {NULL};

	ck_assert_int_eq(parse_built(words, 5, seen), 0);
	ck_assert_str_eq(seen[1], "one");
	ck_assert_str_eq(seen[78], "flag");
	ck_assert_str_eq(seen[77], "x");
	ck_assert_ptr_null(seen[13]);
	ck_assert_str_eq(option_find(&built_usage, "o13", 3)->name, "o13");
}
END_TEST

START_TEST(test_option_that_is_set_may_be_refused_or_missing)
{
	const char *const bad[] = {"built", "--o77", "bad"};
	const char *const missing[] = {"built", "--o13", "x"};
	const char *seen[80] = {NULL};

	ck_assert_int_eq(parse_built(bad, 3, seen), -EINVAL);
	ck_assert_str_eq(err.msg, "built: --o77: 'bad' is refused");
	ck_assert_int_eq(parse_built(missing, 3, seen), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "'--o77 X': required"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("option");
	TCase *tc = case_of(suite, "option");

	tcase_add_test(
		tc, test_option_takes_values_after_equals_or_as_next_word);
	tcase_add_test(
		tc, test_option_takes_short_forms_alone_clustered_and_joined);
	tcase_add_test(tc, test_option_follows_operands_until_two_dashes);
	tcase_add_loop_test(tc,
		test_option_refuses_wrong_usage_in_one_line_that_names_it, 0,
		(int)(sizeof(wrong_lines) / sizeof(wrong_lines[0])));
	tcase_add_test(tc, test_option_reports_that_help_was_asked_for);
	tcase_add_test(tc, test_option_is_found_with_underscores_for_dashes);
	tcase_add_test(
		tc, test_option_help_fits_80_columns_and_has_every_option);
	tcase_add_test(tc, test_option_man_page_escapes_dashes);
	tcase_add_test(tc, test_option_words_say_which_take_an_argument);
	tcase_add_test(tc, test_option_without_help_is_taken_and_shown_nowhere);
	tcase_add_test(
		tc, test_option_table_may_be_built_and_set_by_one_function);
	tcase_add_test(tc, test_option_that_is_set_may_be_refused_or_missing);
	return run_suite(suite);
}
