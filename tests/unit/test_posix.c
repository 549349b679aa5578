/* SPDX-License-Identifier: MIT */
/*
 * Behaviour of the posix origin alone: names, links, a source that goes away.
 */
#include "common/base/uring.h"
#include "origin_rows.h"
#include "suite.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mount.h>

START_TEST(test_posix_lists_an_empty_directory)
{
	struct list_wait l;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(mkdir(in_source("empty"), 0755), 0);
	open_row(_i);
	ck_assert_int_eq(list_once(o, "empty", &l), 0);
	ck_assert_uint_eq(l.n, 0);
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_takes_any_bytes_as_names)
{
	char longest[NAME_MAX + 1];
	const char *names[] = {"\xff\xfe \n*", "-rf", longest, "..."};
	struct list_wait l;

	if (!is_posix(_i))
		return;
	memset(longest, 'x', NAME_MAX);
	longest[NAME_MAX] = '\0';
	ck_assert_int_eq(mkdir(in_source("odd"), 0755), 0);
	open_row(_i);
	for (size_t i = 0; i < 4; i++) {
		char path[NAME_MAX + 8];
		unsigned char *data;

		(void)snprintf(path, sizeof(path), "odd/%s", names[i]);
		put_file(path, "any", SEED, SIZE_BYTES, MTIME_NS);
		ck_assert_int_eq(
			read_once(o, path, version, 5, 7000, &data), 7000);
		check_bytes("any", 5, 7000, data);
		free(data);
	}
	ck_assert_int_eq(list_once(o, "odd", &l), 0);
	ck_assert_uint_eq(l.n, 4);
	ck_assert_str_eq(l.seen[3].name, names[0]);
	ck_assert_str_eq(l.seen[2].name, longest);
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_reads_deep_paths)
{
	char path[4000] = "";
	unsigned char *data;

	if (!is_posix(_i))
		return;
	for (unsigned i = 0; i < 300; i++) {
		strcat(path, i ? "/deepdeep" : "deepdeep");
		ck_assert_int_eq(mkdir(in_source(path), 0755), 0);
	}
	strcat(path, "/file");
	put_file(path, "any", SEED, SIZE_BYTES, MTIME_NS);
	open_row(_i);
	ck_assert_int_eq(
		read_once(o, path, version, 0, SIZE_BYTES, &data), SIZE_BYTES);
	check_bytes("any", 0, SIZE_BYTES, data);
	free(data);
	close_row();
}
END_TEST

START_TEST(test_posix_shows_links_and_never_follows_them)
{
	struct stat_wait s;
	struct list_wait l;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(symlink("/etc", in_source("out")), 0);
	ck_assert_int_eq(symlink("d0000", in_source("in")), 0);
	ck_assert_int_eq(symlink("/etc/passwd", in_source("passwd")), 0);
	ck_assert_int_eq(mkfifo(in_source("fifo"), 0644), 0);
	open_row(_i);
	ck_assert_int_eq(stat_once(o, "out", &s), 0);
	ck_assert(s.attr.kind == KIND_LINK);
	ck_assert_str_eq(s.target, "/etc");
	ck_assert_int_lt(stat_once(o, "out/passwd", &s), 0);
	ck_assert_int_lt(stat_once(o, "in/f000000.bin", &s), 0);
	ck_assert_int_eq(stat_once(o, "fifo", &s), -ENOENT);
	ck_assert_int_lt(list_once(o, "out", &l), 0);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_int_lt(read_once(o, "out/passwd", version, 0, 1, NULL), 0);
	ck_assert_int_lt(read_once(o, "passwd", version, 0, 1, NULL), 0);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 5); /* all entries except the FIFO */
	ck_assert_str_eq(l.seen[2].name, "in");
	ck_assert_str_eq(l.seen[2].target, "d0000");
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_lists_a_large_directory_whole)
{
	struct list_wait l;
	char first[8192];
	int fd;

	if (!is_posix(_i))
		return;
	ck_assert_int_eq(mkdir(in_source("large"), 0755), 0);
	(void)snprintf(first, sizeof(first), "%s", in_source("large/00000"));
	fd = open(first, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	/* These are links, because only names matter here, and creating files
	 * would take seconds. */
	for (unsigned i = 1; i < 5000; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "large/%05u", i);
		ck_assert_int_eq(link(first, in_source(name)), 0);
	}
	open_row(_i);
	ck_assert_int_eq(list_once(o, "large", &l), 0);
	ck_assert_uint_eq(l.n, 5000);
	for (unsigned i = 0; i < 5000; i++) {
		ck_assert_int_eq(atoi(l.seen[i].name), (int)i);
		ck_assert(l.seen[i].attr.kind == KIND_FILE);
		ck_assert_uint_eq(l.seen[i].attr.mode, 0640);
	}
	list_forget(&l);
	close_row();
}
END_TEST

