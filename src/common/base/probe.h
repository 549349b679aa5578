/* SPDX-License-Identifier: MIT */
/*
 * Makes a call that may never return, such as one on a hung file system, in a
 * child process. The kernel ends such a call only for a fatal signal, so the
 * child is killed when its time is over. One thread uses a probe.
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

struct probe {
	pid_t pid;
	int fd; /* readable when the child has written something or ended */
};

/*
 * Start a child process that calls run(arg, to) and ends. What it writes to the
 * pipe `to` can be read from probe->fd. The child may call only functions that
 * are safe after fork(). Returns 0 or -errno.
 */
int probe_start(struct probe *probe, void (*run)(void *arg, int to), void *arg);

/* Has the child written something or ended? Waits for up to timeout_ms; -1: no
 * limit. */
bool probe_wait(const struct probe *probe, int timeout_ms);

/* Kill the child if it still runs, and close the pipe. A child that hangs in
 * the kernel is left behind, and ends when the kernel lets it. */
void probe_end(struct probe *probe);

#endif
