/* SPDX-License-Identifier: MIT */
/*
 * The epochs of a mount; see epochs.h. Called by readers, for each miss, and by
 * status commands.
 *
 * The effect of a larger cache is given as a range. At worst an epoch takes as
 * long as now, because the speed of the trainer is unknown while it waits for
 * input. At best the time in which a READ waits shrinks in proportion to the
 * misses, and all other time stays the same. It cannot shrink more: with fewer
 * requests, fewer overlap, and a source that limits the rate takes as long for
 * each byte as before.
 */
#include "mount/daemon/epochs.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

#define CELLS (2 * EPOCHS_ITEMS)

/* Some items are read twice in an epoch. So the next epoch counts as begun only
 * when this many items have missed a second time: at least AGAIN_LEAST, and 1 /
 * AGAIN_DIVISOR of all. */
#define AGAIN_LEAST 4
#define AGAIN_DIVISOR 128

/* An epoch counts as complete if it had this fraction of its expected misses.
 * Its items count as read completely if this fraction of their bytes was
 * read. */
#define WHOLE 0.95
#define READ_WHOLE 0.9
/* Minimum number of items for a statement whether items are read completely.
 * With fewer items, the ones that are being read at the moment would count too
 * much. */
#define JUDGED_ITEMS 256

/* If no item has missed for QUIET_NS and for 1 / QUIET_DIVISOR of the epoch's
 * time, readers are idle, or the kernel answers them. */
#define QUIET_NS NS_PER_S
#define QUIET_DIVISOR 10

/* Fractions of an epoch that must have passed before its time is estimated, and
 * before its percentage of hits is reported. */
#define TIMED 0.5
#define TOLD_HITS 0.1

/* If plans hold more than this fraction of the bytes that miss, too much of an
 * epoch is fetched during the previous one. */
#define AHEAD 0.05

/* If more than this fraction of the expected hits was not seen, the kernel has
 * answered them. */
#define LACK 0.1

/* The cache counts as full if an epoch admits at most this fraction of its
 * content. */
#define STILL_FILLING 0.01

/* The normal relative difference between two epochs under the same
 * conditions. */
#define NOISE 0.05

struct item {
	uint64_t key, bytes;
	/* number of the last epoch in which the item missed; 0: the cell is
	 * free */
	uint64_t epoch;
};

/* Measurements of a complete epoch, or of a part of one. */
struct stretch {
	double time_ns, waited; /* waited: fraction of the time */
	double admitted;	/* bytes that were admitted to the cache */
};

struct epochs {
	struct epochs_config config; /* set once */
	pthread_mutex_t lock;	     /* guards all members below */
	struct item item[CELLS];
	unsigned nitems;
	/* Only items whose keys have 0 in these bits are sampled */
	unsigned skip;
	uint64_t epoch; /* number of the epoch; 0: no miss yet */
	/* An epoch had too few misses, so further epochs may not have been
	 * noticed */
	bool uncounted;
	/* a large part of this epoch was fetched during the previous one */
	bool ahead;
	struct epochs_look begun;
	double absent; /* bytes that should miss in this epoch; 0: not known */
	/* Bytes of sampled items that missed in this epoch (`seen`), and bytes
	 * of those that missed a second time, which belong to the next epoch
	 * (`again`); and the numbers of these items. */
	double seen, again;
	unsigned nseen, nagain;
	/* Bytes delivered before the first miss of the next epoch */
	uint64_t again_origin_bytes;
	uint64_t last_ns; /* time of the last miss */
	/* The previous epoch missed all expected items, and read them
	 * completely */
	bool whole, read;
	struct stretch last; /* the previous epoch */
};

struct epochs *epochs_new(const struct epochs_config *config)
{
	struct epochs *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	/* Write to all pages now. Otherwise a look-up would read each page
	 * first, and the first write to it would then interrupt all processors,
	 * once for each page during the first epoch. */
	for (unsigned i = 0; i < CELLS; i++)
		e->item[i].key = UINT64_MAX;
	e->config = *config;
	lock_init(&e->lock, RANK_EPOCHS);
	return e;
}

