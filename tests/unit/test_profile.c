/* SPDX-License-Identifier: MIT */
/*
 * Profiles of an analysis: the predictions of a saved profile, and the unit in
 * which files are counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/study/study.h"
#include "analysis/study/source_files_impl.h"
#include "analysis/study/sample_unit_impl.h"
#include "suite.h"

/* -- What a saved profile predicts ----------------------------------------- */

/*
 * L is 0.5: at half of the misses the serial formula gives 6 ms a sample, the
 * overlapped one 5 ms, and the measured time is 5.5 ms.
 */
static const struct profile measured = {
	.source = "/data",
	.source_bytes = 100000000,
	.source_items = 1000,
	.samples = 1000,
	.cpus = 4,
	.cpus_used = 0.5,
	.cached = 0.5,
	.g = {1000, 10},
	.r1 = {500, 5},
	.r0 = {100, 1},
	.s = {400, 0},
	.points = {{1, 0, {500, 5}}, {0.5, 0.5, {1 / 0.0055, 2}},
		{0, 1, {100, 1}}},
	.npoints = 3,
};

/* Make a profile that was read from a file, without any other data. */
static struct profile saved(double cached)
{
	struct profile p = measured, back;
	struct error err = {""};
	json_t *json;

	p.cached = cached;
	json = profile_json(&p);
	ck_assert(json && profile_parse(json, &back, &err) == 0);
	json_decref(json);
	return back;
}

static double rate_after(double cached, enum profile_change change)
{
	struct profile p = saved(cached);
	struct profile_rate r = profile_after(&p, cached, change);

	ck_assert(profile_change_known(&p, change));
	ck_assert_double_gt(r.ci, 0);
	return r.value;
}

START_TEST(test_a_larger_cache_is_predicted)
{
	ck_assert_double_eq_tol(rate_after(0, CHANGE_NONE), 100, 1e-6);
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_NONE), 181.818, 1e-3);
	/* 4.8 ms by the serial formula, 3.5 ms by the overlapped one. */
	ck_assert_double_eq_tol(rate_after(0.65, CHANGE_NONE), 240.964, 1e-3);
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_ALL), 500, 1e-6);
	ck_assert_double_eq_tol(
		rate_after(0.5, CHANGE_ENOUGH), 500 / 1.01, 1e-3);
}
END_TEST

START_TEST(test_half_the_bytes_cache_twice_the_files)
{
	ck_assert_double_eq_tol(rate_after(0, CHANGE_RECODE), 100, 1e-6);
	ck_assert_double_eq_tol(
		rate_after(0.25, CHANGE_RECODE), 181.818, 1e-3);
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_RECODE), 500, 1e-6);
}
END_TEST

START_TEST(test_a_plan_reads_at_the_rate_of_the_source)
{
	ck_assert_double_eq_tol(rate_after(0, CHANGE_PLAN), 400, 1e-6);
	ck_assert_double_eq_tol(rate_after(0.1, CHANGE_PLAN), 444.444, 1e-3);
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_PLAN), 500, 1e-6);
}
END_TEST

START_TEST(test_twice_the_workers_and_twice_the_bandwidth_are_predicted)
{
	/* R1 is 1000 and R0 is 200: 3 ms by the serial formula, 2.5 ms by the
	 * overlapped one. */
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_WORKERS), 363.636, 1e-3);
	/* R0 is 200: 3.5 ms by the serial formula, 2.5 ms by the overlapped
	 * one. */
	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_FASTER), 333.333, 1e-3);
}
END_TEST

START_TEST(test_echoes_hide_the_rest_where_g_is_known)
{
	struct profile p = saved(0.5);
	struct model m = profile_model(&p);

	ck_assert_double_eq_tol(rate_after(0.5, CHANGE_ECHO), 1000, 1e-6);
	ck_assert_double_eq_tol(model_echo(&m, 0.5), 5.5, 1e-6);
	p.g_bound = true;
	ck_assert(!profile_change_known(&p, CHANGE_ECHO));
}
END_TEST

