/* SPDX-License-Identifier: MIT */
/*
 * Formats one line of the log, as text or JSON, for each kind of destination.
 */
#ifndef DAEMON_LOG_LINE_IMPL_H
#define DAEMON_LOG_LINE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/events.h"

#define LOG_MESSAGE_MAX 400
#define LOG_NAME_MAX 256

/* An event, or a summary of those that were suppressed. */
struct log_record {
	enum event_kind kind;
	uint64_t wall_ns;	       /* since 1970 */
	char message[LOG_MESSAGE_MAX]; /* escaped */
	uint64_t suppressed;	       /* 0: not a summary */
	uint64_t since_ns;	       /* of a summary; wall clock */
	char path[LOG_NAME_MAX];       /* raw; the tail of a long one */
	char dir[LOG_NAME_MAX];
	int status;
};

enum log_style {
	LINE_STDERR,  /* for a person at a terminal */
	LINE_JOURNAL, /* "<N>" before it, see sd-daemon(3) */
	LINE_FILE,    /* with time and process number */
	LINE_SYSLOG,  /* syslog(3) adds the rest */
};

/* Fill in a record from an event, except time and suppression. */
void log_record_fill(struct log_record *r, const struct event *e);

/* 3 (error), 4, 5, 6 (info): as in syslog.h. */
int log_priority(enum event_kind kind);

/*
 * Format the line with its newline into buf; returns the length. JSON names
 * `mountpoint`.
 */
#define LOG_LINE_MAX 2048
size_t log_line(char buf[LOG_LINE_MAX], const struct log_record *r,
	enum log_style style, bool json, const char *mountpoint);

#endif
