/* SPDX-License-Identifier: MIT */
/* Events that an operator should know of. Parts below the daemon report events
 * to the sink that the daemon has given them; the daemon's log decides which to
 * write, and where. The table of events is events.def. */
#ifndef BASE_EVENTS_H
#define BASE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the severities of syslog(3). */
enum event_level {
	EVENT_ERROR,
	EVENT_WARNING,
	EVENT_NOTICE,
	EVENT_INFO,
};

enum event_kind {
#define EVENT(kind, level, name, message, action) EVENT_##kind,
#include "common/base/events.def"
#undef EVENT
	EVENT_KINDS,
};

struct event_info {
	const char *name;
	enum event_level level;
	/* format of the message, with %p, %d, %e, %n, %s */
	const char *message;
	const char *action; /* what the operator can do */
};

/* Indexed by kind. */
extern const struct event_info event_table[EVENT_KINDS];

/* Returns "error", "warning", "notice" or "info". */
const char *event_level_name(enum event_level level);

/* One event. Strings hold any bytes, and the caller owns them. A member that
 * the kind does not use is NULL or 0. The comment of a member names its place
 * in the message. */
struct event {
	enum event_kind kind;
	const char *path; /* %p */
	const char *dir;  /* %d */
	const char *text; /* %s */
	int status;	  /* %e: -errno */
	uint64_t n;	  /* %n */
	/* A text from a small set, or NULL. The rate limit treats events that
	 * differ in kind, status, dir or cause as different. */
	const char *cause;
	/* a change of state; it has another rate limit than repeated errors */
	bool turn;
};

/* Where a part reports events. Any thread may call report(), with any lock
 * held: report() does not block, and calls no function of the part. */
struct event_sink {
	void (*report)(void *arg, const struct event *e);
	void *arg;
};

/* A NULL sink is allowed. */
static inline void event_report(
	const struct event_sink *sink, const struct event *e)
{
	if (sink)
		sink->report(sink->arg, e);
}

/*
 * Format the message of an event into buf as one line. Long names are cut, and
 * characters that could harm a terminal are escaped. Returns buf.
 */
const char *event_format(char *buf, size_t size, const struct event *e);

#endif
