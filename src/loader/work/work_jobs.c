/* SPDX-License-Identifier: MIT */
/* Reads the jobs on a board, and finds the ranges that their readers need. */
#include "loader/work/work_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hex.h"
#include "loader/service/service_value.h"

/* The maximum number of ranges of one reader that are looked at, because the
 * notes on a board are not trusted. */
#define NOTE_RANGES_MAX 8192u

/* The longest value of a memcached with its default settings, less the memory
 * for the key and memcached's own data. */
#define STORE_SAMPLE_MAX ((1U << 20) - 1024u)

/* -- Joining --------------------------------------------------------------- */

static const struct dataset *work_dataset_of(
	const struct work *w, const char *name)
{
	for (unsigned i = 0; i < w->config->ndatasets; i++)
		if (strcmp(w->config->datasets[i].name, name) == 0)
			return w->datasets[i];
	return NULL;
}

/* Returns why this worker cannot make samples of the job, or NULL. */
static const char *job_mismatch(
	const struct work *w, const struct work_job *j, const struct dataset *d)
{
	if (!d)
		return "there is no such dataset here: start the worker with "
		       "--dataset NAME=PATH";
	if (dataset_count(d) != j->conf.examples)
		return "the dataset has another number of examples here";
	if (dataset_fingerprint(d) != j->conf.fingerprint)
		return "the dataset has other names or labels here";
	if (j->s.sample_bytes + SAMPLE_HEAD_BYTES > STORE_SAMPLE_MAX)
		return "its samples are larger than 1 MiB, which memcached "
		       "does not take";
	if (w->print != j->conf.print)
		return "this host decodes differently: install the same "
		       "libjpeg-turbo";
	return NULL;
}

static void job_read(
	struct work *w, struct work_job *j, const char *text, size_t bytes)
{
	const struct dataset *d;
	const char *why;
	struct error err;

	if (service_conf_parse(text, bytes, &j->conf, &j->s, &err) < 0) {
		(void)snprintf(
			j->refusal, sizeof(j->refusal), "%.127s", err.msg);
		return;
	}
	d = work_dataset_of(w, j->conf.dataset);
	why = job_mismatch(w, j, d);
	if (why)
		(void)snprintf(j->refusal, sizeof(j->refusal), "%s", why);
	else
		j->dataset = d;
	j->s.c.memory_bytes = w->config->memory_bytes ? w->config->memory_bytes
						      : UINT64_C(1) << 30;
}

static void job_meet(struct work *w, struct hash128 id)
{
	char key[SERVICE_KEY_MAX], text[SERVICE_CONF_MAX];
	struct work_job *j;
	struct hash128 of_text;
	int len;

	for (unsigned i = 0; i < w->njobs; i++)
		if (w->jobs[i]->id.lo == id.lo && w->jobs[i]->id.hi == id.hi)
			return;
	if (w->njobs == WORK_JOBS_MAX)
		return;
	(void)service_job_key(key, id, "conf");
	len = board_get(w->board, key, text, sizeof(text));
	if (len < 0)
		return;
	of_text = service_job(text, (size_t)len);
	if (of_text.lo != id.lo || of_text.hi != id.hi)
		return; /* the text is not the configuration of this job */
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	j->id = id;
	job_read(w, j, text, (size_t)len);
	w->jobs[w->njobs++] = j;
	if (!j->dataset && w->config->refused)
		w->config->refused(j->conf.dataset, j->refusal);
}

static bool parse_job(const char *text, size_t bytes, struct hash128 *out)
{
	uint64_t half[2] = {0, 0};

	if (bytes != 32)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		int digit = hex_value(text[i]);

		if (digit < 0)
			return false;
		half[i / 16] = half[i / 16] << 4 | (uint64_t)digit;
	}
	*out = (struct hash128){.hi = half[0], .lo = half[1]};
	return true;
}

/* Read new jobs from the board. */
static void jobs_learn(struct work *w)
{
	CLEANUP_FREE char *list = malloc(ROSTER_MAX);
	size_t at = 0, len;
	int bytes;

	if (!list || clock_now_ns() < w->look_jobs_ns)
		return;
	bytes = board_get(w->board, SERVICE_JOBS_KEY, list, ROSTER_MAX);
	w->look_jobs_ns = clock_now_ns() + NS_PER_S / 2;
	for (; bytes > 0 && (len = roster_next(list, (size_t)bytes, &at)) > 0;
		at += len) {
		struct hash128 id;

		if (parse_job(list + at, len, &id))
			job_meet(w, id);
	}
}

/* -- The ranges of a reader ------------------------------------------------ */

/* Set up the schedule of a reader. */
static int note_schedule(const struct work_job *j, const struct reader_note *n,
	struct schedule *out)
{
	struct schedule_restored restored;
	struct schedule_config c;
	struct error err;

