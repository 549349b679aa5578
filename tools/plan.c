/* SPDX-License-Identifier: MIT */
/* refrain plan: sends a mount the order in which files will be read, and waits
 * until they have been read. If the daemon dies and refrain-hold starts a new
 * one, the new daemon gets the order from the position that the readers have
 * reached. One thread. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"
#include "mount/daemon/json_text.h"
#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "common/base/real.h"
#include "common/base/size.h"
#include "command.h"
#include "mount/plan/prefetch.h"
#include "order_lines.h"
#include "progress.h"
#include "common/schedule/schedule.h"

/* Limit for the length of the names in one request. The daemon accepts 1 MiB.
 */
#define REQUEST_BYTES ((size_t)768 << 10)
#define NAME_BYTES_MAX 8192

#define NOT_GIVEN UINT_MAX

/* Pause between two attempts to connect to the next daemon, and their number.
 */
#define AGAIN_US 50000
#define AGAIN_MAX 200
/* Interval between two requests for the state of the plan. The plan counts as
 * ended if so many states in a row show no new read: 10 s. */
#define LOOK_US 100000
#define STILL_MAX 100u

struct plan_args {
	unsigned epoch, batch, window, slack; /* or NOT_GIVEN */
	const char *echo, *step_ms;
	bool null, json, admit_planned;
};

#define FIELD(f) offsetof(struct plan_args, f)

static const struct option_def plan_table[] = {
	{
		.name = "epoch",
		.arg = "N",
		.help = "Number of the first epoch.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(epoch),
	},
	{
		.name = "echo",
		.arg = "E",
		.help = "Number of times each example is served, such as 2, "
			"2.5 or 5/2.",
		.kind = OPTION_TEXT,
		.offset = FIELD(echo),
	},
	{
		.name = "batch",
		.arg = "B",
		.help = "Examples per step.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(batch),
	},
	{
		.name = "window",
		.arg = "W",
		.help = "Window of the echo schedule, in examples.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(window),
	},
	{
		.name = "step-ms",
		.arg = "T",
		.help = "Duration of a step in milliseconds (default: "
			"measured).",
		.kind = OPTION_TEXT,
		.offset = FIELD(step_ms),
	},
	{
		.name = "slack",
		.arg = "N",
		.help = "Maximum number of files that one reader of this order "
			"may be ahead of another (default: 16 batches, at "
			"least 256).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(slack),
	},
	{
		.name = "admit-planned",
		.help = "Until all of the order was read, let the mount's "
			"cache admit only files that a plan names.",
		.kind = OPTION_FLAG,
		.offset = FIELD(admit_planned),
	},
	{
		.name = "null",
		.letter = '0',
		.help = "Names end with NUL instead of a newline.",
		.kind = OPTION_FLAG,
		.offset = FIELD(null),
	},
	{
		.name = "json",
		.help = "Print the result as one JSON object, without "
			"progress.",
		.kind = OPTION_FLAG,
		.offset = FIELD(json),
	},
	{.name = NULL},
};

const struct option_usage plan_usage = {
	.name = "plan",
	.operands = "MOUNTPOINT",
	.summary = "Read from standard input the order in which files will be "
		   "read, and send it to a mount. Each line is a relative "
		   "path; an empty line starts the next epoch.",
	.options = plan_table,
	.min_operands = 1,
	.max_operands = 1,
};

struct plan_run {
	const struct plan_args *args;
	struct ctl_client *client;
	struct progress progress;
	const char *mountpoint;
	struct order_lines order;
	bool read; /* the whole order was read from standard input once */
	/* number of names at the beginning of the order that were read or
	 * passed over */
	uint64_t skip;
	uint64_t skipped; /* number of names that were passed over */
	json_t *told;	  /* last status that this daemon has sent, or NULL */
	unsigned still;	  /* number of states in a row without a new read */
	json_t *before; /* sums of the counts of the earlier daemons, or NULL */
	json_t *names;	/* names of the next request */
	uint64_t epoch; /* epoch of these names */
	size_t bytes;
	/* Counts of lines that were left out. */
	uint64_t unknown, not_file, empty, duplicate, too_long;
	uint64_t added;
	/* examples of lines that were left out; NULL: none yet */
	json_t *examples;
};

/* Add a numeric option of the command line to the request. */
static int set_number(
	json_t *request, const char *name, const char *text, struct error *err)
{
	char *end;
	double value = real_parse(text, &end);

	if (end == text || *end || !(value > 0 && value <= PLAN_STEP_MS_MAX))
		return error_set(err, -EINVAL,
			"plan: --step-ms: '%s' is not a number of milliseconds "
			"above 0 and up to %.0f",
			text, PLAN_STEP_MS_MAX);
	(void)json_object_set_new(request, name, json_real(value));
	return 0;
}