START_TEST(test_posix_says_io_error_when_its_source_went_away)
{
	struct stat_wait s;
	struct list_wait l;
	char away[sizeof(source) + 8];

	if (!is_posix(_i))
		return;
	open_row(_i);
	(void)snprintf(away, sizeof(away), "%s.away", source);
	ck_assert_int_eq(rename(source, away), 0);
	ck_assert_int_eq(mkdir(source, 0755), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -EIO);
	ck_assert_int_eq(list_once(o, "nothing", &l), -EIO);
	ck_assert_int_eq(list_once(o, "", &l), -EIO);
	list_forget(&l);
	ck_assert_int_eq(
		read_once(o, "d0000/nothing", version, 0, 1, NULL), -EIO);
	ck_assert_int_eq(rmdir(source), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -EIO);
	ck_assert_int_eq(rename(away, source), 0);
	ck_assert_int_eq(stat_once(o, "d0000/nothing", &s), -ENOENT);
	close_row();
}
END_TEST

/* Make the directory m of the fixture the source, until leave_storage(). */
static void enter_storage(void)
{
	strcat(source, "/m");
}

static void leave_storage(void)
{
	*strrchr(source, '/') = '\0';
}

/* Mount a file system that has one file. */
static void mount_storage(const char *file, const char *like)
{
	enter_storage();
	ck_assert_int_eq(mount("refrain", source, "tmpfs", 0, "size=4m"), 0);
	put_file(file, like, SEED, SIZE_BYTES, MTIME_NS);
	leave_storage();
}

static void unmount_storage(void)
{
	ck_assert_int_eq(umount2(in_source("m"), MNT_DETACH), 0);
}

static void open_storage(int row)
{
	enter_storage();
	open_row(row);
	leave_storage();
}

/* Returns the final result of a stat, which may return -EIO at first. */
static int stat_again(const char *path)
{
	struct stat_wait s;

	if (stat_once(o, path, &s) != -EIO)
		return s.status;
	return stat_once(o, path, &s);
}

START_TEST(test_posix_goes_on_when_its_source_is_mounted_again)
{
	struct origin_file *f;
	struct stat_wait s;
	struct list_wait l;
	struct read_wait w;

	ck_assert_int_eq(mkdir(in_source("m"), 0755), 0);
	if (!own_mounts())
		return;
	mount_storage("f", "before");
	open_storage(_i);
	f = origin_file_new(o, "f");
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("before", 0, 1000, w.data);
	free(w.data);

	/* The bare directory must not count as an empty dataset. */
	unmount_storage();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(stat_once(o, "nothing", &s), -EIO);
		ck_assert_int_eq(list_once(o, "", &l), -EIO);
		list_forget(&l);
		ck_assert_int_eq(
			read_once(o, "nothing", version, 0, 1, NULL), -EIO);
	}

	mount_storage("f", "after");
	ck_assert_int_eq(stat_again("nothing"), -ENOENT);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 1);
	list_forget(&l);
	/* An open file belongs to the old storage, even if the new one looks
	 * the same. */
	read_begin(o, &w, f, version, 0, 1000);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes("after", 0, 1000, w.data);
	free(w.data);
	origin_file_free(o, f);
	close_row();
	unmount_storage();
}
END_TEST

static int now_of(const char *path, struct file_version want, size_t len)
{
	static unsigned char data[SIZE_BYTES + 1];
	struct origin_read r = {.want = want, .len = len};
	int rc;

	r.file = origin_file_new(o, path);
	rc = origin_read_now(o, &r, data);
	origin_file_free(o, r.file);
	if (rc == 0)
		check_bytes("like", 0, len, data);
	return rc;
}

static int64_t age_ns(int64_t mtime_ns)
{
	struct timespec ts;

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &ts), 0);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec - mtime_ns;
}

/* Check that a version is not read while it is young. The file is written again
 * if it was too old after the read. */
static void check_young(void)
{
	struct file_version young;
	int rc;

	do {
		young = (struct file_version){SIZE_BYTES, age_ns(0), 0};
		enter_storage();
		put_file("young", "like", SEED, SIZE_BYTES, young.mtime_ns);
		leave_storage();
		rc = now_of("young", young, 100);
	} while (age_ns(young.mtime_ns) >= 100 * 1000000);
	ck_assert_int_eq(rc, -EAGAIN);
}