void epochs_free(struct epochs *e)
{
	if (!e)
		return;
	(void)pthread_mutex_destroy(&e->lock); /* no thread uses it */
	free(e);
}

/* -- Items ----------------------------------------------------------------- */

/* Find the cell of an item, or a free cell. At least half of the cells are
 * free. */
static struct item *item_cell(struct epochs *e, uint64_t key)
{
	uint64_t i = key >> 32;

	while (e->item[i % CELLS].epoch != 0 && e->item[i % CELLS].key != key)
		i++;
	return &e->item[i % CELLS];
}

static double extrapolate(const struct epochs *e, double sampled)
{
	return sampled * ((double)e->skip + 1);
}

static void sum_item(struct epochs *e, const struct item *item)
{
	if (item->epoch == e->epoch) {
		e->seen += (double)item->bytes;
		e->nseen++;
	} else if (item->epoch == e->epoch + 1) {
		e->again += (double)item->bytes;
		e->nagain++;
	}
}

/* Remove half of the items from the sample. A second table is used, because
 * moving items within one table would be more complicated. */
static void thin_out(struct epochs *e)
{
	struct item *old = malloc(sizeof(e->item));

	if (!old)
		/* If memory is short, the table becomes full, and new items are
		 * not sampled */
		return;
	for (unsigned i = 0; i < CELLS; i++) {
		old[i] = e->item[i];
		e->item[i].epoch = 0;
	}
	e->skip = 2 * e->skip + 1;
	e->seen = e->again = 0;
	e->nseen = e->nagain = e->nitems = 0;
	for (unsigned i = 0; i < CELLS; i++) {
		if (old[i].epoch == 0 || (old[i].key & e->skip) != 0)
			continue;
		*item_cell(e, old[i].key) = old[i];
		e->nitems++;
		sum_item(e, &old[i]);
	}
	free(old);
}

/* -- Epochs ---------------------------------------------------------------- */

static struct stretch stretch_between(
	const struct epochs_look *a, const struct epochs_look *b)
{
	struct stretch s = {.time_ns = (double)b->time_ns - (double)a->time_ns,
		.admitted =
			(double)b->resident_bytes - (double)a->resident_bytes};

	if (s.time_ns > 0)
		s.waited = (double)(b->starved_us - a->starved_us) * NS_PER_US /
			s.time_ns;
	if (s.waited > 1)
		s.waited = 1;
	return s;
}

static bool items_read_whole(
	const struct epochs *e, const struct epochs_look *now)
{
	return (double)(now->miss_bytes - e->begun.miss_bytes) >=
		READ_WHOLE * extrapolate(e, e->seen);
}

/* Begin the next epoch, because enough items have missed again. `last` is the
 * last of these misses. */
static void epoch_begins(struct epochs *e, const struct epochs_miss *last)
{
	struct epochs_look now = {0};
	double seen = extrapolate(e, e->seen);
	double fetched = extrapolate(e, e->again) - (double)last->bytes;

	e->config.look(e->config.arg, &now);
	/* The fetched bytes of these items count for the new epoch. They are at
	 * most what the origin has delivered since the first of these misses.
	 * The sum may be larger: some items may have been in memory, and a few
	 * may have missed a second time long before. */
	if (fetched > (double)(now.origin_bytes - e->again_origin_bytes))
		fetched = (double)(now.origin_bytes - e->again_origin_bytes);
	e->last = stretch_between(&e->begun, &now);
	e->read = items_read_whole(e, &now);
	e->whole = seen >= WHOLE * e->absent;
	e->uncounted |= !e->whole;
	if (seen > e->absent || e->whole)
		e->absent = seen;
	e->absent -= e->last.admitted;
	if (e->absent < 0)
		e->absent = 0;
	e->begun = now;
	if (fetched > 0)
		e->begun.origin_bytes -= (uint64_t)fetched;
	e->ahead = (double)last->planned_bytes > AHEAD * seen;
	e->epoch++;
	e->seen = e->again;
	e->nseen = e->nagain;
	e->again = 0;
	e->nagain = 0;
}

