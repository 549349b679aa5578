/* SPDX-License-Identifier: MIT */
/* The behaviour that all origins share: each test runs on every row of the
 * table. */
#ifdef HAVE_REMOTE
#define ROWS_REMOTE
#endif
#include "origin_rows.h"
#include "suite.h"

/* -- What every origin does -- */

START_TEST(test_origin_reads_a_whole_file)
{
	open_row(_i);
	for (unsigned i = 0; i < FILES; i++) {
		unsigned char *data;

		ck_assert_int_eq(read_once(o, file_path(i), version, 0,
					 SIZE_BYTES, &data),
			SIZE_BYTES);
		check_bytes(file_path(i), 0, SIZE_BYTES, data);
		free(data);
	}
	close_row();
}
END_TEST

static const struct {
	uint64_t off;
	size_t len;
} ranges[] = {{0, 1}, {1, 1}, {511, 2}, {4095, 2}, {4096, 4096}, {4097, 4095},
	{0, 4097}, {12345, 54321}, {65535, 65538}, {299999, 2}, {300000, 1},
	{294912, 5089}, {1, 300000}, {7, 9}, {262144, 37857}};

START_TEST(test_origin_reads_any_odd_range)
{
	struct origin_file *f;

	open_row(_i);
	f = origin_file_new(o, file_path(4));
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct read_wait w;

		read_begin(o, &w, f, version, ranges[i].off, ranges[i].len);
		ck_assert_int_eq(read_end(&w), (int)ranges[i].len);
		check_bytes(file_path(4), ranges[i].off, ranges[i].len, w.data);
		free(w.data);
	}
	origin_file_free(o, f);
	close_row();
}
END_TEST

START_TEST(test_origin_states_its_traits)
{
	bool far = setups[_i].flags & REMOTE;
	unsigned depth = setups[_i].flags & SINGLE ? 1 : far ? 256 : 64;

	open_row(_i);
	ck_assert_uint_eq(o->traits.request_bytes, far ? 8u << 20 : 256u << 10);
	ck_assert_uint_eq(o->traits.depth, depth);
	ck_assert_uint_eq(o->traits.chunk_bytes, far ? 1u << 20 : 256u << 10);
	ck_assert(o->traits.lists_recursively ==
		!!(setups[_i].flags & (NAMED | S3)));
	close_row();
}
END_TEST

/* Returns a newer version of a file: another tag if there are tags, otherwise
 * another mtime. */
static struct file_version newer_version(void)
{
	struct file_version newer = version;

	newer.mtime_ns++;
	newer.tag += newer.tag != 0;
	return newer;
}

/* The fixture checks that the pieces come in order, without gaps, and that none
 * comes after the end. */
START_TEST(test_origin_delivers_each_byte_once_and_then_ends)
{
	struct file_version newer;
	struct origin_file *f;
	struct read_wait w;

	open_row(_i);
	newer = newer_version();
	f = origin_file_new(o, file_path(3));
	read_begin(o, &w, f, version, 1, SIZE_BYTES - 1);
	ck_assert_int_eq(read_end(&w), SIZE_BYTES - 1);
	ck_assert_uint_eq(w.got, SIZE_BYTES - 1);
	check_bytes(file_path(3), 1, SIZE_BYTES - 1, w.data);
	free(w.data);
	read_begin(o, &w, f, newer, 0, SIZE_BYTES);
	ck_assert_int_eq(read_end(&w), -ESTALE);
	ck_assert_uint_eq(w.calls, 0);
	origin_file_free(o, f);
	close_row();
	ck_assert_uint_eq(w.done, 1);
}
END_TEST

static void abandon_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct read_wait *w = CONTAINER_OF(r, struct read_wait, r);

	read_wait_data(r, off, bytes, len);
	if (w->calls == 1)
		origin_read_abandon(o, r);
}

/* The abandon may be too late: one piece can be all of the bytes, or all can be
 * on their way. */
START_TEST(test_origin_takes_an_abandon_from_inside_data)
{
	struct origin_file *f;
	struct read_wait w;
	int status;

	open_row(_i);
	f = origin_file_new(o, file_path(3));
	read_prepare(&w, f, version, 1, 50000);
	w.r.data = abandon_data;
	origin_read(o, &w.r);
	status = read_end(&w);
	ck_assert(status == 50000 || status == -ECANCELED);
	free(w.data);
	origin_file_free(o, f);
	close_row();
	ck_assert_uint_eq(w.done, 1);
}
END_TEST

#define PARALLEL 300

