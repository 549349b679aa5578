/* SPDX-License-Identifier: MIT */
/*
 * The table of the configuration's members, and setting them by name. The table
 * must have every member: a member that the table lacks would be missing from
 * options, keywords and saved states.
 */
#include <errno.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/schedule/schedule.h"
#include "loader/core/settings_table.h"
#include "suite.h"

/* -- The table ------------------------------------------------------------- */

/* Returns the natural alignment of a member: that of the largest number in it.
 */
static size_t alignment_of(const struct member *m)
{
	return m->bytes / member_count(m);
}

static size_t align_up(size_t at, size_t to)
{
	return (at + to - 1) / to * to;
}

START_TEST(test_every_byte_of_the_struct_is_a_member_or_padding)
{
	const struct member *m;
	size_t end = 0;

	for (size_t i = 0; (m = member_at(i)) && !m->bit && m->kind; i++) {
		ck_assert_msg(m->offset == align_up(end, alignment_of(m)),
			"there is something before %s that is not in the table",
			m->name);
		end = m->offset + m->bytes;
	}
	ck_assert_uint_eq(
		align_up(end, sizeof(void *)), sizeof(struct refrain_config));
}
END_TEST

START_TEST(test_every_row_says_what_it_is)
{
	const struct member *m;

	for (size_t i = 0; (m = member_at(i)); i++) {
		bool settable = m->type != MEMBER_OTHER;

		ck_assert_msg(m->saved != SAVED_UNSAID,
			"%s does not say what a saved state has of it",
			m->name);
		ck_assert_msg(!settable || m->help, "%s", m->name);
		ck_assert_msg(!settable ||
				!m->arg == (m->type == REFRAIN_MEMBER_FLAG),
			"%s", m->name);
		if (settable)
			ck_assert_ptr_eq(member_find(m->name), m);
	}
}
END_TEST

START_TEST(test_every_flag_has_one_name)
{
	static const uint32_t flags[] = {REFRAIN_FLAG_IN_ORDER,
		REFRAIN_FLAG_NO_FLIP, REFRAIN_FLAG_NO_ORIENT,
		REFRAIN_FLAG_PAD_RANKS, REFRAIN_FLAG_ALLOW_DUPLICATES,
		REFRAIN_FLAG_NO_NORMALISE, REFRAIN_FLAG_NO_MOUNT_HELP,
		REFRAIN_FLAG_EXACT, REFRAIN_FLAG_EQUAL_RANKS,
		REFRAIN_FLAG_ADMIT_PLANNED};
	uint32_t bits = 0, sum = 0;
	const struct member *m;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		bits |= flags[i];
	ck_assert_uint_eq(member_flags_known(), bits);
	for (size_t i = 0; (m = member_at(i)); i++)
		sum += m->bit;
	ck_assert_uint_eq(sum, bits);
}
END_TEST

START_TEST(test_words_are_as_many_as_the_enum_has_values)
{
	const struct member *m;

	for (size_t i = 0; (m = member_at(i)); i++) {
		double words = 1;

		if (m->type != REFRAIN_MEMBER_WORD)
			continue;
		for (const char *c = m->arg; *c; c++)
			words += *c == '|';
		ck_assert_msg(words == m->max + 1, "%s", m->name);
	}
}
END_TEST

/* The hashes of saved states are in this order. New names are added at the end,
 * and no name ever moves. */
START_TEST(test_a_state_has_the_same_hashes_as_ever)
{
	static const char *const names[] = {"height", "width", "type", "layout",
		"augment", "mean", "std", "area_min", "area_max", "aspect_min",
		"aspect_max", "jitter", "cutout", "flags", "record_bytes",
		"label_bytes", "sample_bytes", "policy", "max_pixels", "decode",
		"augment_fn", "fields", "subset", "subset_seed", "mix"};
	const struct member *m;
	size_t rows = 0;

	ck_assert_uint_eq(sizeof(names) / sizeof(*names), SAVED_HASHES);
	for (size_t i = 0; i < SAVED_HASHES; i++)
		ck_assert_str_eq(member_of_hash(i)->name, names[i]);
	for (size_t i = 0; (m = member_at(i)); i++)
		rows += m->saved >= SAVED_HASH && !m->bit;
	ck_assert_uint_eq(rows, SAVED_HASHES);
	ck_assert_uint_eq(member_flags_hashed(),
		REFRAIN_FLAG_NO_FLIP | REFRAIN_FLAG_NO_ORIENT |
			REFRAIN_FLAG_NO_NORMALISE | REFRAIN_FLAG_EXACT);
}
END_TEST

