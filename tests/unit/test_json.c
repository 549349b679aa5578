/* SPDX-License-Identifier: MIT */
/* Tests of src/common/base/json.c; test_answer has more of them. */
#include <errno.h>
#include <string.h>

#include "common/base/json.h"
#include "suite.h"

START_TEST(test_json_finds_values_with_escapes)
{
	static const char doc[] = "{\"a\": [1, {\"Token\": \"x\\u00e4\\/\"}],"
				  " \"n\": 12.5e3, \"e\": {}, \"t\": true}";
	char out[32];

	ck_assert_int_eq(json_find(doc, strlen(doc), "token", out, 32), 0);
	ck_assert_str_eq(out, "x\xc3\xa4/");
	ck_assert_int_eq(json_find(doc, strlen(doc), "n", out, 32), 0);
	ck_assert_str_eq(out, "12.5e3");
	ck_assert_int_eq(json_find(doc, strlen(doc), "none", out, 32), 0);
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(test_json_finds_the_value_in_the_fewest_objects)
{
	static const char doc[] =
		"{\"old\": {\"Token\": \"a\", \"key\": {\"id\": \"b\"}},"
		" \"Token\": \"c\", \"new\": {\"token\": \"d\","
		" \"id\": \"e\"}, \"token\": \"f\"}";
	char out[32];

	ck_assert_int_eq(json_find(doc, strlen(doc), "token", out, 32), 0);
	ck_assert_str_eq(out, "c");
	ck_assert_int_eq(json_find(doc, strlen(doc), "id", out, 32), 0);
	ck_assert_str_eq(out, "e");
}
END_TEST

START_TEST(test_json_refuses_what_is_none)
{
	static const char *const bad[] = {"", "{", "{\"a\"}", "{\"a\":1,}",
		"[1,]", "{\"a\":\"\\u0000\"}", "{\"a\":\"\\ud800\"}",
		"{\"a\":\"x\n\"}", "{} {}",
		"[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]"};
	char out[32];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(
			json_find(bad[i], strlen(bad[i]), "a", out, 32),
			-EBADMSG);
}
END_TEST

/* Read a document that consists of one string. */
static bool is_text(const char *doc, const char *want, size_t room)
{
	struct json_scan s = json_scan(doc, strlen(doc));
	char text[64];

	return json_take_text(&s, text, room) && json_is_over(&s) &&
		strcmp(text, want) == 0;
}

START_TEST(test_json_text_that_does_not_fit_is_empty)
{
	ck_assert(is_text(" \"abc\" ", "abc", 4));
	ck_assert(is_text("\"abc\"", "", 3));
	ck_assert(is_text("\"\\u00e4\"", "", 2));
}
END_TEST

START_TEST(test_json_pairs_of_escapes_are_one_character)
{
	ck_assert(is_text("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 64));
	ck_assert(!is_text("\"\\ud83d\"", "", 64));
	ck_assert(!is_text("\"\\ud83d\\u0041\"", "", 64));
	ck_assert(!is_text("\"\\ude00\\ud83d\"", "", 64));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("json");
	TCase *t = case_of(s, "json");

	tcase_add_test(t, test_json_finds_values_with_escapes);
	tcase_add_test(t, test_json_finds_the_value_in_the_fewest_objects);
	tcase_add_test(t, test_json_refuses_what_is_none);
	tcase_add_test(t, test_json_text_that_does_not_fit_is_empty);
	tcase_add_test(t, test_json_pairs_of_escapes_are_one_character);
	return run_suite(s);
}
