/* SPDX-License-Identifier: MIT */
/*
 * The messages between a daemon and its holder. They are datagrams of
 * sd_notify(3), and one more: with that message the daemon of another container
 * joins a holder. It has a descriptor of one end of a socket pair, the *link*.
 * Over the link the holder sends the descriptors that it stores. The link
 * closes when all threads of the daemon have ended.
 */
#ifndef TOOLS_HOLD_WIRE_H
#define TOOLS_HOLD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* maximum number of descriptors; send_fds.h has the same limit for a message */
#define HOLD_FDS_MAX 8
#define HOLD_NAME_BYTES 32

/* A descriptor that the holder stores for the next daemon. */
struct stored {
	char name[HOLD_NAME_BYTES];
	int fd;
};

/* The content of one datagram. */
struct said {
	char text[4096]; /* text of the datagram; "" if another user sent it */
	/* descriptor of the datagram, which the caller closes; -1: none */
	int fd;
	pid_t pid; /* process that sent it; 0 if it is not visible here */
};

/* Receive the queued datagrams and call fn for each. The number is limited to
 * the length of the longest queue (net.unix.max_dgram_qlen, usually 512),
 * because a sender may send without end. */
#define HOLD_HEAR_MAX 1024u
void hold_hear_queued(
	int socket, void (*fn)(void *arg, struct said *said), void *arg);

/* Copy the value of a line NAME=VALUE of the text to buf. Returns buf, or NULL
 * if there is no such line. */
const char *hold_value(
	const char *text, const char *name, char *buf, size_t size);

/* Returns the process at the other end of a link; 0 if it is not visible here.
 */
pid_t hold_peer(int link);
bool hold_closed(int link);

/* Send the descriptors, at most HOLD_FDS_MAX, over the link. Returns false if
 * the other end is closed. */
bool hold_answer(int link, const struct stored *stored, unsigned n);

/* Join the holder that listens at `path`, and receive its stored descriptors.
 * Returns the link, which the daemon inherits; or -1 after printing the reason.
 */
int hold_join(const char *path, struct stored *stored, unsigned *n);

/* Pass the descriptors to the daemon, which this process is about to execute,
 * in the form of sd_listen_fds(3). */
void hold_pass(const struct stored *stored, unsigned n);

/* Set a variable of the environment to a number. */
void hold_setenv(const char *name, long n);

#endif
