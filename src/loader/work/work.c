/* SPDX-License-Identifier: MIT */
/* A worker: its life, its scout and its hands; see work.h. */
#include "loader/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "loader/service/service_print.h"
#include "loader/service/service_value.h"
#include "loader/work/work_impl.h"

/* Interval of the scout's looks at the board: the minimum while samples are
 * needed, up to the maximum while none are. */
#define LOOK_MIN_NS (50 * NS_PER_MS)
#define LOOK_MAX_NS NS_PER_S
#define BEAT_NS NS_PER_S
#define WORKER_TTL_S 6u
/* The longest time for which a hand waits for a board that does not answer.
 * Then it gives up its range. */
#define DONE_PATIENCE_NS (10 * NS_PER_S)
#define DONE_RETRY_NS (200 * NS_PER_MS)

/* -- A hand ---------------------------------------------------------------- */

/* Take a random one of the ranges that are needed soonest. Returns false at the
 * end. */
static bool hand_choose(struct work_hand *h, struct work_range *r)
{
	struct work *w = h->work;
	bool found = false;
	LOCK_SCOPE(&w->lock);

	while (!w->ending && !found) {
		unsigned some =
			w->ncandidates < w->choose ? w->ncandidates : w->choose;
		unsigned i;

		if (some == 0 || clock_now_ns() < w->full_until_ns) {
			cond_wait_until(&w->news, &w->lock,
				clock_now_ns() + 100 * NS_PER_MS);
			continue;
		}
		h->random = h->random * UINT64_C(6364136223846793005) + 1;
		i = (unsigned)((h->random >> 33) % some);
		*r = w->candidates[i];
		w->ncandidates--;
		memmove(w->candidates + i, w->candidates + i + 1,
			(w->ncandidates - i) * sizeof(*r));
		found = true;
	}
	return found;
}

/* Handle the end of a range that another worker has claimed. If the new state
 * names the store of this worker, the samples stay there: the winner has found
 * them and has not put its own. Otherwise this deletes them. */
static void hand_lost(struct work_hand *h, struct maker *m)
{
	char text[RANGE_STATE_MAX];
	struct range_state s;
	struct service_call c;
	int rc;

	work_count(&h->work->lost, 1);
	call_get(&c, h->claim.key, text, sizeof(text));
	rc = calls_make(h->board, &c, 1);
	if (rc == 0 && c.kind == META_VA &&
		range_state_parse(text, c.bytes, &s) == 0 &&
		s.kind != RANGE_LOCAL &&
		strcmp(s.store, h->work->config->store) == 0)
		return;
	maker_drop(m);
}

static void hand_pause(struct work *w, uint64_t ns)
{
	LOCK_SCOPE(&w->lock);

	cond_wait_until(&w->news, &w->lock, clock_now_ns() + ns);
}

static void hand_work(struct work_hand *h, struct maker *m)
{
	uint64_t begin_ns = clock_now_ns(), end_ns;
	uint32_t mask = maker_make(m, &h->claim.range);
	int rc;

	end_ns = clock_now_ns();
	do {
		rc = work_is_lost(h)
			? 0
			: work_done(h, mask,
				  (uint32_t)((end_ns - begin_ns) / NS_PER_MS));
		if (rc < 0)
			hand_pause(h->work, DONE_RETRY_NS);
	} while (rc < 0 && clock_now_ns() < end_ns + DONE_PATIENCE_NS);
	if (rc > 0)
		work_count(&h->work->ranges, 1);
	else
		hand_lost(h, m);
}

static void *hand_main(void *arg)
{
	struct work_hand *h = arg;
	struct work_range r;
	struct maker *m;

	if (maker_new(&m, h) < 0)
		return NULL; /* the other hands continue */
	while (hand_choose(h, &r)) {
		int rc = work_claim(h, &r);

		if (rc > 0)
			hand_work(h, m);
		else if (rc < 0)
			hand_pause(h->work, DONE_RETRY_NS);
	}
	maker_free(m);
	return NULL;
}

/* -- The scout ------------------------------------------------------------- */

/* Once a second, write the record of this worker and renew the claims of its
 * hands. */
static void scout_beat(struct work *w)
{
	char key[SERVICE_KEY_MAX], text[512], host[65] = "";
	struct service_call c;
	int len;

	if (clock_now_ns() < w->beat_ns)
		return;
	w->beat_ns = clock_now_ns() + BEAT_NS;
	/* `host` stays empty if this fails */
	(void)gethostname(host, sizeof(host) - 1);
	len = snprintf(text, sizeof(text),
		"host=%s pid=%d store=%s version=%d print=%016" PRIx64
		" threads=%u ranges=%" PRIu64 " decodes=%" PRIu64
		" lost=%" PRIu64 " refused=%" PRIu64 " failed=%" PRIu64,
		host, (int)getpid(), w->config->store, refrain_version(),
		w->print, w->nhands, atomic_load(&w->ranges),
		atomic_load(&w->decodes), atomic_load(&w->lost),
		atomic_load(&w->refused), atomic_load(&w->failed));
	(void)service_worker_key(key, w->id);
	call_put(&c, key, text, (size_t)len, CALL_SET, 0, WORKER_TTL_S);
	if (calls_make(w->board, &c, 1) == 0)
		(void)board_join(w->board, SERVICE_WORKERS_KEY, w->id,
			&w->nworkers); /* again next time */
	work_renew(w);
}

static bool scout_is_idle(struct work *w)
{
	bool idle = true;
	LOCK_SCOPE(&w->lock);

	for (unsigned i = 0; i < w->nhands; i++)
		idle &= !w->hands[i].claim.held;
	return idle;
}

