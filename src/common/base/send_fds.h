/* SPDX-License-Identifier: MIT */
/* Messages on a Unix socket that contain descriptors (SCM_RIGHTS). They name
 * their sender if the receiver has set SO_PASSCRED. No state; any thread. */
#ifndef BASE_SEND_FDS_H
#define BASE_SEND_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A message has at most this many descriptors. */
#define SEND_FDS_MAX 8u

/* The descriptors and the sender of a message. */
struct got_fds {
	int fd[SEND_FDS_MAX]; /* descriptors of this process, with O_CLOEXEC */
	unsigned n;
	bool cut; /* a part of the message or of its descriptors did not fit */
	/* The sender; 0: its number is not visible here. -1: unknown */
	pid_t pid;
	uid_t uid; /* -1: unknown */
};

/* Send a message with `n` descriptors. `flags` are for sendmsg(2). Returns its
 * length or -errno; never raises SIGPIPE. */
ssize_t fds_send(int socket, const void *bytes, size_t size, const int *fds,
	unsigned n, int flags);

/* Receive a message. `flags` are for recvmsg(2). Returns its length, 0 at the
 * end, or -errno. After 0 or -errno, `got` has no descriptors. */
ssize_t fds_receive(
	int socket, void *bytes, size_t size, struct got_fds *got, int flags);

/* Close the descriptors with index `first` and higher. */
void fds_close(struct got_fds *got, unsigned first);

#endif
