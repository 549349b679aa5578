/* SPDX-License-Identifier: MIT */
/*
 * The commands for plans. A connection has at most one plan, which is closed
 * with the connection. Runs on the thread of the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "mount/daemon/mount_impl.h"

/* Maximum number of names that an answer lists, of the names that were not
 * added. */
#define EXAMPLES_MAX 8u
#define EXAMPLE_BYTES_MAX 400

#define FOLLOW_NS (200 * NS_PER_MS)

/* The largest number in a request. */
#define NUMBER_MAX ((json_int_t)1 << 53)

/* The plan of a connection. */
struct course {
	uint32_t magic;
	const struct loaders *of;
	struct plan *plan;
	uint64_t epoch; /* epoch of the names that were added last */
};

static void course_free(void *arg)
{
	struct course *k = OBJECT(course, arg);

	plan_close(k->plan);
	MAGIC_END(k);
	free(k);
}

/* Get the plan of the connection. If there is none, sends an error and returns
 * NULL. */
static struct course *course_of(struct ctl_conn *conn)
{
	struct course *k = ctl_owned(conn);

	if (k)
		return OBJECT(course, k);
	(void)ctl_fail(
		conn, "this connection has no plan: begin with \"plan\"");
	return NULL;
}

/* -- Members of a request -------------------------------------------------- */

static int get_number(const json_t *request, const char *name, uint64_t most,
	uint64_t *out, struct error *err)
{
	const json_t *value = json_object_get(request, name);
	json_int_t n = json_integer_value(value);

	if (!value)
		return 0;
	if (!json_is_integer(value) || n < 0 || (uint64_t)n > most)
		return error_set(err, -EINVAL,
			"\"%s\" must be a whole number of at most %llu", name,
			(unsigned long long)most);
	*out = (uint64_t)n;
	return 0;
}

static int get_echo(const json_t *request, const char *name,
	struct schedule_echo *out, struct error *err)
{
	const json_t *value = json_object_get(request, name);
	const char *text = json_string_value(value);

	if (!value)
		return 0;
	if (text)
		return schedule_echo_parse(text, out, err);
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
		json_integer_value(value) > SCHEDULE_ECHO_MAX)
		return error_set(err, -EINVAL,
			"\"%s\" must be text such as \"2.5\" or \"5/2\", or a "
			"whole number from 1 to %d",
			name, SCHEDULE_ECHO_MAX);
	*out = (struct schedule_echo){(uint32_t)json_integer_value(value), 1};
	return 0;
}

static int get_step_ns(const json_t *request, uint64_t *out, struct error *err)
{
	const json_t *value = json_object_get(request, "step_ms");
	double ms = json_number_value(value);

	if (!value)
		return 0;
	if (!json_is_number(value) || !(ms >= 0 && ms <= PLAN_STEP_MS_MAX))
		return error_set(err, -EINVAL,
			"\"step_ms\" must be a number of milliseconds");
	*out = (uint64_t)(ms * 1e6);
	return 0;
}

static int get_params(
	const json_t *request, struct plan_params *p, struct error *err)
{
	uint64_t batch = 0;
	int rc = get_number(request, "batch", SCHEDULE_BATCH_MAX, &batch, err);

	p->batch = (uint32_t)batch;
	if (rc == 0)
		rc = get_number(request, "window", SCHEDULE_WINDOW_MAX,
			&p->window, err);
	if (rc == 0)
		rc = get_number(request, "fresh", SCHEDULE_GLOBAL_MAX / 2,
			&p->fresh, err);
	if (rc == 0)
		rc = get_number(
			request, "slack", PLAN_POSITIONS_MAX, &p->slack, err);
	if (rc == 0)
		rc = get_number(
			request, "spread", PLAN_POSITIONS_MAX, &p->spread, err);
	if (rc == 0)
		rc = get_number(
			request, "begun", PLAN_POSITIONS_MAX, &p->begun, err);
	if (rc == 0)
		rc = get_echo(request, "echo", &p->echo, err);
	if (rc == 0)
		rc = get_echo(request, "echo_max", &p->echo_max, err);
	p->measure = json_is_true(json_object_get(request, "measure"));
	p->admit_planned =
		json_is_true(json_object_get(request, "admit_planned"));
	return rc < 0 ? rc : get_step_ns(request, &p->step_ns, err);
}

/* -- Opening and extending a plan ------------------------------------------ */

