/* SPDX-License-Identifier: MIT */
/* The commands of a mount with --analysis; see subject_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "analysis/subject/subject_impl.h"

/* The maximum delay of a tiny image, in microseconds. The delay blocks a thread
 * of the session, which is acceptable only during an analysis. */
#define LATE_MAX_US 1000000

void command_mask(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct subject *s = OBJECT(subject, arg);
	const json_t *value = json_object_get(request, "x");
	const json_t *keep = json_object_get(request, "keep");
	double x = json_number_value(value);
	uint64_t limit = CACHE_MASK_NONE;

	if (!json_is_number(value) || !(x >= 0 && x <= 1)) {
		(void)ctl_fail(conn, "\"x\" must be a number from 0 to 1");
		return;
	}
	/* 2^64 times x. This cannot overflow, even for the largest double below
	 * 1. */
	if (x < 1)
		limit = (uint64_t)(x * 18446744073709551616.0);
	atomic_store_explicit(&s->mask.limit, limit, memory_order_relaxed);
	if (json_is_boolean(keep))
		atomic_store_explicit(
			&s->drops, !json_is_true(keep), memory_order_relaxed);
	pages_changed(s->parts->pages);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

/* Add the cached images that consist of one item. */
static void add_stand_ins(struct subject *s, struct stand_ins *all)
{
	struct node_info info;

	for (node_id id = NODE_ROOT; id < manifest_end(s->parts->manifest);
		id++) {
		struct cache_item item;
		struct hash128 key;

		if (manifest_get(s->parts->manifest, id, &info) < 0 ||
			info.retired || info.attr.kind != KIND_FILE ||
			info.attr.version.size_bytes == 0)
			continue;
		item = (struct cache_item){.digest = info.digest,
			.version = info.attr.version,
			.cookie = id};
		key = subject_item(s, &item, &item);
		if (item.size == info.attr.version.size_bytes &&
			store_has(s->parts->store, key, item.size) &&
			subject_has_image_name(s, id))
			stand_ins_add(all, key, item.size);
	}
	stand_ins_sort(all);
}

/* Create the table, but only once, because entries are never evicted. */
static bool make_stand_ins(struct subject *s)
{
	LOCK_SCOPE(&s->lock);

	if (!s->stand_ins) {
		struct stand_ins *all = stand_ins_new();

		if (!all)
			return false;
		add_stand_ins(s, all);
		if (stand_ins_count(all) == 0) {
			stand_ins_free(all);
			return false;
		}
		s->stand_ins = all;
	}
	return true;
}

static void tell_stand_ins(struct subject *s, struct ctl_conn *conn)
{
	if (!make_stand_ins(s)) {
		(void)ctl_fail(conn,
			"no JPEG file is cached that could stand in for "
			"others");
		return;
	}
	atomic_store_explicit(&s->content, CONTENT_REAL, memory_order_relaxed);
	atomic_store_explicit(&s->standing, true, memory_order_release);
	(void)ctl_send(conn,
		json_pack("{s:b, s:I}", "ok", 1, "images",
			(json_int_t)stand_ins_count(s->stand_ins)));
}

void command_content(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct subject *s = OBJECT(subject, arg);
	const json_t *value = json_object_get(request, "content");
	const char *text =
		json_is_string(value) ? json_string_value(value) : "";
	json_int_t late_us =
		json_integer_value(json_object_get(request, "delay_us"));
	int content;

	if (strcmp(text, "stand-in") == 0) {
		tell_stand_ins(s, conn);
		return;
	}
	if (strcmp(text, "real") == 0) {
		content = CONTENT_REAL;
		atomic_store_explicit(
			&s->standing, false, memory_order_relaxed);
	} else if (strcmp(text, "tiny") == 0) {
		content = CONTENT_TINY;
	} else if (late_us > 0 && late_us <= LATE_MAX_US &&
		(strcmp(text, "tiny-late") == 0 ||
			strcmp(text, "real-late") == 0)) {
		content = text[0] == 't' ? CONTENT_LATE : CONTENT_REAL_LATE;
		atomic_store_explicit(
			&s->late_us, (unsigned)late_us, memory_order_relaxed);
	} else {
		(void)ctl_fail(conn,
			"\"content\" must be \"real\", \"stand-in\", "
			"\"tiny\", \"real-late\" or \"tiny-late\", these two "
			"with \"delay_us\" from 1 to 1000000");
		return;
	}
	atomic_store_explicit(&s->content, content, memory_order_relaxed);
	pages_changed(s->parts->pages);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

/* Add a counter to the JSON answer as a member. */
#define RATE(of, name)                                                         \
	((json_int_t)atomic_load_explicit(&(of)->name, memory_order_relaxed))

/* Returns the processor time of this daemon. */
static uint64_t cpu_us(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / NS_PER_US;
}

void command_rates(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct subject *s = OBJECT(subject, arg);
	struct cache_status status;
	json_t *reply;
	uint64_t kept;

	kept = pages_settle(s->parts->pages);
	cache_status(s->parts->cache,
		/* this call adds the time for which reads are parked */
		&status);
	reply = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
		"ok", 1, "time_us", (json_int_t)(clock_now_ns() / NS_PER_US),
		"cpu_us", (json_int_t)cpu_us(), "first_reads",
		RATE(s->parts->counters, first_reads), "bytes",
		RATE(s, read_bytes), "hits", RATE(s->parts->counters, hits),
		"misses", RATE(s->parts->counters, misses), "tiny",
		RATE(s, tiny_reads), "stand_ins", RATE(s, stand_in_reads),
		"kept", RATE(s, kept_reads), "kept_bytes", (json_int_t)kept,
		"starved_us", RATE(s->parts->counters, starved_us), "parked_us",
		RATE(s->parts->counters, parked_us), "idle_us",
		RATE(s->parts->counters, idle_us), "readers",
		(json_int_t)readers_count(&s->readers), "refused",
		(int)atomic_load_explicit(&s->refused, memory_order_relaxed));
	if (reply && json_is_true(json_object_get(request, "intervals")))
		(void)json_object_update_new(reply,
			json_pack("{s:o, s:I, s:I}", "intervals",
				readers_intervals(&s->readers), "ran_us",
				RATE(&s->readers, ran_us), "delayed_us",
				RATE(&s->readers, delayed_us)));
	(void)ctl_send(conn, reply);
}