static uint64_t origin_bytes(const struct epochs *e)
{
	struct epochs_look now = {0};

	e->config.look(e->config.arg, &now);
	return now.origin_bytes;
}

static bool epoch_has_ended(const struct epochs *e)
{
	unsigned least = e->nseen / AGAIN_DIVISOR;

	/* Have all items missed that should miss in this epoch? */
	if (e->absent > 0 && extrapolate(e, e->seen) >= 0.999 * e->absent)
		return true;
	return e->nagain >= (least > AGAIN_LEAST ? least : AGAIN_LEAST);
}

void epochs_missed(struct epochs *e, const struct epochs_miss *miss)
{
	struct item *item;

	LOCK_SCOPE(&e->lock);
	if ((miss->key & e->skip) != 0)
		return;
	if (e->epoch == 0) {
		e->config.look(e->config.arg, &e->begun);
		if (!e->begun.ready)
			/* until the store is ready, cached items may also miss
			 */
			return;
		/* Bytes that were fetched before the first reader came belong
		 * to this epoch. */
		e->begun.origin_bytes = 0;
		e->epoch = 1;
	}
	e->last_ns = miss->time_ns;
	item = item_cell(e, miss->key);
	if (item->epoch == e->epoch) {
		item->epoch++;
		if (e->nagain == 0)
			e->again_origin_bytes = origin_bytes(e);
		sum_item(e, item);
		if (epoch_has_ended(e))
			epoch_begins(e, miss);
	} else if (item->epoch < e->epoch) {
		if (item->epoch == 0 && e->nitems == EPOCHS_ITEMS)
			/* The item is not sampled, because the table is full */
			return;
		e->nitems += item->epoch == 0;
		*item = (struct item){miss->key, miss->bytes, e->epoch};
		sum_item(e, item);
		if (e->nitems == EPOCHS_ITEMS)
			thin_out(e);
	}
}

/* -- News ------------------------------------------------------------------ */

static int in_pct(double fraction)
{
	return fraction >= 1 ? 100 : (int)(100 * fraction + 0.5);
}

/* Returns the bytes that should miss in this epoch; 0: not known. */
static double absent_now(const struct epochs *e, const struct epochs_look *now)
{
	double known = (double)now->dataset_bytes;

	if (e->epoch > 1)
		return e->absent;
	known -= (double)e->begun.resident_bytes;
	return known > 0 ? known : 0;
}

static bool items_miss(const struct epochs *e, const struct epochs_look *now)
{
	double quiet_ns = ((double)now->time_ns - (double)e->begun.time_ns) /
		QUIET_DIVISOR;

	if (quiet_ns < QUIET_NS)
		quiet_ns = QUIET_NS;
	return e->epoch > 0 &&
		(double)now->time_ns <= (double)e->last_ns + quiet_ns;
}

static bool epoch_is_known(
	const struct epochs *e, const struct epochs_look *now)
{
	double pages = (double)e->config.pages_bytes;

	if (!items_miss(e, now))
		return false;
	if (e->nseen >= JUDGED_ITEMS && !items_read_whole(e, now))
		return false;
	if (e->epoch == 1)
		return true;
	if (!e->whole || !e->read || e->absent <= 0)
		return false;
	/* The first epoch always counts as complete, because nothing is known
	 * before it. So the second one is known only if the kernel's pages are
	 * limited. */
	return e->epoch > 2 || (pages > 0 && pages <= (1 - WHOLE) * e->absent);
}

/* Returns the percentage of hits that the mount has seen, or EPOCHS_UNKNOWN if
 * the kernel has answered some reads of cached items. */
