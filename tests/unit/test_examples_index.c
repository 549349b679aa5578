/* SPDX-License-Identifier: MIT */
/* Tests of the catalogue that a loader keeps: when it is used, when it is
 * ignored, and what happens if it is damaged. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <sys/mount.h>

#include "common/base/clock.h"
#include "loader/dataset/dataset_table_impl.h"
#include "examples_fixture.h"
#include "suite.h"

/* Scan the dataset once, so that the next open may map the catalogue. Returns
 * the fingerprint. */
static uint64_t look_once(const struct dataset_options *o)
{
	struct dataset *ds = open_with(o);
	uint64_t print = dataset_fingerprint(ds);

	ck_assert_ptr_null(ds->map);
	dataset_close(ds);
	return print;
}

static bool mapped(const struct dataset_options *o)
{
	struct dataset *ds = open_with(o);
	bool was = ds->map != NULL;

	dataset_close(ds);
	return was;
}

static void make_folder(void)
{
	put("d/a/1.jpg");
	put("d/a/2.jpg");
	put("d/b/deep/3.jpg");
	put("d/none/x.txt");
	sh("mkdir d/empty; ln -s gone d/link");
	age();
}

/* Returns the path of the only catalogue. */
static const char *index_path(void)
{
	static char path[400];
	char dir[128];
	struct dirent *d;
	unsigned n = 0;
	DIR *all;

	(void)snprintf(dir, sizeof(dir), "%s/refrain", cache);
	all = opendir(dir);
	ck_assert_ptr_nonnull(all);
	while ((d = readdir(all))) {
		if (d->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, d->d_name);
		n++;
	}
	(void)closedir(all);
	ck_assert_uint_eq(n, 1);
	return path;
}

/* -- When it is used ------------------------------------------------------- */

START_TEST(test_an_index_says_what_the_look_said)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct dataset *ds;
	struct stat st;
	uint64_t print;

	make_folder();
	print = look_once(&o);
	ds = open_with(&o);
	ck_assert_ptr_nonnull(ds->map);
	ck_assert_uint_eq(dataset_fingerprint(ds), print);
	ck_assert_uint_eq(dataset_count(ds), 3);
	ck_assert_uint_eq(dataset_links(ds), 1);
	ck_assert_uint_lt(dataset_memory_bytes(ds), 1024);
	example_is(ds, 0, "a/1.jpg", 0);
	example_is(ds, 1, "a/2.jpg", 0);
	example_is(ds, 2, "b/deep/3.jpg", 1);
	class_is(ds, 1, "b");
	ck_assert_int_eq(fstatat(at(ds, 0).dir, "a/1.jpg", &st, 0), 0);
	dataset_close(ds);
	ck_assert_int_eq(stat(index_path(), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	(void)snprintf(err.msg, sizeof(err.msg), "%s/refrain", cache);
	ck_assert_int_eq(stat(err.msg, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
}
END_TEST

START_TEST(test_a_change_of_names_is_seen)
{
	static const char *const changes[] = {"touch d/b/deep/4.jpg",
		"rm d/a/1.jpg", "mv d/a/1.jpg d/a/0.jpg", "rmdir d/empty",
		"touch d/empty/1.jpg", "mkdir d/new && touch d/new/1.jpg",
		"mv d/b/deep d/a/", "touch d/none/1.jpg",
		"rm -r d/empty && touch d/empty"};
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	(void)look_once(&o);
	ck_assert(mapped(&o));
	sh("%s", changes[_i]);
	ck_assert(!mapped(&o));
	age();
	(void)look_once(&o); /* scan once more, because times have changed */
	ck_assert(mapped(&o));
}
END_TEST

START_TEST(test_other_directories_with_the_same_times_are_seen)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	sh("cp -a d e; touch e/a/3.jpg; touch -r d/a e/a");
	(void)look_once(&o);
	ck_assert(mapped(&o));
	/* This is as if the directory was extracted from another archive. */
	sh("mv d old && mv e d");
	ck_assert(!mapped(&o));
	ck_assert(mapped(&o));
	sh("mv d/a e && mv old/a d/ && touch -r e d");
	ck_assert(!mapped(&o));
}
END_TEST

START_TEST(test_what_a_file_holds_does_not_matter)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	(void)look_once(&o);
	sh("echo more >>d/a/1.jpg");
	ck_assert(mapped(&o));
}
END_TEST

START_TEST(test_what_has_just_changed_is_not_kept)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	sh("touch d/b/deep");
	(void)look_once(&o);
	(void)look_once(&o);
	/* This is as if the server's clock was ahead. */
	sh("touch -d '1 hour' d/b/deep");
	(void)look_once(&o);
	(void)look_once(&o);
	age();
	(void)look_once(&o);
	ck_assert(mapped(&o));
}
END_TEST