START_TEST(test_origin_answers_many_parallel_reads_once_each)
{
	struct read_wait *w = calloc(PARALLEL, sizeof(*w));
	struct origin_file *f[FILES];

	open_row(_i);
	for (unsigned i = 0; i < FILES; i++)
		f[i] = origin_file_new(o, file_path(i));
	for (unsigned i = 0; i < PARALLEL; i++)
		read_begin(o, &w[i], f[i % FILES], version, i * 731, 40000);
	for (unsigned i = 0; i < PARALLEL; i++) {
		ck_assert_int_eq(read_end(&w[i]), 40000);
		check_bytes(file_path(i % FILES), i * 731, 40000, w[i].data);
		free(w[i].data);
	}
	for (unsigned i = 0; i < FILES; i++)
		origin_file_free(o, f[i]);
	close_row();
	for (unsigned i = 0; i < PARALLEL; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

START_TEST(test_origin_refuses_another_version)
{
	struct file_version larger, newer;

	open_row(_i);
	larger = newer = newer_version();
	larger.size_bytes++;
	ck_assert_int_eq(
		read_once(o, file_path(0), larger, 0, 100, NULL), -ESTALE);
	ck_assert_int_eq(
		read_once(o, file_path(0), newer, 0, 100, NULL), -ESTALE);
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 100, NULL), 100);
	close_row();
}
END_TEST

START_TEST(test_origin_reads_the_right_bytes_at_once_or_none)
{
	static unsigned char data[54321];
	struct origin_read r = {
		.want = version, .off = 4097, .len = sizeof(data)};
	const struct setup *s = &setups[_i];
	int rc;

	open_row(_i);
	r.file = origin_file_new(o, file_path(1));
	rc = origin_read_now(o, &r, data);
	if (rc == 0)
		check_bytes(file_path(1), r.off, r.len, data);
	else
		ck_assert_int_eq(rc, -EAGAIN);
	/* A fault must hit every read. */
	if (s->fault)
		ck_assert_int_eq(rc, -EAGAIN);
	else if (!s->flags)
		ck_assert_int_eq(rc, 0);
	r.want = newer_version();
	ck_assert_int_eq(origin_read_now(o, &r, data), -EAGAIN);
	origin_file_free(o, r.file);
	close_row();
}
END_TEST

START_TEST(test_origin_tells_missing_names)
{
	struct stat_wait s;
	struct list_wait l;
	int status;

	open_row(_i);
	ck_assert_int_eq(stat_once(o, "nothing", &s), -ENOENT);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -ENOENT);
	ck_assert_int_eq(list_once(o, "nothing", &l), -ENOENT);
	list_forget(&l);
	status = list_once(o, file_path(0), &l);
	/* A store has no directories, so nothing is below a file's key. */
	ck_assert(status == -ENOTDIR ||
		(status == -ENOENT && setups[_i].flags & REMOTE));
	list_forget(&l);
	ck_assert_int_eq(
		read_once(o, "d0000/nothing", version, 0, 1, NULL), -ESTALE);
	close_row();
}
END_TEST

static unsigned walk(const char *dir)
{
	struct list_wait l;
	unsigned files = 0;

	ck_assert_int_eq(list_once(o, dir, &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		struct stat_wait s;
		char path[256];

		(void)snprintf(path, sizeof(path), "%s%s%s", dir,
			*dir ? "/" : "", l.seen[i].name);
		ck_assert_int_eq(stat_once(o, path, &s), 0);
		ck_assert(s.attr.kind == l.seen[i].attr.kind);
		ck_assert(
			version_equal(s.attr.version, l.seen[i].attr.version));
		ck_assert_uint_eq(s.attr.mode, l.seen[i].attr.mode);
		ck_assert_uint_eq(s.attr.uid, l.seen[i].attr.uid);
		ck_assert_uint_eq(s.attr.gid, l.seen[i].attr.gid);
		if (s.attr.kind == KIND_DIR)
			files += walk(path);
		else
			ck_assert(version_equal(s.attr.version, version));
		files += s.attr.kind == KIND_FILE;
	}
	list_forget(&l);
	return files;
}

START_TEST(test_origin_lists_what_its_stats_say)
{
	struct stat_wait s;

	open_row(_i);
	ck_assert_uint_eq(walk(""), FILES);
	ck_assert_int_eq(stat_once(o, "", &s), 0);
	ck_assert(s.attr.kind == KIND_DIR);
	close_row();
}
END_TEST

static const char *const escapes[] = {"..", "../x", "d0000/../../x", "/",
	"/etc/passwd", "d0000/..", "./d0000", "d0000//f000000.bin", "d0000/",
	"."};

START_TEST(test_origin_names_nothing_outside_its_source)
{
	open_row(_i);
	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
		struct stat_wait s;
		struct list_wait l;

		ck_assert_int_lt(stat_once(o, escapes[i], &s), 0);
		ck_assert_int_lt(list_once(o, escapes[i], &l), 0);
		ck_assert_uint_eq(l.n, 0);
		ck_assert_int_lt(
			read_once(o, escapes[i], version, 0, 1, NULL), 0);
	}
	close_row();
}
END_TEST