/* -- Texts ----------------------------------------------------------------- */

static struct refrain_config config_set(const char *name, const char *text)
{
	struct refrain_config c;
	int rc;

	refrain_config_init(&c);
	rc = refrain_config_set(&c, name, text);
	ck_assert_msg(rc == 0, "%s", refrain_message(NULL));
	return c;
}

START_TEST(test_a_text_sets_its_member)
{
	ck_assert_uint_eq(config_set("batch", "64").batch, 64);
	ck_assert_uint_eq(
		config_set("seed", "18446744073709551615").seed, UINT64_MAX);
	ck_assert_int_eq(
		config_set("open_timeout_ms", "-1").open_timeout_ms, -1);
	ck_assert_uint_eq(
		config_set("memory-bytes", "1.5G").memory_bytes, 3ULL << 29);
	ck_assert_int_eq(
		config_set("source", "tar").source, REFRAIN_SOURCE_TAR);
	ck_assert_int_eq(
		config_set("policy", "zero").policy, REFRAIN_ZERO_FILL);
	ck_assert_double_eq(config_set("echo", "5/2").echo, 2.5);
	ck_assert_double_eq(config_set("echo", "2.333").echo, 7. / 3);
	ck_assert_double_eq(config_set("echo_max", "2.3333").echo_max, 7. / 3);
	ck_assert_double_eq(config_set("echo", "0").echo, 0);
	ck_assert_double_eq(config_set("echo", "auto").echo, REFRAIN_ECHO_AUTO);
	ck_assert_double_eq(config_set("echo_max", "3.5").echo_max, 3.5);
	ck_assert_str_eq(config_set("dataset", "/a b").dataset, "/a b");
}
END_TEST

/* Make a locale in `dir` whose decimal point is a comma, and switch to it. */
static bool enter_comma_locale(const char *dir)
{
	char path[300], command[400];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/comma", dir);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	(void)fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
		    "grouping -1\nEND LC_NUMERIC\n"
		    "LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n",
		f);
	ck_assert_int_eq(fclose(f), 0);
	(void)snprintf(command, sizeof(command),
		"cd '%s' && localedef -c -i comma -f ANSI_X3.4-1968 ./xx_XX "
		">said 2>&1",
		dir);
	(void)system(command); /* localedef warns about omitted categories */
	ck_assert_int_eq(setenv("LOCPATH", dir, 1), 0);
	return setlocale(LC_ALL, "xx_XX") &&
		strcmp(localeconv()->decimal_point, ",") == 0;
}

START_TEST(test_the_point_of_a_number_is_a_point_in_every_locale)
{
	struct schedule_echo echo = {5, 2};
	char text[ECHO_TEXT], dir[256], command[300];
	bool entered;

	(void)snprintf(dir, sizeof(dir), "%s/locale.XXXXXX", test_dir());
	ck_assert_ptr_nonnull(mkdtemp(dir));
	entered = enter_comma_locale(dir);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
	if (!entered)
		return; /* no other locale can be set here */
	ck_assert(config_set("aspect_max", "2.5").aspect_max == 2.5F);
	ck_assert(config_set("std", "0.5,1/4,1").std[1] == .25F);
	ck_assert_str_eq(schedule_echo_text(echo, text), "2.5");
	ck_assert_str_eq(localeconv()->decimal_point, ",");
}
END_TEST

