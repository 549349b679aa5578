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
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "command.h"
#include "loader/share/share.h"
#include "share_views.h"

#define ANSWER_MS 2000
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
	/* with --watch: the end of the share NAME is no failure */
	bool watched;
	json_t *all; /* all answers, for --json */
	unsigned found, failed;
};

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

/* -- For both -- */

/* Print one share. If its host does not answer, print why, and continue with
 * the other shares. */
static void share_show_one(struct share_query *q, const struct share_seen *seen)
{
	if (seen->rc < 0) {
		(void)command_fail("share", &seen->err);
		q->failed++;
		return;
	}
	q->found++;
	if (q->all)
		(void)json_array_append_new(
			q->all, share_view_json(&seen->view));
	else
		share_print(&seen->view);
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
	CLEANUP_FREE struct share_seen *seen = NULL;
	struct share_questions *questions = NULL;
	struct error err = {""};
	size_t n = 0;
	int rc = share_views_begin(&questions, q->name, &err);

	q->found = q->failed = 0;
	if (rc == 0)
		rc = share_views_end(questions,
			clock_now_ns() + ANSWER_MS * NS_PER_MS, &seen, &n,
			&err);
	share_views_free(questions);
	if (rc < 0)
		return command_fail("share", &err);
	for (size_t i = 0; i < n; i++)
		share_show_one(q, &seen[i]);
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

	(void)share_show(&q); /* share_show() prints its errors itself */
}

static int share_watch(struct share_query *q)
{
	const struct timespec second = {.tv_sec = 1};
	int status = share_show(q);

	q->watched = true;
	while (status == EXIT_OK && !(q->name && !q->found) &&
		fflush(stdout) == 0) {
		/* it does no harm if the call returns early */
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