/* An origin with a read that still runs after a second is left behind on
 * purpose, so its memory is not a leak. */
static struct origin *volatile left_behind __attribute__((unused));

START_TEST(test_origin_answers_abandoned_reads_once)
{
	struct read_wait *w = calloc(PARALLEL, sizeof(*w));
	struct origin_file *f;

	open_row(_i);
	left_behind = o;
	f = origin_file_new(o, file_path(1));
	for (unsigned i = 0; i < PARALLEL; i++) {
		read_begin(o, &w[i], f, version, i, 70000);
		if (i % 2)
			origin_read_abandon(o, &w[i].r);
	}
	for (unsigned i = 0; i < PARALLEL; i++)
		origin_read_abandon(o, &w[i].r);
	for (unsigned i = 0; i < PARALLEL; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ECANCELED || status == 70000);
		if (status > 0)
			check_bytes(file_path(1), i, 70000, w[i].data);
		free(w[i].data);
	}
	origin_file_free(o, f);
	close_row();
	for (unsigned i = 0; i < PARALLEL; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

/* -- The rest -- */

START_TEST(test_synthetic_makes_names_without_keeping_them)
{
	struct stat_wait s;
	struct list_wait l;

	ck_assert_int_eq(
		origin_synthetic_new(&o, "files=1300000,size=110K", NULL), 0);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 1300);
	list_forget(&l);
	ck_assert_int_eq(list_once(o, "d1299", &l), 0);
	ck_assert_uint_eq(l.n, 1000);
	ck_assert_str_eq(l.seen[999].name, "f1299999.bin");
	list_forget(&l);
	ck_assert_int_eq(stat_once(o, "d1299/f1299999.bin", &s), 0);
	ck_assert_uint_eq(s.attr.version.size_bytes, 110 * 1024);
	ck_assert_int_eq(stat_once(o, "d1299/f1300000.bin", &s), -ENOENT);
	ck_assert_int_eq(stat_once(o, "d1298/f1299999.bin", &s), -ENOENT);
	origin_free(o);
}
END_TEST

static const char *const bad_specs[] = {"", "files=1", "size=1", "files",
	"files=x,size=1", "files=1,size=1,colour=red",
	"files=1,size=1,seed=", "files=999999999999999,size=1"};

START_TEST(test_synthetic_refuses_bad_specifications)
{
	struct error err = {""};

	ck_assert_int_lt(origin_synthetic_new(&o, bad_specs[_i], &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "synthetic:"));
}
END_TEST

/* -- Names from an index -- */

#define INDEX "# refrain index 2: path, size, mtime, tag, label\n"

static const struct {
	const char *text, *why;
} bad_indexes[] = {
	{"", "line 1"},
	{"a\t1\t2\t\t\n", "line 1"},
	{"# refrain index 3: path\n", "line 1"},
	{INDEX, "no files"},
	{INDEX "a\t1\t2\t\n", "line 2: it does not have all fields"},
	{INDEX "a\t1\t2\t\t\tx\n", "line 2: it does not have all fields"},
	{INDEX "a\t1\t2\t\t\n\n", "line 3"},
	{INDEX "/a\t1\t2\t\t\n", "path"},
	{INDEX "a/../b\t1\t2\t\t\n", "path"},
	{INDEX "a\\x\t1\t2\t\t\n", "path"},
	{INDEX "a\t-1\t2\t\t\n", "size"},
	{INDEX "a\t9999999999999999999\t2\t\t\n", "size"},
	{INDEX "a\t1\t2.0000000001\t\t\n", "time"},
	{INDEX "a\t1\t99999999999\t\t\n", "time"},
	{INDEX "a\t1\t2\tF\t\n", "tag"},
	{INDEX "a\t1\t2\t00112233445566778\t\n", "tag"},
	{INDEX "d0000/f000000.bin\t1\t2\t\t\n", "does not match"},
	{INDEX "d0000/nothing\t300001\t2\t\t\n", "does not match"},
};

static int load_text(void *arg, char **text, size_t *bytes, struct error *err)
{
	(void)err;
	*text = strdup(arg);
	*bytes = strlen(arg);
	return 0;
}