static int set_unsigned(json_t *request, const char *name, unsigned value,
	uint64_t most, struct error *err)
{
	if (value == NOT_GIVEN)
		return 0;
	if (value == 0 || value > most)
		return error_set(err, -EINVAL,
			"plan: --%s must be from 1 to %" PRIu64, name, most);
	(void)json_object_set_new(request, name, json_integer(value));
	return 0;
}

static int request_of(
	const struct plan_args *args, json_t **out, struct error *err)
{
	json_t *request = json_pack("{s:s}", "cmd", "plan");
	struct schedule_echo echo;
	struct error why;
	int rc = 0;

	if (args->echo && schedule_echo_parse(args->echo, &echo, &why) < 0)
		rc = error_set(err, -EINVAL, "plan: --echo: %s", why.msg);
	if (rc == 0)
		rc = set_unsigned(
			request, "batch", args->batch, SCHEDULE_BATCH_MAX, err);
	if (rc == 0)
		rc = set_unsigned(request, "window", args->window,
			SCHEDULE_WINDOW_MAX, err);
	if (rc == 0)
		rc = set_unsigned(
			request, "slack", args->slack, PLAN_POSITIONS_MAX, err);
	if (args->admit_planned)
		(void)json_object_set_new(
			request, "admit_planned", json_true());
	if (args->echo)
		(void)json_object_set_new(
			request, "echo", ctl_text_new(args->echo));
	if (args->step_ms && rc == 0)
		rc = set_number(request, "step_ms", args->step_ms, err);
	*out = request;
	return rc;
}

static void add_up(struct plan_run *p, const json_t *reply)
{
	json_t *examples = json_object_get(reply, "left_out");

	p->added += ask_number(reply, "added");
	p->unknown += ask_number(reply, "unknown");
	p->not_file += ask_number(reply, "not_file");
	p->empty += ask_number(reply, "empty");
	p->duplicate += ask_number(reply, "duplicate");
	if (!p->examples && json_array_size(examples) > 0)
		p->examples = json_incref(examples);
}

static int send_names(struct plan_run *p, struct error *err)
{
	json_t *reply = NULL;
	int rc;

	if (json_array_size(p->names) == 0)
		return 0;
	rc = ctl_request(p->client,
		json_pack("{s:s, s:I, s:O}", "cmd", "plan-add", "epoch",
			(json_int_t)p->epoch, "paths", p->names),
		0, NULL, NULL, &reply, err);
	(void)json_array_clear(p->names);
	p->bytes = 0;
	if (rc < 0)
		return rc;
	if (!p->read)
		add_up(p, reply);
	json_decref(reply);
	return 0;
}

static int add_line(
	struct plan_run *p, char *line, size_t len, struct error *err)
{
	/* An upper bound for the length of the name after escaping. */
	size_t bytes = 6 * len + 16;
	int rc = 0;

	if (p->skipped < p->skip) {
		p->skipped++;
		return 0;
	}
	if (len >= NAME_BYTES_MAX || strlen(line) != len) {
		p->too_long += !p->read;
		return 0;
	}
	if (p->bytes + bytes > REQUEST_BYTES)
		rc = send_names(p, err);
	if (rc == 0 && json_array_append_new(p->names, ctl_path_new(line)) < 0)
		rc = error_set(err, -ENOMEM, "%m");
	/* Reduce the bound: most bytes need no escape. */
	for (size_t i = 0; i < len; i++)
		if (line[i] >= ' ' && line[i] < 127 && line[i] != '"' &&
			line[i] != '\\')
			bytes -= 5;
	p->bytes += bytes;
	return rc;
}

/* End an epoch, because the line was empty. */
static int end_epoch(struct plan_run *p, struct error *err)
{
	int rc = send_names(p, err);

	p->epoch++;
	return rc;
}

static int read_order(struct plan_run *p, struct error *err)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	int rc = 0;

	p->epoch = p->args->epoch;
	p->skipped = 0;
	while (rc == 0) {
		ssize_t len = order_lines_next(&p->order, &line, &room);

		if (len < 0)
			break;
		rc = len > 0 ? add_line(p, line, (size_t)len, err)
			     : end_epoch(p, err);
	}
	if (rc == 0 && ferror(stdin))
		rc = error_set(err, -EIO, "cannot read the order: %m");
	if (rc == 0)
		rc = send_names(p, err);
	p->read |= rc == 0;
	return rc;
}

