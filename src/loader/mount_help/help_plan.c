/* SPDX-License-Identifier: MIT */
/*
 * Messages from the thread of help.c to the mount: the plan of the run, its
 * progress, and requests for keys. Works on a copy of the schedule, without the
 * loader's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "loader/mount_help/help_impl.h"

/* stands in place of a file's number: no key is requested for the file */
#define LEFT_OUT UINT64_MAX

/* Returns the slack for the plan. The mount counts files, but this file counts
 * examples. So numbers of examples are multiplied by the number of parts in
 * messages. The mount does not know parts that examples lack; they are treated
 * like names that it has left out. */
uint64_t help_slack(const struct mount_help *m)
{
	const struct refrain_config *c = &m->c.s->c;
	uint64_t batches = (uint64_t)c->batches_ahead + 16;

	return batches * c->batch + 2 * (uint64_t)m->c.s->ahead_max + 256;
}

/* Returns how many examples after the returned ones a loader may already be
 * reading. */
static uint64_t spread(const struct mount_help *m)
{
	const struct refrain_config *c = &m->c.s->c;
	uint64_t batches = (uint64_t)c->batches_ahead + 2;

	return batches * c->batch + m->c.s->ahead_max;
}

/* Send m->request. Returns 1, 0 if the mount has refused it, or -errno. */
static int ask_daemon(struct mount_help *m, int bytes)
{
	const char *line;
	size_t n;
	int rc = help_ask(m, (size_t)bytes, &line, &n);

	return rc < 0 ? rc : answer_ok(line, n);
}

int help_plan_begin(struct mount_help *m, const struct help_report *now)
{
	const struct schedule_config *c = schedule_settings(&m->schedule);
	uint32_t batch = m->c.s->c.batch * m->parts;
	const char *measure = m->c.s->measures ? ",\"measure\":true" : "";
	const char *admit =
		m->admit_planned ? ",\"admit_planned\":true" : "";
	const char *again =
		m->plan_state == PLAN_AGAIN ? ",\"again\":true" : "";
	char window[64] = "", ours[224];
	int rc;

	m->plan = (struct help_plan){
		.first = now->fresh,
		.added = now->fresh,
		.reported = now->fresh,
		.echo = schedule_echo_at(&m->schedule, now->step),
		.before = m->rates,
	};
	/* Leave out the window for batch echoes and small windows, because the
	 * mount would refuse it. */
	if (c->point != SCHEDULE_BATCH && !c->allow_small_window)
		(void)snprintf(window, sizeof(window), ",\"window\":%" PRIu64,
			c->window * m->parts);
	(void)snprintf(ours, sizeof(ours),
		"\"own\":true,\"begun\":%" PRIu64 ",\"slack\":%" PRIu64
		",\"spread\":%" PRIu64 "%s%s%s",
		now->begun * m->parts, help_slack(m) * m->parts,
		spread(m) * m->parts, measure, admit, again);
	rc = ask_daemon(m,
		snprintf(m->request, HELP_REQUEST_BYTES,
			"{\"cmd\":\"plan\",\"batch\":%u,\"echo\":\"%u/%u\","
			"\"echo_max\":\"%u/%u\",\"fresh\":%" PRIu64 ",%s%s}\n",
			batch, m->plan.echo.p, m->plan.echo.q, c->echo_max.p,
			c->echo_max.q, now->fresh * m->parts, ours, window));
	if (rc == 0)
		rc = ask_daemon(m,
			snprintf(m->request, HELP_REQUEST_BYTES,
				"{\"cmd\":\"plan\",\"batch\":%u,%s}\n", batch,
				ours));
	if (rc < 0) /* the next daemon will get the plan */
		return rc;
	turn_lock(m->c.turn);
	m->plan_state = rc == 1 ? PLAN_BEGUN : PLAN_REFUSED;
	turn_unlock(m->c.turn);
	return 0;
}

/* -- Names ----------------------------------------------------------------- */

/* The end of the names in a request that is being written. */
struct names_tail {
	char *at, *end;
	uint32_t count;
};

static struct names_tail names_begin(struct mount_help *m, const char *head)
{
	int n = snprintf(m->request, HELP_REQUEST_BYTES, "%s", head);

	return (struct names_tail){
		m->request + n, m->request + HELP_REQUEST_BYTES - 8, 0};
}

static bool find_part(
	const struct mount_help *m, uint64_t file, struct example *out)
{
	return dataset_part(m->c.dataset, file / m->parts,
		(uint32_t)(file % m->parts), out);
}