START_TEST(test_posix_reads_at_once_only_what_cannot_make_it_wait)
{
	struct file_version newer = {SIZE_BYTES, MTIME_NS + 1, 0};

	ck_assert_int_eq(mkdir(in_source("m"), 0755), 0);
	if (!own_mounts())
		return;
	mount_storage("f", "like");
	enter_storage();
	ck_assert_int_eq(mkfifo(in_source("fifo"), 0600), 0);
	ck_assert_int_eq(symlink("f", in_source("link")), 0);
	ck_assert_int_eq(mkdir(in_source("below"), 0755), 0);
	ck_assert_int_eq(
		mount("none", in_source("below"), "tmpfs", 0, NULL), 0);
	strcat(source, "/below");
	put_file("f", "like", SEED, SIZE_BYTES, MTIME_NS);
	leave_storage();
	leave_storage();
	open_storage(_i);
	ck_assert_int_eq(now_of("f", version, SIZE_BYTES), 0);
	ck_assert_int_eq(now_of("f", version, SIZE_BYTES + 1), -EAGAIN);
	ck_assert_int_eq(now_of("f", newer, 100), -EAGAIN);
	check_young();
	ck_assert_int_eq(now_of("fifo", version, 100), -EAGAIN);
	ck_assert_int_eq(now_of("link", version, 100), -EAGAIN);
	ck_assert_int_eq(now_of("no", version, 100), -EAGAIN);
	ck_assert_int_eq(now_of("../f", version, 100), -EAGAIN);
	/* Another mount may be that of a server. */
	ck_assert_int_eq(now_of("below/f", version, 100), -EAGAIN);
	close_row();
	unmount_storage();
}
END_TEST

START_TEST(test_posix_takes_no_other_directory_for_its_source)
{
	struct stat_wait s;
	struct list_wait l;

	ck_assert_int_eq(mkdir(in_source("m"), 0755), 0);
	ck_assert_int_eq(mkdir(in_source("other"), 0755), 0);
	if (!own_mounts())
		return;
	mount_storage("f", "before");
	open_storage(_i);
	unmount_storage();
	/* The new storage has another inode, and then another type of file
	 * system. */
	for (unsigned i = 0; i < 2; i++) {
		const char *type = i ? "ramfs" : "none";
		char other[128];

		(void)snprintf(other, sizeof(other), "%s/other", source);
		ck_assert_int_eq(mount(other, in_source("m"), type,
					 i ? 0 : MS_BIND, NULL),
			0);
		ck_assert_int_eq(stat_once(o, "f.no", &s), -EIO);
		ck_assert_int_eq(stat_once(o, "f.no", &s), -EIO);
		ck_assert_int_eq(list_once(o, "", &l), -EIO);
		list_forget(&l);
		unmount_storage();
	}
	close_row();
}
END_TEST

START_TEST(test_posix_refuses_what_is_no_directory)
{
	struct error err = {""};

	ck_assert_int_eq(origin_posix_new(&o, in_source("no"), &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "mounted"));
	ck_assert_int_eq(
		origin_posix_new(&o, in_source(file_path(0)), &err), -ENOTDIR);
}
END_TEST

START_TEST(test_posix_opens_a_source_that_answers_later)
{
	struct error err = {""};
	struct stat_wait s;
	struct list_wait l;

	ck_assert_int_eq(
		origin_posix_new_later(&o, in_source("later"), &err), 0);
	ck_assert_int_eq(stat_once(o, "", &s), -EIO);
	ck_assert_int_eq(list_once(o, "", &l), -EIO);
	list_forget(&l);
	ck_assert_int_eq(read_once(o, "f", version, 0, 1, NULL), -EIO);
	ck_assert_int_eq(mkdir(in_source("later"), 0755), 0);
	put_file("later/f", "any", SEED, SIZE_BYTES, MTIME_NS);
	ck_assert_int_eq(stat_again("no"), -ENOENT);
	ck_assert_int_eq(list_once(o, "", &l), 0);
	ck_assert_uint_eq(l.n, 1);
	list_forget(&l);
	ck_assert_int_eq(read_once(o, "f", version, 0, 1, NULL), 1);
	close_row();
}
END_TEST

/* -- Reads that begin at any moment ---------------------------------------- */

#define MOMENTS 100