START_TEST(test_other_options_have_another_index)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	(void)look_once(&o);
	o.any_file = true;
	(void)look_once(&o);
	o.source = REFRAIN_SOURCE_FOLDER;
	(void)look_once(&o);
	ck_assert(mapped(&o));
	o = options_of(in_tree("d/../d"), 0);
	ck_assert(mapped(&o)); /* the dataset is at the same place again */
	o = options_of(in_tree("d/a"), 0);
	(void)look_once(&o);
}
END_TEST

START_TEST(test_an_index_of_shards_is_used_until_one_changes)
{
	static const char *const changes[] = {"tar -cf d/c.tar 1.jpg",
		"rm d/b.tar", "touch d/a.tar", "mv d/a.tar d/0.tar",
		"cp -p d/a.tar x && truncate -s +512 x && "
		"touch -r d/a.tar x && cat x >d/a.tar && touch -r x d/a.tar"};
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct dataset *ds;
	uint64_t print;

	put("1.jpg");
	put_text("1.cls", "4");
	put("2.jpg");
	sh("mkdir d && tar -cf d/a.tar 1.jpg 1.cls && tar -cf d/b.tar 2.jpg");
	age();
	print = look_once(&o);
	ds = open_with(&o);
	ck_assert_ptr_nonnull(ds->map);
	ck_assert_uint_eq(dataset_fingerprint(ds), print);
	example_is(ds, 0, "a.tar/1.jpg", 4);
	example_is(ds, 1, "b.tar/2.jpg", -1);
	ck_assert_str_eq(dataset_shard_file(ds, 1), "b.tar");
	ck_assert_uint_eq(at(ds, 1).offset, 512);
	ck_assert_uint_eq(dataset_classes(ds), 5);
	dataset_close(ds);
	sh("%s", changes[_i]);
	ck_assert(!mapped(&o));
}
END_TEST

START_TEST(test_an_index_of_a_list_is_used_until_it_changes)
{
	struct dataset_options o = options_of(in_tree("l"), 0);

	put_text("l", "a.jpg\tx\n");
	put("r/a.jpg");
	age();
	(void)look_once(&o);
	ck_assert(mapped(&o));
	o.root = in_tree("r");
	(void)look_once(&o);
	ck_assert(mapped(&o));
	put_text("l", "b.jpg\tx\n");
	(void)look_once(&o);
}
END_TEST

/* -- Where it is kept ------------------------------------------------------ */

START_TEST(test_without_a_home_there_is_no_index_and_no_error)
{
	struct dataset_options o = options_of(in_tree("d"), 0);

	make_folder();
	ck_assert_int_eq(unsetenv("XDG_CACHE_HOME"), 0);
	ck_assert_int_eq(unsetenv("HOME"), 0);
	(void)look_once(&o);
	(void)look_once(&o);
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	(void)look_once(&o);
	(void)look_once(&o);
	ck_assert_int_eq(setenv("HOME", base, 1), 0);
	(void)look_once(&o);
	ck_assert(mapped(&o));
	(void)snprintf(cache, sizeof(cache), "%s/.cache", base);
	(void)index_path();
}
END_TEST

START_TEST(test_a_folder_that_others_write_is_not_used)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	char path[128];

	make_folder();
	(void)look_once(&o);
	ck_assert(mapped(&o));
	(void)snprintf(path, sizeof(path), "%s/refrain", cache);
	ck_assert_int_eq(chmod(path, 0777), 0);
	(void)look_once(&o);
	ck_assert_int_eq(chmod(path, 0700), 0);
	ck_assert(mapped(&o));
	ck_assert_int_eq(chmod(index_path(), 0622), 0);
	(void)look_once(&o);
	ck_assert(mapped(&o)); /* the catalogue was written again */
}
END_TEST