void command_plan(void *arg, struct ctl_conn *conn, const json_t *request)
{
	const struct loaders *of = OBJECT(loaders, arg);
	CLEANUP_FREE struct course *k = calloc(1, sizeof(*k));
	struct plan_params params = {.batch = 0};
	struct error err = {""};

	/* A new plan replaces the old one, even if the new one cannot be
	 * opened. */
	ctl_own(conn, NULL, NULL);
	if (loader_refused(of, conn))
		return;
	if (json_is_true(json_object_get(request, "own")))
		params.reader = ctl_peer(conn);
	if (!k || get_params(request, &params, &err) < 0 ||
		plan_open(of->plans, &params, &k->plan, &err) < 0) {
		(void)ctl_fail(conn, "%s", k ? err.msg : "out of memory");
		return;
	}
	MAGIC_BEGIN(k, course);
	k->of = of;
	if (json_is_true(json_object_get(request, "again")))
		COUNT(of->counters, plans_again);
	ctl_own(conn, steal_ptr(&k), course_free);
	(void)ctl_send(conn,
		json_pack("{s:b, s:I}", "ok", 1, "ahead_bytes_max",
			(json_int_t)cache_ahead_bytes(of->cache)));
}

/* The numbers of names of one request, by result. */
struct added {
	uint64_t added, unknown, not_file, empty, duplicate;
	json_t *examples;
};

static void leave_out(
	struct added *a, uint64_t *count, const json_t *name, const char *why)
{
	char text[EXAMPLE_BYTES_MAX];
	const char *path = json_string_value(name);

	(*count)++;
	if (json_array_size(a->examples) >= EXAMPLES_MAX)
		return;
	(void)snprintf(text, sizeof(text), "%.300s: %s",
		path ? path : "(not a string)", why);
	(void)json_array_append_new(a->examples, ctl_text_new(text));
}

/* Add one name. Returns 0, or an error that ends the request. */
static int plans_add_name(struct course *k, struct request_names *names,
	const json_t *name, struct added *a)
{
	struct node_info info;
	int rc;

	if (names_find(names, name, &info) < 0)
		leave_out(a, &a->unknown, name, "the source has no such name");
	else if (info.attr.kind != KIND_FILE)
		leave_out(a, &a->not_file, name, "is not a file");
	else if (info.attr.version.size_bytes == 0)
		leave_out(a, &a->empty, name, "is empty");
	else {
		rc = plan_add(k->plan, k->epoch, info.id);
		if (rc == -EEXIST)
			leave_out(a, &a->duplicate, name,
				"is already in this epoch");
		else if (rc < 0)
			return rc;
		else
			a->added++;
	}
	return 0;
}

static int add_names(struct course *k, const json_t *request, struct added *a,
	struct error *err)
{
	const json_t *paths = json_object_get(request, "paths");
	struct request_names names = {.of = k->of};
	uint64_t epoch = k->epoch;
	int rc = get_number(request, "epoch", NUMBER_MAX, &epoch, err);

	if (rc < 0)
		return rc;
	if (!json_is_array(paths))
		return error_set(err, -EINVAL, "\"paths\" must be an array");
	if (epoch < k->epoch)
		return error_set(err, -EINVAL,
			"epoch %llu comes before epoch %llu, which was already "
			"added",
			(unsigned long long)epoch,
			(unsigned long long)k->epoch);
	k->epoch = epoch;
	for (size_t i = 0; rc == 0 && i < json_array_size(paths); i++)
		rc = plans_add_name(k, &names, json_array_get(paths, i), a);
	if (rc == -ENOSPC)
		return error_set(err, rc,
			"the plans of a mount can hold at most %llu files "
			"still to be read, and one plan %u epochs; add the "
			"rest later",
			(unsigned long long)PLAN_POSITIONS_MAX, 4096u);
	return rc < 0 ? error_set(err, rc, "cannot add to the plan: %m") : 0;
}

void command_plan_add(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct course *k = course_of(conn);
	struct added a = {.examples = json_array()};
	struct plan_status s;
	struct error err;

	(void)arg;
	if (k && add_names(k, request, &a, &err) < 0) {
		(void)ctl_fail(conn, "%s", err.msg);
	} else if (k) {
		plan_status(k->plan, &s);
		(void)ctl_send(conn,
			json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:O}",
				"ok", 1, "positions", (json_int_t)s.positions,
				"added", (json_int_t)a.added, "unknown",
				(json_int_t)a.unknown, "not_file",
				(json_int_t)a.not_file, "empty",
				(json_int_t)a.empty, "duplicate",
				(json_int_t)a.duplicate, "left_out",
				a.examples));
	}
	json_decref(a.examples);
}

