/* SPDX-License-Identifier: MIT */
/*
 * The command that traces READs. The thread of its connection takes the records
 * out of the rings (common/base/read_trace.h), looks up processes and paths,
 * and sends lines. A client that reads too slowly, or not at all, holds up only
 * this thread; records are lost meanwhile, and the line after that has their
 * number. The trace ends with the connection.
 *
 * Numbers of slots stand for processes and paths, so that most lines need not
 * repeat them: a line has the slots that it changes. A slot changes at most
 * once in a line, and it is sent again after a second, because the numbers of
 * threads and nodes are reused.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/read_trace.h"
#include "mount/daemon/json_text.h"

/* The time between two looks at the rings. */
#define LOOK_MS 10
/* A line is sent although there is nothing to send, to show that the trace has
 * not ended. */
#define SILENT_NS NS_PER_S
#define REMEMBER_NS NS_PER_S
#define LINE_RECORDS 1024u
#define LINE_BYTES ((size_t)256 << 10)
#define PATH_SLOTS 65536u
#define THREAD_SLOTS 1024u

struct slot {
	uint64_t until_ns; /* the slot must be sent again after this time */
	uint64_t key;	   /* the node or the thread in the slot */
	uint64_t line;	   /* number of the last line that used the slot */
	pid_t process;
	/* the thread that was noted last; only for threads */
	struct read_thread met;
};

/* The arrays of a line. */
enum part {
	PART_PROCESSES,
	PART_PATHS,
	PART_READS,
	PARTS,
};

struct trace_run {
	const struct tracing *of;
	struct ctl_conn *conn;
	pid_t only; /* trace only READs of this process; 0: of all */
	/* Add this to a time of clock_now_ns() to get the time of the day. */
	uint64_t real_ns;
	uint64_t now_ns, sent_ns;
	uint64_t line; /* number of the line that is being made */
	uint64_t lost;
	struct array text[PARTS];
	struct read_record record[LINE_RECORDS];
	struct slot path[PATH_SLOTS];
	struct slot thread[THREAD_SLOTS];
};

static void line_text(struct array *to, const char *text, size_t len)
{
	char *at = array_grow(to, len);

	/* if memory is short, the line is malformed, and the trace ends */
	if (at)
		memcpy(at, text, len);
}

/* Begin an element of an array. */
static void line_comma(struct array *to)
{
	if (array_bytes(to) > 0)
		line_text(to, ",", 1);
}

static void line_numbers(
	struct array *to, const char *end, const uint64_t *n, size_t count)
{
	char text[8 * 21];
	size_t len = 0;

	line_comma(to);
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s%llu", i ? "," : "", (unsigned long long)n[i]);
	line_text(to, text, len);
	line_text(to, end, strlen(end));
}

static void line_name(struct array *to, const char *name)
{
	json_t *value = ctl_text_new(name);
	CLEANUP_FREE char *text =
		value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	json_decref(value);
	line_text(to, text ? text : "\"\"", text ? strlen(text) : 2);
}

/* Send the line and begin the next. Returns false if the client is gone. */
static bool trace_send(struct trace_run *t)
{
	static const char *const name[PARTS] = {
		"\"processes\":[", "\"paths\":[", "\"reads\":["};
	struct array line = {.data = NULL};
	char head[64];
	int n = snprintf(head, sizeof(head), "{\"progress\":true,\"lost\":%llu",
		(unsigned long long)t->lost);
	int rc;

	line_text(&line, head, (size_t)n);
	for (int i = 0; i < PARTS; i++) {
		size_t bytes = array_bytes(&t->text[i]);

		line_text(&line, ",", 1);
		line_text(&line, name[i], strlen(name[i]));
		if (bytes > 0)
			line_text(&line, array_data(&t->text[i]), bytes);
		line_text(&line, "]", 1);
		(void)array_pop(&t->text[i], bytes);
	}
	line_text(&line, "}", 2);
	rc = array_bytes(&line) > 0 ? ctl_send_line(t->conn, array_data(&line),
					      array_bytes(&line) - 1)
				    : -ENOMEM;
	array_release(&line);
	t->lost = 0;
	t->line++;
	t->sent_ns = t->now_ns;
	return rc == 0;
}

static bool slot_is(const struct trace_run *t, struct slot *s, uint64_t key)
{
	return s->key == key && s->until_ns > t->now_ns;
}

static void slot_set(const struct trace_run *t, struct slot *s, uint64_t key)
{
	s->key = key;
	s->until_ns = t->now_ns + REMEMBER_NS;
}

static void line_path(struct trace_run *t, uint64_t slot, uint64_t node)
{
	char path[PATH_MAX];

	if (manifest_path(t->of->manifest, (node_id)node, path, sizeof(path)) <
		0)
		(void)snprintf(path, sizeof(path), "?");
	line_numbers(&t->text[PART_PATHS], ",", &slot, 1);
	line_name(&t->text[PART_PATHS], path);
	slot_set(t, &t->path[slot], node);
}

