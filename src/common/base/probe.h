/* SPDX-License-Identifier: MIT */
/* Makes a call in a child process because it may never return, such as a call
 * on a hung file system. The kernel ends such a call only for a fatal signal,
 * so the child is killed when its time is over. One thread uses a probe. */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

struct probe {
	pid_t pid;
	int fd; /* readable when the child has written something or ended */
};

/* Start a child process that calls run(arg, to) and then ends. probe->fd is the
 * other end of the pipe `to`, to which run() may write. The child may call only
 * functions that are safe after fork(). Returns 0 or -errno. */
int probe_start(struct probe *probe, void (*run)(void *arg, int to), void *arg);

/* Has the child written something or ended? Waits for this for up to
 * timeout_ms; -1: no limit. */
bool probe_wait(const struct probe *probe, int timeout_ms);

/* If the child still runs, kill it; close the pipe. A child that hangs in the
 * kernel ends later, when the kernel ends its call. */
void probe_end(struct probe *probe);

#endif
