/* SPDX-License-Identifier: MIT */
/* The posix origin's files while they change: one version or -ESTALE. */
#include "origin_rows.h"
#include "suite.h"

START_TEST(test_posix_never_delivers_a_changed_file)
{
	struct file_version newer = {SIZE_BYTES, MTIME_NS + 1, 0};
	const char *path = file_path(0);
	struct origin_file *f;
	struct read_wait w;

	if (!is_posix(_i))
		return;
	open_row(_i);
	f = origin_file_new(o, path);
	read_begin(o, &w, f, version, 0, 1000); /* this read opens the file */
	ck_assert_int_eq(read_end(&w), 1000);
	free(w.data);

	/* Replace the file. The open file still has its bytes, and the new file
	 * can be read. */
	put_file(path, "other", SEED, SIZE_BYTES, MTIME_NS + 1);
	read_begin(o, &w, f, version, 1000, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes(path, 1000, 1000, w.data);
	free(w.data);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("other", 0, 1000, w.data);
	free(w.data);
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);

	/* Truncate the file in place, and then delete it. */
	ck_assert_int_eq(truncate(in_source(path), 10), 0);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);
	ck_assert_int_eq(unlink(in_source(path)), 0);
	read_begin(o, &w, f, newer, 0, 1000);
	ck_assert_int_eq(read_end(&w), -ESTALE);
	origin_file_free(o, f);
	close_row();
}
END_TEST

static int64_t wall_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

struct rewriter {
	_Atomic bool stop;
	_Atomic unsigned rounds;
	/* belongs to the writer until the thread is joined */
	int64_t slowest_ns;
	const char *path; /* set once, like fd */
	int fd;
};

/*
 * Rewrite the file. Round i leaves only bytes with value i. Every second round
 * sets an mtime that contains i; the other rounds keep the mtime of their
 * write.
 */
static void *rewrite(void *arg)
{
	struct rewriter *rw = arg;
	unsigned char *bytes = malloc(SIZE_BYTES);

	for (unsigned i = 1; !rw->stop; i++) {
		struct timespec ts[2] = {
			{0, UTIME_OMIT}, {MTIME_NS / 1000000000, i}};
		int64_t took_ns = -wall_now_ns();

		memset(bytes, (int)(i & 0xff), SIZE_BYTES);
		(void)!pwrite(rw->fd, bytes, SIZE_BYTES, 0);
		took_ns += wall_now_ns();
		if (took_ns > rw->slowest_ns)
			rw->slowest_ns = took_ns;
		if (i % 2)
			(void)futimens(rw->fd, ts);
		rw->rounds = i;
	}
	free(bytes);
	return NULL;
}

/* Did the origin deliver only bytes of this version of the file? */
static bool is_one_version(
	const char *path, struct file_version v, const unsigned char *data)
{
	uint64_t round = (uint64_t)(v.mtime_ns - MTIME_NS);

	if (round == 0) {
		check_bytes(path, 0, SIZE_BYTES, data);
		return true;
	}
	return memcmp(data, data + 1, SIZE_BYTES - 1) == 0 &&
		(round > UINT32_MAX || data[0] == (round & 0xff));
}

#define LOOKS 32

/* Look up the version and read, many times. Returns the number of reads that
 * were delivered; *mixed is the number of those with bytes of two versions. */
static unsigned read_versions(const char *path, unsigned *mixed)
{
	struct read_wait w[LOOKS];
	struct origin_file *f = origin_file_new(o, path);
	unsigned delivered = 0;

	for (unsigned i = 0; i < LOOKS; i++) {
		struct stat_wait s;

		ck_assert_int_eq(stat_once(o, path, &s), 0);
		read_begin(o, &w[i], f, s.attr.version, 0, SIZE_BYTES);
	}
	for (unsigned i = 0; i < LOOKS; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ESTALE || status == SIZE_BYTES);
		if (status > 0) {
			delivered++;
			*mixed += !is_one_version(path, w[i].r.want, w[i].data);
		}
		free(w[i].data);
	}
	origin_file_free(o, f);
	return delivered;
}

START_TEST(test_posix_never_mixes_versions_in_mid_read)
{
	struct rewriter rw = {.path = file_path(0)};
	unsigned mixed = 0;
	pthread_t writer;

	if (!is_posix(_i))
		return;
	open_row(_i);
	rw.fd = open(in_source(rw.path), O_WRONLY);
	ck_assert_int_ge(rw.fd, 0);
	ck_assert_int_eq(pthread_create(&writer, NULL, rewrite, &rw), 0);
	for (unsigned i = 0; i < 2 || rw.rounds < 20; i++)
		(void)read_versions(rw.path, &mixed);
	rw.stop = true;
	pthread_join(writer, NULL);
	close(rw.fd);
	/* A write that takes longer than the settling time of a version is a
	 * known limit. */
	ck_assert(mixed == 0 || rw.slowest_ns > 90 * 1000000);
	/* The file no longer changes, so its last version can be read, however
	 * young it is. */
	mixed = 0;
	ck_assert_uint_eq(read_versions(rw.path, &mixed), LOOKS);
	ck_assert_uint_eq(mixed, 0);
	close_row();
}
END_TEST

