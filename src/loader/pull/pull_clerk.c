/* SPDX-License-Identifier: MIT */
/*
 * The clerk: the thread that talks with the board. It says what the loader
 * needs, looks which ranges workers have claimed and made, and deletes what the
 * loader has served. Each round it takes the lock to see the progress, asks the
 * board without the lock, and takes the lock again to note the answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "loader/pull/pull_impl.h"

#define BEAT_NS NS_PER_S
#define CONF_TTL_S 60u
#define CONF_NS (20 * NS_PER_S)
/* The pauses between two looks while the loader moves, and while it does not,
 * or there is no worker. */
#define PAUSE_NS (50 * NS_PER_MS)
#define PAUSE_IDLE_NS (250 * NS_PER_MS)
/* The note is written at most this often. */
#define NOTE_NS (50 * NS_PER_MS)
/* How many examples one round passes, and how many ranges it adds and looks
 * at. */
#define PASS_MAX 4096u
#define EXTEND_MAX 64u
#define LOOK_MAX 256u
/* Time from a note to the claim of a worker, and from its end to us. */
#define RANGE_WAY_S 0.15
#define AHEAD_S 0.5
/* Time for the last deletions of a loader that closes. */
#define LEAVE_NS (400 * NS_PER_MS)

struct clerk {
	struct puller *p;
	struct pull_progress now;
	bool ending;
	uint64_t cursor; /* the least fresh number that is still needed */
	uint64_t told;	 /* the cursor that the board has */
	uint64_t swept;	 /* ranges below this number are deleted */
	uint64_t note_ns, beat_ns, conf_ns, moved_ns;
	uint64_t rate_ns, rate_fresh; /* the last time that `rate` was taken */
	double rate;		      /* planned fresh examples a second */
	double range_s;		      /* time from a claim to the end */
	uint32_t claimed;	      /* ranges that workers make now */
	struct asker *broom[PULL_STORES_MAX];
	/* Buffers of a look */
	uint64_t *number;
	struct service_call *calls;
	char (*text)[RANGE_STATE_MAX];
};

/* -- Progress -------------------------------------------------------------- */

/* Is every serving of an example in a batch that was returned? */
static bool clerk_is_over(const struct clerk *c, uint64_t f)
{
	const struct schedule *s = &c->p->schedule;
	struct schedule_slot slot;
	uint64_t step;

	return schedule_fresh(s, f, &slot, &step) < 0 ||
		schedule_serving_step(s, f, slot.servings - 1, &step) < 0 ||
		step < c->now.step;
}

static void clerk_pass(struct clerk *c)
{
	for (unsigned i = 0; i < PASS_MAX && c->cursor < c->now.planned_fresh &&
		clerk_is_over(c, c->cursor);
		i++)
		c->cursor++;
}

static void clerk_rate(struct clerk *c)
{
	uint64_t now_ns = clock_now_ns(), ns = now_ns - c->rate_ns;
	double rate;

	if (c->now.planned_fresh > c->rate_fresh)
		c->moved_ns = now_ns;
	if (ns < 200 * NS_PER_MS)
		return;
	rate = (double)(c->now.planned_fresh - c->rate_fresh) * 1e9 /
		(double)ns;
	c->rate = c->rate > 0 ? 0.6 * c->rate + 0.4 * rate : rate;
	c->rate_ns = now_ns;
	c->rate_fresh = c->now.planned_fresh;
}

/* Fresh examples a second if the trainer did not wait. */
static double clerk_demand(const struct clerk *c)
{
	const struct reader_note *n = &c->p->note;
	double e = (double)n->echo.p / n->echo.q;
	double most = c->now.step_ns
		? n->batch / e * 1e9 / (double)c->now.step_ns
		: 0;

	return most > c->rate ? most : c->rate;
}

static uint64_t clerk_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Which examples workers should make. Those before `begin` are needed too
 * soon. */
