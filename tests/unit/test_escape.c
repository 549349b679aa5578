/* SPDX-License-Identifier: MIT */
/* Tests of common/base/escape: it makes names from outside safe for a terminal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/escape.h"
#include "suite.h"

static void expect(const char *text, const char *shown)
{
	char buf[256], twice[256];

	ck_assert_str_eq(escape_text(buf, sizeof(buf), text), shown);
	ck_assert_str_eq(escape_text(twice, sizeof(twice), buf), shown);
}

START_TEST(test_escape_keeps_printable_text_of_any_language)
{
	expect("", "");
	expect("n02/a b'c\"\\.jpg", "n02/a b'c\"\\.jpg");
	expect("\xc3\xa9t\xc3\xa9 \xe7\x8c\xab \xf0\x9f\x90\x88",
		"\xc3\xa9t\xc3\xa9 \xe7\x8c\xab \xf0\x9f\x90\x88");
}
END_TEST

START_TEST(test_escape_shows_control_characters_instead_of_sending_them)
{
	expect("a\nb\tc\rd", "a\\nb\\tc\\rd");
	expect("\x1b]0;title\x07", "\\x1b]0;title\\x07");
	expect("\x7f", "\\x7f");
	expect("\xc2\x9b"
	       "31m",
		"\\xc2\\x9b31m");
}
END_TEST

START_TEST(test_escape_shows_what_reorders_or_hides_text)
{
	expect("\xe2\x80\xaegpj.exe", "\\xe2\\x80\\xaegpj.exe");
	expect("\xe2\x80\xa8", "\\xe2\\x80\\xa8");
	expect("\xe2\x80\x8b", "\\xe2\\x80\\x8b");
	expect("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81");
}
END_TEST

START_TEST(test_escape_shows_bytes_that_are_not_utf8)
{
	expect("a\xff"
	       "b",
		"a\\xffb");
	expect("\x9b"
	       "31m",
		"\\x9b31m");
	expect("\xc0\x9b", "\\xc0\\x9b"); /* an overlong form */
	expect("\xe0\x82\x9b", "\\xe0\\x82\\x9b");
	expect("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
	expect("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	expect("\xe7\x8c", "\\xe7\\x8c"); /* a character that is cut off */
	expect("\xc3\n", "\\xc3\\n");
}
END_TEST

START_TEST(test_escape_cuts_between_characters)
{
	char buf[5];

	ck_assert_str_eq(escape_text(buf, sizeof(buf), "abcdef"), "abcd");
	ck_assert_str_eq(escape_text(buf, sizeof(buf), "ab\x1b"), "ab");
	ck_assert_str_eq(escape_text(buf, sizeof(buf), "\x1b"), "\\x1b");
	ck_assert_str_eq(escape_text(buf, sizeof(buf), "abc\xc3\xa9"), "abc");
	ck_assert_str_eq(escape_text(buf, 1, "a"), "");
}
END_TEST

START_TEST(test_escape_keeps_different_names_different)
{
	char buf[64];

	ck_assert_str_eq(escape_name(buf, sizeof(buf), "x\ny"), "x\\ny");
	ck_assert_str_eq(escape_name(buf, sizeof(buf), "x\\ny"), "x\\\\ny");
	ck_assert_str_eq(escape_name(buf, sizeof(buf), "\xff"), "\\xff");
	ck_assert_str_eq(escape_name(buf, 4, "ab\\"), "ab");
}
END_TEST

START_TEST(test_escape_prints_what_it_would_copy)
{
	char buf[64] = "";
	FILE *to = fmemopen(buf, sizeof(buf), "w");

	ck_assert_ptr_nonnull(to);
	escape_print(to, "x\x1b[2J\xc3\xa9\n");
	ck_assert_int_eq(fclose(to), 0);
	ck_assert_str_eq(buf, "x\\x1b[2J\xc3\xa9\\n");
}
END_TEST

START_TEST(test_error_messages_are_one_printable_line)
{
	struct error err;

	(void)error_set(&err, -ENOENT, "cannot open '%s': %m", "a\n\x1b[2Jb");
	ck_assert_str_eq(err.msg,
		"cannot open 'a\\n\\x1b[2Jb': No such file or directory");
	(void)error_wrap(&err, -ENOENT, "of '%s'", "\r");
	ck_assert_str_eq(err.msg,
		"of '\\r': cannot open 'a\\n\\x1b[2Jb': "
		"No such file or directory");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("escape");
	TCase *t = case_of(s, "escape");

	tcase_add_test(t, test_escape_keeps_printable_text_of_any_language);
	tcase_add_test(t,
		test_escape_shows_control_characters_instead_of_sending_them);
	tcase_add_test(t, test_escape_shows_what_reorders_or_hides_text);
	tcase_add_test(t, test_escape_shows_bytes_that_are_not_utf8);
	tcase_add_test(t, test_escape_cuts_between_characters);
	tcase_add_test(t, test_escape_keeps_different_names_different);
	tcase_add_test(t, test_escape_prints_what_it_would_copy);
	tcase_add_test(t, test_error_messages_are_one_printable_line);
	return run_suite(s);
}