static void scout_run(struct work *w)
{
	uint64_t pause_ns = LOOK_MIN_NS, idle_ns = clock_now_ns();

	while (!atomic_load(w->config->stop)) {
		int needed;

		scout_beat(w);
		needed = work_look(w);
		work_count(&w->away, needed < 0);
		if (needed > 0 || !scout_is_idle(w)) {
			idle_ns = clock_now_ns();
			pause_ns = LOOK_MIN_NS;
		} else if (pause_ns < LOOK_MAX_NS) {
			pause_ns *= 2;
		}
		if (w->config->exit_idle_s &&
			clock_now_ns() >
				idle_ns + w->config->exit_idle_s * NS_PER_S)
			return;
		hand_pause(w, pause_ns < LOOK_MAX_NS ? pause_ns : LOOK_MAX_NS);
	}
}

/* -- Life ------------------------------------------------------------------ */

static int work_open_datasets(struct work *w, struct error *err)
{
	const struct work_config *c = w->config;

	w->datasets = calloc(
		c->ndatasets ? c->ndatasets : 1, sizeof(struct dataset *));
	if (!w->datasets)
		return error_set(err, -ENOMEM, "work: %m");
	for (unsigned i = 0; i < c->ndatasets; i++) {
		struct dataset_options o = {.path = c->datasets[i].path};
		int rc;

		if (!service_is_id(
			    c->datasets[i].name, strlen(c->datasets[i].name)))
			return error_set(err, -EINVAL,
				"work: '%s' is not a valid name of a dataset: "
				"use letters, digits, '.', '_' and '-'",
				c->datasets[i].name);
		rc = dataset_open(&w->datasets[i], &o, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int work_check(const struct work_config *c, struct error *err)
{
	int rc = address_check(c->board, err);

	if (rc == 0)
		rc = address_check(c->store, err);
	if (rc == 0 && c->ndatasets == 0)
		rc = error_set(err, -EINVAL,
			"work: there is no dataset: give --dataset NAME=PATH");
	return rc;
}

static int work_name(struct work *w, struct error *err)
{
	if (getrandom(&w->maker, sizeof(w->maker), 0) != sizeof(w->maker))
		return error_set(err, -errno, "work: no random number: %m");
	(void)snprintf(w->id, sizeof(w->id), "w%016" PRIx64, w->maker);
	w->seed = sample_seed(w->config->secret, w->config->secret_bytes);
	return service_print(&w->print, err);
}

/* The longest sample that a store accepts. A job with longer samples is not
 * prepared. */
#define STORE_VALUE_MAX (1U << 20)

static int hand_start(struct work *w, struct work_hand *h, struct error *err)
{
	int rc;

	h->work = w;
	h->random = w->maker + (uint64_t)(h - w->hands) * 2 + 1;
	rc = asker_new(
		&h->board, w->config->board, SERVICE_STATE_MAX, WORK_ANSWER_MS);
	if (rc == 0)
		rc = asker_new(&h->store, w->config->store, STORE_VALUE_MAX,
			WORK_ANSWER_MS);
	if (rc == 0)
		rc = -pthread_create(&h->thread, NULL, hand_main, h);
	h->started = rc == 0;
	return rc < 0 ? error_set(err, rc, "work: cannot start a thread: %m")
		      : 0;
}

static int work_start(struct work *w, struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = w->config->threads ? w->config->threads
		: cpus > 0		? (unsigned)cpus
					: 1;
	int rc;

	w->hands = calloc(n, sizeof(*w->hands));
	w->candidates = calloc(WORK_CANDIDATES_MAX, sizeof(*w->candidates));
	if (!w->hands || !w->candidates)
		return error_set(err, -ENOMEM, "work: %m");
	rc = asker_new(
		&w->board, w->config->board, SERVICE_STATE_MAX, WORK_ANSWER_MS);
	if (rc < 0)
		return error_set(err, rc, "work: %m");
	while (rc == 0 && w->nhands < n)
		rc = hand_start(w, &w->hands[w->nhands++], err);
	return rc;
}

static void work_stop(struct work *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->news);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->nhands; i++) {
		if (w->hands[i].started)
			pthread_join(w->hands[i].thread, NULL);
		asker_free(w->hands[i].board);
		asker_free(w->hands[i].store);
	}
}

static void work_release(struct work *w)
{
	for (unsigned i = 0; i < w->njobs; i++)
		free(w->jobs[i]);
	for (unsigned i = 0; w->datasets && i < w->config->ndatasets; i++)
		dataset_close(w->datasets[i]);
	asker_free(w->board);
	free(w->candidates);
	free(w->hands);
	free(w->datasets);
	(void)pthread_cond_destroy(&w->news);
	(void)pthread_mutex_destroy(&w->lock);
}

static void work_tell(struct work *w, struct work_counts *out)
{
	*out = (struct work_counts){
		.ranges = atomic_load(&w->ranges),
		.decodes = atomic_load(&w->decodes),
		.samples = atomic_load(&w->samples),
		.reused = atomic_load(&w->reused),
		.lost = atomic_load(&w->lost),
		.refused = atomic_load(&w->refused),
		.failed = atomic_load(&w->failed),
		.away = atomic_load(&w->away),
	};
}

int work_run(const struct work_config *config, struct work_counts *counts,
	struct error *err)
{
	struct work *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return error_set(err, -ENOMEM, "work: %m");
	w->config = config;
	lock_init(&w->lock, RANK_WORK);
	cond_init(&w->news);
	rc = work_check(config, err);
	if (rc == 0)
		rc = work_name(w, err);
	if (rc == 0)
		rc = work_open_datasets(w, err);
	if (rc == 0)
		rc = work_start(w, err);
	if (rc == 0)
		scout_run(w);
	work_stop(w);
	work_tell(w, counts);
	work_release(w);
	free(w);
	return rc;
}
