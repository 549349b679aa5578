/* SPDX-License-Identifier: MIT */
/*
 * The messages between a daemon and its holder: datagrams of sd_notify(3), and
 * one more, with which the daemon of another container joins a holder. That
 * message has one end of a socket pair, the *link*. On the link, the holder
 * sends the descriptors that it keeps. When the link closes, all threads of the
 * daemon have ended.
 */
#ifndef TOOLS_HOLD_WIRE_H
#define TOOLS_HOLD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HOLD_FDS_MAX 8 /* of one message, too; see send_fds.h */
#define HOLD_NAME_BYTES 32

/* A descriptor that the holder keeps. */
struct stored {
	char name[HOLD_NAME_BYTES];
	int fd;
};

/* The content of one datagram. */
struct said {
	char text[4096]; /* "" if it came from another user */
	int fd;		 /* a descriptor, which the receiver closes; -1: none */
	pid_t pid;	 /* the sender; 0 if it is not visible here */
};

/*
 * Receive the queued messages, but no more than a queue can have
 * (net.unix.max_dgram_qlen, usually 512): a sender may not stop.
 */
#define HOLD_HEAR_MAX 1024u
void hold_hear_queued(
	int socket, void (*fn)(void *arg, struct said *said), void *arg);

/* The value of a line NAME=VALUE of the text, in buf, or NULL. */
const char *hold_value(
	const char *text, const char *name, char *buf, size_t size);

/* The process at the other end of a link; 0 if it is not visible here. */
pid_t hold_peer(int link);
bool hold_closed(int link);

/* Send the descriptors, at most HOLD_FDS_MAX, over the link. Returns false if
 * the other end is closed. */
bool hold_answer(int link, const struct stored *kept, unsigned n);

/* Join the holder that listens at `path`, and get the descriptors that it
 * keeps. Returns the link, which the next program inherits, or -1 after
 * printing the reason. */
int hold_join(const char *path, struct stored *kept, unsigned *n);

/* Pass the descriptors to the program that this process executes next, as
 * sd_listen_fds(3) expects them. */
void hold_pass(const struct stored *kept, unsigned n);

/* Set a variable of the environment to a number. */
void hold_setenv(const char *name, long n);

#endif
