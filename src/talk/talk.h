/* SPDX-License-Identifier: MIT */
/*
 * One conversation with the daemon of a mount, over its control socket: lines
 * go out, lines come back. What is in them is the caller's matter, so the
 * loader needs no parser of JSON to talk. One thread at a time; shutting `fd`
 * down from elsewhere ends every wait.
 */
#ifndef TALK_TALK_H
#define TALK_TALK_H

#include <stdint.h>
#include <sys/types.h>

#include "talk/line.h"

/* The attribute of a mount's root whose value is the path of its socket. */
#define TALK_XATTR "user.refrain.control"

struct talk {
	int fd; /* non-blocking */
	struct lines in;
};

/*
 * Connect to a socket; lines of answers are no longer than max_bytes. -errno;
 * -EAGAIN: the daemon does not accept just now.
 */
int talk_open(struct talk *t, const char *path, size_t max_bytes);

/* -EPERM: it is not served by that user, nor by root. */
int talk_check_owner(const struct talk *t, uid_t owner);

/* The process at the other end; 0 if this one cannot see it. */
pid_t talk_pid(const struct talk *t);

/* Once more is allowed. */
void talk_close(struct talk *t);

/*
 * Send a whole line, its newline included. -EPIPE: the daemon is gone, or takes
 * nothing; the talk is of no more use then, but for an answer.
 */
int talk_send(struct talk *t, const char *line, size_t bytes);

/*
 * Wait for the next line: its newline is NUL now, and it is good until the next
 * call. -ETIMEDOUT: none came within timeout_ms (-1: no limit), and it may be
 * waited for again. -EPIPE: the daemon hung up. -EMSGSIZE: it is too long.
 */
int talk_wait(struct talk *t, int timeout_ms, char **line, size_t *bytes);

/* 1: something came, or the other end hung up; 0: the time is over; -errno. */
int talk_wait_readable(int fd, int timeout_ms);

#endif
