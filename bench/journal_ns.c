/* SPDX-License-Identifier: MIT */
/*
 * journal-ns: measures how long the daemon's record of requests takes for one
 * READ. In turns, messages as long as a READ are received through a socket with
 * the record and without it. The result is the difference of the fastest turns,
 * because other programs can only make a turn longer. It lacks one cost: the
 * kernel's FUSE device needs more time than a socket to copy a message into two
 * buffers.
 */
#include <err.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mount/fs/fs_impl.h"

#define TURNS 400
#define READS 2000

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* cannot fail */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Receive messages; without the record if `j` is NULL. Returns the processor
 * time per message. */
static double turn(int fd[2], struct journal *j, void *buffer)
{
	static uint64_t unique;
	struct {
		struct fuse_in_header head;
		struct fuse_read_in read;
	} in = {.head = {.len = sizeof(in), .opcode = FUSE_READ}};
	uint64_t begun = cpu_ns();

	for (unsigned i = 0; i < READS; i++) {
		ssize_t n;

		in.head.unique = unique += 2;
		if (write(fd[0], &in, sizeof(in)) != sizeof(in))
			err(1, "write");
		if (j)
			n = journal_receive(j, fd[1], buffer);
		else
			n = read(fd[1], buffer, FS_REQUEST_MAX);
		if (n != sizeof(in) || memcmp(buffer, &in, sizeof(in)) != 0)
			errx(1, "received %zd bytes", n);
		if (j)
			journal_answered(j, unique);
	}
	return (double)(cpu_ns() - begun) / READS;
}

int main(void)
{
	struct journal *j = journal_new();
	void *buffer = receive_buffer_new();
	double with = 1e9, without = 1e9;
	int fd[2];

	if (!j || !buffer)
		errx(1, "no memory");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) < 0)
		err(1, "socketpair");
	for (unsigned i = 0; i < TURNS; i++) {
		double a = turn(fd, j, buffer), b = turn(fd, NULL, buffer);

		with = a < with ? a : with;
		without = b < without ? b : without;
	}
	printf("a READ with the journal: %.0f ns, without: %.0f ns; "
	       "the journal: %.0f ns\n",
		with, without, with - without);
	receive_buffer_free(buffer);
	journal_free(j);
	return 0;
}