/* the read that begins when the ring's thread has taken `locks_before` locks */
static struct read_wait second;
static atomic_uint locks_before; /* number of these locks; 0: never */
static _Thread_local bool is_ring;
static _Thread_local int held;

/* The origin calls these two functions in place of those of the C library. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(
			RTLD_NEXT, "pthread_mutex_lock");
	if (is_ring && held == 0 && atomic_load(&locks_before) > 0 &&
		atomic_fetch_sub(&locks_before, 1) == 1)
		origin_read(o, &second.r);
	held++;
	return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(
			RTLD_NEXT, "pthread_mutex_unlock");
	held--;
	return real(mutex);
}

/* Keep the ring's thread from other work while this is set. */
static bool holding, goes_on; /* guarded by fixture_lock */

static void hold_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	pthread_mutex_lock(&fixture_lock);
	holding = true;
	pthread_cond_broadcast(&fixture_some);
	while (!goes_on)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
	is_ring = true;
	held = 0;
	read_wait_data(r, off, bytes, len);
}

static void hold_ring(struct read_wait *w, struct origin_file *f)
{
	holding = goes_on = false;
	read_prepare(w, f, version, 0, 1);
	w->r.data = hold_data;
	origin_read(o, &w->r);
	pthread_mutex_lock(&fixture_lock);
	while (!holding)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
}

static void let_ring_go(void)
{
	pthread_mutex_lock(&fixture_lock);
	goes_on = true;
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

/* Returns false if the ring's thread had ended before. */
static bool read_after_locks(unsigned locks)
{
	struct origin_file *other = origin_file_new(o, file_path(0));
	struct origin_file *f = origin_file_new(o, file_path(1));
	struct read_wait hold, first;
	bool begun;

	hold_ring(&hold, other);
	read_begin(o, &first, f, version, 0, 1);
	origin_read_abandon(o, &first.r);
	ck_assert_int_eq(read_end(&first), -ECANCELED);
	read_prepare(&second, f, version, 0, 1);
	atomic_store(&locks_before, locks);
	let_ring_go();
	ck_assert_int_eq(read_end(&hold), 1);
	free(hold.data);
	/* The thread gets here after it has opened the file. */
	ck_assert_int_eq(read_once(o, file_path(2), version, 0, 1, NULL), 1);
	begun = atomic_exchange(&locks_before, 0) == 0;
	if (begun)
		ck_assert_int_eq(read_end(&second), 1);
	free(second.data);
	origin_file_free(o, other);
	origin_file_free(o, f);
	return begun;
}

/* Returns false if threads take the place of the ring. */
static bool has_ring(void)
{
	struct uring *ring;
	bool has;

	ck_assert_int_eq(uring_new(&ring, 1, 1), 0);
	has = !uring_pool(ring);
	ck_assert(uring_free(ring, NS_PER_S));
	return has;
}

/* The only other read of the file was abandoned before the file was open. */
START_TEST(test_posix_reads_a_file_whose_opening_was_given_up)
{
	unsigned locks = 0;

	if (!has_ring())
		return;
	open_row(0);
	while (read_after_locks(++locks))
		ck_assert_uint_lt(locks, MOMENTS);
	close_row();
}
END_TEST

static void add_tests(TCase *tc)
{
	tcase_add_loop_test(tc, test_posix_lists_an_empty_directory, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_takes_any_bytes_as_names, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_reads_deep_paths, 0, SETUPS);
	tcase_add_loop_test(
		tc, test_posix_shows_links_and_never_follows_them, 0, SETUPS);
	tcase_add_loop_test(tc, test_posix_lists_a_large_directory_whole, 0, 4);
	tcase_add_loop_test(
		tc, test_posix_says_io_error_when_its_source_went_away, 0, 4);
	tcase_add_loop_test(
		tc, test_posix_goes_on_when_its_source_is_mounted_again, 0, 4);
	tcase_add_loop_test(tc,
		test_posix_reads_at_once_only_what_cannot_make_it_wait, 0, 5);
	tcase_add_loop_test(
		tc, test_posix_takes_no_other_directory_for_its_source, 0, 4);
	tcase_add_test(tc, test_posix_refuses_what_is_no_directory);
	tcase_add_test(tc, test_posix_opens_a_source_that_answers_later);
	tcase_add_test(tc, test_posix_reads_a_file_whose_opening_was_given_up);
}

int main(void)
{
	Suite *suite = suite_create("posix");
	TCase *tc = case_with(suite, "posix", setup_source, teardown_source);

	add_tests(tc);
	return run_suite(suite);
}
