/* SPDX-License-Identifier: MIT */
/*
 * The daemon's log. It takes events from any thread, limits the number of lines
 * for each cause, and writes lines on its own thread, so that a full disk or a
 * hanging journal does not delay other threads. It remembers the last event of
 * each cause, whatever its level.
 *
 * Lines go to --log-file. Without it they go to standard error while that is
 * open, or to the journal if standard error is connected to it. In the
 * background they go to syslog(3).
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/events.h"

struct log;

struct log_config {
	const char *file; /* as given by the user; NULL: no file */
	const char *mountpoint;
	/* Only lines of this or a more severe level are written */
	enum event_level level;
	bool json;
};

/* Create the log, and open its file if there is one. Call this before the
 * daemon changes its working directory. */
int log_new(
	struct log **out, const struct log_config *config, struct error *err);

/* Start the thread that writes. Until then events are only queued. */
int log_start(struct log *log, struct error *err);

/* Returns the sink to which parts report events. It is valid until log_free(),
 * and can be used before log_start(). */
const struct event_sink *log_sink(struct log *log);

/* Call this before standard error is closed. Writes all lines so far to
 * standard error, and closes the log's duplicate of it. Later lines go to
 * syslog. */
void log_detach(struct log *log);

/* The last event of a cause. Strings are valid during the call. */
struct log_last {
	enum event_kind kind;
	const char *message;
	const char *dir; /* directory of a tier; "": none */
	int status;
	uint64_t wall_ns; /* time of the event by the wall clock */
	uint64_t time_ns; /* time of the event by clock_now_ns() */
	uint64_t events;  /* number of events of this cause so far */
};

/* Call fn for each cause so far, in no particular order. fn must not call the
 * log. Causes without events for some hours may be missing. */
typedef void log_each_fn(void *arg, const struct log_last *last);
void log_each(struct log *log, log_each_fn *fn, void *arg);

/* Reopen the log file, on SIGHUP. Returns false if there is no file. */
bool log_reopen(struct log *log);

/* Write queued lines, and summaries of events that were not written. Waits at
 * most one second. */
void log_flush(struct log *log);

/* Flush the log, stop its thread and free it. NULL is allowed. */
void log_free(struct log *log);

#endif