static void plan_show(struct plan_run *p)
{
	char note[96];

	(void)snprintf(note, sizeof(note),
		" fetched ahead, %" PRIu64 " of %" PRIu64 " files done",
		ask_number(p->told, "done"), ask_number(p->told, "positions"));
	progress_show(&p->progress, ask_number(p->told, "fetched_items"),
		ask_number(p->told, "fetched_bytes"), 0, note);
}

static void print_left_out(const struct plan_run *p)
{
	uint64_t n = p->unknown + p->not_file + p->empty + p->duplicate +
		p->too_long;
	const char *first = json_string_value(json_array_get(p->examples, 0));

	if (n == 0)
		return;
	(void)printf("%" PRIu64 " %s left out: %" PRIu64
		     " unknown names, %" PRIu64 " not files, %" PRIu64
		     " empty files, %" PRIu64 " duplicates, %" PRIu64
		     " too long",
		n, ask_plural(n, "line was", "lines were"), p->unknown,
		p->not_file, p->empty, p->duplicate, p->too_long);
	if (first) {
		(void)fputs("; the first is ", stdout);
		escape_print(stdout, first);
	}
	(void)putchar('\n');
	(void)fflush(stdout);
}

static void plan_report(const struct plan_run *p, json_t *reply)
{
	uint64_t files = ask_number(reply, "positions");
	uint64_t resident = ask_number(reply, "resident");
	uint64_t items = ask_number(reply, "fetched_items") -
		ask_number(reply, "failed_items");
	char bytes[SIZE_TEXT_MAX];

	if (p->args->json) {
		(void)json_object_update_new(reply,
			json_pack("{s:I, s:I, s:I, s:I, s:I}", "unknown",
				(json_int_t)p->unknown, "not_file",
				(json_int_t)p->not_file, "empty",
				(json_int_t)p->empty, "duplicate",
				(json_int_t)p->duplicate, "too_long",
				(json_int_t)p->too_long));
		ask_print_json(reply);
		return;
	}
	(void)printf("%" PRIu64 " %s: %" PRIu64 " %s in the cache, %" PRIu64
		     " %s (%s) %s fetched ahead, %" PRIu64
		     " of them never read\n",
		files, ask_plural(files, "file", "files"), resident,
		ask_plural(resident, "was", "were"), items,
		ask_plural(items, "item", "items"),
		size_format(ask_number(reply, "fetched_bytes"), bytes),
		ask_plural(items, "was", "were"),
		ask_number(reply, "wasted_items"));
}

/* Report files that the daemon could not fetch. Files that have changed at the
 * source count, too: only the next plan has their new version. */
static int check_failed(const json_t *reply, struct error *err)
{
	uint64_t n = ask_number(reply, "failed_items");
	uint64_t changed = ask_number(reply, "changed");
	const char *items = ask_plural(n, "item", "items");

	if (n == 0)
		return 0;
	if (changed == 0)
		return error_set(err, -EIO,
			"%" PRIu64 " %s could not be fetched: the source "
			"failed; see the log of the mount, and plan again",
			n, items);
	return error_set(err, -EIO,
		"%" PRIu64 " %s could not be fetched: %" PRIu64
		" %s changed at the source; run 'refrain refresh', and plan "
		"again",
		n, items, changed,
		ask_plural(changed, "file has", "files have"));
}

/* Is the plan done? The daemon counts the files that were read. The next daemon
 * never counts files that were read just before the last daemon ended. So the
 * plan also ends when a read has reached its last position and no more reads
 * come. */
static bool plan_is_done(struct plan_run *p, const json_t *status)
{
	uint64_t end = ask_number(status, "positions");

	if (ask_number(status, "read") != ask_number(p->told, "read"))
		p->still = 0;
	if (ask_number(status, "done") == end)
		return true;
	return p->before && ask_number(status, "front") == end &&
		++p->still > STILL_MAX;
}

static int wait_until_done(struct plan_run *p, struct error *err)
{
	bool done = false;

	while (!done) {
		json_t *status = NULL;
		int rc = ctl_request(p->client,
			json_pack("{s:s}", "cmd", "plan-status"), 0, NULL, NULL,
			&status, err);

		if (rc < 0)
			return rc;
		done = plan_is_done(p, status);
		json_decref(p->told);
		p->told = status;
		if (!p->args->json)
			plan_show(p);
		if (!done)
			(void)usleep(LOOK_US);
	}
	return 0;
}

/* Send the order, and wait until the plan is done. Returns -EPIPE if the daemon
 * has ended. */
