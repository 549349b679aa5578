/* SPDX-License-Identifier: MIT */
/* Formats lines of the log. The functions have no state. */
#include "mount/daemon/log_line_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"

/* Copy a name. If it is too long, copy its end, which says more than its
 * beginning. */
static void copy_name(char to[LOG_NAME_MAX], const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n >= LOG_NAME_MAX)
		name += n - (LOG_NAME_MAX - 1);
	(void)snprintf(to, LOG_NAME_MAX, "%s", n ? name : "");
}

void log_record_fill(struct log_record *r, const struct event *e)
{
	r->kind = e->kind;
	r->status = e->status;
	r->suppressed = 0;
	copy_name(r->path, e->path);
	copy_name(r->dir, e->dir);
	(void)event_format(r->message, sizeof(r->message), e);
}

int log_priority(enum event_kind kind)
{
	return 3 + (int)event_table[kind].level;
}

#define TIME_TEXT_MAX 32

/* Format a time as "2023-11-14T22:13:20", in UTC. */
static void put_time(char buf[TIME_TEXT_MAX], uint64_t ns)
{
	time_t s = (time_t)(ns / NS_PER_S);
	struct tm tm;

	if (!gmtime_r(&s, &tm) ||
		strftime(buf, TIME_TEXT_MAX, "%FT%T", &tm) == 0)
		(void)strcpy(buf, "1970-01-01T00:00:00");
}

/* Write the beginning of a summary, such as "2 more like this since 10:40:12Z:
 * ". The message of the last event follows it. */
static void put_summary(char *buf, size_t size, const struct log_record *r)
{
	char since[TIME_TEXT_MAX];

	buf[0] = '\0';
	if (r->suppressed == 0)
		return;
	put_time(since, r->since_ns);
	(void)snprintf(buf, size,
		"%" PRIu64 " more like this since %sZ: ", r->suppressed,
		since + sizeof("2023-11-14T") - 1);
}

static size_t text_line(char buf[LOG_LINE_MAX], const struct log_record *r,
	enum log_style style)
{
	const char *level = event_level_name(event_table[r->kind].level);
	char summary[80], head[80] = "", when[TIME_TEXT_MAX];
	int n;

	put_summary(summary, sizeof(summary), r);
	put_time(when, r->wall_ns);
	if (style == LINE_STDERR)
		(void)snprintf(head, sizeof(head), "refrain: %s: ", level);
	else if (style == LINE_JOURNAL)
		(void)snprintf(
			head, sizeof(head), "<%d>", log_priority(r->kind));
	else if (style == LINE_FILE)
		(void)snprintf(head, sizeof(head),
			"%sZ refrain[%d]: %s: ", when, (int)getpid(), level);
	n = snprintf(buf, LOG_LINE_MAX, "%s%s%s\n", head, summary, r->message);
	return n > 0 ? (size_t)n : 0;
}

/* Set a member to a name. Bytes that are not UTF-8 are escaped, because a JSON
 * string must be UTF-8. */
static void set_name(json_t *o, const char *key, const char *name)
{
	char shown[4 * LOG_NAME_MAX];

	if (name[0])
		(void)json_object_set_new(o, key,
			json_string(escape_text(shown, sizeof(shown), name)));
}

static json_t *json_line(const struct log_record *r, const char *mountpoint)
{
	char when[TIME_TEXT_MAX + 8], seconds[TIME_TEXT_MAX];
	json_t *o = json_object();

	put_time(seconds, r->wall_ns);
	(void)snprintf(when, sizeof(when), "%s.%03uZ", seconds,
		(unsigned)(r->wall_ns / NS_PER_MS % 1000));
	(void)json_object_set_new(o, "time", json_string(when));
	(void)json_object_set_new(o, "level",
		json_string(event_level_name(event_table[r->kind].level)));
	(void)json_object_set_new(
		o, "event", json_string(event_table[r->kind].name));
	(void)json_object_set_new(o, "pid", json_integer(getpid()));
	set_name(o, "mountpoint", mountpoint);
	(void)json_object_set_new(o, "message", json_string(r->message));
	set_name(o, "path", r->path);
	set_name(o, "dir", r->dir);
	if (r->status < 0)
		(void)json_object_set_new(o, "errno", json_integer(-r->status));
	if (r->suppressed > 0)
		(void)json_object_set_new(o, "suppressed",
			json_integer((json_int_t)r->suppressed));
	return o;
}

size_t log_line(char buf[LOG_LINE_MAX], const struct log_record *r,
	enum log_style style, bool json, const char *mountpoint)
{
	CLEANUP_FREE char *text = NULL;
	json_t *o;
	int n;

	if (!json)
		return text_line(buf, r, style);
	o = json_line(r, mountpoint);
	text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(o);
	/* If memory is short or the line is too long, write it as text. */
	if (!text || strlen(text) + 8 > LOG_LINE_MAX)
		return text_line(buf, r, style);
	n = style == LINE_JOURNAL ? snprintf(buf, LOG_LINE_MAX, "<%d>%s\n",
					    log_priority(r->kind), text)
				  : snprintf(buf, LOG_LINE_MAX, "%s\n", text);
	return (size_t)n;
}
