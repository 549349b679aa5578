/* SPDX-License-Identifier: MIT */
/*
 * Chooses the echo factor from sums of times; auto.h says how. Pure
 * functions: the owner of the struct calls them.
 */
#include "auto/auto.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define PARTS_LEAST 3
/* Fewer than that say little about a rate. */
#define FULL_READS 32
/* A part that reading is not seen in ends after so many parts' examples. */
#define PART_MOST 4
/* Parts that differ by more are of another speed. */
#define JUMP 1.15
/* The same of what examples miss, which chance and the end of an epoch change
 * by more than that. */
#define MISSING_JUMP 1.5
/* Echoing ends at that R, and begins at AUTO_R_BEGIN. */
#define R_END 1.04
/* If R is nearer to the factor, a change waits until all parts are of one
 * speed. */
#define FAR 1.25
/* The factor stays while it is so many times R. */
#define STAY_MIN 0.98
#define STAY_MAX 1.03
/* The trainer waits if that is more of its time. */
#define WAITS 0.003
/* A fall to this share of the factor is a small step. */
#define SMALL 0.92

void auto_init(struct auto_echo *a, uint32_t batch, uint32_t threads,
	uint64_t spread, struct schedule_echo max, struct schedule_echo now)
{
	*a = (struct auto_echo){
		.batch = batch,
		.threads = threads ? threads : 1,
		.part_fresh = spread / AUTO_PARTS + 1,
		.max = max,
		.asked = now,
	};
}

uint32_t auto_burst_read(struct auto_burst *b, uint64_t now_ns, uint64_t *ns)
{
	uint64_t pause_ns, all_ns;
	uint32_t timed = 0;

	if (b->reads == 0)
		b->first_ns = b->last_ns = now_ns;
	pause_ns = now_ns - b->last_ns;
	all_ns = now_ns - b->first_ns;
	b->last_ns = now_ns;
	*ns = 0;
	if (b->reads++ && all_ns >= AUTO_LONG_NS &&
		pause_ns >= all_ns / b->reads) {
		timed = b->since;
		*ns = timed ? now_ns - b->since_ns : 0;
		b->since_ns = now_ns;
		b->since = 1;
	} else if (b->since) {
		b->since++;
	}
	return timed;
}

static double each(uint64_t ns, uint64_t n)
{
	return n ? (double)ns / (double)n : 0;
}

static double value(struct schedule_echo e)
{
	return (double)e.p / e.q;
}

static bool is_waited_for(
	const struct auto_sums *then, const struct auto_sums *now)
{
	return (double)(now->wait_ns - then->wait_ns) >
		WAITS * (double)(now->trainer_ns - then->trainer_ns);
}

/* -- Rows of values -------------------------------------------------------- */

static double middle(const struct auto_row *r)
{
	double v[AUTO_PARTS] = {0};

	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = i;

		for (; at > 0 && v[at - 1] > r->v[i]; at--)
			v[at] = v[at - 1];
		v[at] = r->v[i];
	}
	return r->n ? (v[(r->n - 1) / 2] + v[r->n / 2]) / 2 : 0;
}

/*
 * Do the last two agree that things are not as before: off by more than a
 * little, and outside all that was seen?
 */
static bool jumped(const struct auto_row *r, double by)
{
	struct auto_row before = *r;
	double x, y, least, most;

	if (r->n <= 2)
		return false;
	before.n -= 2;
	x = r->v[r->n - 2];
	y = r->v[r->n - 1];
	most = middle(&before) * by;
	least = middle(&before) / by;
	for (uint32_t i = 0; i < before.n; i++) {
		least = fmin(least, r->v[i]);
		most = fmax(most, r->v[i]);
	}
	return (x > most && y > most) || (x < least && y < least);
}

static void keep_last(struct auto_row *r, uint32_t n)
{
	memmove(r->v, r->v + r->n - n, n * sizeof(r->v[0]));
	r->n = n;
}

/* One more; those before a jump are forgotten. */
static void add_value(struct auto_row *r, double v, double jump)
{
	if (r->n == AUTO_PARTS)
		keep_last(r, AUTO_PARTS - 1);
	r->v[r->n++] = v;
	if (jumped(r, jump))
		keep_last(r, 2);
}

/* -- Reading --------------------------------------------------------------- */

/* The busy time of one part, while reading or fetching is as busy as it can be:
 * number of examples and time, as in struct auto_sums. */
struct busy {
	double full, full_ns, lasting, lasting_ns, bursts;
};

/* The examples that so many bytes are missing of. */
static double examples(const struct auto_echo *a, uint64_t bytes)
{
	double missing = middle(&a->missing);

	return missing > 0 ? (double)bytes / missing : 0;
}

static struct busy busy_fetching(const struct auto_echo *a,
	const struct auto_rates *then, const struct auto_rates *now)
{
	return (struct busy){
		.full = examples(a, now->full_bytes - then->full_bytes),
		.full_ns = (double)(now->full_ns - then->full_ns),
		.lasting = examples(a, now->long_bytes - then->long_bytes),
		.lasting_ns = (double)(now->long_ns - then->long_ns),
		.bursts = (double)(now->bursts - then->bursts),
	};
}