START_TEST(test_workers_are_predicted_under_a_bound_if_they_only_read)
{
	struct profile p = measured;

	p.g_bound = true;
	p.g = p.r1;
	ck_assert(!profile_change_known(&p, CHANGE_WORKERS));
	ck_assert(profile_change_known(&p, CHANGE_PLAN));
	p.cached = 0;
	ck_assert(profile_change_known(&p, CHANGE_WORKERS));
	ck_assert_double_eq_tol(
		profile_after(&p, 0, CHANGE_WORKERS).value, 200, 1e-6);
}
END_TEST

/* A plan reads at the rate of the source, so the interval of the source counts.
 */
START_TEST(test_the_interval_of_a_plan_has_that_of_the_source)
{
	struct profile p = measured;
	double ci = profile_after(&p, 0, CHANGE_PLAN).ci;

	p.s.ci = 100;
	ck_assert_double_gt(profile_after(&p, 0, CHANGE_PLAN).ci, ci + 50);
}
END_TEST

static double policy(const json_t *json, const char *name)
{
	return json_number_value(
		json_object_get(json_object_get(json, "policies"), name));
}

START_TEST(test_lru_and_random_caches_are_predicted)
{
	struct profile p = saved(0.5);
	json_t *json = profile_json(&p);

	ck_assert_double_eq_tol(policy(json, "never_evict_s"), 5.5, 1e-6);
	/* 15.3 % hits: 8.773 ms by the serial formula, 8.466 ms by the
	 * overlapped one. */
	ck_assert_double_eq_tol(policy(json, "lru_s"), 8.619, 1e-3);
	/* 28.1 % hits: 7.748 ms by the serial formula, 7.186 ms by the
	 * overlapped one. */
	ck_assert_double_eq_tol(policy(json, "random_s"), 7.467, 1e-3);
	ck_assert_double_eq_tol(
		policy(json, "lru") * policy(json, "lru_s"), p.samples, 1e-6);
	json_decref(json);
}
END_TEST

/* Without a cache, and with a cache for everything, all policies give the same
 * result. */
START_TEST(test_policies_are_predicted_at_all_sizes)
{
	static const char *const names[] = {"never_evict", "random", "lru"};
	struct profile p = saved(0.5);
	json_t *json = profile_json(&p), *size;
	const json_t *sizes =
		json_object_get(json_object_get(json, "policies"), "sizes");
	double cached = -1, was[3] = {0};
	size_t i;

	json_array_foreach(sizes, i, size)
	{
		ck_assert_double_gt(
			json_number_value(json_object_get(size, "cached")),
			cached);
		cached = json_number_value(json_object_get(size, "cached"));
		for (size_t k = 0; k < 3; k++) {
			double rate = json_number_value(
				json_object_get(size, names[k]));

			ck_assert_double_ge(rate, was[k]);
			was[k] = rate;
			if (i == 0)
				ck_assert_double_eq_tol(rate, p.r0.value, 1e-6);
		}
	}
	ck_assert_double_eq_tol(cached, 1, 1e-9);
	for (size_t k = 0; k < 3; k++)
		ck_assert_double_eq_tol(was[k], p.r1.value, 1e-6);
	json_decref(json);
}
END_TEST

START_TEST(test_a_profile_that_was_read_writes_the_same_again)
{
	struct profile p = saved(0.35), q = p;
	json_t *json, *again;
	struct error err;

	q.unit = UNIT_MB;
	json = profile_json(&q);
	ck_assert_int_eq(profile_parse(json, &p, &err), 0);
	ck_assert_int_eq(p.unit, UNIT_MB);
	again = profile_json(&p);
	ck_assert(json_equal(json, again));
	json_decref(again);
	/* A profile of an earlier version has no unit. */
	(void)json_object_del(json_object_get(json, "source"), "unit");
	ck_assert_int_eq(profile_parse(json, &p, &err), 0);
	ck_assert_int_eq(p.unit, UNIT_SAMPLES);
	(void)json_object_set_new(json, "version", json_integer(2));
	ck_assert_int_lt(profile_parse(json, &p, &err), 0);
	json_decref(json);
}
END_TEST

static int parsed(json_t *json)
{
	struct profile p;
	struct error err = {""};
	int rc = profile_parse(json, &p, &err);

	json_decref(json);
	return rc;
}

static json_t *profile_with(const char *name, const char *value)
{
	json_t *json = profile_json(&measured);

	ck_assert(json);
	ck_assert_int_eq(
		json_object_set_new(json, name, json_loads(value, 0, NULL)), 0);
	return json;
}

