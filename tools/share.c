/* SPDX-License-Identifier: MIT */
/*
 * refrain share: asks the hosts of shares for their views, and prints them. One
 * thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "common/base/proc.h"
#include "command.h"
#include "loader/share/share.h"

#define ANSWER_MS 2000
/* JSON must be UTF-8, which names may not be: every byte may become \xHH. */
#define ESCAPED(room) (4 * (room))

struct share_options {
	bool json, watch;
};

static const struct option_def share_table[] = {
	{"json", 0, NULL, "Print one JSON array.", OPTION_FLAG,
		offsetof(struct share_options, json), NULL, false},
	{"watch", 'w', NULL,
		"Refresh each second, until interrupted or until NAME has "
		"ended.",
		OPTION_FLAG, offsetof(struct share_options, watch), NULL,
		false},
	{.name = NULL},
};

const struct option_usage share_usage = {
	.name = "share",
	.operands = "[NAME]",
	.summary = "Show this user's shares on this host, or only NAME: their "
		   "jobs, the batches that each job holds, and which job the "
		   "others wait for.",
	.options = share_table,
	.min_operands = 0,
	.max_operands = 1,
};

struct share_query {
	const char *name; /* name of one share, or NULL: all */
	bool watched;	  /* if NAME ends, that is no failure */
	json_t *all;	  /* the answers, with --json */
	unsigned found, failed;
};

/* Ask the host of a share. Returns 1, or 0 if no process hosts it. */
static int share_ask_view(
	const char *name, struct share_view *view, struct error *err)
{
	struct share_link link = {-1, -1, 0};
	struct share_place *place;
	struct share_msg msg = {.type = SHARE_ASK};
	int fd = -1, rc = share_place_get(&place, name, err);

	if (rc < 0)
		return rc;
	rc = share_link_open(&link, place, err);
	if (rc == 0)
		rc = share_link_send(&link, &msg);
	if (rc == 0)
		rc = share_link_recv(&link, &msg, &fd, ANSWER_MS);
	else if (rc == -ENOENT || rc == -ECONNREFUSED)
		rc = -EPIPE;
	if (fd >= 0)
		(void)close(fd); /* the descriptor is not needed */
	if (rc == 0)
		rc = error_set(err, -ETIMEDOUT,
			"the host of '%s' (process %d) does not answer", name,
			(int)link.host_pid);
	share_link_close(&link);
	share_place_put(place);
	if (rc == 1 && msg.type == SHARE_REFUSE)
		return error_set(err, msg.refuse.error, "%s", msg.refuse.text);
	if (rc == -EPROTONOSUPPORT)
		return error_set(err, rc,
			"the host of '%s' (process %d) runs another version of "
			"refrain",
			name, (int)link.host_pid);
	if (rc == -EBADMSG || (rc == 1 && msg.type != SHARE_VIEW))
		return error_set(err, -EBADMSG,
			"the host of '%s' (process %d) sent a malformed answer",
			name, (int)link.host_pid);
	if (rc == 1)
		*view = msg.view;
	return rc == -EPIPE ? 0 : rc;
}

static const char *share_job_state(
	const struct share_view *v, const struct share_job *job)
{
	if (proc_state((pid_t)job->pid) == 'T')
		return "stopped";
	if (job->solo)
		return "is alone";
	if (job->waiting)
		return "waits";
	if (v->jobs_n > 1 && job == share_view_slowest(v))
		return "is waited for";
	return "works";
}

/* -- For people -- */

static void share_print(const struct share_view *v)
{
	escape_print(stdout, v->name);
	(void)printf(": process %u hosts, ", v->host_pid);
	if (v->begun)
		(void)printf("step %" PRIu64 ", %u of %u batches held\n",
			v->step, v->slots_held, v->slots);
	else if (v->missing)
		(void)printf(
			"waits for %u jobs of the previous host\n", v->missing);
	else
		(void)printf("has %u of %u jobs\n", v->jobs_n, v->wanted);
	for (uint32_t i = 0; i < v->jobs_n; i++) {
		const struct share_job *job = &v->jobs[i];

		(void)printf("  %-8u ", job->pid);
		escape_print(stdout, job->label);
		(void)printf(": step %" PRIu64 ", holds %u, batch %u, %s\n",
			job->next, job->held, job->batch,
			share_job_state(v, job));
	}
}

/* -- For programs -- */

static json_t *share_job_json(
	const struct share_view *v, const struct share_job *job)
{
	char label[ESCAPED(SHARE_LABEL_MAX)];

	return json_pack("{s:i,s:s,s:I,s:i,s:i,s:b,s:b,s:s}", "pid",
		(int)job->pid, "label",
		escape_text(label, sizeof(label), job->label), "next_step",
		(json_int_t)job->next, "held", (int)job->held, "batch",
		(int)job->batch, "waiting", (int)job->waiting, "solo",
		(int)job->solo, "state", share_job_state(v, job));
}

