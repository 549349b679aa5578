/* SPDX-License-Identifier: MIT */
/* The runner that all unit tests share. */
#include "suite.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMEOUT_S 240
#define MEMORY_DIR "/dev/shm"
#define MEMORY_BYTES_MIN (UINT64_C(256) << 20)

TCase *case_of(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_set_timeout(t, TIMEOUT_S);
	suite_add_tcase(s, t);
	return t;
}

TCase *case_with(
	Suite *s, const char *name, void (*setup)(void), void (*teardown)(void))
{
	TCase *t = case_of(s, name);

	tcase_add_checked_fixture(t, setup, teardown);
	return t;
}

void case_add(TCase *t, const TTest *const tests[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		tcase_add_test(t, tests[i]);
}

bool test_on_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_");
}

bool test_has_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

/* -- Directories ----------------------------------------------------------- */

static char own_dir[64], own_memory_dir[64]; /* run_suite() removes both */

static const char *make_once(char dir[64], const char *in)
{
	if (dir[0])
		return dir;
	(void)snprintf(dir, 64, "%s/unit.XXXXXX", in);
	if (!mkdtemp(dir)) {
		perror(dir);
		exit(EXIT_FAILURE);
	}
	return dir;
}

const char *test_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	return make_once(own_dir, tmp && strlen(tmp) < 30 ? tmp : "/tmp");
}

const char *test_memory_dir(void)
{
	struct statvfs fs;

	if (getenv("TMPDIR") || access(MEMORY_DIR, W_OK) != 0 ||
		statvfs(MEMORY_DIR, &fs) != 0 ||
		(uint64_t)fs.f_bavail * fs.f_frsize < MEMORY_BYTES_MIN)
		return test_dir();
	return make_once(own_memory_dir, MEMORY_DIR);
}

static int remove_path(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_own(const char *dir)
{
	if (dir[0] && nftw(dir, remove_path, 16, FTW_DEPTH | FTW_PHYS) != 0)
		perror(dir);
}

int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	/* create the directories before the tests, which run in processes of
	 * their own */
	(void)test_dir();
	(void)test_memory_dir();
	/* Print the output of a test before a failure, too. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	remove_own(own_memory_dir);
	remove_own(own_dir);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