static void line_process(struct trace_run *t, uint64_t slot, pid_t thread)
{
	struct slot *s = &t->thread[slot];
	bool met = s->met.thread == thread;
	uint64_t n[2];

	/* A thread that could not be noted is known by its own number only. */
	s->process = met ? s->met.process : thread;
	n[0] = slot;
	n[1] = (uint64_t)s->process;
	line_numbers(&t->text[PART_PROCESSES], ",", n, 2);
	line_name(&t->text[PART_PROCESSES], met ? s->met.program : "");
	slot_set(t, s, (uint64_t)thread);
}

/* Get the slots of a record ready. Returns false if the line must be sent
 * first, because it uses one of the slots for something else. */
static bool slots_take(struct trace_run *t, const struct read_record *r,
	uint64_t *thread, uint64_t *path)
{
	*thread = (unsigned)r->thread % THREAD_SLOTS;
	*path = r->node % PATH_SLOTS;
	if ((!slot_is(t, &t->thread[*thread], (uint64_t)r->thread) &&
		    t->thread[*thread].line == t->line) ||
		(!slot_is(t, &t->path[*path], r->node) &&
			t->path[*path].line == t->line))
		return false;
	if (!slot_is(t, &t->thread[*thread], (uint64_t)r->thread))
		line_process(t, *thread, r->thread);
	t->thread[*thread].line = t->line;
	if (t->only && t->thread[*thread].process != t->only)
		return true;
	if (!slot_is(t, &t->path[*path], r->node))
		line_path(t, *path, r->node);
	t->path[*path].line = t->line;
	return true;
}

static bool line_full(const struct trace_run *t)
{
	size_t bytes = 0;

	for (int i = 0; i < PARTS; i++)
		bytes += array_bytes(&t->text[i]);
	return bytes > LINE_BYTES;
}

/* Take a note of who reads. The slot is sent again if that is news. */
static void trace_met(struct trace_run *t, const struct read_thread *who)
{
	struct slot *s = &t->thread[(unsigned)who->thread % THREAD_SLOTS];

	if (s->met.thread != who->thread || s->met.process != who->process ||
		strcmp(s->met.program, who->program) != 0)
		s->until_ns = 0;
	s->met = *who;
}

static bool trace_record(struct trace_run *t, const struct read_record *r)
{
	struct read_thread who;
	uint64_t n[7];

	if (read_trace_met(r, &who)) {
		trace_met(t, &who);
		return true;
	}
	while (line_full(t) || !slots_take(t, r, &n[1], &n[2]))
		if (!trace_send(t))
			return false;
	if (t->only && t->thread[n[1]].process != t->only)
		return true;
	n[0] = (r->end_ns + t->real_ns) / NS_PER_US;
	n[3] = r->off;
	n[4] = r->len;
	n[5] = r->source;
	n[6] = r->ns / NS_PER_US;
	line_numbers(&t->text[PART_READS], "", n, 7);
	return true;
}

/* Send the records of the rings. Returns false if the client is gone. */
static bool trace_look(struct trace_run *t, bool *more)
{
	size_t n = read_trace_take(
		t->of->trace, t->record, LINE_RECORDS, &t->lost);

	*more = n == LINE_RECORDS;
	t->now_ns = clock_now_ns();
	for (size_t i = 0; i < n; i++)
		if (!trace_record(t, &t->record[i]))
			return false;
	if (array_bytes(&t->text[PART_READS]) == 0 && t->lost == 0 &&
		t->now_ns < t->sent_ns + SILENT_NS)
		return true;
	return trace_send(t);
}

static void trace_serve(struct trace_run *t)
{
	bool more = false;

	t->now_ns = clock_now_ns();
	if (!trace_send(t)) /* this shows the client that the trace has begun */
		return;
	while (!ctl_gone_within(t->conn, more ? 0 : LOOK_MS))
		if (!trace_look(t, &more))
			return;
}

static uint64_t real_offset_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec -
		clock_now_ns();
}

static void trace_run(const struct tracing *of, struct ctl_conn *conn,
	uint64_t slow_us, pid_t only)
{
	struct trace_run *t = calloc(1, sizeof(*t));

	if (!t) {
		(void)ctl_fail(conn, "%s", strerror(ENOMEM));
		return;
	}
	t->of = of;
	t->conn = conn;
	t->only = only;
	t->real_ns = real_offset_ns();
	t->line = 1;
	read_trace_begin(of->trace, slow_us * NS_PER_US);
	atomic_store_explicit(
		&of->counters->trace, of->trace, memory_order_release);
	trace_serve(t);
	atomic_store_explicit(&of->counters->trace, NULL, memory_order_release);
	read_trace_end(of->trace);
	for (int i = 0; i < PARTS; i++)
		array_release(&t->text[i]);
	free(t);
}

void command_trace(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct tracing *of = OBJECT(tracing, arg);
	json_int_t slow_us =
		json_integer_value(json_object_get(request, "slow_us"));
	json_int_t only = json_integer_value(json_object_get(request, "pid"));

	if (slow_us < 0 || slow_us > INT_MAX || only < 0 || only > INT_MAX) {
		(void)ctl_fail(conn, "\"slow_us\" or \"pid\" is out of range");
		return;
	}
	if (atomic_exchange(&of->busy, true)) {
		(void)ctl_fail(conn,
			"another program traces this mount; try again when it "
			"has ended");
		return;
	}
	trace_run(of, conn, (uint64_t)slow_us, (pid_t)only);
	atomic_store(&of->busy, false);
}
