/* SPDX-License-Identifier: MIT */
/*
 * A separate process that notifies the kernel of changed names. To drop a name,
 * the kernel locks its directory. A look-up holds that lock while it waits for
 * the daemon. If a thread of the daemon waited for the lock, a killed daemon
 * could not end before the look-up was answered, and nobody may answer the
 * look-up before the daemon has ended. So this process waits for the lock, and
 * the next daemon answers.
 *
 * The process has only one end of a socket pair (SOCK_SEQPACKET) and, once the
 * daemon has sent it, the connection to the kernel. It ends when the daemon
 * closes the other end. Each message of the daemon is one notification in the
 * kernel's format, or a single byte with the descriptor of the connection. The
 * process answers messages in order, each with an int: 0 or -errno. At its
 * beginning it sends such an int without a message.
 */
#ifndef BASE_NOTIFIER_H
#define BASE_NOTIFIER_H

#define NOTIFIER_COMM "refrain-notify"

/* Maximum length of a message: a header, the longest body, and a name with its
 * NUL. */
#define NOTIFIER_BYTES_MAX 512u

/* Turn this process into the notifier. Call this in a child that has one
 * thread. Closes all descriptors but the socket. */
_Noreturn void notifier_run(int socket);

/* Create the socket pair. The daemon keeps end[0], at which messages name their
 * sender. Returns 0 or -errno. */
int notifier_pair(int end[2]);

#endif
