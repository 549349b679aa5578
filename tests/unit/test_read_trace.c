/* SPDX-License-Identifier: MIT */
/* Tests of common/base/read_trace: rings of threads that never wait. */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/read_trace.h"
#include "suite.h"

#define THREADS 4

static struct read_record taken[THREADS * READ_TRACE_RECORDS + 1];

static void add(struct read_trace *t, uint64_t from, uint64_t n)
{
	for (uint64_t i = from; i < from + n; i++)
		read_trace_add(t,
			&(struct read_record){
				.end_ns = i, .ns = 100, .node = i});
}

START_TEST(test_read_trace_counts_records_that_have_no_room)
{
	struct read_trace *t;
	uint64_t lost = 0;

	ck_assert_int_eq(read_trace_new(&t), 0);
	read_trace_begin(t, 0);
	add(t, 0, READ_TRACE_RECORDS + 5);
	ck_assert_uint_eq(read_trace_take(t, taken, 10, &lost), 10);
	ck_assert_uint_eq(lost, 5);
	ck_assert_uint_eq(taken[9].node, 9);
	add(t, 100000, 11);
	ck_assert_uint_eq(
		read_trace_take(t, taken, READ_TRACE_RECORDS + 1, &lost),
		READ_TRACE_RECORDS);
	ck_assert_uint_eq(lost, 6);
	ck_assert_uint_eq(taken[READ_TRACE_RECORDS - 1].node, 100009);
	ck_assert_uint_eq(read_trace_take(t, taken, 10, &lost), 0);
	ck_assert_uint_eq(lost, 6);
	read_trace_end(t);
	read_trace_free(t);
}
END_TEST

START_TEST(test_read_trace_begins_without_what_came_before)
{
	struct read_trace *t;
	uint64_t lost = 0;

	ck_assert_int_eq(read_trace_new(&t), 0);
	read_trace_begin(t, 0);
	add(t, 0, READ_TRACE_RECORDS * 2);
	read_trace_end(t);
	add(t, 0, 3);
	read_trace_begin(t, 101);
	add(t, 7, 1);
	ck_assert_uint_eq(read_trace_take(t, taken, 10, &lost), 0);
	read_trace_end(t);
	read_trace_begin(t, 100);
	add(t, 8, 1);
	ck_assert_uint_eq(read_trace_take(t, taken, 10, &lost), 1);
	ck_assert_uint_eq(taken[0].node, 8);
	ck_assert_uint_eq(lost, 0);
	read_trace_end(t);
	read_trace_free(t);
	read_trace_free(NULL);
}
END_TEST

static void *add_all(void *arg)
{
	add(arg, 0, READ_TRACE_RECORDS * 10);
	return NULL;
}

START_TEST(test_read_trace_gets_or_counts_each_record_of_many_threads)
{
	pthread_t thread[THREADS];
	struct read_trace *t;
	uint64_t lost = 0, got = 0;
	size_t n;

	ck_assert_int_eq(read_trace_new(&t), 0);
	read_trace_begin(t, 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, add_all, t), 0);
	for (int i = 0; i < 100; i++) {
		n = read_trace_take(t, taken, 1000, &lost);
		for (size_t j = 1; j < n; j++)
			ck_assert_uint_le(taken[j - 1].end_ns, taken[j].end_ns);
		got += n;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	while ((n = read_trace_take(t, taken, 1000, &lost)) > 0)
		got += n;
	ck_assert_uint_eq(
		got + lost, (uint64_t)THREADS * READ_TRACE_RECORDS * 10);
	read_trace_end(t);
	read_trace_free(t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("read_trace");
	TCase *t = case_of(s, "read_trace");

	tcase_add_test(t, test_read_trace_counts_records_that_have_no_room);
	tcase_add_test(t, test_read_trace_begins_without_what_came_before);
	tcase_add_test(
		t, test_read_trace_gets_or_counts_each_record_of_many_threads);
	return run_suite(s);
}
