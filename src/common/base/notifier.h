/* SPDX-License-Identifier: MIT */
/*
 * A process of its own that notifies the kernel of changed names. To drop a
 * name, the kernel locks its directory. A look-up holds that lock while it
 * waits for the daemon. If a thread of the daemon waited for the lock, a killed
 * daemon could not end before the look-up was answered, and nobody may answer
 * it before the daemon has ended. So this process waits instead, and the next
 * daemon answers.
 *
 * It has nothing but one end of a socket pair (SOCK_SEQPACKET) and, once the
 * daemon has sent it, the connection to the kernel. It ends when the daemon
 * closes the other end. Each message is one notification as the kernel reads
 * it, or a single byte with the descriptor of the connection. It is answered,
 * in order, with an int: 0 or -errno. An answer that no message asked for is
 * sent at the beginning.
 */
#ifndef BASE_NOTIFIER_H
#define BASE_NOTIFIER_H

#define NOTIFIER_COMM "refrain-notify"

/* The header, the longest body, and a name with its zero. */
#define NOTIFIER_BYTES_MAX 512u

/* Become that process; call it in a child that has one thread. All descriptors
 * but the socket are closed. */
_Noreturn void notifier_run(int socket);

/* Make the pair: end[0] is the daemon's, and learns the sender of an answer.
 * Returns -errno. */
int notifier_pair(int end[2]);

#endif