static void clerk_want(const struct clerk *c, struct reader_note *n)
{
	const struct puller *p = c->p;
	double e = (double)n->echo.p / n->echo.q;
	uint64_t soon = (uint64_t)(c->rate * (RANGE_WAY_S + c->range_s));
	uint64_t ahead =
		(uint64_t)(clerk_demand(c) * (AHEAD_S + 3 * c->range_s));
	uint64_t steps = (uint64_t)(4 * n->batch / e);

	if (ahead < steps)
		ahead = steps;
	if (ahead < 4 * (uint64_t)p->range_size)
		ahead = 4 * (uint64_t)p->range_size;
	n->cursor = c->cursor;
	n->begin = c->now.read_fresh + clerk_least(soon, p->ahead_max);
	n->end = n->begin +
		clerk_least(ahead, (uint64_t)((double)p->ahead_max / e));
	n->begin = clerk_least(n->begin, p->fresh_end);
	n->end = clerk_least(n->end, p->fresh_end);
	if (n->begin < n->cursor)
		n->begin = n->cursor;
	if (n->end < n->begin)
		n->end = n->begin;
	n->demand = (uint32_t)clerk_least(
		(uint64_t)(clerk_demand(c) * 1000), UINT32_MAX);
}

/* -- The table of ranges --------------------------------------------------- */

static void ranges_add(
	struct puller *p, const struct hash128 *names, unsigned n)
{
	turn_lock(p->config.turn);
	for (unsigned i = 0; i < n; i++)
		*pull_range_at(p, p->range_end++) =
			(struct pull_range){.name = names[i]};
	turn_unlock(p->config.turn);
}

/* Name the ranges up to the end of what is wanted. The clerk alone changes the
 * limits of the table, so it may read them without the lock. */
static void clerk_extend(struct clerk *c, uint64_t end)
{
	struct puller *p = c->p;
	struct hash128 names[EXTEND_MAX];
	struct service_range r;
	uint64_t to = (end + p->range_size - 1) / p->range_size;
	unsigned n = 0;

	to = clerk_least(to, p->range_first + p->ranges_room);
	while (n < EXTEND_MAX && p->range_end + n < to &&
		service_range_at(
			&p->schedule, (p->range_end + n) * p->range_size, &r))
		names[n++] = r.name;
	if (n > 0)
		ranges_add(p, names, n);
}

/* Forget the ranges that are passed. While the board does not answer, nobody
 * deletes them; they expire. */
static void clerk_forget(struct clerk *c, bool swept)
{
	struct puller *p = c->p;
	uint64_t first = (swept ? c->told : c->cursor) / p->range_size;

	if (first <= p->range_first)
		return;
	turn_lock(p->config.turn);
	p->range_first = first;
	if (p->range_end < first)
		p->range_end = first;
	turn_unlock(p->config.turn);
	if (c->swept < first)
		c->swept = first;
}

/* -- What the board is told ------------------------------------------------ */

static int clerk_note(struct clerk *c)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX], text[READER_NOTE_MAX];
	struct reader_note n = p->note;
	struct service_call call;
	size_t bytes;
	int rc;

	clerk_want(c, &n);
	clerk_extend(c, n.end);
	if (clock_now_ns() < c->note_ns ||
		(n.cursor == p->note.cursor && n.begin == p->note.begin &&
			n.end == p->note.end &&
			clock_now_ns() < c->note_ns + BEAT_NS))
		return 0;
	bytes = reader_note_text(&n, text);
	(void)service_reader_key(key, p->job, p->id);
	call_put(&call, key, text, bytes, CALL_SET, 0, READER_TTL_S);
	rc = calls_make(p->board, &call, 1);
	if (rc < 0)
		return rc;
	p->note = n;
	c->told = n.cursor;
	c->note_ns = clock_now_ns() + NOTE_NS;
	return 0;
}

static int clerk_conf(struct clerk *c)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX];
	struct service_call call;
	int rc;

	if (clock_now_ns() < c->conf_ns)
		return 0;
	(void)service_job_key(key, p->job, "conf");
	call_put(&call, key, p->conf, p->conf_bytes, CALL_SET, 0, CONF_TTL_S);
	rc = calls_make(p->board, &call, 1);
	if (rc == 0)
		c->conf_ns = clock_now_ns() + CONF_NS;
	return rc;
}

/* Count the workers whose record is there. */
static int clerk_count(struct clerk *c, unsigned *workers)
{
	struct puller *p = c->p;
	struct service_call calls[SERVICE_READERS_MAX];
	char key[SERVICE_KEY_MAX], id[SERVICE_ID_MAX + 1];
	char *list = malloc(ROSTER_MAX);
	size_t at = 0, len;
	unsigned n = 0;
	int rc = list
		? board_get(p->board, SERVICE_WORKERS_KEY, list, ROSTER_MAX)
		: -ENOMEM;

	*workers = 0;
	for (; rc > 0 && n < SERVICE_READERS_MAX &&
		(len = roster_next(list, (size_t)rc, &at)) > 0;
		at += len) {
		(void)snprintf(id, sizeof(id), "%.*s", (int)len, list + at);
		(void)service_worker_key(key, id);
		call_get(&calls[n++], key, NULL, 0);
	}
	free(list);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	rc = calls_make(p->board, calls, n);
	for (unsigned i = 0; i < n; i++)
		*workers += call_done(&calls[i]);
	return rc;
}