static struct busy busy_of(
	const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;

	if (now->planned)
		return busy_fetching(a, &then->rates, &now->rates);
	return (struct busy){
		.full = (double)(now->full_reads - then->full_reads),
		.full_ns = (double)(now->full_ns - then->full_ns),
		.lasting = (double)(now->long_reads - then->long_reads),
		.lasting_ns = (double)(now->long_ns - then->long_ns),
		.bursts = (double)(now->bursts - then->bursts),
	};
}

/* Slower than the trainer takes examples, whatever was saved up. */
static bool is_slow(const struct auto_echo *a, const struct auto_sums *now,
	const struct busy *busy)
{
	const struct auto_sums *then = &a->begun;
	double read = busy->full_ns / busy->full;
	double step = each(
		now->trainer_ns - then->trainer_ns, now->steps - then->steps);

	return read * a->batch > step * value(a->asked) * JUMP;
}

/*
 * Not in the middle of a burst that shows nothing yet: of its beginning only a
 * speed is certain that is too low.
 */
static bool is_whole(const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;
	uint64_t fresh = now->fresh - then->fresh;
	struct busy busy = busy_of(a, now);

	if (fresh < a->part_fresh || now->steps == then->steps)
		return false;
	if (fresh >= PART_MOST * a->part_fresh || busy.lasting >= FULL_READS ||
		now->planned != then->planned)
		return true;
	return busy.full >= FULL_READS &&
		(!now->in_burst || is_waited_for(then, now) ||
			is_slow(a, now, &busy));
}

/*
 * The time of a part that was never fully busy, because memory or the trainer
 * did not let it. For reads, the observed time. Fetching by a plan has kept up
 * with the trainer, so it takes no longer than the time that passed, and less
 * if the trainer did not wait.
 */
static double idle_ns(const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;
	double passed = each(now->trainer_ns - then->trainer_ns + now->wait_ns -
			then->wait_ns,
		now->fresh - then->fresh);

	if (!now->planned)
		return each(
			now->read_ns - then->read_ns, now->reads - then->reads);
	if (!is_waited_for(then, now))
		passed *= SMALL;
	if (a->byte_ns.n == 0)
		return passed;
	return fmin(middle(&a->byte_ns) * middle(&a->missing), passed);
}

/* An example's reading, and how much longer it may take than it was seen to. */
static double read_ns(
	struct auto_echo *a, const struct auto_sums *now, double *saved_ns)
{
	struct busy busy = busy_of(a, now);
	double ns;

	*saved_ns = 0;
	if (busy.lasting < FULL_READS && busy.full < FULL_READS)
		return idle_ns(a, now);
	ns = busy.full_ns / busy.full;
	if (busy.lasting >= FULL_READS)
		ns = busy.lasting_ns / busy.lasting;
	else
		*saved_ns = busy.bursts * AUTO_SAVED_NS / busy.full;
	if (now->planned)
		add_value(&a->byte_ns, ns / middle(&a->missing), JUMP);
	return ns;
}

/* Bytes that an example misses; their share changes with what is cached. */
static void look_at_missing(struct auto_echo *a, const struct auto_rates *now)
{
	uint64_t looked = now->looked - a->looked.looked;

	if (looked < a->part_fresh)
		return;
	add_value(&a->missing,
		each(now->missing_bytes - a->looked.missing_bytes, looked),
		MISSING_JUMP);
	a->looked = *now;
}

/* -- Parts ----------------------------------------------------------------- */

static void measure(struct auto_echo *a, const struct auto_sums *now,
	struct auto_part *part)
{
	const struct auto_sums *then = &a->begun;
	double saved_ns, read = read_ns(a, now, &saved_ns);
	double steps = (double)(now->steps - then->steps);
	double decode = each(now->decode_ns - then->decode_ns,
				now->decodes - then->decodes) /
		a->threads;

	part->up_ns = a->batch * fmax(read, decode);
	part->up_most_ns = a->batch * fmax(read + saved_ns, decode);
	part->down_ns = (double)(now->trainer_ns - then->trainer_ns) / steps;
	part->waited = is_waited_for(then, now);
	part->down_ns += (double)(now->augment_ns - then->augment_ns) /
		(steps * a->threads);
}

enum which { UP, UP_MOST, DOWN };

static double time_of(const struct auto_part *part, enum which which)
{
	switch (which) {
	case UP:
		return part->up_ns;
	case UP_MOST:
		return part->up_most_ns;
	case DOWN:
		break;
	}
	return part->down_ns;
}

static struct auto_row times_of(const struct auto_echo *a, enum which which)
{
	struct auto_row r = {.n = a->parts};

	for (uint32_t i = 0; i < a->parts; i++)
		r.v[i] = time_of(&a->part[i], which);
	return r;
}

