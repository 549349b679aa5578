/* SPDX-License-Identifier: MIT */
/* Lists errors for `refrain status`: the last event of each cause in the log,
 * whether the error persists, and for how long the source has not answered.
 * Called by control connections. */
#include "mount/daemon/mount_impl.h"

#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/hash.h"

/* Some errors have no event that reports their end. They are listed for this
 * time. */
#define RECENT_NS (120 * NS_PER_S)

/* The last times at which parts have reported a recovery. */
struct recovered {
	uint64_t answered_ns; /* time of the last answer of the source */
	uint64_t renewed_ns;  /* time of the last renewal of its credentials */
	uint64_t tier[STORE_TIERS_MAX]; /* hash of the directory of each tier */
	/* Time of the last recovery of that tier; 0: unused element */
	uint64_t tier_ns[STORE_TIERS_MAX];
};

struct error_look {
	struct recovered recovered;
	uint64_t now_ns;
	json_t *errors; /* the newest error first */
	uint64_t present;
};

static uint64_t hash_of_dir(const struct log_last *last)
{
	return hash64(last->dir, strlen(last->dir), 0);
}

static void note_recovery(void *arg, const struct log_last *last)
{
	struct recovered *r = arg;

	if (last->kind == EVENT_CREDENTIALS_RENEWED)
		r->renewed_ns = last->time_ns;
	if (last->kind != EVENT_TIER_BACK)
		return;
	for (size_t i = 0; i < STORE_TIERS_MAX; i++)
		if (r->tier_ns[i] == 0) {
			r->tier[i] = hash_of_dir(last);
			r->tier_ns[i] = last->time_ns;
			return;
		}
}

static bool tier_is_back(const struct recovered *r, const struct log_last *last)
{
	for (size_t i = 0; i < STORE_TIERS_MAX; i++)
		if (r->tier_ns[i] > last->time_ns &&
			r->tier[i] == hash_of_dir(last))
			return true;
	return false;
}

static bool is_present(const struct error_look *l, const struct log_last *last)
{
	switch (last->kind) {
	case EVENT_ORIGIN_RETRY:
	case EVENT_ORIGIN_FAILED:
	case EVENT_ORIGIN_REFUSES:
	case EVENT_ORIGIN_SILENT:
	case EVENT_ORIGIN_UNUSABLE:
	case EVENT_READ_FAILED:
	case EVENT_NAME_FAILED:
		return last->time_ns > l->recovered.answered_ns;
	case EVENT_CREDENTIALS_FAILED:
		return last->time_ns > l->recovered.renewed_ns;
	case EVENT_TIER_FAILED:
	case EVENT_TIER_GONE:
	case EVENT_TIER_SCAN_FAILED:
		return !tier_is_back(&l->recovered, last);
	default:
		return l->now_ns < last->time_ns + RECENT_NS;
	}
}

/* Does the list contain this event as an error? Other lines of the status show
 * the remaining kinds of events. */
static bool is_error(enum event_kind kind)
{
	switch (kind) {
	case EVENT_LIMIT:
	case EVENT_FAULTS:
	case EVENT_SCAN_INCOMPLETE:
	case EVENT_ORIGIN_HIDDEN:
	case EVENT_PEER_DOWN:
	case EVENT_PEER_REFUSED:
	case EVENT_PEER_MANIFEST:
		return false;
	default:
		return event_table[kind].level <= EVENT_WARNING;
	}
}

static json_t *time_new(uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		(void)strftime(text, sizeof(text), "%FT%TZ", &tm);
	return json_string(text);
}

static json_t *error_object(
	const struct log_last *last, uint64_t age_ns, bool present)
{
	json_t *o = json_object();

	(void)json_object_set_new(
		o, "event", json_string(event_table[last->kind].name));
	(void)json_object_set_new(o, "message", ctl_text_new(last->message));
	if (last->status < 0)
		ctl_set_number(o, "errno", (uint64_t)-last->status);
	(void)json_object_set_new(o, "time", time_new(last->wall_ns));
	ctl_set_number(o, "age_ms", age_ns / NS_PER_MS);
	ctl_set_number(o, "events", last->events);
	(void)json_object_set_new(o, "present", json_boolean(present));
	return o;
}

static void add_error(void *arg, const struct log_last *last)
{
	struct error_look *l = arg;
	uint64_t age_ns =
		l->now_ns > last->time_ns ? l->now_ns - last->time_ns : 0;
	bool present = is_present(l, last);
	size_t at = 0;

	if (!is_error(last->kind))
		return;
	while (at < json_array_size(l->errors) &&
		(uint64_t)json_integer_value(json_object_get(
			json_array_get(l->errors, at), "age_ms")) <
			age_ns / NS_PER_MS)
		at++;
	(void)json_array_insert_new(
		l->errors, at, error_object(last, age_ns, present));
	l->present += present;
}

void status_add_errors(json_t *o, struct stack *stack, struct log *log)
{
	struct error_look l = {
		.now_ns = clock_now_ns(), .errors = json_array()};
	struct origin_health health;

	stack_health(stack, &health);
	l.recovered.answered_ns = health.answered_ns;
	log_each(log, note_recovery, &l.recovered);
	log_each(log, add_error, &l);
	ctl_set_number(o, "origin_waiting", health.waiting);
	ctl_set_number(o, "origin_silent_ms", health.silent_ns / NS_PER_MS);
	ctl_set_number(o, "errors_present", l.present);
	(void)json_object_set_new(o, "errors", l.errors);
}
