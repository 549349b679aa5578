/* SPDX-License-Identifier: MIT */
/* The reader of the answers of a mount; see
 * loader/mount_help/help_answer_impl.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "loader/mount_help/help_answer_impl.h"
#include "suite.h"

static const char keys_line[] =
	"{\"ok\": true, \"keys\": [{\"key\": "
	"\"5cb05743b298569658576ab9819612f9\", \"size\": 110000}, {\"size\": "
	"100000000, \"chunk\": 262144}, null, {\"size\": 0}], \"more\": "
	"{\"a\": [1, -2.5e3, \"\\u00e9\\n\"], \"b\": false}}";

static const char status_line[] =
	"{\"ok\":true,\"status\":{\"source\":\"/s\",\"ready\":true,\"tiers\":[{"
	"\"dir\":\"/fast\",\"entries\":3},{\"dir\":\"/with \\\"\\u0062 "
	"\\u00e9\"},{\"dir\":\"relative\"}],\"limits\":[\"a\",\"b\"]}}";

static const char added_line[] =
	"{\"ok\":true,\"positions\":12,\"added\":7,\"left_out\":[\"x: no\"]}";

/* Parse the line in memory of exactly its size, so that a sanitizer sees reads
 * beyond it. */
static int in_its_own(
	const char *line, size_t n, int (*fn)(const char *line, size_t n))
{
	CLEANUP_FREE char *copy = malloc(n + !n);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, line, n);
	return fn(copy, n);
}

static int read_keys(const char *line, size_t n)
{
	struct answer_key keys[4];

	return answer_keys(line, n, keys, 4);
}

static char dirs[ANSWER_TIERS_MAX][PATH_MAX];

static int read_tiers(const char *line, size_t n)
{
	return answer_tiers(line, n, dirs);
}

static int read_added(const char *line, size_t n)
{
	uint64_t added;

	return answer_number(line, n, "added", &added);
}

START_TEST(keys_are_taken_from_an_answer)
{
	struct answer_key keys[4];

	memset(keys, 0xff, sizeof(keys));
	ck_assert_int_eq(
		answer_keys(keys_line, sizeof(keys_line) - 1, keys, 4), 1);
	ck_assert_uint_eq(keys[0].key.hi, UINT64_C(0x5cb05743b2985696));
	ck_assert_uint_eq(keys[0].key.lo, UINT64_C(0x58576ab9819612f9));
	ck_assert_uint_eq(keys[0].bytes, 110000);
	for (int i = 1; i < 4; i++)
		ck_assert_uint_eq(keys[i].bytes, 0);
}
END_TEST

START_TEST(another_number_of_keys_is_no_answer)
{
	struct answer_key keys[5];
	size_t n = sizeof(keys_line) - 1;

	ck_assert_int_eq(answer_keys(keys_line, n, keys, 3), -EBADMSG);
	ck_assert_int_eq(answer_keys(keys_line, n, keys, 5), -EBADMSG);
}
END_TEST

START_TEST(a_size_that_no_entry_has_is_no_key)
{
	static const char *const sizes[] = {"1073741825", "-1", "1.5", "1e3",
		"99999999999999999999999999", "0"};
	struct answer_key key;
	char line[200];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int n = snprintf(line, sizeof(line),
			"{\"ok\":true,\"keys\":[{\"key\":"
			"\"5cb05743b298569658576ab9819612f9\",\"size\":%s}]}",
			sizes[i]);

		ck_assert_int_eq(answer_keys(line, (size_t)n, &key, 1), 1);
		ck_assert_uint_eq(key.bytes, 0);
	}
}
END_TEST

START_TEST(tiers_are_taken_from_a_status)
{
	ck_assert_int_eq(
		answer_tiers(status_line, sizeof(status_line) - 1, dirs), 2);
	ck_assert_str_eq(dirs[0], "/fast");
	ck_assert_str_eq(dirs[1], "/with \"b \xc3\xa9");
}
END_TEST

START_TEST(a_number_is_taken_from_an_answer)
{
	size_t n = sizeof(added_line) - 1;
	uint64_t value = 0;

	ck_assert_int_eq(answer_number(added_line, n, "added", &value), 1);
	ck_assert_uint_eq(value, 7);
	ck_assert_int_eq(
		answer_number(added_line, n, "left_out", &value), -EBADMSG);
	ck_assert_int_eq(
		answer_number(added_line, n, "none", &value), -EBADMSG);
}
END_TEST