START_TEST(test_several_numbers_are_one_member)
{
	struct refrain_config c = config_set("std", "0.5,1/4,1");

	ck_assert(c.std[0] == .5F && c.std[1] == .25F && c.std[2] == 1.F);
	c = config_set("jitter", "0.4");
	ck_assert(c.jitter[0] == .4F && c.jitter[1] == .4F);
	ck_assert(c.jitter[2] == .4F);
	c = config_set("size", "320x240");
	ck_assert(c.width == 320 && c.height == 240);
	c = config_set("size", "96");
	ck_assert(c.width == 96 && c.height == 96);
}
END_TEST

/* 0 means the default, except for texts, and for `mean`, where 0 is a value. */
START_TEST(test_zero_is_the_default_of_every_member)
{
	struct refrain_config c, zero;
	struct refrain_member m = {.size = sizeof(m)};

	refrain_config_init(&zero);
	for (uint32_t n = 0; refrain_config_member(n, &m) == 1; n++) {
		if (m.type == REFRAIN_MEMBER_TEXT ||
			strcmp(m.name, "mean") == 0)
			continue;
		c = config_set(m.name, "0");
		ck_assert_msg(memcmp(&c, &zero, sizeof(c)) == 0, "%s", m.name);
	}
	c.width = 96;
	c.height = 64;
	ck_assert_int_eq(refrain_config_set(&c, "size", "0"), 0);
	ck_assert(c.width == 0 && c.height == 0);
}
END_TEST

START_TEST(test_a_flag_is_set_and_cleared_by_its_name)
{
	struct refrain_config c = config_set("in-order", "1");

	ck_assert_uint_eq(c.flags, REFRAIN_FLAG_IN_ORDER);
	ck_assert_int_eq(refrain_config_set(&c, "no_flip", "True"), 0);
	ck_assert_int_eq(refrain_config_set(&c, "in_order", "off"), 0);
	ck_assert_uint_eq(c.flags, REFRAIN_FLAG_NO_FLIP);
}
END_TEST

/* Check that a text is refused with a message that names the member, and that
 * no member changes. */
static void refused(const char *name, const char *text, const char *why)
{
	struct refrain_config c, before;

	refrain_config_init(&c);
	c.batch = 3;
	before = c;
	ck_assert_int_eq(refrain_config_set(&c, name, text), -EINVAL);
	ck_assert_mem_eq(&c, &before, sizeof(c));
	ck_assert_msg(strncmp(refrain_message(NULL), name, strlen(name)) == 0 &&
			strstr(refrain_message(NULL), why),
		"%s", refrain_message(NULL));
}

START_TEST(test_a_text_that_does_not_fit_is_refused)
{
	refused("batch", "many", "not a whole number");
	refused("batch", "-1", "not a whole number");
	refused("batch", "4294967296", "too large");
	refused("batch", "4294967295",
		"batch is 4294967295: it must be from 1 to 16777216");
	refused("seed", "18446744073709551616", "too large");
	refused("nice", "-1", "it must be from 0 to 19");
	refused("echo", "0.5", "a number from 1 to 64");
	refused("echo", "-1", "not an echo factor");
	refused("echo", "twice", "not an echo factor");
	refused("echo", "2,3", "not an echo factor");
	refused("echo_max", "1/0", "not an echo factor");
	refused("mean", "1,2", "3 numbers");
	refused("mean", "1,2,3,4", "3 numbers");
	refused("mean", "1,2000,3", "mean[1] is 2000");
	refused("type", "u16", "not one of u8|f16|f32");
	refused("type", "u8|f16", "not one of");
	refused("in_order", "maybe", "neither true nor false");
	refused("size", "0x5", "not a valid size");
	refused("memory_bytes", "much", "much");
}
END_TEST

START_TEST(test_a_name_that_is_not_there_is_refused)
{
	struct refrain_config c;

	refrain_config_init(&c);
	ck_assert_int_eq(refrain_config_set(&c, "bacth", "1"), -ENOENT);
	ck_assert_ptr_nonnull(strstr(
		refrain_message(NULL), "configuration (did you mean batch?)"));
	ck_assert_int_eq(refrain_config_set(&c, "batches", "1"), -ENOENT);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "'batches'"));
	ck_assert_int_eq(refrain_config_set(&c, "", "0"), -ENOENT);
}
END_TEST

