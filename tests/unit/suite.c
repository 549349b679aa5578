/* SPDX-License-Identifier: MIT */
/* The runner that all unit tests share. */
#include "suite.h"

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

const char *test_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && strlen(tmp) < 30 ? tmp : "/tmp";
}

const char *test_memory_dir(void)
{
	struct statvfs fs;

	if (getenv("TMPDIR") || access(MEMORY_DIR, W_OK) != 0 ||
		statvfs(MEMORY_DIR, &fs) != 0 ||
		(uint64_t)fs.f_bavail * fs.f_frsize < MEMORY_BYTES_MIN)
		return test_dir();
	return MEMORY_DIR;
}

int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	/* The output of a test before it failed is printed, too. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
