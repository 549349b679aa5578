/* SPDX-License-Identifier: MIT */
/* Tests of positions against a model. Plans cover several epochs, and their
 * owners read slightly out of order. Between their reads come repeated reads,
 * and reads of strangers. The memory has room for more or for less than the
 * dataset. A seed determines each random case. */
#include <stdio.h>

#include "cache_fixture.h"
#include "mount/plan/prefetch.h"
#include "suite.h"

#define FILES_MAX 64u
#define EPOCHS_MAX 5u
#define PLANS 3u
#define POSITIONS_MAX (FILES_MAX * EPOCHS_MAX)
#define SPREAD 4u  /* the maximum distance between reads of one owner */
#define SLACK 8u   /* distance out of order that the plan of the owner allows */
#define STRANGER 9 /* process number of a reader without a plan */
#define SEEDS 24u

/* The state that a plan should have. */
struct owner {
	struct plan *plan;
	pid_t pid;
	unsigned file[POSITIONS_MAX];
	bool read[POSITIONS_MAX];
	/* number of positions; first position that was not read */
	unsigned n, first;
	unsigned reads;
};

struct scene {
	struct rig g;
	struct plans *plans;
	struct owner owner[PLANS];
	unsigned nplans, files, epochs;
	uint64_t size, read_bytes;
	uint64_t rng;
	bool seen[FILES_MAX + 1]; /* the stranger has read the file */
	bool kept[FILES_MAX + 1]; /* the kernel has had pages of the file */
	bool reports;		  /* owners report their progress */
	pthread_t origin;
	_Atomic bool stop;
};

static unsigned draw(struct scene *s, unsigned n)
{
	s->rng = s->rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(s->rng >> 33) % n;
}

static bool scene_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	const struct scene *s = arg;

	*file = file_item(&s->g, cookie, s->size, 0);
	return true;
}

static void *origin_main(void *arg)
{
	struct scene *s = arg;

	while (!s->stop) {
		answer_all(&s->g.hand);
		sched_yield();
	}
	return NULL;
}

/* Make the order of an epoch: the plan's share of the files, in a new order. */
static void make_order(struct scene *s, struct owner *o, unsigned rank)
{
	for (unsigned e = 0; e < s->epochs; e++) {
		unsigned begin = o->n;

		/* The shares change from epoch to epoch, as those of ranks do.
		 */
		for (unsigned f = (rank + e) % s->nplans; f < s->files;
			f += s->nplans)
			o->file[o->n++] = f + 1;
		for (unsigned i = o->n - 1; i > begin; i--) {
			unsigned j = begin + draw(s, i - begin + 1);
			unsigned x = o->file[i];

			o->file[i] = o->file[j];
			o->file[j] = x;
		}
		for (unsigned i = begin; i < o->n; i++)
			ck_assert_int_eq(plan_add(o->plan, e, o->file[i]), 0);
	}
}

static void scene_start(struct scene *s, uint64_t seed)
{
	struct plans_config config = {.file = scene_file, .arg = s};

	memset(s, 0, sizeof(*s));
	s->rng = seed;
	rig_start(&s->g, "128K"); /* no item has room in the tier */
	config.cache = s->g.cache;
	config.counters = &s->g.fix.counters;
	ck_assert_int_eq(plans_new(&s->plans, &config), 0);
	s->nplans = 1 + draw(s, PLANS);
	s->files = 16 + draw(s, FILES_MAX - 15);
	s->reports = draw(s, 2);
	s->epochs = 2 + draw(s, EPOCHS_MAX - 1);
	/* Plans may use half of staging. This has room for 4 large files, or
	 * for more small files than there are. */
	s->size = draw(s, 2) ? 500000 : 132000;
	if (s->files * s->size > STAGING / 2 && s->size < 500000)
		s->files = (unsigned)(STAGING / 2 / s->size);
	ck_assert_int_eq(pthread_create(&s->origin, NULL, origin_main, s), 0);
	for (unsigned i = 0; i < s->nplans; i++) {
		struct owner *o = &s->owner[i];
		struct plan_params params = {
			.slack = SLACK, .reader = 100 + (pid_t)i};

		o->pid = params.reader;
		ck_assert_int_eq(
			plan_open(s->plans, &params, &o->plan, &s->g.fix.err),
			0);
		make_order(s, o, i);
	}
}

static void scene_stop(struct scene *s)
{
	for (unsigned i = 0; i < s->nplans; i++)
		plan_close(s->owner[i].plan);
	s->stop = true;
	(void)pthread_join(s->origin, NULL);
	plans_free(s->plans);
	rig_stop(&s->g);
}

static void begin_read(struct scene *s, struct probe *p,
	const struct cache_item *item, size_t off, size_t len,
	enum plans_turn turn)
{
	ssize_t n;

	*p = (struct probe){.item = *item};
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	p->r = (struct cache_read){.off = off,
		.len = len,
		.planned = turn != PLANS_NONE,
		.ahead = turn == PLANS_LATER || turn == PLANS_LATER_AGAIN,
		.again = turn == PLANS_NOW_AGAIN || turn == PLANS_LATER_AGAIN,
		.done = probe_done};
	n = cache_read(s->g.cache, s->g.scratch, item, &p->r);
	if (n == 0)
		return;
	ck_assert_int_eq(n, (int)len);
	p->done = true;
	p->right = bytes_right(p, p->r.data);
	cache_read_end(s->g.cache, &p->r);
}