/* Once a second: the configuration and the lists, as a board may have been
 * restarted, and the number of workers. */
static int clerk_beat(struct clerk *c)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX], job[33];
	unsigned count, workers = 0;
	int rc;

	if (clock_now_ns() < c->beat_ns)
		return 0;
	*hash128_put(job, p->job) = 0;
	(void)service_job_key(key, p->job, "readers");
	rc = clerk_conf(c);
	if (rc == 0)
		rc = board_join(p->board, key, p->id, &count);
	if (rc == 0)
		rc = board_join(p->board, SERVICE_JOBS_KEY, job, &count);
	if (rc == 0)
		rc = clerk_count(c, &workers);
	if (rc == 0)
		c->beat_ns = clock_now_ns() + BEAT_NS;
	else
		c->conf_ns = 0; /* the board may lose what it has */
	turn_lock(p->config.turn);
	p->counts.live = rc == 0;
	p->counts.workers = workers;
	turn_unlock(p->config.turn);
	return rc;
}

/* -- What the board says --------------------------------------------------- */

/* Returns the number of a store, or -ENOSPC. */
static int store_number(struct puller *p, const char *host)
{
	struct pull_store *s = &p->stores[p->nstores];

	for (uint32_t i = 0; i < p->nstores; i++)
		if (strcmp(p->stores[i].host, host) == 0)
			return (int)i;
	if (p->nstores == PULL_STORES_MAX)
		return -ENOSPC;
	(void)snprintf(s->host, sizeof(s->host), "%s", host);
	s->window = 4;
	return (int)p->nstores++;
}

static void clerk_range_done(
	struct clerk *c, struct pull_range *r, const struct range_state *s)
{
	int store = store_number(c->p, s->store);

	if (store < 0)
		return;
	r->state = PULL_RANGE_DONE;
	r->mask = s->mask;
	r->store = (uint32_t)store;
	c->range_s = 0.8 * c->range_s + 0.2 * (double)s->ms / 1000;
}

static void clerk_range_note(
	struct clerk *c, struct pull_range *r, const struct service_call *call)
{
	struct range_state s;

	if (call->status < 0)
		return;
	if (call->kind == META_EN) {
		r->state = PULL_RANGE_UNKNOWN;
		return;
	}
	if (call->kind != META_VA || call->cut ||
		range_state_parse(call->value, call->bytes, &s) < 0)
		return;
	r->cas = call->cas;
	if (s.kind == RANGE_DONE)
		clerk_range_done(c, r, &s);
	else
		r->state = s.kind == RANGE_CLAIMED ? PULL_RANGE_CLAIMED
						   : PULL_RANGE_UNKNOWN;
}

/* Move the pulls whose ranges are no longer being made. Returns true if there
 * is something to pull. */
static bool pulls_look(struct puller *p)
{
	struct list *l = list_next(&p->waits), *next;

	for (; l != &p->waits; l = next) {
		struct pull *q = CONTAINER_OF(l, struct pull, node);
		const struct pull_range *r =
			pull_range_at(p, q->fresh / p->range_size);
		uint32_t bit = (uint32_t)(q->fresh % p->range_size);

		next = list_next(l);
		if (r->state == PULL_RANGE_CLAIMED)
			continue;
		if (r->state == PULL_RANGE_DONE && r->mask >> bit & 1)
			pull_move(&p->ready, q, PULL_READY);
		else
			pull_miss(p, q);
	}
	return !list_empty(&p->ready);
}

/* Should the clerk look at this range? Not if it is done, or if the loader
 * makes it itself because nobody has claimed it in time. */
static bool clerk_is_open(const struct clerk *c, uint64_t number)
{
	const struct pull_range *r = pull_range_at(c->p, number);

	return r->state == PULL_RANGE_CLAIMED ||
		(r->state == PULL_RANGE_UNKNOWN &&
			(number + 1) * c->p->range_size > c->now.read_fresh);
}