static int seen_hits(const struct epochs *e, const struct epochs_look *now,
	double expected, double done)
{
	double hits = (double)(now->hit_bytes - e->begun.hit_bytes);
	double all = hits + (double)(now->miss_bytes - e->begun.miss_bytes);
	double lack;

	/* If no hit was seen although some were expected, the kernel may have
	 * answered all of them. */
	if (done < TOLD_HITS || all <= 0 || (hits <= 0 && expected > 0))
		return EPOCHS_UNKNOWN;
	hits /= all;
	lack = expected - hits - LACK;
	/* With few items, the difference may be chance. */
	return lack > 0 && lack * lack * e->nseen > 1 ? EPOCHS_UNKNOWN
						      : in_pct(hits);
}

static struct epochs_gain gain_of(
	const struct stretch *s, double misses, double cache_bytes)
{
	double least = 1 - s->waited * (1 - misses);

	return (struct epochs_gain){.cache_bytes = (uint64_t)cache_bytes,
		.least_ms = (uint64_t)(s->time_ns / NS_PER_MS * least *
			(1 - NOISE)),
		.most_ms = (uint64_t)(s->time_ns / NS_PER_MS * (1 + NOISE))};
}

static void tell_gain(const struct epochs *e, const struct epochs_look *now,
	double absent, double done, struct epochs_news *out)
{
	double resident = (double)now->resident_bytes;
	struct stretch s = e->last;

	/* Until epoch 3 no earlier epoch can be measured, because the first one
	 * only filled the cache. Measure the present epoch so far. */
	if (e->epoch < 3) {
		s = stretch_between(&e->begun, now);
		if (done < TIMED || s.time_ns <= 0)
			return;
		s.time_ns /= done;
	}
	if (s.admitted > STILL_FILLING * (absent + resident))
		return;
	out->epoch_ms = (uint64_t)(s.time_ns / NS_PER_MS);
	out->larger = gain_of(&s, 0.5, resident + absent / 2);
	out->whole = gain_of(&s, 0, resident + absent);
}

bool epochs_tell(struct epochs *e, const struct epochs_look *now,
	struct epochs_news *out)
{
	struct stretch so_far;
	double absent, done, expected;

	LOCK_SCOPE(&e->lock);
	*out = (struct epochs_news){.done_pct = EPOCHS_UNKNOWN,
		.expected_pct = EPOCHS_UNKNOWN,
		.hits_pct = EPOCHS_UNKNOWN};
	if (!epoch_is_known(e, now))
		return false;
	so_far = stretch_between(&e->begun, now);
	absent = absent_now(e, now);
	out->epoch = e->uncounted ? 0 : e->epoch;
	out->waited_pct = in_pct(so_far.waited);
	if (absent <= 0)
		return true;
	done = extrapolate(e, e->seen) / absent;
	if (done > 1)
		done = 1;
	if (done >= WHOLE && e->nagain > 0)
		/* Items of the next epoch are read already, or are fetched
		 * ahead for it */
		return false;
	expected = (double)e->begun.resident_bytes /
		((double)e->begun.resident_bytes + absent);
	out->done_pct = in_pct(done);
	out->expected_pct = in_pct(expected);
	out->hits_pct = seen_hits(e, now, expected, done);
	tell_gain(e, now, absent, done, out);
	return true;
}

bool epochs_delivered(
	struct epochs *e, const struct epochs_look *now, uint64_t *bytes)
{
	LOCK_SCOPE(&e->lock);
	if (!items_miss(e, now) || e->ahead ||
		(double)now->planned_bytes > AHEAD * absent_now(e, now))
		return false;
	/* A few items have missed a second time. Either a new epoch begins or
	 * items are read twice, so the epoch is not known. */
	if (e->epoch == 1 && e->nagain > 0)
		return false;
	/* The next epoch may have begun since the caller read its counters. */
	*bytes = now->origin_bytes > e->begun.origin_bytes
		? now->origin_bytes - e->begun.origin_bytes
		: 0;
	return true;
}
