/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of a notifier, a process that makes calls that can hang in
 * the kernel (common/base/notifier.h), so that a killed daemon can end. If the
 * process ends, a thread replaces it at once. If it is stopped or does not
 * answer, the next call replaces it.
 */
#ifndef FS_AGENT_H
#define FS_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/base/events.h"

struct agent;

struct agent_config {
	/* Events to report when the process was replaced, and when it has ended
	 * and no other one could be had. */
	enum event_kind replaced, lost;
	/* Returns the socket of another process, or -1. Called by any one
	 * thread at a time. */
	int (*again)(void *arg);
	void *arg;
	const struct event_sink *events; /* may be NULL */
	const char *mountpoint;		 /* owned by the caller */
};

struct agent_message {
	const void *bytes;
	size_t size;
	int fd; /* a descriptor that is passed with the message; -1: none */
};

/* Make the agent from the socket of the first process, which it owns on
 * success. */
int agent_new(struct agent **out, const struct agent_config *config, int socket,
	struct error *err);
/* Close the socket, which ends the process. NULL is allowed. */
void agent_free(struct agent *a);

/* Pass this descriptor to the present process and to later ones when they
 * begin. Call this before agent_do(). */
void agent_connect(struct agent *a, int fd);

/*
 * Have the process handle these messages in order, and wait for its answers.
 * Returns 0 or the last answer, which is -errno; -ESHUTDOWN if no process could
 * handle them; -ECANCELED if *quit became true meanwhile. One thread at a time.
 */
int agent_do(struct agent *a, const struct agent_message *messages,
	unsigned count, const atomic_bool *quit);

#endif
