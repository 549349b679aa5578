/* SPDX-License-Identifier: MIT */
/* Makes a file whose opening hangs, without root and without a server: this
 * process has a write lease on it and does not give the lease up. The kernel
 * ends the lease after proc/sys/fs/lease-break-time, 45 s by default. */
#ifndef TESTS_LOADER_LEASE_H
#define TESTS_LOADER_LEASE_H

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "suite.h"

/* Take the lease. The file must not be open. Returns the descriptor for
 * lease_end(). */
static inline int lease_begin(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	/* The kernel sends this signal when a process opens the file; without
	 * this line it would end this process. */
	(void)signal(SIGIO, SIG_IGN);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	return fd;
}

/* End the lease, so that waiting opens continue. */
static inline void lease_end(int fd)
{
	/* fails if the kernel has ended the lease */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	(void)close(fd);
}

#endif
