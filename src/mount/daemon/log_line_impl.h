/* SPDX-License-Identifier: MIT */
/*
 * Formats one line of the log, as text or JSON, for each destination.
 */
#ifndef DAEMON_LOG_LINE_IMPL_H
#define DAEMON_LOG_LINE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/events.h"

#define LOG_MESSAGE_MAX 400
#define LOG_NAME_MAX 256

/* An event, or a summary of events that were suppressed. */
struct log_record {
	enum event_kind kind;
	uint64_t wall_ns;	       /* wall clock, since 1970 */
	char message[LOG_MESSAGE_MAX]; /* with special characters escaped */
	/* Number of events in the summary; 0: not a summary */
	uint64_t suppressed;
	/* wall-clock time of the first event in the summary */
	uint64_t since_ns;
	/* Not escaped; only the end of a long path */
	char path[LOG_NAME_MAX];
	char dir[LOG_NAME_MAX];
	int status;
};

enum log_style {
	LINE_STDERR,  /* text for a person at a terminal */
	LINE_JOURNAL, /* with the prefix "<N>" of sd-daemon(3) */
	LINE_FILE,    /* with time and process number */
	LINE_SYSLOG,  /* syslog(3) adds time, name and process number */
};

/* Fill in a record from an event, except its times and the number of suppressed
 * events. */
void log_record_fill(struct log_record *r, const struct event *e);

/* Returns the priority as in syslog.h, from 3 (error) to 6 (info). */
int log_priority(enum event_kind kind);

/* Format the record as a line with a newline. Returns its length. A JSON line
 * also contains `mountpoint`. */
#define LOG_LINE_MAX 2048
size_t log_line(char buf[LOG_LINE_MAX], const struct log_record *r,
	enum log_style style, bool json, const char *mountpoint);

#endif
