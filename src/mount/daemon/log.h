/* SPDX-License-Identifier: MIT */
/*
 * The daemon's log. It takes events from any thread, limits the rate of each
 * cause, and writes lines on its own thread, so that a full disk or a hung
 * journal does not delay others. It remembers the last event of each cause,
 * whatever its level.
 *
 * Lines go to --log-file. Without it they go to standard error while that is
 * open (or to the journal if that is connected to it), and in the background to
 * syslog(3).
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/events.h"

struct log;

struct log_config {
	const char *file; /* as typed; NULL: none */
	const char *mountpoint;
	enum event_level level; /* the least severe level that is written */
	bool json;
};

/* Open the log file, if there is one. Call this before the daemon changes its
 * directory. */
int log_new(
	struct log **out, const struct log_config *config, struct error *err);

/* Start the thread that writes. Until then events are only queued. */
int log_start(struct log *log, struct error *err);

/* The sink to which parts report; valid until log_free(), also before
 * log_start(). */
const struct event_sink *log_sink(struct log *log);

/* Call this before standard error is closed. It writes everything reported so
 * far to it, and closes the log's duplicate. Later lines go to syslog. */
void log_detach(struct log *log);

/* The last event of a cause; strings are valid during the call. */
struct log_last {
	enum event_kind kind;
	const char *message;
	const char *dir; /* "" for none */
	int status;
	uint64_t wall_ns; /* time by the wall clock */
	uint64_t time_ns; /* the same by clock_now_ns() */
	uint64_t events;  /* number of events of this cause so far */
};

/* Call fn for each cause so far, in no particular order. fn must not call the
 * log. Causes that have not occurred for hours may be missing. */
typedef void log_each_fn(void *arg, const struct log_last *last);
void log_each(struct log *log, log_each_fn *fn, void *arg);

/* Reopen the file, on SIGHUP. Returns false if there is none. */
bool log_reopen(struct log *log);

/* Write what is queued, and summaries of what was suppressed. Waits at most a
 * second. */
void log_flush(struct log *log);

/* Flush and stop. NULL is allowed. */
void log_free(struct log *log);

#endif