/*
 * The kernel has dropped the second piece before its reader got it. A plan
 * knows that for a second after the read began, which a busy machine may
 * exceed.
 */
static void read_again(
	struct scene *s, const struct cache_item *item, size_t off, pid_t pid)
{
	enum plans_turn turn;
	struct probe p;

	turn = plans_note(s->plans, item, off, s->size - off, pid, NULL);
	ck_assert(turn == PLANS_NOW_AGAIN || turn == PLANS_LATER_AGAIN);
	begin_read(s, &p, item, off, s->size - off, turn);
	probe_wait(&p);
	ck_assert(p.right);
}

/*
 * Read a file as the fs does, in one or two pieces. The kernel may still have
 * the second piece of a file that was read before, and then does not ask for
 * it.
 */
static void read_file(struct scene *s, unsigned file, pid_t pid)
{
	struct cache_item item = file_item(&s->g, file, s->size, 0);
	/* Between two reads of a stranger, the cache may drop the item. */
	bool whole = pid == STRANGER || draw(s, 3);
	size_t first = whole ? s->size : 65536;
	bool kept = s->kept[file] && pid != STRANGER && draw(s, 2);
	uint64_t soon_ns = clock_now_ns() + NS_PER_S / 2;
	struct probe p;

	s->kept[file] = true;
	s->read_bytes += s->size;

	for (size_t off = 0; off < s->size; off += p.r.len) {
		size_t len = off ? s->size - off : first;
		enum plans_turn turn =
			plans_note(s->plans, &item, off, len, pid, NULL);

		ck_assert(turn == PLANS_NONE || pid != STRANGER);
		begin_read(s, &p, &item, off, len, turn);
		probe_wait(&p);
		ck_assert(p.right);
		if (kept)
			return;
		if (off > 0 && pid != STRANGER && draw(s, 4) == 0 &&
			clock_now_ns() < soon_ns)
			read_again(s, &item, off, pid);
	}
}

/* Check that the plan agrees with the model. */
static void compare(const struct owner *o)
{
	struct plan_status st;

	plan_status(o->plan, &st);
	ck_assert_uint_eq(st.read, o->reads);
	ck_assert_uint_eq(st.done, o->first);
	ck_assert_uint_eq(st.wasted, 0);
	ck_assert_uint_eq(st.failed, 0);
	ck_assert_uint_eq(st.resident, 0);
}

static void read_own(struct scene *s, struct owner *o)
{
	/* The plan must not allow more positions before the first unread one.
	 */
	bool far = o->reads - o->first >= SPREAD;
	unsigned pos = o->first + (far ? 0 : draw(s, SPREAD));

	while (pos >= o->n || o->read[pos])
		pos = pos + 1 < o->n ? pos + 1 : o->first;
	/* A read of a file belongs to its first unread position. */
	for (unsigned i = o->first; i < pos; i++)
		if (!o->read[i] && o->file[i] == o->file[pos])
			pos = i;
	read_file(s, o->file[pos], o->pid);
	o->read[pos] = true;
	o->reads++;
	while (o->first < o->n && o->read[o->first])
		o->first++;
	if (s->reports)
		plan_progress(o->plan, o->first);
	compare(o);
}

static void read_strange(struct scene *s)
{
	unsigned file = 1 + draw(s, s->files);

	if (s->seen[file])
		return;
	s->seen[file] = true;
	read_file(s, file, STRANGER);
	for (unsigned i = 0; i < s->nplans; i++)
		compare(&s->owner[i]);
}

static bool scene_step(struct scene *s)
{
	unsigned i = draw(s, s->nplans), tried = 0;

	while (tried < s->nplans && s->owner[i].first == s->owner[i].n) {
		i = (i + 1) % s->nplans;
		tried++;
	}
	if (tried == s->nplans)
		return false;
	read_own(s, &s->owner[i]);
	if (draw(s, 8) == 0)
		read_strange(s);
	return true;
}

START_TEST(test_positions_are_those_of_the_model)
{
	static struct scene s;
	const struct counters *c;

	scene_start(&s, (uint64_t)_i + 1);
	while (scene_step(&s))
		;
	c = &s.g.fix.counters;
	for (unsigned i = 0; i < s.nplans; i++)
		ck_assert(plan_wait(s.owner[i].plan, 10 * NS_PER_S));
	ck_assert_uint_eq(c->hits, 0);
	ck_assert_uint_eq(c->prefetch_wasted, 0);
	ck_assert_uint_eq(c->prefetch_used, c->prefetch_issued);
	/* The last requests may still be in progress: wait for their bytes. */
	for (uint64_t until = clock_now_ns() + 5 * NS_PER_S;
		c->origin_bytes + c->prefetch_carried_bytes !=
			s.read_bytes + c->reread_bytes &&
		clock_now_ns() < until;)
		sched_yield();
	ck_assert_uint_eq(c->origin_bytes + c->prefetch_carried_bytes,
		s.read_bytes + c->reread_bytes);
	scene_stop(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan_model");
	TCase *t = case_of(suite, "plan_model");

	tcase_add_loop_test(t, test_positions_are_those_of_the_model, 0, SEEDS);
	return run_suite(suite);
}