static unsigned look_choose(struct clerk *c)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX];
	unsigned n = 0;

	turn_lock(p->config.turn);
	for (uint64_t i = p->range_first; i < p->range_end && n < LOOK_MAX; i++)
		if (clerk_is_open(c, i))
			c->number[n++] = i;
	turn_unlock(p->config.turn);
	for (unsigned i = 0; i < n; i++) {
		(void)service_range_key(
			key, p->job, pull_range_at(p, c->number[i])->name);
		call_get(&c->calls[i], key, c->text[i], sizeof(c->text[i]));
	}
	return n;
}

static int clerk_look(struct clerk *c)
{
	struct puller *p = c->p;
	unsigned n = look_choose(c);
	int rc = calls_make(p->board, c->calls, n);
	bool wake;

	c->claimed = 0;
	turn_lock(p->config.turn);
	for (unsigned i = 0; i < n; i++) {
		struct pull_range *r = pull_range_at(p, c->number[i]);

		clerk_range_note(c, r, &c->calls[i]);
		c->claimed += r->state == PULL_RANGE_CLAIMED;
	}
	wake = pulls_look(p);
	turn_unlock(p->config.turn);
	if (wake)
		puller_wake(p);
	return rc;
}

/* -- Deletion -------------------------------------------------------------- */

/* Does another reader of the same stream still need what this one has passed?
 * Then it deletes it later. */
static bool clerk_is_needed(struct clerk *c)
{
	const struct reader_note *own = &c->p->note;
	struct reader_note *notes =
		malloc(SERVICE_READERS_MAX * sizeof(*notes));
	int n = notes ? board_notes(c->p->board, c->p->job, c->p->id, notes)
		      : -ENOMEM;
	bool needed = n < 0;

	for (int i = 0; i < n; i++)
		needed |= notes[i].rank == own->rank &&
			notes[i].world == own->world &&
			notes[i].cursor < c->told;
	free(notes);
	return needed;
}

static int sweep_samples(
	struct clerk *c, uint32_t store, const struct service_range *r)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX];
	unsigned n = 0;
	int rc = 0;

	if (!c->broom[store])
		rc = asker_new(&c->broom[store], p->stores[store].host, 1024,
			PULL_ANSWER_MS);
	for (uint32_t i = 0; rc == 0 && i < r->count; i++)
		for (uint32_t k = 0; k < r->example[i].servings && n < LOOK_MAX;
			k++) {
			(void)service_sample_key(
				key, p->job, &r->example[i], k);
			call_delete(&c->calls[n++], key, 0);
		}
	return rc < 0 ? rc : calls_make(c->broom[store], c->calls, n);
}

/* Returns the state of a range, after a look at the board if it was not done at
 * the last one: a worker may have finished it since. Sets *store. */
static enum pull_range_state sweep_look(
	struct clerk *c, uint64_t number, uint32_t *store)
{
	struct puller *p = c->p;
	struct pull_range *r = pull_range_at(p, number);
	char key[SERVICE_KEY_MAX];
	enum pull_range_state state;

	(void)service_range_key(key, p->job, r->name);
	call_get(&c->calls[0], key, c->text[0], sizeof(c->text[0]));
	if (r->state != PULL_RANGE_DONE &&
		calls_make(p->board, c->calls, 1) < 0)
		return PULL_RANGE_UNKNOWN;
	turn_lock(p->config.turn);
	if (r->state != PULL_RANGE_DONE)
		clerk_range_note(c, r, &c->calls[0]);
	state = r->state;
	*store = r->store;
	turn_unlock(p->config.turn);
	return state;
}

/* Delete a range: the state first, so that no other reader finds the state of a
 * range whose samples are gone. */
static void sweep_range(struct clerk *c, uint64_t number)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX];
	struct service_range r;
	struct service_call call;
	uint32_t store;

	if (sweep_look(c, number, &store) != PULL_RANGE_DONE ||
		!service_range_at(&p->schedule, number * p->range_size, &r))
		return;
	(void)service_range_key(key, p->job, r.name);
	call_delete(&call, key, 0);
	if (calls_make(p->board, &call, 1) == 0)
		/* A store that does not answer lets them expire. */
		(void)sweep_samples(c, store, &r);
}

/* Delete what this reader has passed, after the board has its cursor. */
static void clerk_sweep(struct clerk *c)
{
	struct puller *p = c->p;
	uint64_t to = clerk_least(c->told / p->range_size, p->range_end);

	if (c->swept < p->range_first)
		c->swept = p->range_first;
	if (c->swept >= to || clerk_is_needed(c))
		return;
	for (; c->swept < to; c->swept++)
		sweep_range(c, c->swept);
}

