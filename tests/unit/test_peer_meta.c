/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/common/memcached/memcached_meta.c, memcached_server.c and
 * src/origin/peer/peer_unit.c: valid and invalid answers of memcached, servers
 * that are too old, and values of other items.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/memcached/memcached_meta.h"
#include "common/memcached/memcached_server.h"
#include "origin/peer/peer_unit_impl.h"
#include "suite.h"

#define MOST 300000u

static ssize_t parse(const char *text, struct meta_answer *a)
{
	return meta_parse(text, strlen(text), MOST, a);
}

START_TEST(test_meta_reads_values_and_flags)
{
	struct meta_answer a;

	ck_assert_int_eq(parse("VA 5 t120 O77 W\r\nhello\r\n", &a), 17);
	ck_assert_int_eq(a.kind, META_VA);
	ck_assert_uint_eq(a.value_bytes, 5);
	ck_assert_uint_eq(a.opaque, 77);
	ck_assert(a.won);
	ck_assert_int_eq(parse("HD O4294967295 \r\n", &a), 17);
	ck_assert_uint_eq(a.opaque, UINT32_MAX);
	ck_assert(!a.won);
	ck_assert_int_eq(parse("EN\r\n", &a), 4);
	ck_assert_int_eq(a.kind, META_EN);
}
END_TEST

/* A server whose memory is full gives one of these two answers. */
static const char *const full[] = {
	"SERVER_ERROR out of memory storing object\r\n",
	"SERVER_ERROR Out of memory during read\r\n",
};

START_TEST(test_meta_knows_a_server_without_memory)
{
	struct meta_answer a;

	ck_assert_int_gt(parse(full[_i], &a), 0);
	ck_assert_int_eq(a.kind, META_FULL);
	ck_assert_int_gt(parse("SERVER_ERROR busy\r\n", &a), 0);
	ck_assert_int_eq(a.kind, META_ERROR);
}
END_TEST

static const char *const wrong[] = {
	"\r\n",
	"VA\r\n",
	"VA \r\n",
	"VA x\r\n",
	"VA -1\r\n",
	"VA 300001\r\n",
	"VA 99999999999999999999\r\n",
	"HD O0\r\n",
	"HD O4294967296\r\n",
	"HD Ox\r\n",
	"HD  O1\r\n",
	"HDO1\r\n",
	"HD\n",
	"hd\r\n",
	"HTTP/1.1 200 OK\r\n",
};

START_TEST(test_meta_refuses_what_is_not_of_the_protocol)
{
	struct meta_answer a;

	ck_assert_int_eq(parse(wrong[_i], &a), -EBADMSG);
}
END_TEST

START_TEST(test_meta_waits_for_the_whole_line_but_not_for_ever)
{
	static const char line[] = "VA 5 O77\r\n";
	char endless[META_LINE_MAX];
	struct meta_answer a;

	for (size_t n = 0; n + 1 < sizeof(line); n++)
		ck_assert_int_eq(meta_parse(line, n, MOST, &a), 0);
	memset(endless, 'x', sizeof(endless));
	ck_assert_int_eq(meta_parse(endless, sizeof(endless) - 1, MOST, &a), 0);
	ck_assert_int_eq(
		meta_parse(endless, sizeof(endless), MOST, &a), -EBADMSG);
}
END_TEST

START_TEST(test_meta_survives_any_change_of_an_answer)
{
	static const char line[] = "VA 512 t-1 c18446744073709551615 O9 W\r\n";
	char text[sizeof(line)];
	struct meta_answer a;

	srand(1);
	for (int i = 0; i < 200000; i++) {
		memcpy(text, line, sizeof(line));
		for (int k = rand() % 4; k >= 0; k--)
			text[(size_t)rand() % (sizeof(line) - 1)] =
				(char)rand();
		if (meta_parse(text, sizeof(line) - 1, MOST, &a) > 0)
			ck_assert_uint_le(a.value_bytes, MOST);
	}
}
END_TEST

START_TEST(test_a_unit_is_right_for_its_own_place_and_seed_alone)
{
	uint8_t value[UNIT_HEAD_BYTES + 100];
	struct hash128 set = {1, 2};
	uint64_t seed = unit_seed(set, "secret", 6);
	struct unit u = {{3, 4}, 5, 100, 6}, other = u;

	memset(value, 7, sizeof(value));
	unit_seal(value, seed, &u, value + UNIT_HEAD_BYTES);
	u.writer = 0;
	ck_assert(unit_is_right(value, sizeof(value), seed, &u));
	ck_assert_uint_eq(u.writer, 6);
	other.n = 6;
	ck_assert(!unit_is_right(value, sizeof(value), seed, &other));
	other = u;
	other.item.lo++;
	ck_assert(!unit_is_right(value, sizeof(value), seed, &other));
	ck_assert(!unit_is_right(value, sizeof(value) - 1, seed, &u));
	ck_assert(!unit_is_right(value, 3, seed, &u));
	ck_assert(!unit_is_right(
		value, sizeof(value), unit_seed(set, "Secret", 6), &u));
	for (size_t i = 0; i < sizeof(value); i++) {
		value[i] ^= 1;
		ck_assert(!unit_is_right(value, sizeof(value), seed, &u));
		value[i] ^= 1;
	}
}
END_TEST

static const struct {
	const char *version;
	bool old;
} versions[] = {{"1.6.10", false}, {"1.6.9", true}, {"1.5.99", true},
	{"0.9.99", true}, {"1.10.0", false}, {"2.0.0", false},
	{"1.6.9-beta", true}, {"1.6", false}, {"unknown", false}, {"", false},
	/* The numbers of these versions are too large. */
	{"2147484.6.10", false}, {"1.2147484648.0", false},
	{"1.6.18446744073709551626", false}};

START_TEST(test_versions_are_compared_number_by_number)
{
	const char *version = versions[_i].version, *fault;
	struct server s;

	server_init(&s);
	server_version(&s, version, strlen(version));
	server_stat(&s, "evictions off", 13);
	fault = server_fault(&s, UNIT_VALUE_MAX);
	ck_assert_msg(!fault == !versions[_i].old, "%s: %s", version,
		fault ? fault : "new enough");
	ck_assert(!fault || strstr(fault, "too old"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("peer_meta");
	TCase *t = case_of(s, "peer_meta");

	tcase_add_test(t, test_meta_reads_values_and_flags);
	tcase_add_loop_test(t, test_meta_knows_a_server_without_memory, 0, 2);
	tcase_add_loop_test(t, test_meta_refuses_what_is_not_of_the_protocol, 0,
		(int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, test_meta_waits_for_the_whole_line_but_not_for_ever);
	tcase_add_test(t, test_meta_survives_any_change_of_an_answer);
	tcase_add_test(
		t, test_a_unit_is_right_for_its_own_place_and_seed_alone);
	tcase_add_loop_test(t, test_versions_are_compared_number_by_number, 0,
		(int)(sizeof(versions) / sizeof(versions[0])));
	return run_suite(s);
}