	settings_schedule(&j->s, j->conf.examples, NULL, &c);
	c.rank = n->rank;
	c.world = n->world;
	c.batch = n->batch;
	c.lag = n->lag;
	c.window = n->window;
	c.echo = n->echo;
	c.echo_max = n->echo;
	return schedule_restore(
		out, &c, n->state, n->state_bytes, &restored, &err);
}

typedef bool range_fn(void *arg, const struct work_range *r);

/* Call a function for each range from fresh number `from` on, until it returns
 * false. */
static void note_ranges(const struct work_job *j, const struct reader_note *n,
	uint64_t from, range_fn *fn, void *arg)
{
	uint32_t count = service_range_size(n->echo);
	struct work_range r = {.job = j};
	struct schedule s;

	if (note_schedule(j, n, &s) < 0)
		return;
	from -= from % count;
	for (unsigned i = 0; i < NOTE_RANGES_MAX; i++, from += count)
		if (from >= n->end || !service_range_at(&s, from, &r.r) ||
			!fn(arg, &r))
			return;
}

/* -- A look ---------------------------------------------------------------- */

struct job_look {
	struct work_range *ranges; /* memory for WORK_CANDIDATES_MAX ranges */
	unsigned n;
};

static bool look_add(void *arg, const struct work_range *r)
{
	struct job_look *l = arg;

	if (l->n == WORK_CANDIDATES_MAX)
		return false;
	l->ranges[l->n++] = *r;
	return true;
}

static int look_job(
	struct work *w, const struct work_job *j, struct job_look *l)
{
	CLEANUP_FREE struct reader_note *notes =
		malloc(SERVICE_READERS_MAX * sizeof(*notes));
	int n = notes ? board_notes(w->board, j->id, NULL, notes) : -ENOMEM;

	for (int i = 0; i < n; i++) {
		uint32_t count = service_range_size(notes[i].echo);

		/* Skip the range in which `begin` is, because a part of it is
		 * needed too soon. */
		note_ranges(
			j, &notes[i], notes[i].begin + count - 1, look_add, l);
	}
	return n < 0 ? n : 0;
}

/* Remove the ranges that have a state on the board already. */
static int look_unclaimed(struct work *w, struct job_look *l)
{
	CLEANUP_FREE struct service_call *calls = calloc(l->n, sizeof(*calls));
	char key[SERVICE_KEY_MAX];
	unsigned n = 0;
	int rc;

	if (!calls)
		return -ENOMEM;
	for (unsigned i = 0; i < l->n; i++) {
		(void)service_range_key(
			key, l->ranges[i].job->id, l->ranges[i].r.name);
		call_get(&calls[i], key, NULL, 0);
	}
	rc = calls_make(w->board, calls, l->n);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < l->n; i++)
		if (calls[i].kind == META_EN)
			l->ranges[n++] = l->ranges[i];
	l->n = n;
	return 0;
}

static void look_publish(struct work *w, const struct job_look *l)
{
	unsigned least = w->nworkers ? w->nworkers * w->nhands : w->nhands;
	LOCK_SCOPE(&w->lock);

	memcpy(w->candidates, l->ranges, l->n * sizeof(*l->ranges));
	w->ncandidates = l->n;
	w->choose = least;
	w->looks++;
	pthread_cond_broadcast(&w->news);
}

int work_look(struct work *w)
{
	CLEANUP_FREE struct work_range *ranges =
		malloc(WORK_CANDIDATES_MAX * sizeof(*ranges));
	struct job_look l = {.ranges = ranges};
	int rc = ranges ? 0 : -ENOMEM, needed;

	if (rc == 0)
		jobs_learn(w);
	for (unsigned i = 0; rc == 0 && i < w->njobs; i++)
		if (w->jobs[i]->dataset)
			rc = look_job(w, w->jobs[i], &l);
	needed = (int)l.n;
	if (rc == 0 && l.n > 0)
		rc = look_unclaimed(w, &l);
	if (rc < 0)
		l.n = 0;
	look_publish(w, &l);
	return rc < 0 ? rc : needed;
}

/* -- Is a range still needed? ---------------------------------------------- */

struct search {
	struct hash128 name;
	bool found;
};

static bool search_range(void *arg, const struct work_range *r)
{
	struct search *s = arg;

	s->found = r->r.name.lo == s->name.lo && r->r.name.hi == s->name.hi;
	return !s->found;
}

bool work_is_needed(
	struct asker *board, const struct work_range *r, bool *known)
{
	CLEANUP_FREE struct reader_note *notes =
		malloc(SERVICE_READERS_MAX * sizeof(*notes));
	struct search s = {.name = r->r.name};
	int n = notes ? board_notes(board, r->job->id, NULL, notes) : -ENOMEM;

	*known = n >= 0;
	for (int i = 0; i < n && !s.found; i++)
		note_ranges(
			r->job, &notes[i], notes[i].cursor, search_range, &s);
	return s.found;
}
