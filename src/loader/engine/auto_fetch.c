/* SPDX-License-Identifier: MIT */
/*
 * Computes the time of the upstream if a mount fetches by a plan: the missing
 * bytes of an example times the time to fetch a byte. The two are measured
 * separately, because the first depends on the part of the dataset that is
 * cached, and the second on the source.
 */
#include "loader/engine/auto_impl.h"

#include <math.h>

/* If the missing bytes change by more than this ratio, more or fewer examples
 * are cached than before. Random variation and the end of an epoch cause
 * smaller changes. */
#define MISSING_JUMP 1.5
/* The factor can change only after this many measurements of the missing bytes,
 * and of the time to fetch a byte. */
#define LOOKS_LEAST 3
#define TIMES_LEAST 2

/* Returns the number of examples whose missing bytes sum to `bytes`. */
static double examples(const struct auto_echo *a, uint64_t bytes)
{
	double missing = row_mean(&a->missing);

	return missing > 0 ? (double)bytes / missing : 0;
}

static void add_missing(struct auto_echo *a, double bytes)
{
	row_add(&a->missing, bytes);
	if (row_fell(&a->missing, 2, MISSING_JUMP) ||
		row_rose(&a->missing, 2, MISSING_JUMP))
		row_keep(&a->missing, 2);
}

/*
 * Measure the missing bytes of an example. If the plan fits into the mount's
 * memory, one lookup covers the examples of many parts.
 */
static void look_at_missing(struct auto_echo *a, const struct fetch_rates *now)
{
	uint64_t looked = now->looked - a->looked.looked;
	uint64_t bytes = now->missing_bytes - a->looked.missing_bytes;
	uint64_t parts = looked / a->part_fresh;

	if (parts == 0)
		return;
	for (uint64_t i = 0; i < parts && i < AUTO_PARTS; i++)
		add_missing(a, (double)bytes / (double)looked);
	a->looked = *now;
}

static void keep_times(struct auto_echo *a, uint32_t n)
{
	row_keep(&a->byte_ns, n);
	row_keep(&a->saved_ns, n);
}

/*
 * Add a time to fetch a byte. When the speed has changed, earlier times are
 * forgotten. Two lower times are sufficient to show that the source is faster.
 * Three higher ones are needed to show that it is slower, because one pause of
 * the source may lengthen two times.
 */
static void add_time(struct auto_echo *a, double ns, double saved_ns)
{
	row_add(&a->byte_ns, ns);
	row_add(&a->saved_ns, saved_ns);
	if (row_fell(&a->byte_ns, 2, AUTO_JUMP))
		keep_times(a, 2);
	else if (row_rose(&a->byte_ns, 3, AUTO_JUMP))
		keep_times(a, 3);
}

/* Measure the time to fetch a byte, as soon as the examples of a part or a
 * whole burst were timed. */
static void look_at_time(struct auto_echo *a, const struct auto_sums *sums)
{
	const struct fetch_rates *now = &sums->rates, *then = &a->timed;
	uint64_t bytes = now->full_bytes - then->full_bytes;
	uint64_t ns = now->full_ns - then->full_ns;
	uint64_t long_bytes = now->long_bytes - then->long_bytes;
	double saved_ns = 0;

	if (examples(a, bytes) <
		(sums->in_burst ? (double)a->part_fresh : AUTO_FULL_READS))
		return;
	if (examples(a, long_bytes) >= AUTO_FULL_READS) {
		bytes = long_bytes;
		ns = now->long_ns - then->long_ns;
	} else {
		saved_ns =
			(double)(now->bursts - then->bursts) * SPEED_SAVED_NS;
	}
	add_time(a, (double)ns / (double)bytes, saved_ns / (double)bytes);
	a->timed = *now;
	a->timed_fresh = sums->fresh;
}

void fetch_step(struct auto_echo *a, const struct auto_sums *now)
{
	look_at_missing(a, &now->rates);
	look_at_time(a, now);
	a->untimed = now->fresh - a->timed_fresh;
}

/* Has no fetch time been taken for a whole window (AUTO_PARTS parts), because
 * the source had too little to do? Then it may be faster now than the last
 * measurement says. */
static bool is_stale(const struct auto_echo *a)
{
	return a->untimed > AUTO_PARTS * a->part_fresh;
}

void fetch_measured(const struct auto_echo *a, struct auto_part *out)
{
	double passed_ns = out->up_ns, batch = a->batch * row_mean(&a->missing);
	double ns = batch * row_middle_half(&a->byte_ns);
	double saved_ns = batch * row_middle_half(&a->saved_ns);
	double enough_ns = out->down_ns * a->asked.p / a->asked.q;

	if (a->byte_ns.n == 0)
		return;
	if (is_stale(a)) {
		/* The trainer does not wait, so the factor is high enough. */
		ns = fmin(ns, passed_ns);
		if (!out->waited)
			ns = fmin(ns, enough_ns);
		saved_ns = 0;
	}
	out->up_ns = fmax(ns, out->decode_ns);
	out->up_most_ns = fmax(ns + saved_ns, out->decode_ns);
}

bool fetch_is_known(const struct auto_echo *a)
{
	/* If there are only few and old times, a change does not wait for
	 * them. */
	if (!a->planned || a->byte_ns.n == 0 || is_stale(a))
		return true;
	return a->byte_ns.n >= TIMES_LEAST && a->missing.n >= LOOKS_LEAST;
}

bool fetch_is_settled(const struct auto_echo *a)
{
	return !a->planned || a->byte_ns.n == 0 || a->missing.n == AUTO_PARTS;
}
