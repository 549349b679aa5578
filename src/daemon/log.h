/* SPDX-License-Identifier: MIT */
/*
 * The daemon's log: takes events from any thread, holds each kind to its rate,
 * and writes lines on a thread of its own, so that a full disk or a journal
 * that hangs holds up nobody else.
 *
 * Lines go to --log-file; without it to standard error while there is one (to
 * the journal if that is what it is), and in the background to syslog(3).
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>

#include "base/err.h"
#include "base/events.h"

struct log;

struct log_config {
	const char *file; /* as typed; NULL: none */
	const char *mountpoint;
	enum event_level level; /* the least important that is written */
	bool json;
};

/* Open the file, if there is one: before the daemon leaves its directory. */
int log_new(
	struct log **out, const struct log_config *config, struct error *err);

/* Start writing; no thread before this. */
int log_start(struct log *log, struct error *err);

/* Parts report to it; valid until log_free(), also before log_start(). */
const struct event_sink *log_sink(struct log *log);

/*
 * Standard error is about to be closed, after what was reported so far has
 * been written to it.
 */
void log_detach(struct log *log);

/* SIGHUP: open the file again. False: there is none. */
bool log_reopen(struct log *log);

/* Write what is queued and what was suppressed; waits a second at most. */
void log_flush(struct log *log);

/* Flush and stop. NULL is allowed. */
void log_free(struct log *log);

#endif