START_TEST(test_a_write_that_was_cut_off_is_in_nobodys_way)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	const struct timespec then[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char path[500];
	int fd;

	make_folder();
	(void)look_once(&o);
	(void)snprintf(path, sizeof(path), "%s.new", index_path());
	ck_assert_int_eq(unlink(index_path()), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	(void)look_once(&o);
	(void)look_once(&o); /* another process may be writing the catalogue */
	ck_assert_int_eq(futimens(fd, then), 0);
	(void)close(fd);
	(void)look_once(&o);
	ck_assert(mapped(&o));
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* -- Damage ---------------------------------------------------------------- */

static void flip(const char *path, off_t i, unsigned char with)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char byte;

	ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
	byte ^= with;
	ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
	(void)close(fd);
}

START_TEST(test_every_damaged_byte_is_noticed)
{
	struct dataset_options o = options_of(in_tree("d"), 0);
	struct stat st;
	uint64_t print;

	if (_i == 0) {
		make_folder();
	} else {
		put("1.jpg");
		sh("mkdir d && tar -cf d/a.tar 1.jpg");
		age();
	}
	print = look_once(&o);
	ck_assert_int_eq(stat(index_path(), &st), 0);
	for (off_t i = 0; i < st.st_size; i++) {
		ck_assert(mapped(&o));
		flip(index_path(), i, i % 2 ? 0x01 : 0x80);
		/* The catalogue was rejected, and another scan has replaced it.
		 */
		ck_assert_uint_eq(look_once(&o), print);
	}
	for (off_t n = st.st_size - 1; n >= 0; n -= 1 + n / 8) {
		ck_assert_int_eq(truncate(index_path(), n), 0);
		ck_assert_uint_eq(look_once(&o), print);
	}
	ck_assert(mapped(&o));
}
END_TEST

/* -- Calls that hang ------------------------------------------------------- */

/* Opening a FIFO in place of the list does not hang, because only regular files
 * are read. */
START_TEST(test_a_fifo_is_refused_and_not_waited_for)
{
	struct dataset_options o = options_of(in_tree("f"), 0);

	ck_assert_int_eq(mkfifo(in_tree("f"), 0600), 0);
	refused(&o, -EINVAL, "regular file");
	ck_assert_int_eq(mkfifo(in_tree("f.tar"), 0600), 0);
	o = options_of(in_tree("f.tar"), 0);
	refused(&o, -EINVAL, "regular file");
}
END_TEST

/* Mount a file system that never answers. Returns its descriptor, or -1. */
static int mount_silent(const char *path)
{
	char data[128];
	int fd;

	if (test_on_valgrind())
		return -1;
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* Only this process sees the mount, which ends with the process. */
	if (unshare(CLONE_NEWNS) != 0 ||
		mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0) {
		(void)close(fd);
		return -1;
	}
	(void)snprintf(data, sizeof(data),
		"fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd,
		(int)getuid(), (int)getgid());
	if (mount("silent", path, "fuse", MS_NOSUID | MS_NODEV, data) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void *set_later(void *cancel)
{
	(void)poll(NULL, 0, 50);
	atomic_store((_Atomic bool *)cancel, true);
	return NULL;
}

START_TEST(test_a_look_that_hangs_is_left_behind_in_time)
{
	static const char *const where[] = {"d", "d/b"};
	static _Atomic bool cancel;
	const char *at = where[_i % 2];
	struct dataset_options o = options_of(in_tree("d"), 0);
	pthread_t thread;
	uint64_t start_ns;
	int fd;

	make_folder();
	fd = mount_silent(in_tree(at));
	if (fd < 0)
		return; /* only root may mount, if any process may */
	o.cancel = &cancel;
	if (_i < 2)
		ck_assert_int_eq(
			pthread_create(&thread, NULL, set_later, &cancel), 0);
	else
		o.timeout_ns = 50 * NS_PER_MS;
	start_ns = clock_now_ns();
	if (_i < 2)
		refused(&o, -ECANCELED, tree);
	else
		refused(&o, -ETIMEDOUT,
			_i % 2 ? "/d': no answer for 0.1 s while listing"
			       : "/d': no answer for 0.1 s while resolving");
	/* Without a limit the call would hang until the end. The limit is long,
	 * because the machine may be busy. */
	ck_assert_uint_lt(clock_now_ns() - start_ns, 5 * NS_PER_S);
	if (_i < 2)
		(void)pthread_join(thread, NULL);
	/* The threads that were left behind continue now, and must find all
	 * their data. */
	ck_assert_int_eq(umount2(in_tree(at), MNT_DETACH), 0);
	(void)close(fd);
	o.cancel = NULL;
	o.timeout_ns = 0;
	(void)mapped(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("examples_index");
	TCase *c = case_with(s, "index", setup_tree, teardown_tree);

	tcase_add_test(c, test_an_index_says_what_the_look_said);
	tcase_add_loop_test(c, test_a_change_of_names_is_seen, 0, 9);
	tcase_add_test(c, test_other_directories_with_the_same_times_are_seen);
	tcase_add_test(c, test_what_a_file_holds_does_not_matter);
	tcase_add_test(c, test_what_has_just_changed_is_not_kept);
	tcase_add_test(c, test_other_options_have_another_index);
	tcase_add_loop_test(
		c, test_an_index_of_shards_is_used_until_one_changes, 0, 5);
	tcase_add_test(c, test_an_index_of_a_list_is_used_until_it_changes);
	tcase_add_test(c, test_without_a_home_there_is_no_index_and_no_error);
	tcase_add_test(c, test_a_folder_that_others_write_is_not_used);
	tcase_add_test(c, test_a_write_that_was_cut_off_is_in_nobodys_way);
	tcase_add_loop_test(c, test_every_damaged_byte_is_noticed, 0, 2);
	tcase_add_test(c, test_a_fifo_is_refused_and_not_waited_for);
	tcase_add_loop_test(
		c, test_a_look_that_hangs_is_left_behind_in_time, 0, 4);
	return run_suite(s);
}