/* Add the name of a file, if the example has it. Returns false if the request
 * is full. */
static bool names_add(
	struct mount_help *m, struct names_tail *names, uint64_t file)
{
	char path[2 * PATH_MAX];
	struct example example;
	size_t n;

	if (!find_part(m, file, &example))
		return true;
	n = (size_t)snprintf(
		path, sizeof(path), "%s%s",
		m->below[dataset_joined_at(m->c.dataset, file / m->parts)],
		example.file);
	if (n >= sizeof(path))
		/* 0: a path that is too long is treated as a missing file */
		n = 0;
	if (names->count == HELP_NAMES_MAX ||
		(size_t)(names->end - names->at) < ANSWER_NAME_ROOM(n))
		return false;
	if (names->count)
		*names->at++ = ',';
	names->at = answer_put_name(names->at, path, n);
	m->asked[names->count++] = file;
	return true;
}

/* Add all files of an example. Returns false, and adds none, if the request has
 * no room for all. */
static bool names_add_parts(
	struct mount_help *m, struct names_tail *names, uint64_t index)
{
	struct names_tail before = *names;

	for (uint32_t i = 0; i < m->parts; i++)
		if (!names_add(m, names, index * m->parts + i)) {
			*names = before;
			return false;
		}
	return true;
}

static int names_end(struct mount_help *m, struct names_tail *names)
{
	memcpy(names->at, "]}\n", 3);
	return (int)(names->at + 3 - m->request);
}

/* Get the slot of a fresh example. Returns false if the run ends before this
 * example is needed. */
static bool needed(
	struct mount_help *m, uint64_t fresh, struct schedule_slot *slot)
{
	uint64_t need_by;

	return schedule_fresh(&m->schedule, fresh, slot, &need_by) == 0 &&
		need_by < schedule_steps(&m->schedule);
}

/* -- The plan -------------------------------------------------------------- */

static int names_added(struct mount_help *m, const char *line, size_t bytes,
	uint64_t next, uint32_t named)
{
	struct help_plan *p = &m->plan;
	uint64_t n;
	int rc = answer_number(line, bytes, "added", &n);

	if (rc == 0)
		p->full = true;
	if (rc <= 0)
		return rc;
	p->positions += n;
	p->named += named;
	p->added = next;
	return 0;
}

/* Returns the number of the pass or epoch under which an example is planned.
 * The mount expects each file at most once under one number, as in a pass. With
 * a mix, each part has passes of its own, so the number is the epoch; the mount
 * ignores examples that an epoch repeats. */
static uint64_t number_in_plan(
	const struct mount_help *m, const struct schedule_slot *slot)
{
	return schedule_settings(&m->schedule)->mix ? slot->epoch : slot->pass;
}

int help_plan_add(struct mount_help *m, uint64_t to)
{
	struct schedule_slot slot;
	uint64_t f = m->plan.added, number;
	const char *line;
	struct names_tail names;
	char head[80];
	size_t n;
	int rc;

	if (!needed(m, f, &slot)) {
		m->plan.full = true;
		return 0;
	}
	number = number_in_plan(m, &slot);
	(void)snprintf(head, sizeof(head),
		"{\"cmd\":\"plan-add\",\"epoch\":%" PRIu64 ",\"paths\":[",
		number);
	names = names_begin(m, head);
	while (f < to && needed(m, f, &slot) &&
		number_in_plan(m, &slot) == number &&
		names_add_parts(m, &names, slot.index))
		f++;
	rc = help_ask(m, (size_t)names_end(m, &names), &line, &n);
	return rc < 0 ? rc : names_added(m, line, n, f, names.count);
}

static int put_step_time(
	struct help_plan *p, uint64_t step_ns, char *text, size_t size)
{
	uint64_t apart = step_ns > p->step_ns ? step_ns - p->step_ns
					      : p->step_ns - step_ns;

	if (!step_ns || apart <= p->step_ns / 10)
		return 0;
	p->step_ns = step_ns;
	return snprintf(text, size, ",\"step_ms\":%" PRIu64 ".%06" PRIu64,
		step_ns / NS_PER_MS, step_ns % NS_PER_MS);
}

/* Add the newest change of the factor as soon as it is decided. The first
 * example with the new factor identifies the change, because the mount may
 * count steps differently. */