START_TEST(test_a_profile_whose_times_do_not_rise_is_refused)
{
	ck_assert_int_eq(
		parsed(profile_with("series", "[[0.5,1,0,1],[1,1,0,1]]")), 0);
	ck_assert_int_lt(
		parsed(profile_with("series", "[[0,1,0,1],[0,1,0,1]]")), 0);
	ck_assert_int_lt(
		parsed(profile_with("series", "[[2,1,0,1],[1,1,0,1]]")), 0);
	ck_assert_int_lt(parsed(profile_with(
				 "series", "[[4e-324,1,0,1],[9e-324,1,0,1]]")),
		0);
}
END_TEST

START_TEST(test_a_profile_without_a_rate_is_refused)
{
	ck_assert_int_lt(
		parsed(profile_with("R1", "{\"value\":4e-324,\"ci\":0}")), 0);
	ck_assert_int_lt(parsed(profile_with("points",
				 "[{\"x\":0.5,\"miss\":0.5,\"rate\":0}]")),
		0);
}
END_TEST

/* -- Reports --------------------------------------------------------------- */

typedef void report_fn(const struct profile *p, FILE *to);

static bool report_has(
	report_fn *report, const struct profile *p, const char *part)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);
	bool has;

	ck_assert_ptr_nonnull(to);
	report(p, to);
	ck_assert_int_eq(fclose(to), 0);
	has = strstr(text, part) != NULL;
	free(text);
	return has;
}

static bool verdict_is_bound(const struct profile *p)
{
	json_t *json = profile_json(p);
	bool bound = json_is_true(json_object_get(json, "verdict_bound"));

	ck_assert(json_object_get(json, "verdict_bound"));
	json_decref(json);
	return bound;
}

START_TEST(test_a_bound_on_g_does_not_make_compute_the_limit)
{
	struct profile p = measured;

	p.cpus_used = 0.98;
	p.r0 = p.g = p.r1;
	p.npoints = 0;
	p.g_bound = true;
	ck_assert(verdict_is_bound(&p));
	ck_assert(report_has(profile_report, &p,
		"VERDICT: undecided between compute and preparation (prep); "
		"not bound by the source (processors 98 % busy)\n"));
	ck_assert(report_has(profile_html, &p, "<h1>Undecided between"));
	ck_assert(!report_has(profile_report, &p, "trainer itself"));
	ck_assert(!report_has(profile_html, &p, "trainer itself"));
	p.g_bound = false;
	ck_assert(!verdict_is_bound(&p));
	ck_assert(report_has(profile_report, &p, "The trainer itself"));
}
END_TEST

START_TEST(test_a_bound_on_g_leaves_room_for_preparation)
{
	struct profile p = measured;

	/* Fetching takes more time than all other parts together. */
	p.cached = 0;
	p.g_bound = true;
	ck_assert(!verdict_is_bound(&p));
	/* Fetching takes 10 % of the time, and preparation an unknown part. */
	p.r0.value = 450;
	p.g = p.r1;
	p.npoints = 0;
	ck_assert(verdict_is_bound(&p));
	ck_assert(report_has(profile_report, &p,
		"VERDICT: undecided, perhaps the source (fetch)"));
}
END_TEST

START_TEST(test_few_readers_are_named)
{
	struct profile p = measured;

	ck_assert(report_has(profile_report, &p, "; needs 4.0 x the requests"));
	ck_assert(report_has(profile_html, &p, "4.0 times as many would"));
	p.r0.value = 370;
	ck_assert(!report_has(profile_report, &p, "the requests"));
	ck_assert(!report_has(profile_html, &p, "times as many would"));
}
END_TEST

START_TEST(test_notes_that_do_not_fit_are_counted)
{
	struct profile p = measured;

	for (unsigned i = 0; i < 3; i++)
		profile_note(&p, "one");
	ck_assert(!report_has(profile_report, &p, "more notes"));
	profile_note(&p, "one");
	ck_assert(report_has(profile_report, &p,
		"note: one\nnote: one\n2 more notes: see --html"));
}
END_TEST