START_TEST(a_refusal_is_told_from_nonsense)
{
	static const char no[] = "{\"ok\":false,\"error\":\"no\"}";
	static const char *const bad[] = {"", "{}", "[]", "{\"ok\":1}",
		"{\"ok\":true", "{\"ok\":true}}", "{\"ok\":true,}",
		"{\"ok\":true} x", "{\"ok\" true}", "\"ok\"", "true",
		"{\"a\":\"\\x\",\"ok\":true}", "{\"a\":\"\\u12\",\"ok\":true}"};

	ck_assert_int_eq(answer_ok(no, sizeof(no) - 1), 0);
	ck_assert_int_eq(read_keys(no, sizeof(no) - 1), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(in_its_own(bad[i], strlen(bad[i]), answer_ok),
			-EBADMSG);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	char line[2000] = "{\"ok\":true,\"a\":";

	memset(line + strlen(line), '[', 1500);
	ck_assert_int_eq(in_its_own(line, strlen(line), answer_ok), -EBADMSG);
}
END_TEST

static uint64_t state = 1;

static size_t draw(size_t below)
{
	state = state * UINT64_C(6364136223846793005) +
		UINT64_C(1442695040888963407);
	return (size_t)(state >> 33) % below;
}

static void mutate(const char *line, int (*fn)(const char *line, size_t n))
{
	static const char marks[] = "{}[]\",:\\0-eutrfn ";
	size_t n = strlen(line);

	for (size_t cut = 0; cut < n; cut++)
		ck_assert_int_eq(in_its_own(line, cut, fn), -EBADMSG);
	for (int round = 0; round < 3000; round++) {
		char copy[1024];
		int rc;

		memcpy(copy, line, n);
		for (size_t i = 1 + draw(3); i > 0; i--)
			copy[draw(n)] = draw(2) ? (char)draw(256)
						: marks[draw(sizeof(marks))];
		rc = in_its_own(copy, n - draw(2) * draw(n), fn);
		ck_assert(rc >= -EBADMSG && rc <= ANSWER_TIERS_MAX);
		ck_assert(rc >= 0 || rc == -EBADMSG);
	}
}

static const char rates_line[] =
	"{\"ok\":true,\"full_us\":12,\"deep\":{\"looked\":9},"
	"\"fetching\":true,\"text\":\"x\",\"looked\":1.5,\"full\":false}";

static int read_values(const char *line, size_t n)
{
	struct answer_value v[] = {{"full_us", 1}, {"looked", 2}, {"full", 3}};

	return answer_values(line, n, v, 3);
}

START_TEST(several_numbers_are_taken_at_once)
{
	struct answer_value v[] = {{"fetching", 7}, {"full", 7}, {"full_us", 7},
		{"looked", 7}, {"text", 7}, {"none", 7}};
	static const uint64_t want[] = {1, 0, 12, 7, 7, 7};

	ck_assert_int_eq(
		answer_values(rates_line, sizeof(rates_line) - 1, v, 6), 1);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_msg(v[i].value == want[i], "%s is %llu", v[i].name,
			(unsigned long long)v[i].value);
	ck_assert_int_eq(answer_values("{\"ok\":false}", 12, v, 6), 0);
	ck_assert_int_eq(answer_values("{\"full\":1}", 10, v, 6), -EBADMSG);
}
END_TEST

START_TEST(no_mutation_leads_astray)
{
	mutate(keys_line, read_keys);
	mutate(status_line, read_tiers);
	mutate(added_line, read_added);
	mutate(rates_line, read_values);
	mutate(keys_line, answer_ok);
}
END_TEST

START_TEST(names_are_text_or_digits)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{"train/a b.jpg", "\"train/a b.jpg\""},
		{"caf\xe9", "{\"hex\":\"636166e9\"}"},
		{"a\"b", "{\"hex\":\"612262\"}"},
		{"a\\b", "{\"hex\":\"615c62\"}"},
		{"a\nb", "{\"hex\":\"610a62\"}"},
		{"", "\"\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i].name);
		char buf[100];
		char *end = answer_put_name(buf, rows[i].name, n);

		ck_assert_uint_le((size_t)(end - buf), ANSWER_NAME_ROOM(n));
		*end = '\0';
		ck_assert_str_eq(buf, rows[i].want);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("answer");
	TCase *tc = case_of(s, "answer");

	tcase_add_test(tc, keys_are_taken_from_an_answer);
	tcase_add_test(tc, another_number_of_keys_is_no_answer);
	tcase_add_test(tc, a_size_that_no_entry_has_is_no_key);
	tcase_add_test(tc, tiers_are_taken_from_a_status);
	tcase_add_test(tc, a_number_is_taken_from_an_answer);
	tcase_add_test(tc, several_numbers_are_taken_at_once);
	tcase_add_test(tc, a_refusal_is_told_from_nonsense);
	tcase_add_test(tc, deep_nesting_is_refused);
	tcase_add_test(tc, no_mutation_leads_astray);
	tcase_add_test(tc, names_are_text_or_digits);
	return run_suite(s);
}