static int plan_send(struct plan_run *p, json_t *request, struct error *err)
{
	bool first = !p->read;
	json_t *reply = NULL;
	int rc = ctl_request(
		p->client, json_incref(request), 0, NULL, NULL, &reply, err);

	json_decref(reply);
	if (rc == 0)
		rc = read_order(p, err);
	if (rc == 0 && p->added == 0)
		rc = error_set(err, -ENOENT,
			"no line is the path of a file relative to the "
			"mount's root: %s",
			p->examples ? json_string_value(
					      json_array_get(p->examples, 0))
				    : "standard input has no lines");
	if (rc < 0)
		return rc;
	/* Print the lines that were left out before the wait, which may last
	 * hours. */
	if (first && !p->args->json)
		print_left_out(p);
	return wait_until_done(p, err);
}

/* -- The next daemon ------------------------------------------------------- */

static void add_sums(json_t *to, const json_t *from)
{
	static const char *const sums[] = {"positions", "done", "read",
		"resident", "fetched_items", "fetched_bytes", "wasted_items",
		"failed_items", "changed"};

	for (size_t i = 0; from && i < sizeof(sums) / sizeof(sums[0]); i++)
		(void)json_object_set_new(to, sums[i],
			json_integer((json_int_t)(ask_number(to, sums[i]) +
				ask_number(from, sums[i]))));
}

/* Remove the names that the readers have passed from the request. */
static void pass_done(struct plan_run *p, json_t *request)
{
	uint64_t done = ask_number(p->told, "done");

	p->skip += done;
	(void)json_object_set_new(
		request, "fresh", json_integer((json_int_t)p->skip));
	(void)json_object_set_new(request, "again", json_true());
	if (p->told)
		(void)json_object_set_new(
			p->told, "positions", json_integer((json_int_t)done));
	if (p->before)
		add_sums(p->before, p->told);
	else
		p->before = json_incref(p->told);
	json_decref(p->told);
	p->told = NULL;
}

/* Go back to the first line of the order. Returns false if that is impossible.
 */
static bool turn_back(struct plan_run *p)
{
	if (!order_lines_rewind(&p->order))
		return false;
	(void)json_array_clear(p->names);
	p->bytes = 0;
	if (p->read)
		return true;
	p->added = p->unknown = p->not_file = p->empty = 0;
	p->duplicate = p->too_long = 0;
	return true;
}

/* Connect to the next daemon, as long as the kernel still has the mount. */
static int plan_reconnect(struct plan_run *p)
{
	int rc = -EAGAIN;

	ctl_disconnect(p->client);
	p->client = NULL;
	for (int i = 0; i < AGAIN_MAX; i++) {
		rc = ctl_connect(&p->client, p->mountpoint, NULL);
		if (rc != -ECONNREFUSED && rc != -ENOENT && rc != -EAGAIN &&
			rc != -ETIMEDOUT)
			break;
		(void)usleep(AGAIN_US);
	}
	return rc;
}

static int plan_run(struct plan_run *p, json_t *request, struct error *err)
{
	int rc;

	order_lines_begin(&p->order, p->args->null);
	rc = plan_send(p, request, err);
	while (rc == -EPIPE && turn_back(p) && plan_reconnect(p) == 0) {
		pass_done(p, request);
		rc = plan_send(p, request, err);
	}
	progress_end(&p->progress);
	if (rc < 0)
		return rc;
	add_sums(p->told, p->before);
	plan_report(p, p->told);
	return check_failed(p->told, err);
}

static void plan_release(struct plan_run *p)
{
	ctl_disconnect(p->client);
	order_lines_release(&p->order);
	json_decref(p->told);
	json_decref(p->before);
	json_decref(p->names);
	json_decref(p->examples);
}

int cmd_plan(int argc, char **argv)
{
	struct plan_args args = {
		.batch = NOT_GIVEN, .window = NOT_GIVEN, .slack = NOT_GIVEN};
	struct plan_run p = {.args = &args};
	struct error err = {""};
	json_t *request = NULL;
	int status, rc;

	if (command_parse(&plan_usage, argc, argv, &args, &status) < 0)
		return status;
	if (request_of(&args, &request, &err) < 0) {
		json_decref(request);
		(void)fprintf(stderr, "refrain: %s\n", err.msg);
		return EXIT_USAGE;
	}
	progress_begin(&p.progress);
	p.names = json_array();
	p.mountpoint = argv[1];
	rc = ctl_connect(&p.client, argv[1], &err);
	if (rc == 0)
		rc = plan_run(&p, request, &err);
	json_decref(request);
	plan_release(&p);
	return rc < 0 ? command_fail("plan", &err) : EXIT_OK;
}