/* Delete the states of ranges that promise samples which are not there. */
static void clerk_mend(struct clerk *c)
{
	struct puller *p = c->p;
	char key[SERVICE_KEY_MAX];
	unsigned n = 0;

	turn_lock(p->config.turn);
	for (uint64_t i = p->range_first; i < p->range_end && n < 64; i++) {
		struct pull_range *r = pull_range_at(p, i);

		if (!r->broken)
			continue;
		r->broken = false;
		(void)service_range_key(key, p->job, r->name);
		call_delete(&c->calls[n++], key, r->cas);
	}
	turn_unlock(p->config.turn);
	(void)calls_make(p->board, c->calls, n); /* otherwise they expire */
}

/* -- The thread ------------------------------------------------------------ */

static int clerk_round(struct clerk *c)
{
	int rc = clerk_beat(c);

	if (rc == 0)
		rc = clerk_note(c);
	if (rc == 0)
		rc = clerk_look(c);
	if (rc == 0) {
		clerk_sweep(c);
		clerk_mend(c);
	}
	return rc;
}

static uint64_t clerk_pause_ns(const struct clerk *c, int rc)
{
	if (rc < 0 || !c->p->counts.workers ||
		clock_now_ns() > c->moved_ns + 2 * NS_PER_S)
		return PAUSE_IDLE_NS;
	return c->claimed ? PULL_LOOK_NS : PAUSE_NS;
}

/* Sleep, then see the progress. Returns false at the end. */
static bool clerk_wait(struct clerk *c, uint64_t pause_ns)
{
	struct puller *p = c->p;
	uint64_t until_ns = clock_now_ns() + pause_ns;

	turn_lock(p->config.turn);
	while (!p->ending &&
		turn_wait_until(p->config.turn, TURN_PULLER, until_ns))
		;
	p->config.progress(p->config.arg, &c->now);
	c->ending = p->ending;
	turn_unlock(p->config.turn);
	return !c->ending;
}

/* The loader closes: nobody needs this reader's samples any more. */
static void clerk_leave(struct clerk *c)
{
	struct puller *p = c->p;
	uint64_t until_ns = clock_now_ns() + LEAVE_NS;
	char key[SERVICE_KEY_MAX];
	struct service_call call;

	(void)service_reader_key(key, p->job, p->id);
	call_delete(&call, key, 0);
	if (calls_make(p->board, &call, 1) < 0)
		return;
	(void)service_job_key(key, p->job, "readers");
	(void)board_leave(p->board, key, p->id); /* otherwise it expires */
	c->told = UINT64_MAX;
	if (clerk_is_needed(c))
		return;
	for (uint64_t i = p->range_first;
		i < p->range_end && clock_now_ns() < until_ns; i++)
		sweep_range(c, i);
}

static int clerk_init(struct clerk *c, struct puller *p)
{
	uint64_t before = p->config.outstanding_max;

	*c = (struct clerk){.p = p, .range_s = 0.05};
	c->cursor = schedule_fresh_before(&p->schedule, p->config.step);
	c->rate_fresh = c->cursor;
	c->cursor -= clerk_least(before, c->cursor);
	c->cursor -= c->cursor % p->range_size;
	c->rate_ns = clock_now_ns();
	c->swept = c->cursor / p->range_size;
	c->number = calloc(LOOK_MAX, sizeof(*c->number));
	c->calls = calloc(LOOK_MAX, sizeof(*c->calls));
	c->text = calloc(LOOK_MAX, sizeof(*c->text));
	turn_lock(p->config.turn);
	p->range_first = p->range_end = c->swept;
	turn_unlock(p->config.turn);
	return c->number && c->calls && c->text ? 0 : -ENOMEM;
}

void *pull_clerk_main(void *arg)
{
	struct puller *p = OBJECT(puller, arg);
	uint64_t pause_ns = 0;
	struct clerk c;

	if (clerk_init(&c, p) == 0) {
		while (clerk_wait(&c, pause_ns)) {
			int rc;

			clerk_pass(&c);
			clerk_rate(&c);
			rc = clerk_round(&c);
			clerk_forget(&c, rc == 0);
			pause_ns = clerk_pause_ns(&c, rc);
		}
		clerk_leave(&c);
	}
	for (uint32_t i = 0; i < PULL_STORES_MAX; i++)
		asker_free(c.broom[i]);
	free(c.number);
	free(c.calls);
	free(c.text);
	return NULL;
}