/* -- Progress and status --------------------------------------------------- */

/* The contents of a progress request. Members that the request lacks are 0. */
struct progress_request {
	uint64_t position, step, from, step_ns;
	struct schedule_echo echo;
	bool has_from;
};

static int get_progress(
	const json_t *request, struct progress_request *p, struct error *err)
{
	int rc = get_number(request, "position", NUMBER_MAX, &p->position, err);

	if (rc == 0)
		rc = get_number(request, "step", NUMBER_MAX, &p->step, err);
	if (rc == 0)
		rc = get_number(request, "from", SCHEDULE_GLOBAL_MAX / 2,
			&p->from, err);
	if (rc == 0)
		rc = get_echo(request, "echo", &p->echo, err);
	p->has_from = json_object_get(request, "from") != NULL;
	return rc < 0 ? rc : get_step_ns(request, &p->step_ns, err);
}

static int plans_change_echo(
	struct course *k, const struct progress_request *p, struct error *err)
{
	int rc = 0;

	if (p->echo.p && p->has_from)
		rc = plan_echo_from(k->plan, p->from, p->echo);
	else if (p->echo.p)
		rc = plan_echo(k->plan, p->step, p->echo);
	return rc < 0 ? error_set(err, rc,
				"cannot change the echo factor of the plan: %m")
		      : 0;
}

static json_t *rates_line(struct plan *plan)
{
	struct plan_rates r;

	plan_rates(plan, &r);
	return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}",
		"ok", 1, "full_us", (json_int_t)(r.full_ns / NS_PER_US),
		"full_bytes", (json_int_t)r.full_bytes, "long_us",
		(json_int_t)(r.long_ns / NS_PER_US), "long_bytes",
		(json_int_t)r.long_bytes, "bursts", (json_int_t)r.bursts,
		"looked", (json_int_t)r.looked, "missing_bytes",
		(json_int_t)r.missing_bytes, "fetching", (int)r.fetching,
		"window_full", (int)r.full);
}

void command_plan_progress(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct course *k = course_of(conn);
	struct progress_request p = {.position = 0};
	struct error err = {""};

	(void)arg;
	if (!k)
		return;
	if (get_progress(request, &p, &err) < 0 ||
		report_take(k->of->counters, request, &err) < 0 ||
		plans_change_echo(k, &p, &err) < 0) {
		(void)ctl_fail(conn, "%s", err.msg);
		return;
	}
	if (json_object_get(request, "step_ms"))
		plan_step_time(k->plan, p.step_ns);
	plan_progress(k->plan, p.position);
	if (p.step)
		plan_progress_step(k->plan, p.step);
	(void)ctl_send(conn, rates_line(k->plan));
}

static json_t *status_line(struct plan *plan, const char *kind)
{
	struct plan_status s;

	plan_status(plan, &s);
	return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:I, s:I, s:I, s:f}",
		kind, 1, "positions", (json_int_t)s.positions, "done",
		(json_int_t)s.done, "front", (json_int_t)s.front, "cursor",
		(json_int_t)s.cursor, "step", (json_int_t)s.step, "read",
		(json_int_t)s.read, "resident", (json_int_t)s.resident,
		"fetched_items", (json_int_t)s.fetched_items, "fetched_bytes",
		(json_int_t)s.fetched_bytes, "ahead_items",
		(json_int_t)s.ahead_items, "ahead_bytes",
		(json_int_t)s.ahead_bytes, "wasted_items", (json_int_t)s.wasted,
		"failed_items", (json_int_t)s.failed, "changed",
		(json_int_t)s.gone, "step_ms", (double)s.step_ns / 1e6);
}

void command_plan_status(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct course *k = course_of(conn);

	(void)arg;
	(void)request; /* the command has no arguments */
	if (k)
		(void)ctl_send(conn, status_line(k->plan, "ok"));
}

void command_plan_follow(
	void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct course *k = course_of(conn);

	(void)arg;
	(void)request; /* the command has no arguments */
	if (!k)
		return;
	while (!plan_wait(k->plan, FOLLOW_NS))
		if (ctl_gone(conn) ||
			ctl_send(conn, status_line(k->plan, "progress")) < 0)
			break;
	(void)ctl_send(conn, status_line(k->plan, "ok"));
}

void command_plan_drop(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct course *k = course_of(conn);

	(void)arg;
	(void)request; /* the command has no arguments */
	if (!k)
		return;
	ctl_own(conn, NULL, NULL);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}