START_TEST(test_a_source_without_points_has_no_table_of_errors)
{
	struct profile p = measured;

	p.points[p.npoints++] = (struct profile_point){0.3, 0.7, {130, 2}};
	ck_assert(report_has(profile_report, &p, "each rate predicted"));
	ck_assert(report_has(profile_html, &p, "Predicted and measured"));
	p.npoints--;
	ck_assert(!report_has(profile_report, &p, "each rate predicted"));
	ck_assert(!report_has(profile_html, &p, "Predicted and measured"));
}
END_TEST

/* Two moments at the same time cannot be drawn to scale. */
START_TEST(test_a_run_without_time_is_not_drawn)
{
	struct profile p = measured;

	p.nticks = 2;
	ck_assert(!report_has(profile_html, &p, "The run"));
	p.ticks[1].time_s = 1;
	ck_assert(report_has(profile_html, &p, "The run"));
}
END_TEST

START_TEST(test_text_is_printable_and_cut_between_characters)
{
	struct profile p = measured;
	char many[PROFILE_TEXT_MAX + 2] = "";

	for (size_t i = 0; i + 2 < sizeof(many); i += 2)
		memcpy(many + i, "\xc3\xa9", 3);
	profile_note(&p, many);
	ck_assert_uint_eq(strlen(p.notes[0]), PROFILE_TEXT_MAX - 2);
	profile_note(&p, "caf\xe9\n");
	ck_assert_str_eq(p.notes[1], "caf\\xe9\\n");
	(void)strcpy(p.command, "<\xc3\xa9\xef\xbf\xbf>");
	ck_assert(report_has(profile_html, &p, "&#60;\xc3\xa9?&#62;"));
	ck_assert_int_eq(parsed(profile_json(&p)), 0);
}
END_TEST

/* -- Units ----------------------------------------------------------------- */

/* The head of a record of 300 bytes, as TensorFlow writes it. */
static const char record[] = "\x2c\x01\0\0\0\0\0\0\xf2\xfe\x5b\x9d and so on";

static void check_unit(const char *head, size_t off, size_t n, uint64_t bytes,
	enum profile_unit unit, const char *format)
{
	char buf[UNIT_HEAD_BYTES] = {0};
	struct file_unit u;

	memcpy(buf + off, head, n);
	u = unit_of(buf, sizeof(buf), bytes);
	ck_assert_int_eq(u.unit, unit);
	if (format)
		ck_assert_pstr_eq(u.format, format);
	else
		ck_assert_ptr_null(u.format);
	/* The text is shorter than the signature, so the unit is unknown. */
	u = unit_of(buf, off + n - 1, bytes);
	ck_assert_int_eq(u.unit, UNIT_FILES);
}

START_TEST(test_formats_of_many_samples_are_known)
{
	check_unit("\xff\xd8\xff", 0, 3, 9000, UNIT_SAMPLES, NULL);
	check_unit("\x89PNG", 0, 4, 9000, UNIT_SAMPLES, NULL);
	check_unit("ustar", 257, 5, 9000, UNIT_MB, "tar");
	check_unit(record, 0, 12, 9000, UNIT_MB, "TFRecord");
	check_unit(record, 0, 12, 300 + 16, UNIT_SAMPLES, NULL);
	check_unit("\x89HDF\r\n\x1a\n", 0, 8, 9000, UNIT_MB, "HDF5");
	check_unit("PAR1", 0, 4, 9000, UNIT_MB, "Parquet");
	check_unit("\xde\xc0\xef\xbe", 16, 4, 9000, UNIT_MB, "LMDB");
}
END_TEST

START_TEST(test_bytes_of_no_known_format_are_files)
{
	char head[sizeof(record)];

	ck_assert_int_eq(unit_of("", 0, 1).unit, UNIT_FILES);
	memcpy(head, record, sizeof(head));
	head[8] ^= 1; /* this changes the checksum of the length */
	ck_assert_int_eq(unit_of(head, sizeof(head), 9000).unit, UNIT_FILES);
}
END_TEST

static void put_file(const char *top, const char *name, const void *head,
	size_t n, off_t bytes)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "w");
	ck_assert(f && fwrite(head, 1, n, f) == n);
	ck_assert(fflush(f) == 0 && ftruncate(fileno(f), bytes) == 0);
	(void)fclose(f);
}

