/* SPDX-License-Identifier: MIT */
/*
 * Chooses the echo factor from sums of times; auto.h describes how. All
 * functions are pure; the owner of the struct calls them.
 */
#include "loader/engine/auto_impl.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define PARTS_LEAST 3
#define FULL_READS AUTO_FULL_READS
/* If reads could not be timed, a part ends after this many times its number of
 * examples. */
#define PART_MOST 4
/* Echoing ends when R falls to R_END; it begins when R rises to
 * AUTO_R_BEGIN. */
#define R_END 1.04
/* If R and the factor differ by less than this ratio, the factor changes only
 * when all AUTO_PARTS parts have the same speed. */
#define FAR 1.25
/* The factor stays while factor / R is within these limits. */
#define STAY_MIN 0.98
#define STAY_MAX 1.03
/* The trainer counts as waiting if it waits for more than this share of its
 * time. */
#define WAITS 0.003
/* The first step of a fall multiplies the factor by this. */
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

/* -- Reads ----------------------------------------------------------------- */

/* Reads in one part while as many as allowed ran at a time: numbers of examples
 * and times, as in struct auto_sums. */
struct auto_busy {
	double full, full_ns, lasting, lasting_ns, bursts;
};

static struct auto_busy busy_of(
	const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;

	return (struct auto_busy){
		.full = (double)(now->full_reads - then->full_reads),
		.full_ns = (double)(now->full_ns - then->full_ns),
		.lasting = (double)(now->long_reads - then->long_reads),
		.lasting_ns = (double)(now->long_ns - then->long_ns),
		.bursts = (double)(now->bursts - then->bursts),
	};
}

/* Is reading slower than the trainer takes examples, even though storage may
 * have used burst credit? */
static bool is_slow(const struct auto_echo *a, const struct auto_sums *now,
	const struct auto_busy *busy)
{
	const struct auto_sums *then = &a->begun;
	double read = busy->full_ns / busy->full;
	double step = each(
		now->trainer_ns - then->trainer_ns, now->steps - then->steps);

	return read * a->batch > step * value(a->asked) * AUTO_JUMP;
}

/*
 * May the part end now? Not in the middle of a burst, because the beginning of
 * a burst does not show the sustained speed. This does not matter if the
 * trainer waits, or if reading is slow even so.
 */
static bool is_whole(const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;
	uint64_t fresh = now->fresh - then->fresh;
	struct auto_busy busy = busy_of(a, now);

	if (fresh < a->part_fresh || now->steps == then->steps)
		return false;
	if (fresh >= PART_MOST * a->part_fresh || busy.lasting >= FULL_READS ||
		now->planned)
		return true;
	return busy.full >= FULL_READS &&
		(!now->in_burst || is_waited_for(then, now) ||
			is_slow(a, now, &busy));
}

/*
 * Returns an upper limit for the time to fetch an example, in ns, for a mount
 * that fetches by a plan. Fetching has kept up with the trainer, so it took at
 * most the time that has passed, and less if the trainer did not wait.
 */
static double passed_ns(const struct auto_echo *a, const struct auto_sums *now)
{
	const struct auto_sums *then = &a->begun;
	double ns = each(now->trainer_ns - then->trainer_ns + now->wait_ns -
			then->wait_ns,
		now->fresh - then->fresh);

	return is_waited_for(then, now) ? ns : SMALL * ns;
}

/* Returns the measured time to read an example, in ns. *saved_ns is set to how
 * much longer a read may take after storage has used up its burst credit. */
static double read_ns(const struct auto_echo *a, const struct auto_sums *now,
	double *saved_ns)
{
	struct auto_busy busy = busy_of(a, now);

	*saved_ns = 0;
	if (now->planned)
		return passed_ns(a, now);
	if (busy.lasting >= FULL_READS)
		return busy.lasting_ns / busy.lasting;
	/* Reads were never as busy as allowed, because the trainer is slow or
	 * memory is short. */
	if (busy.full < FULL_READS)
		return each(now->read_ns - a->begun.read_ns,
			now->reads - a->begun.reads);
	*saved_ns = busy.bursts * SPEED_SAVED_NS / busy.full;
	return busy.full_ns / busy.full;
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

	part->decode_ns = a->batch * decode;
	part->up_ns = a->batch * fmax(read, decode);
	part->up_most_ns = a->batch * fmax(read + saved_ns, decode);
	part->down_ns = (double)(now->trainer_ns - then->trainer_ns) / steps;
	part->waited = is_waited_for(then, now);
	part->down_ns += (double)(now->augment_ns - then->augment_ns) /
		(steps * a->threads);
}

enum which { UP, UP_MOST, DECODE, DOWN };

static double time_of(const struct auto_part *part, enum which which)
{
	switch (which) {
	case UP:
		return part->up_ns;
	case UP_MOST:
		return part->up_most_ns;
	case DECODE:
		return part->decode_ns;
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

	return row_middle(&r);
}

static bool has_jumped(const struct auto_echo *a, enum which which)
{
	struct auto_row r = times_of(a, which);

	return row_fell(&r, 2, AUTO_JUMP) || row_rose(&r, 2, AUTO_JUMP);
}

static void forget(struct auto_echo *a, uint32_t n)
{
	a->parts -= n;
	memmove(a->part, a->part + n, a->parts * sizeof(a->part[0]));
}

/* Did the trainer wait in most parts? Then the estimates are reliable. */
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
	if ((!a->planned && has_jumped(a, UP)) || has_jumped(a, DOWN))
		forget(a, a->parts - 2);
	a->tried &= !waited(a);
}

void auto_step(struct auto_echo *a, const struct auto_sums *now)
{
	struct auto_part part;

	a->planned = now->planned;
	if (now->planned)
		fetch_step(a, now);
	/* The first part begins with the first batch, because the time before
	 * it is the time that the start took. */
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
	if (a->parts < PARTS_LEAST || !fetch_is_known(a))
		return false;
	out->up_ns = median(a, UP);
	out->up_most_ns = median(a, UP_MOST);
	out->decode_ns = median(a, DECODE);
	out->down_ns = median(a, DOWN);
	out->waited = waited(a);
	if (a->planned)
		fetch_measured(a, out);
	return true;
}

/* -- The factor ------------------------------------------------------------ */

/* Returns the denominator of the steps near this factor. A step is at most a
 * thirtieth of the factor, so larger factors have larger steps. */
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
 * Returns the first step of a fall to an R that was measured only in short
 * bursts. This is slightly less than the lowest R that is certain. If the
 * trainer does not have to wait then, the rest of the fall follows.
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

/* Should the factor change? Sets *echo to the new factor if it should. */
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
	if (is_near && (a->parts < AUTO_PARTS || !fetch_is_settled(a)))
		return false;
	if (now == 1. || echo->p == echo->q)
		return true;
	return !will_do(now, r < most ? r : most);
}

/* -- The schedule ---------------------------------------------------------- */

int auto_change(
	struct auto_echo *a, struct schedule *s, uint64_t given, uint64_t *step)
{
	uint64_t spread = schedule_spread(s);
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