START_TEST(test_posix_lets_a_young_version_settle)
{
	struct file_version young = {SIZE_BYTES, wall_now_ns(), 0};

	if (!is_posix(_i))
		return;
	put_file("young", "any", SEED, SIZE_BYTES, young.mtime_ns);
	open_row(_i);
	ck_assert_int_eq(read_once(o, "young", young, 0, 100, NULL), 100);
	ck_assert_int_ge(wall_now_ns() - young.mtime_ns, 100 * 1000000);
	close_row();
}
END_TEST

#define YOUNG 300

START_TEST(test_posix_abandons_reads_of_young_versions)
{
	struct read_wait *w = calloc(YOUNG, sizeof(*w));
	struct file_version young;
	struct origin_file *f;

	if (!is_posix(_i)) {
		free(w);
		return;
	}
	open_row(_i);
	young = (struct file_version){SIZE_BYTES, wall_now_ns(), 0};
	put_file("young", "any", SEED, SIZE_BYTES, young.mtime_ns);
	f = origin_file_new(o, "young");
	for (unsigned i = 0; i < YOUNG; i++)
		read_begin(o, &w[i], f, young, i, 1000);
	/* Abandon some reads before they begin, and the others while the last
	 * ones begin. */
	for (unsigned i = 0; i < YOUNG; i += 2)
		origin_read_abandon(o, &w[i].r);
	ck_assert_int_eq(read_end(&w[1]), 1000);
	for (unsigned i = 3; i < YOUNG; i += 4)
		origin_read_abandon(o, &w[i].r);
	for (unsigned i = 0; i < YOUNG; i++) {
		int status = read_end(&w[i]);

		ck_assert(status == -ECANCELED || status == 1000);
		free(w[i].data);
	}
	origin_file_free(o, f);
	close_row();
	for (unsigned i = 0; i < YOUNG; i++)
		ck_assert_uint_eq(w[i].done, 1);
	free(w);
}
END_TEST

START_TEST(test_posix_does_not_wait_for_a_far_future)
{
	struct file_version v = {
		SIZE_BYTES, wall_now_ns() + INT64_C(3600000000000), 0};
	struct file_version last = {SIZE_BYTES, INT64_MAX, 0};

	if (!is_posix(_i))
		return;
	put_file("future", "any", SEED, SIZE_BYTES, v.mtime_ns);
	open_row(_i);
	ck_assert_int_eq(read_once(o, "future", v, 0, 100, NULL), 100);
	ck_assert_int_eq(read_once(o, "future", last, 0, 1, NULL), -ESTALE);
	close_row();
}
END_TEST

/* 64 bits of nanoseconds end in the year 2262, times on disks later. */
START_TEST(test_posix_reads_a_file_of_the_year_2400)
{
	struct timespec times[2] = {{.tv_sec = INT64_C(13569465600)},
		{.tv_sec = INT64_C(13569465600)}};
	struct stat_wait s;

	if (!is_posix(_i))
		return;
	put_file("far", "any", SEED, SIZE_BYTES, 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, in_source("far"), times, 0), 0);
	open_row(_i);
	ck_assert_int_eq(stat_once(o, "far", &s), 0);
	ck_assert_int_eq(
		read_once(o, "far", s.attr.version, 0, 100, NULL), 100);
	close_row();
}
END_TEST

static void add_tests(TCase *tc)
{
	tcase_add_loop_test(
		tc, test_posix_never_delivers_a_changed_file, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_posix_never_mixes_versions_in_mid_read, 0, 4);
	tcase_add_loop_test(tc, test_posix_lets_a_young_version_settle, 0, 5);
	tcase_add_loop_test(
		tc, test_posix_abandons_reads_of_young_versions, 0, 5);
	tcase_add_loop_test(
		tc, test_posix_does_not_wait_for_a_far_future, 0, 5);
	tcase_add_loop_test(tc, test_posix_reads_a_file_of_the_year_2400, 0, 5);
}

int main(void)
{
	Suite *suite = suite_create("posix_versions");
	TCase *tc = case_with(suite, "versions", setup_source, teardown_source);

	add_tests(tc);
	return run_suite(suite);
}