static json_t *share_json(const struct share_view *v)
{
	char name[ESCAPED(SHARE_FULL_NAME_MAX)];
	char text[ESCAPED(SHARE_TEXT_MAX)];
	json_t *jobs = json_array();

	for (uint32_t i = 0; i < v->jobs_n; i++)
		(void)json_array_append_new(
			jobs, share_job_json(v, &v->jobs[i]));
	return json_pack(
		"{s:s,s:i,s:b,s:I,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:s,s:o}", "name",
		escape_text(name, sizeof(name), v->name), "host_pid",
		(int)v->host_pid, "begun", (int)v->begun, "step",
		(json_int_t)v->step, "slots", (int)v->slots, "slots_held",
		(int)v->slots_held, "batch", (int)v->batch, "jobs_wanted",
		(int)v->wanted, "jobs_missing", (int)v->missing, "takeovers",
		(json_int_t)v->generation, "malformed",
		(json_int_t)v->malformed, "waits_for",
		escape_text(text, sizeof(text), v->text), "jobs", jobs);
}

/* -- Both -- */

/* Is `name` the share NAME, or NAME.RANK-WORLD? */
static bool share_is_asked(const struct share_query *q, const char *name)
{
	size_t n = q->name ? strlen(q->name) : 0;

	return !n ||
		(strncmp(name, q->name, n) == 0 &&
			(!name[n] || name[n] == '.'));
}

/* Print one share. If it does not answer, the others are printed even so. */
static int share_each(void *arg, const char *name)
{
	struct share_query *q = arg;
	struct share_view view;
	struct error err = {""};
	int rc =
		share_is_asked(q, name) ? share_ask_view(name, &view, &err) : 0;

	if (rc < 0) {
		if (!err.msg[0])
			(void)error_set(&err, rc, "cannot ask '%s': %m", name);
		(void)command_fail("share", &err);
		q->failed++;
	}
	if (rc <= 0)
		return 0;
	q->found++;
	if (q->all)
		(void)json_array_append_new(q->all, share_json(&view));
	else
		share_print(&view);
	return 0;
}

static int share_print_all(const json_t *all)
{
	CLEANUP_FREE char *text = json_dumps(all, JSON_COMPACT);

	if (!text)
		return EXIT_FAILED;
	(void)puts(text); /* main() checks for write errors */
	return EXIT_OK;
}

static int share_show(struct share_query *q)
{
	struct error err = {""};
	int rc;

	q->found = q->failed = 0;
	rc = share_place_list(share_each, q, &err);
	if (rc < 0)
		return command_fail("share", &err);
	if (q->name && !q->found && !q->failed && !q->watched) {
		(void)error_set(
			&err, -ENOENT, "no process hosts '%s'", q->name);
		return command_fail("share", &err);
	}
	if (q->all && share_print_all(q->all) != EXIT_OK)
		return EXIT_FAILED;
	if (!q->all && !q->found && !q->failed)
		(void)printf("there are no shares\n");
	return q->failed ? EXIT_FAILED : EXIT_OK;
}

void shares_print(void)
{
	struct share_query q = {.name = NULL};

	(void)share_show(&q); /* on failure it has printed why */
}

static int share_watch(struct share_query *q)
{
	const struct timespec second = {.tv_sec = 1};
	int status = share_show(q);

	q->watched = true;
	while (status == EXIT_OK && !(q->name && !q->found) &&
		fflush(stdout) == 0) {
		/* an early return is harmless */
		(void)nanosleep(&second, NULL);
		if (isatty(STDOUT_FILENO) == 1)
			(void)fputs("\033[H\033[2J", stdout);
		status = share_show(q);
	}
	return status;
}

int cmd_share(int argc, char **argv)
{
	struct share_options o = {.json = false};
	struct share_query q = {.name = NULL};
	struct error err = {""};
	int status;
	int n = command_parse(&share_usage, argc, argv, &o, &status);

	if (n < 0)
		return status;
	q.name = n > 0 ? argv[1] : NULL;
	if (o.json && o.watch)
		(void)error_set(
			&err, -EINVAL, "give only one of --json and --watch");
	else if (q.name)
		(void)share_name_check(q.name, &err);
	if (err.msg[0])
		return command_fail("share", &err), EXIT_USAGE;
	q.all = o.json ? json_array() : NULL;
	status = o.watch ? share_watch(&q) : share_show(&q);
	json_decref(q.all);
	return status;
}
