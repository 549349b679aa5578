/* SPDX-License-Identifier: MIT */
/*
 * A separate process for calls that can hang in the kernel until the daemon
 * answers a request. If a thread of the daemon made such a call, a killed
 * daemon could not end before that answer, and nobody else may answer before
 * the daemon has ended. So this process makes the call, and the next daemon
 * answers.
 *
 * - It notifies the kernel of changed names. To drop a name, the kernel locks
 *   its directory. A look-up holds that lock while it waits for the daemon.
 * - It drops the kernel's pages of files, as any program can. To open a file
 *   whose name the kernel may not remember any longer, the kernel asks the
 *   daemon.
 *
 * The process has only one end of a socket pair (SOCK_SEQPACKET) and, once the
 * daemon has sent it, the connection to the kernel. It ends when the daemon
 * closes the other end. Each message is a notification as the kernel reads it;
 * or a single byte with the descriptor of the connection; or a struct
 * notifier_drop with the root of the mount (O_PATH). The process answers each
 * message, in order, with an int: 0 or -errno. When it starts, it sends one
 * such answer without a message.
 */
#ifndef BASE_NOTIFIER_H
#define BASE_NOTIFIER_H

#include <stdint.h>

/* Names of the process: for one that notifies, and for one that drops pages. */
#define NOTIFIER_COMM "refrain-notify"
#define NOTIFIER_PAGES_COMM "refrain-pages"

/* The longest path of a file, with its zero. */
#define NOTIFIER_PATH_MAX 8192u

/* A message: drop the pages of a part of a file. */
struct notifier_drop {
	uint64_t off, bytes;
	/* path below the root; the message ends after its zero */
	char path[NOTIFIER_PATH_MAX];
};

#define NOTIFIER_BYTES_MAX sizeof(struct notifier_drop)

/* Turn the calling process, a child that has one thread, into that process.
 * Closes all descriptors but the socket. */
_Noreturn void notifier_run(int socket, const char *comm);

/* Create the socket pair. The daemon keeps end[0]; messages that it receives
 * there name their sender. Returns 0 or -errno. */
int notifier_pair(int end[2]);

#endif