static int put_echo(struct mount_help *m, char *text, size_t size)
{
	struct schedule_echo echo = schedule_echo_at(&m->schedule, UINT64_MAX);
	struct help_plan *p = &m->plan;

	if (echo.p == p->echo.p && echo.q == p->echo.q)
		return 0;
	p->echo = echo;
	return snprintf(text, size, ",\"from\":%" PRIu64 ",\"echo\":\"%u/%u\"",
		schedule_change_begins(&m->schedule) * m->parts, echo.p,
		echo.q);
}

/* Add the values that have changed: the time of a step, if it has changed by a
 * tenth or more, and the factor. */
static void put_changes(struct mount_help *m, const struct help_report *now,
	char *text, size_t size)
{
	int n = 0;

	text[0] = '\0';
	n += put_step_time(&m->plan, now->step_ns, text, size);
	n += put_echo(m, text + n, size - (size_t)n);
	(void)help_put_direct(&now->untold, text + n, size - (size_t)n);
}

/* Returns the number of files of the fresh examples from `from` to `to`. */
static uint64_t count_files(struct mount_help *m, uint64_t from, uint64_t to)
{
	struct schedule_slot slot;
	struct example example;
	uint64_t n = 0;

	if (m->parts == 1)
		return to > from ? to - from : 0;
	for (uint64_t f = from; f < to && needed(m, f, &slot); f++)
		for (uint32_t i = 0; i < m->parts; i++)
			n += find_part(m, slot.index * m->parts + i, &example);
	return n;
}

/* Report the progress. Names that the mount has left out have no position. The
 * mount does not say which names these are, so each reported position is
 * reduced by their number. */
int help_plan_report(struct mount_help *m, const struct help_report *now)
{
	struct help_plan *p = &m->plan;
	uint64_t missing = p->named - p->positions, position;
	char changes[256];
	const char *line;
	size_t n;
	int rc;

	p->passed += count_files(m, p->reported, now->fresh);
	p->reported = now->fresh;
	p->full = false;
	position = p->passed;
	position = position > missing ? position - missing : 0;
	if (position > p->positions)
		position = p->positions;
	put_changes(m, now, changes, sizeof(changes));
	rc = snprintf(m->request, HELP_REQUEST_BYTES,
		"{\"cmd\":\"plan-progress\",\"position\":%" PRIu64 "%s}\n",
		position, changes);
	rc = help_ask(m, (size_t)rc, &line, &n);
	return rc < 0 ? rc : help_take_rates(m, line, n);
}

/* -- Keys ------------------------------------------------------------------ */

/* Get the files of the next `most` fresh examples. Returns the number of
 * examples, which is less than `most` at the end of the run. */
static uint32_t look_at_fresh(
	struct mount_help *m, uint64_t from, uint32_t most)
{
	struct schedule_slot slot;
	uint32_t n = 0;

	for (; n < most && needed(m, from + n, &slot); n++)
		for (uint32_t i = 0; i < m->parts; i++)
			m->asked[n * m->parts + i] = slot.index * m->parts + i;
	return n;
}

static void leave_out_known(struct mount_help *m, uint32_t n)
{
	TURN_LOOK_SCOPE(m->c.turn);

	for (uint32_t i = 0; i < n; i++)
		if (m->keys[m->asked[i] % m->keys_count].file_1 ==
			m->asked[i] + 1)
			m->asked[i] = LEFT_OUT;
}

int help_keys_ask(struct mount_help *m, uint64_t from, uint32_t most,
	uint32_t *count, uint64_t *next)
{
	struct names_tail names =
		names_begin(m, "{\"cmd\":\"keys\",\"paths\":[");
	uint32_t examples = most / m->parts;
	uint32_t i = 0, n = look_at_fresh(m, from, examples), files;
	const char *line;
	size_t bytes;
	int rc;

	files = n * m->parts;
	leave_out_known(m, files);
	/* This moves the requested files to the beginning of `asked`. Each
	 * element is read before it may be overwritten. */
	while (i < files &&
		(m->asked[i] == LEFT_OUT || names_add(m, &names, m->asked[i])))
		i++;
	*next = i == files && n < examples ? UINT64_MAX : from + i / m->parts;
	*count = names.count;
	if (!names.count)
		return 0;
	rc = help_ask(m, (size_t)names_end(m, &names), &line, &bytes);
	if (rc == 0)
		rc = answer_keys(line, bytes, m->answers, names.count);
	/* If the mount has refused the request, there are no keys. */
	if (rc == 0)
		memset(m->answers, 0, names.count * sizeof(*m->answers));
	return rc < 0 ? rc : 0;
}
