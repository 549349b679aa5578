/* SPDX-License-Identifier: MIT */
/*
 * Tests of the files of shares: which process creates them, and that none are
 * left. Hosts of other processes are forked children.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "share_fixture.h"

#define RACERS 8
#define ROUNDS 150
#define NAMES 3

static char place_dir[300];

static unsigned files_left(void)
{
	CLEANUP_DIR DIR *d = opendir(place_dir);
	const struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	return n;
}

static bool is_there(const char *file)
{
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/%s", place_dir, file);
	return access(path, F_OK) == 0;
}

static struct share_place *place_of(const char *name)
{
	struct share_place *place;
	struct error err = {""};

	ck_assert_msg(share_place_get(&place, name, &err) == 0, "%s", err.msg);
	(void)snprintf(
		place_dir, sizeof(place_dir), "%s/refrain-share", run_dir);
	return place;
}

/* Returns the listening socket of a place. */
static int host_of(struct share_place *place)
{
	struct error err = {""};
	int fd;

	ck_assert_msg(place_lock(place, &err) == 0, "%s", err.msg);
	fd = place_listen(place, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	return fd;
}

static int lock_in_child(const char *name)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct error err = {""};

		_exit(-place_lock(place_of(name), &err));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void crash_host(const char *name)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)host_of(place_of(name));
		(void)raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

START_TEST(test_asking_about_a_share_makes_no_file)
{
	struct share_place *place = place_of("x");

	ck_assert_int_eq(place_connect(place), -ENOENT);
	share_place_put(place);
	ck_assert_uint_eq(files_left(), 0);
}
END_TEST

START_TEST(test_a_host_removes_its_files)
{
	struct share_place *place = place_of("x");
	CLEANUP_FD int fd = host_of(place);

	ck_assert_uint_eq(files_left(), 2);
	place_unlock(place);
	ck_assert_uint_eq(files_left(), 0);
	share_place_put(place);
}
END_TEST

START_TEST(test_the_next_host_removes_the_files_of_a_killed_one)
{
	struct share_place *place = place_of("y");
	CLEANUP_FD int fd = -1;

	crash_host("x");
	ck_assert_uint_eq(files_left(), 2);
	fd = host_of(place);
	ck_assert_uint_eq(files_left(), 2);
	ck_assert(is_there("y.sock") && is_there("y.lock"));
	crash_host("x");
	ck_assert_uint_eq(files_left(), 4);
	place_unlock(place);
	ck_assert_uint_eq(files_left(), 0);
	share_place_put(place);
}
END_TEST

START_TEST(test_hosts_that_live_keep_their_files_and_locks)
{
	struct share_place *a = place_of("a"), *b = place_of("b");
	CLEANUP_FD int fd_a = host_of(a);
	CLEANUP_FD int fd_b = host_of(b);

	ck_assert_int_eq(lock_in_child("a"), -EAGAIN);
	ck_assert_int_eq(lock_in_child("b"), -EAGAIN);
	ck_assert_int_eq(lock_in_child("c"), 0);
	place_unlock(b);
	ck_assert_int_eq(lock_in_child("a"), -EAGAIN);
	ck_assert(is_there("a.sock") && is_there("a.lock"));
	place_unlock(a);
	ck_assert_uint_eq(files_left(), 0);
	share_place_put(a);
	share_place_put(b);
}
END_TEST

/* A cleaner of /tmp may remove the lock file. */
START_TEST(test_a_socket_without_a_lock_file_goes_when_nobody_listens)
{
	struct share_place *a = place_of("a"), *b = place_of("b");
	int fd = host_of(a);
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/a.lock", place_dir);
	ck_assert_int_eq(unlink(path), 0);
	(void)close(host_of(b));
	ck_assert(is_there("a.sock") && !is_there("a.lock"));
	(void)close(fd);
	place_unlock(a);
	ck_assert(!is_there("a.sock") && !is_there("a.lock"));
	place_unlock(b);
	ck_assert_uint_eq(files_left(), 0);
	share_place_put(a);
	share_place_put(b);
}
END_TEST

/* -- A race ---------------------------------------------------------------- */

struct race {
	atomic_uint hosts[NAMES], turns, wrong;
};

/* Check that a name has at most one host, which its socket reaches. */
static void race_once(struct race *r, unsigned n, bool crash)
{
	char name[] = {(char)('a' + n), '\0'};
	struct share_place *place = place_of(name);
	struct error err = {""};
	int rc, fd, member;

	while ((rc = place_lock(place, &err)) == -EAGAIN)
		(void)sched_yield();
	if (rc < 0 || atomic_fetch_add(&r->hosts[n], 1) != 0)
		atomic_fetch_add(&r->wrong, 1);
	fd = place_listen(place, &err);
	member = place_connect(place);
	if (fd < 0 || member < 0)
		atomic_fetch_add(&r->wrong, 1);
	atomic_fetch_add(&r->turns, 1);
	atomic_fetch_sub(&r->hosts[n], 1);
	if (crash)
		(void)raise(SIGKILL);
	(void)close(member);
	(void)close(fd);
	place_unlock(place);
	share_place_put(place);
}

START_TEST(test_racing_hosts_exclude_each_other_and_leave_nothing)
{
	struct race *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[RACERS];
	struct share_place *last;

	ck_assert_ptr_ne(r, MAP_FAILED);
	for (unsigned i = 0; i < RACERS; i++) {
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		if (pids[i] > 0)
			continue;
		for (unsigned k = 0; k < ROUNDS; k++)
			race_once(r, (i + k) % NAMES, k + 1 == ROUNDS);
		_exit(1);
	}
	for (unsigned i = 0; i < RACERS; i++)
		ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
	ck_assert_uint_eq(atomic_load(&r->wrong), 0);
	ck_assert_uint_eq(atomic_load(&r->turns), RACERS * ROUNDS);
	last = place_of("last");
	(void)close(host_of(last));
	place_unlock(last);
	share_place_put(last);
	ck_assert_uint_eq(files_left(), 0);
	ck_assert_int_eq(munmap(r, sizeof(*r)), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("share-place");
	TCase *t = case_with(s, "share-place", make_dir, remove_dir);

	tcase_add_test(t, test_asking_about_a_share_makes_no_file);
	tcase_add_test(t, test_a_host_removes_its_files);
	tcase_add_test(t, test_the_next_host_removes_the_files_of_a_killed_one);
	tcase_add_test(t, test_hosts_that_live_keep_their_files_and_locks);
	tcase_add_test(
		t, test_a_socket_without_a_lock_file_goes_when_nobody_listens);
	tcase_add_test(
		t, test_racing_hosts_exclude_each_other_and_leave_nothing);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