START_TEST(test_most_bytes_decide_on_the_unit)
{
	char top[] = "/tmp/refrain-test-unit.XXXXXX", path[256];
	struct file_unit u;

	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(unit_find(top).unit, UNIT_SAMPLES);
	(void)snprintf(path, sizeof(path), "%s/class", top);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	put_file(path, "one.jpg", "\xff\xd8\xff", 3, 5000);
	put_file(path, ".hidden", record, 12, 90000);
	put_file(top, "list.txt", "a\nb\n", 4, 400);
	ck_assert_int_eq(unit_find(top).unit, UNIT_SAMPLES);
	put_file(top, "train.tfrecord", record, 12, 60000);
	u = unit_find(top);
	ck_assert_int_eq(u.unit, UNIT_MB);
	ck_assert_str_eq(u.format, "TFRecord");
	put_file(top, "raw.bin", "abc", 3, 70000);
	ck_assert_int_eq(unit_find(top).unit, UNIT_FILES);
	(void)snprintf(path, sizeof(path), "rm -r '%s'", top);
	ck_assert_int_eq(system(path), 0);
	ck_assert_int_eq(unit_find(top).unit, UNIT_SAMPLES);
}
END_TEST

/* Images and their labels have equal names in different directories. */
START_TEST(test_names_tell_that_a_sample_is_several_files)
{
	char top[] = "/tmp/refrain-test-names.XXXXXX", dir[2][64], name[128];

	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert(!names_are_mixed(top) && !names_are_images(top));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(dir[i], sizeof(dir[i]), "%s/%d", top, i);
		ck_assert_int_eq(mkdir(dir[i], 0700), 0);
	}
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "%d.JPG", i);
		/* Equal names in several classes are not pairs. */
		put_file(dir[0], name, "", 0, 1);
		put_file(dir[1], name, "", 0, 1);
	}
	put_file(top, "list.txt", "", 0, 1);
	ck_assert(!names_are_mixed(top) && names_are_images(top));
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "%d.png", i);
		put_file(dir[1], name, "", 0, 1);
	}
	ck_assert(names_are_mixed(top) && !names_are_images(top));
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "%s/%d.png", dir[1], i);
		ck_assert_int_eq(unlink(name), 0);
		(void)snprintf(name, sizeof(name), "label-%d.txt", i);
		put_file(dir[1], name, "", 0, 1);
	}
	ck_assert(names_are_mixed(top));
	(void)snprintf(name, sizeof(name), "rm -r '%s'", top);
	ck_assert_int_eq(system(name), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("profile");
	TCase *t = case_of(s, "profile");

	tcase_add_test(t, test_a_larger_cache_is_predicted);
	tcase_add_test(t, test_half_the_bytes_cache_twice_the_files);
	tcase_add_test(t, test_a_plan_reads_at_the_rate_of_the_source);
	tcase_add_test(t,
		test_twice_the_workers_and_twice_the_bandwidth_are_predicted);
	tcase_add_test(t, test_echoes_hide_the_rest_where_g_is_known);
	tcase_add_test(
		t, test_workers_are_predicted_under_a_bound_if_they_only_read);
	tcase_add_test(t, test_the_interval_of_a_plan_has_that_of_the_source);
	tcase_add_test(t, test_lru_and_random_caches_are_predicted);
	tcase_add_test(t, test_policies_are_predicted_at_all_sizes);
	tcase_add_test(t, test_a_profile_that_was_read_writes_the_same_again);
	tcase_add_test(t, test_a_profile_whose_times_do_not_rise_is_refused);
	tcase_add_test(t, test_a_profile_without_a_rate_is_refused);
	tcase_add_test(t, test_a_source_without_points_has_no_table_of_errors);
	tcase_add_test(t, test_few_readers_are_named);
	tcase_add_test(t, test_notes_that_do_not_fit_are_counted);
	tcase_add_test(t, test_a_run_without_time_is_not_drawn);
	tcase_add_test(t, test_text_is_printable_and_cut_between_characters);
	tcase_add_test(t, test_a_bound_on_g_does_not_make_compute_the_limit);
	tcase_add_test(t, test_a_bound_on_g_leaves_room_for_preparation);
	tcase_add_test(t, test_formats_of_many_samples_are_known);
	tcase_add_test(t, test_bytes_of_no_known_format_are_files);
	tcase_add_test(t, test_most_bytes_decide_on_the_unit);
	tcase_add_test(t, test_names_tell_that_a_sample_is_several_files);
	return run_suite(s);
}