/* A struct of an older header ends before the member. */
START_TEST(test_nothing_is_written_behind_a_shorter_struct)
{
	struct refrain_config c;

	memset(&c, 0xaa, sizeof(c));
	memset(&c, 0, offsetof(struct refrain_config, echo_max));
	c.size = offsetof(struct refrain_config, echo_max);
	ck_assert_int_eq(refrain_config_set(&c, "echo_max", "2"), -E2BIG);
	ck_assert_int_eq(refrain_config_set(&c, "batch", "2"), 0);
	ck_assert_uint_eq(c.batch, 2);
	ck_assert_uint_eq(c.size, offsetof(struct refrain_config, echo_max));
	ck_assert_uint_eq(((unsigned char *)&c)[c.size], 0xaa);
}
END_TEST

/* -- Enumeration ----------------------------------------------------------- */

START_TEST(test_every_member_that_is_listed_can_be_set)
{
	static const char *const texts[] = {
		[REFRAIN_MEMBER_NUMBER] = "1",
		[REFRAIN_MEMBER_REAL] = "1",
		[REFRAIN_MEMBER_ECHO] = "auto",
		[REFRAIN_MEMBER_BYTES] = "1M",
		[REFRAIN_MEMBER_WORD] = NULL,
		[REFRAIN_MEMBER_FLAG] = "yes",
		[REFRAIN_MEMBER_SIDES] = "32x16",
		[REFRAIN_MEMBER_TEXT] = "text",
	};
	struct refrain_member m = {.size = sizeof(m)};
	uint32_t n = 0;

	for (; refrain_config_member(n, &m) == 1; n++) {
		char word[16];

		(void)snprintf(word, sizeof(word), "%.*s",
			(int)strcspn(m.arg ? m.arg : "", "|"),
			m.arg ? m.arg : "");
		(void)config_set(m.name, texts[m.type] ? texts[m.type] : word);
	}
	ck_assert_uint_gt(n, 45);
	ck_assert_int_eq(refrain_config_member(n, &m), 0);
	ck_assert_int_eq(refrain_config_member(UINT32_MAX, &m), 0);
}
END_TEST

START_TEST(test_a_description_is_as_long_as_there_is_room)
{
	struct refrain_member m;

	memset(&m, 0xaa, sizeof(m));
	m.size = offsetof(struct refrain_member, arg);
	ck_assert_int_eq(refrain_config_member(0, &m), 1);
	ck_assert_str_eq(m.name, "dataset");
	ck_assert_uint_eq(m.size, offsetof(struct refrain_member, arg));
	ck_assert_uint_eq(((unsigned char *)&m)[m.size], 0xaa);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("config");
	TCase *t = case_of(s, "table");

	tcase_add_test(t, test_every_byte_of_the_struct_is_a_member_or_padding);
	tcase_add_test(t, test_every_row_says_what_it_is);
	tcase_add_test(t, test_every_flag_has_one_name);
	tcase_add_test(t, test_words_are_as_many_as_the_enum_has_values);
	tcase_add_test(t, test_a_state_has_the_same_hashes_as_ever);
	t = case_of(s, "text");
	tcase_add_test(t, test_a_text_sets_its_member);
	tcase_add_test(
		t, test_the_point_of_a_number_is_a_point_in_every_locale);
	tcase_add_test(t, test_several_numbers_are_one_member);
	tcase_add_test(t, test_zero_is_the_default_of_every_member);
	tcase_add_test(t, test_a_flag_is_set_and_cleared_by_its_name);
	tcase_add_test(t, test_a_text_that_does_not_fit_is_refused);
	tcase_add_test(t, test_a_name_that_is_not_there_is_refused);
	tcase_add_test(t, test_nothing_is_written_behind_a_shorter_struct);
	t = case_of(s, "list");
	tcase_add_test(t, test_every_member_that_is_listed_can_be_set);
	tcase_add_test(t, test_a_description_is_as_long_as_there_is_room);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
