/* SPDX-License-Identifier: MIT */
/* Asks the hosts of shares. All hosts are asked before the first answer is
 * waited for. If a host hangs, its question stays open until it answers or
 * ends; so a host that hangs costs the time limit only once. One thread. */
#include "share_views.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/proc.h"

/* The length of an escaped name. JSON needs UTF-8, which names may not be: each
 * byte may become \xHH. */
#define ESCAPED(room) (4 * (room))

/* The question to the host of one share. */
struct share_question {
	char name[SHARE_FULL_NAME_MAX];
	struct share_place *place;
	struct share_link link;
	int rc;	      /* -EPIPE: no process hosts the share */
	bool overdue; /* its answer was waited for once */
	bool listed;  /* the share's socket exists */
	struct error err;
};

struct share_questions {
	const char *name; /* name of the only share; NULL: all shares */
	struct share_question *question;
	size_t n, room;
};

static bool share_is_asked(const char *asked, const char *name)
{
	size_t n = asked ? strlen(asked) : 0;

	return !n ||
		(strncmp(name, asked, n) == 0 && (!name[n] || name[n] == '.'));
}

static int question_send(struct share_question *q)
{
	struct share_msg msg = {.type = SHARE_ASK};
	int rc = share_place_get(&q->place, q->name, &q->err);

	if (rc == 0)
		rc = share_link_open(&q->link, q->place, &q->err);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return -EPIPE;
	return rc < 0 ? rc : share_link_send(&q->link, &msg);
}

static void question_close(struct share_question *q)
{
	share_link_close(&q->link);
	share_place_put(q->place);
	q->place = NULL;
}

/* Has the host not yet answered an earlier question? A late answer is received
 * and dropped, because it is out of date. */
static bool question_is_silent(struct share_question *q)
{
	struct share_msg msg;
	int fd = -1, rc;

	if (!q->overdue)
		return false;
	rc = share_link_recv(&q->link, &msg, &fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return rc == 0;
}

static struct share_question *question_find(
	struct share_questions *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->question[i].name, name) == 0)
			return &all->question[i];
	return NULL;
}

/* Add a question to the host of a share. A callback of share_place_list(). */
static int question_add(void *arg, const char *name)
{
	struct share_questions *all = arg;
	struct share_question *q = question_find(all, name);

	if (!share_is_asked(all->name, name))
		return 0;
	if (!q) {
		if (ARRAY_ROOM(all->question, all->n, &all->room) < 0)
			return -ENOMEM;
		q = &all->question[all->n++];
		*q = (struct share_question){.link = {-1, -1, 0}};
		(void)snprintf(q->name, sizeof(q->name), "%s", name);
	}
	q->listed = true;
	if (question_is_silent(q))
		return 0;
	question_close(q);
	q->overdue = false;
	q->err.msg[0] = '\0';
	q->rc = question_send(q);
	return 0;
}

/* Remove the questions to shares whose socket is gone. */
static void questions_sweep(struct share_questions *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (all->question[i].listed)
			all->question[n++] = all->question[i];
		else
			question_close(&all->question[i]);
	}
	all->n = n;
}

/* Receive the answer. Returns 1, or -errno with err set; -EPIPE: no process
 * hosts the share. */
static int question_answer(
	struct share_question *q, int timeout_ms, struct share_view *view)
{
	int fd = -1, pid = (int)q->link.host_pid, rc = q->rc;
	struct share_msg msg;

	if (rc == 0) {
		rc = share_link_recv(
			&q->link, &msg, &fd, q->overdue ? 0 : timeout_ms);
		q->overdue = rc == 0;
		if (rc == 0)
			return error_set(&q->err, -ETIMEDOUT,
				"the host of '%s' (process %d) does not answer",
				q->name, pid);
	}
	if (fd >= 0)
		(void)close(fd); /* no answer may have a descriptor */
	if (rc == 1 && msg.type == SHARE_REFUSE)
		return error_set(
			&q->err, msg.refuse.error, "%s", msg.refuse.text);
	if (rc == -EPROTONOSUPPORT)
		return error_set(&q->err, rc,
			"the host of '%s' (process %d) runs another version of "
			"refrain",
			q->name, pid);
	if (rc == -EBADMSG || (rc == 1 && msg.type != SHARE_VIEW))
		return error_set(&q->err, -EBADMSG,
			"the host of '%s' (process %d) sent a malformed answer",
			q->name, pid);
	if (rc == 1)
		*view = msg.view;
	else if (rc != -EPIPE && !q->err.msg[0])
		(void)error_set(&q->err, rc, "cannot ask '%s': %m", q->name);
	return rc;
}

void share_views_free(struct share_questions *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->n; i++)
		question_close(&all->question[i]);
	free(all->question);
	free(all);
}

int share_views_begin(
	struct share_questions **questions, const char *name, struct error *err)
{
	struct share_questions *all = *questions;
	int rc;

	if (!all)
		all = *questions = calloc(1, sizeof(*all));
	if (!all)
		return error_set(err, -ENOMEM, "no memory for the shares");
	all->name = name;
	for (size_t i = 0; i < all->n; i++)
		all->question[i].listed = false;
	rc = share_place_list(question_add, all, err);
	questions_sweep(all);
	return rc;
}

int share_views_end(struct share_questions *all, uint64_t until_ns,
	struct share_seen **out, size_t *n, struct error *err)
{
	struct share_seen *seen = calloc(all->n + 1, sizeof(*seen));
	size_t found = 0;

	for (size_t i = 0; seen && i < all->n; i++) {
		struct share_question *q = &all->question[i];
		struct share_seen *s = &seen[found];
		uint64_t now = clock_now_ns();

		s->rc = question_answer(q,
			now < until_ns ? (int)((until_ns - now) / NS_PER_MS)
				       : 0,
			&s->view);
		(void)snprintf(s->name, sizeof(s->name), "%s", q->name);
		s->err = q->err;
		found += s->rc != -EPIPE;
	}
	*out = seen;
	*n = found;
	return seen ? 0 : error_set(err, -ENOMEM, "no memory for the shares");
}

const char *share_job_state(
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

json_t *share_view_json(const struct share_view *v)
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

json_t *share_seen_json(const struct share_seen *s)
{
	char name[4 * SHARE_FULL_NAME_MAX], why[4 * sizeof(struct error)];

	if (s->rc == 1)
		return share_view_json(&s->view);
	return json_pack("{s:s, s:s}", "name",
		escape_text(name, sizeof(name), s->name), "why",
		escape_text(why, sizeof(why), s->err.msg));
}