static struct origin *files; /* the origin below the index */

static int row_fits(void *arg, const char *path, uint64_t size_bytes,
	uint64_t until_ns, struct error *err)
{
	struct stat_wait w;

	(void)arg;
	(void)until_ns;
	(void)err;
	return stat_once(files, path, &w) == 0 &&
		w.attr.version.size_bytes == size_bytes;
}

static int check_index(const char *text, struct error *err)
{
	struct origin_named_config config = {.load = load_text,
		.fits = row_fits,
		.known = row_known,
		.failed = row_failed,
		.arg = (void *)(uintptr_t)text};
	int rc;

	ck_assert_int_eq(origin_synthetic_new(&files, SPEC, NULL), 0);
	ck_assert_int_eq(origin_named_new(&o, files, &config, NULL), 0);
	rc = origin_named_check(o, err);
	origin_free(o);
	return rc;
}

START_TEST(test_named_refuses_an_index_that_is_none_or_does_not_fit)
{
	struct error err = {""};

	ck_assert_int_lt(check_index(bad_indexes[_i].text, &err), 0);
	ck_assert_msg(
		strstr(err.msg, bad_indexes[_i].why) != NULL, "%s", err.msg);
}
END_TEST

START_TEST(test_named_takes_both_versions_and_lines_that_end_as_elsewhere)
{
	struct error err = {""};

	ck_assert_msg(check_index("# refrain index 1: path, size, mtime, "
				  "label\r\nd0000/f000000.bin\t300001\t\t\r\n",
			      &err) == 0,
		"%s", err.msg);
	ck_assert_msg(check_index(INDEX "d0000/f000000.bin\t300001\t-1.5\tf\t",
			      &err) == 0,
		"%s", err.msg);
}
END_TEST

#ifdef HAVE_REMOTE
START_TEST(test_s3_requests_at_once_all_follow_to_another_region)
{
	/* Both requests are signed before the first answer names the region. */
	struct error err = {""};
	struct origin_file *f;
	struct read_wait w[2];
	int status[2];

	ck_assert_int_eq(
		far_open(&o, true, 0, "delay_ms=300", &counters, &err), 0);
	far_ask("GET /-/set?move=2 HTTP/1.1\r\nHost: x\r\n\r\n", "", 0);
	f = origin_file_new(o, file_path(0));
	for (unsigned i = 0; i < 2; i++)
		read_begin(o, &w[i], f, version, i, 1000);
	for (unsigned i = 0; i < 2; i++) {
		status[i] = read_end(&w[i]);
		free(w[i].data);
	}
	ck_assert_int_eq(status[0], 1000);
	ck_assert_int_eq(status[1], 1000);
	origin_file_free(o, f);
	close_row();
}
END_TEST
#endif

static void add_tests(TCase *tc)
{
	tcase_add_loop_test(tc, test_origin_reads_a_whole_file, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_reads_any_odd_range, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_states_its_traits, 0, SETUPS);
	tcase_add_loop_test(tc,
		test_origin_delivers_each_byte_once_and_then_ends, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_takes_an_abandon_from_inside_data, 0, SETUPS);
	tcase_add_loop_test(tc,
		test_origin_answers_many_parallel_reads_once_each, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_refuses_another_version, 0, SETUPS);
	tcase_add_loop_test(tc,
		test_origin_reads_the_right_bytes_at_once_or_none, 0, SETUPS);
	tcase_add_loop_test(tc, test_origin_tells_missing_names, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_lists_what_its_stats_say, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_names_nothing_outside_its_source, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_origin_answers_abandoned_reads_once, 0, SETUPS);
#ifdef HAVE_REMOTE
	tcase_add_test(
		tc, test_s3_requests_at_once_all_follow_to_another_region);
#endif
	tcase_add_test(tc, test_synthetic_makes_names_without_keeping_them);
	tcase_add_loop_test(tc,
		test_named_refuses_an_index_that_is_none_or_does_not_fit, 0,
		(int)(sizeof(bad_indexes) / sizeof(bad_indexes[0])));
	tcase_add_test(tc,
		test_named_takes_both_versions_and_lines_that_end_as_elsewhere);
	tcase_add_loop_test(tc, test_synthetic_refuses_bad_specifications, 0,
		(int)(sizeof(bad_specs) / sizeof(bad_specs[0])));
}

int main(void)
{
	Suite *suite = suite_create("origin");
	TCase *tc = case_with(suite, "origin", setup_source, teardown_source);

	add_tests(tc);
	return run_suite(suite);
}