static double median(const struct auto_echo *a, enum which which)
{
	struct auto_row r = times_of(a, which);

	return middle(&r);
}

static bool has_jumped(const struct auto_echo *a, enum which which)
{
	struct auto_row r = times_of(a, which);

	return jumped(&r, JUMP);
}

static void forget(struct auto_echo *a, uint32_t n)
{
	a->parts -= n;
	memmove(a->part, a->part + n, a->parts * sizeof(a->part[0]));
}

/* Did the trainer wait most of the time? Then the estimates hold. */
static bool waited(const struct auto_echo *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->parts; i++)
		n += a->part[i].waited;
	return 2 * n >= a->parts;
}

static void add_part(struct auto_echo *a, const struct auto_part *part)
{
	if (a->parts == AUTO_PARTS)
		forget(a, 1);
	a->part[a->parts++] = *part;
	if (has_jumped(a, UP) || has_jumped(a, DOWN))
		forget(a, a->parts - 2);
	a->tried &= !waited(a);
}

void auto_step(struct auto_echo *a, const struct auto_sums *now)
{
	struct auto_part part;

	if (now->planned)
		look_at_missing(a, &now->rates);
	/* Times before the first batch belong to the start. */
	if (a->begun_once && !is_whole(a, now))
		return;
	if (a->begun_once) {
		measure(a, now, &part);
		add_part(a, &part);
	}
	a->begun = *now;
	a->begun_once = true;
}

bool auto_measured(const struct auto_echo *a, struct auto_part *out)
{
	if (a->parts < PARTS_LEAST)
		return false;
	out->up_ns = median(a, UP);
	out->up_most_ns = median(a, UP_MOST);
	out->down_ns = median(a, DOWN);
	out->waited = waited(a);
	return true;
}

/* -- The factor ------------------------------------------------------------ */

/* Coarser where it is large: a step is a thirtieth at most. */
static uint32_t denominator(double e)
{
	if (e < 4)
		return 32;
	if (e < 8)
		return 16;
	return e < 16 ? 8 : 4;
}

static struct schedule_echo factor_for(const struct auto_echo *a, double r)
{
	double most = value(a->max);
	struct schedule_echo e = {1, 1};
	bool echoes = a->asked.p > a->asked.q;

	if (r <= (echoes ? R_END : AUTO_R_BEGIN))
		return e;
	if (r >= most)
		return a->max;
	e.q = denominator(r);
	e.p = (uint32_t)lround(r * e.q);
	while (e.p % 2 == 0 && e.q % 2 == 0) {
		e.p /= 2;
		e.q /= 2;
	}
	return value(e) < most ? e : a->max;
}

static bool will_do(double now, double want)
{
	return now >= want * STAY_MIN && now <= want * STAY_MAX;
}

static double time_ratio(double up_ns, double down_ns)
{
	if (up_ns <= 0)
		return 0;
	return down_ns > 0 ? up_ns / down_ns : INFINITY;
}

/*
 * A fall to R that only bursts tell of begins with one to a little less than is
 * certain: whether the trainer has to wait then shows if the rest is right.
 */
static double first_step(const struct auto_echo *a, const struct auto_part *m)
{
	return SMALL *
		fmin(value(a->asked), time_ratio(m->up_most_ns, m->down_ns));
}

static bool tries(const struct auto_echo *a, const struct auto_part *m)
{
	return !m->waited && !a->tried &&
		time_ratio(m->up_ns, m->down_ns) < first_step(a, m);
}

/* Should the factor be another one? True and which. */
static bool wish(const struct auto_echo *a, const struct auto_part *m,
	struct schedule_echo *echo)
{
	double most = value(a->max), now = value(a->asked);
	double r = time_ratio(m->up_ns, m->down_ns);
	bool is_near = r < now * FAR && r * FAR > now;

	if (tries(a, m))
		r = first_step(a, m);
	*echo = factor_for(a, r);
	if (value(*echo) == now)
		return false;
	if (a->parts < AUTO_PARTS && is_near)
		return false;
	if (now == 1. || echo->p == echo->q)
		return true;
	return !will_do(now, r < most ? r : most);
}

/* -- The schedule ---------------------------------------------------------- */

int auto_change(
	struct auto_echo *a, struct schedule *s, uint64_t given, uint64_t *step)
{
	uint64_t spread = s->spread * s->unit_examples;
	struct schedule_slot slot;
	struct schedule_echo echo;
	struct auto_part m;
	uint64_t begins;
	int rc;

	if (!auto_measured(a, &m) || !wish(a, &m, &echo))
		return 0;
	if (schedule_fresh(s, given, &slot, step) < 0)
		return -ERANGE;
	begins = schedule_fresh_before(s, ++*step);
	if (begins < schedule_change_begins(s) + spread)
		return 0;
	rc = schedule_change(s, *step, echo);
	if (rc < 0)
		return rc;
	a->tried = tries(a, &m);
	a->asked = echo;
	return 1;
}
