/* SPDX-License-Identifier: MIT */
/*
 * A file that hangs whoever opens it, without root and without a server: this
 * process has a write lease, and does not give it up. The kernel ends it after
 * /proc/sys/fs/lease-break-time, 45 s by default.
 */
#ifndef TESTS_LOADER_LEASE_H
#define TESTS_LOADER_LEASE_H

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "suite.h"

/* The file must not be open. Returns what lease_end() takes. */
static inline int lease_begin(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	/* Sent when somebody opens the file; it would end the process. */
	(void)signal(SIGIO, SIG_IGN);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	return fd;
}

/* Let those that wait go on. */
static inline void lease_end(int fd)
{
	(void)fcntl(fd, F_SETLEASE, F_UNLCK); /* it may be over */
	(void)close(fd);
}

#endif
