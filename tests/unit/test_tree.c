/* SPDX-License-Identifier: MIT */
/* Tests of the tree over an origin that answers when the test says so: the
 * effects of answers that arrive after other events. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "suite.h"
#include "mount/names/inode.h"
#include "mount/names/node_impl.h"
#include "mount/names/tree.h"

/* -- An origin by hand --------------------------------------------------- */

static struct hand {
	struct origin o;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	struct origin_stat *stat;
	struct origin_list *list;
} hand;

static void hand_start(struct origin *o, struct origin_request *q)
{
	(void)o;
	pthread_mutex_lock(&hand.lock);
	if (q->op == ORIGIN_STAT)
		hand.stat = CONTAINER_OF(q, struct origin_stat, req);
	else
		hand.list = CONTAINER_OF(q, struct origin_list, req);
	pthread_cond_broadcast(&hand.cond);
	pthread_mutex_unlock(&hand.lock);
}

static const struct origin_ops hand_ops = {.start = hand_start};

static struct origin_stat *take_stat(void)
{
	struct origin_stat *s;

	pthread_mutex_lock(&hand.lock);
	while (!hand.stat)
		pthread_cond_wait(&hand.cond, &hand.lock);
	s = hand.stat;
	hand.stat = NULL;
	pthread_mutex_unlock(&hand.lock);
	return s;
}

static void wait_for_listing(void)
{
	pthread_mutex_lock(&hand.lock);
	while (!hand.list)
		pthread_cond_wait(&hand.cond, &hand.lock);
	pthread_mutex_unlock(&hand.lock);
}

static struct origin_list *take_list(void)
{
	struct origin_list *l;

	wait_for_listing();
	pthread_mutex_lock(&hand.lock);
	l = hand.list;
	hand.list = NULL;
	pthread_mutex_unlock(&hand.lock);
	return l;
}

static struct file_entry entry(
	const char *name, enum file_kind kind, int64_t mtime_ns)
{
	return (struct file_entry){
		.name = name,
		.attr = {.version = {100, mtime_ns, 0},
			.kind = kind,
			.mode = 0755},
	};
}

/* Answer a listing with one name, and end it. */
static void answer_list(const char *name, enum file_kind kind, int64_t mtime_ns)
{
	struct origin_list *l = take_list();
	struct file_entry e = entry(name, kind, mtime_ns);

	l->batch(l, &e, 1);
	l->req.done(&l->req, 0);
}

/* -- One tree ------------------------------------------------------------ */

static struct manifest *m;
static struct timers *timers;
static struct tree *t;

static void ceased(void *arg, const struct node_info *old)
{
	(void)arg;
	(void)old;
}

static atomic_uint renames;

static void renamed(void *arg, node_id dir, const char *name)
{
	(void)arg;
	(void)dir;
	(void)name;
	atomic_fetch_add(&renames, 1);
}

static void changed(void *arg, node_id id)
{
	(void)arg;
	(void)id;
}

static enum event_kind last_event;

static void note_event(void *arg, const struct event *e)
{
	(void)arg;
	last_event = e->kind;
}

static const struct event_sink reported = {.report = note_event};

static void setup_as(unsigned revalidate_s, bool paused)
{
	struct tree_config config = {
		.origin = &hand.o,
		.revalidate_s = revalidate_s,
		.paused = paused,
		.patience_ns = 300 * NS_PER_MS,
		.ceased = ceased,
		.renamed = renamed,
		.changed = changed,
	};
	struct error err;

	hand.o.ops = &hand_ops;
	pthread_mutex_init(&hand.lock, NULL);
	pthread_cond_init(&hand.cond, NULL);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	config.manifest = m;
	ck_assert_int_eq(timers_new(&timers), 0);
	config.timers = timers;
	config.events = &reported;
	last_event = EVENT_KINDS;
	ck_assert_int_eq(tree_new(&t, &config, &err), 0);
}

static void setup(void)
{
	setup_as(0, false);
}

static void setup_paused(void)
{
	setup_as(0, true);
}

static void setup_revalidating(void)
{
	setup_as(1, false);
}

static void teardown(void)
{
	tree_free(t);
	timers_free(timers);
	manifest_free(m);
}

static node_id put(node_id dir, const char *name, enum file_kind kind)
{
	struct file_entry e = entry(name, kind, 1);
	struct node_info info;

	ck_assert_int_eq(
		manifest_put(m, dir, &e, 0, false, &info, NULL, NULL), 0);
	return info.id;
}

static bool has(const char *path)
{
	struct node_info info;

	return manifest_resolve(m, path, &info) == 0;
}

struct waiter {
	struct tree_wait w;
	unsigned done;
	int status;
};

static void waiter_done(struct tree_wait *w, int status)
{
	struct waiter *x = CONTAINER_OF(w, struct waiter, w);

	x->done++;
	x->status = status;
}

static struct waiter waiter_new(void)
{
	return (struct waiter){.w.done = waiter_done};
}

/* -- Walks ----------------------------------------------------------------- */

struct walker {
	pthread_t thread;
	struct tree_walk_result result;
};

static void *walker_main(void *arg)
{
	struct walker *w = arg;

	ck_assert_int_eq(tree_walk(t, NODE_ROOT, true, &w->result), 0);
	return NULL;
}

static void fail_list(int status)
{
	struct origin_list *l = take_list();

	l->req.done(&l->req, status);
}

/* The next attempt to list is after an hour, not after a minute. */
START_TEST(test_want_of_room_for_names_is_not_hidden_by_another_failure)
{
	struct tree_walk_result sum = {.failed = 0};
	struct tree_walk_result late = {.failed = 1, .unasked = -ETIMEDOUT};
	struct walker w;
	struct error why;

	(void)put(NODE_ROOT, "dir", KIND_DIR);
	ck_assert_int_eq(pthread_create(&w.thread, NULL, walker_main, &w), 0);
	fail_list(-EIO);
	fail_list(-E2BIG);
	pthread_join(w.thread, NULL);
	ck_assert_uint_eq(w.result.failed, 2);
	ck_assert_int_eq(w.result.status, -EIO);
	ck_assert_int_eq(w.result.unasked, -E2BIG);
	ck_assert_int_eq(tree_walk_error(t, &w.result, &why), -E2BIG);
	ck_assert_ptr_nonnull(strstr(why.msg, "more names than fit"));
	/* The same holds for the sum of several walks. */
	tree_walk_add_failed(&sum, &w.result);
	tree_walk_add_failed(&sum, &late);
	ck_assert_int_eq(tree_walk_error(t, &sum, &why), -E2BIG);
	ck_assert(tree_stop(t));
}
END_TEST

/* -- Listings ------------------------------------------------------------ */

START_TEST(test_a_look_that_is_asked_for_during_a_listing_comes_after_it)
{
	struct waiter first = waiter_new(), again = waiter_new();
	struct waiter reader = waiter_new();

	ck_assert_int_eq(tree_list(t, NODE_ROOT, false, &first.w), 0);
	/* The origin may have read the names of that answer already, so the
	 * names are listed again. */
	ck_assert_int_eq(tree_list(t, NODE_ROOT, false, &reader.w), 0);
	ck_assert_int_eq(tree_list(t, NODE_ROOT, true, &again.w), 0);
	answer_list("old", KIND_FILE, 1);
	ck_assert_uint_eq(first.done, 1);
	ck_assert_uint_eq(reader.done, 1);
	ck_assert_uint_eq(again.done, 0);
	answer_list("new", KIND_FILE, 1);
	ck_assert_uint_eq(again.done, 1);
	ck_assert_int_eq(again.status, 0);
	ck_assert(has("new"));
	ck_assert(!has("old"));
	ck_assert(tree_stop(t));
}
END_TEST

START_TEST(test_a_stop_ends_the_look_that_waits_for_a_listing)
{
	struct waiter first = waiter_new(), again = waiter_new();
	struct origin_list *l;

	ck_assert_int_eq(tree_list(t, NODE_ROOT, false, &first.w), 0);
	ck_assert_int_eq(tree_list(t, NODE_ROOT, true, &again.w), 0);
	l = take_list();
	ck_assert(!tree_stop(t));
	ck_assert_int_eq(first.status, -ENOTCONN);
	ck_assert_int_eq(again.status, -ENOTCONN);
	l->req.done(&l->req, 0);
	ck_assert_uint_eq(first.done, 1);
	ck_assert_uint_eq(again.done, 1);
}
END_TEST

START_TEST(test_a_listing_of_a_directory_that_has_gone_fills_no_other)
{
	node_id gone = put(NODE_ROOT, "gone", KIND_DIR);
	struct waiter w = waiter_new();

	ck_assert_int_eq(tree_list(t, gone, false, &w.w), 0);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "gone", NULL, NULL), 0);
	(void)put(NODE_ROOT, "other", KIND_DIR);
	answer_list("name", KIND_FILE, 1);
	ck_assert_int_eq(w.status, -ESTALE);
	ck_assert(!has("other/name"));
	ck_assert(tree_stop(t));
	/* The node of the deleted name is free again. */
	ck_assert_uint_eq(put(NODE_ROOT, "third", KIND_DIR), gone);
}
END_TEST

START_TEST(test_an_answer_for_a_directory_that_has_gone_is_of_no_other)
{
	node_id gone = put(NODE_ROOT, "gone", KIND_DIR);
	struct origin_stat *s;
	node_id other;

	tree_recheck(t, put(gone, "name", KIND_FILE));
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "gone", NULL, NULL), 0);
	other = put(NODE_ROOT, "other", KIND_DIR);
	/* Numbers are reused, the last one first: one of the two becomes a
	 * directory. */
	(void)put(other, "name", KIND_FILE);
	other = put(NODE_ROOT, "another", KIND_DIR);
	(void)put(other, "name", KIND_FILE);
	s = take_stat();
	s->req.done(&s->req, -ENOENT);
	ck_assert(has("other/name"));
	ck_assert(has("another/name"));
	ck_assert(tree_stop(t));
}
END_TEST

/* -- Revalidation -------------------------------------------------------- */

struct asker {
	struct tree_lookup l;
	unsigned done;
	int status;
	int64_t mtime_ns;
};

/* Called on the timers' thread, or on the thread that answers. */
static void asker_done(
	struct tree_lookup *l, int status, const struct node_info *info)
{
	struct asker *x = CONTAINER_OF(l, struct asker, l);

	pthread_mutex_lock(&hand.lock);
	x->done++;
	x->status = status;
	x->mtime_ns = status == 0 ? info->attr.version.mtime_ns : 0;
	pthread_cond_broadcast(&hand.cond);
	pthread_mutex_unlock(&hand.lock);
	if (status == 0)
		manifest_unref(m, info->id, 1);
}

/* Returns the mtime of a name, which the tree has or asks for, or an error. */
static int64_t mtime_of(const char *name)
{
	struct asker x = {.l.done = asker_done};
	struct node_info info;
	int rc = tree_lookup(t, NODE_ROOT, name, &x.l, &info);

	if (rc == 1)
		manifest_unref(m, info.id, 1);
	if (rc != 0)
		return rc == 1 ? info.attr.version.mtime_ns : rc;
	pthread_mutex_lock(&hand.lock);
	while (!x.done)
		pthread_cond_wait(&hand.cond, &hand.lock);
	pthread_mutex_unlock(&hand.lock);
	return x.status == 0 ? x.mtime_ns : x.status;
}

static void answer_stat(struct origin_stat *s, int status, int64_t mtime_ns)
{
	struct file_entry e = entry("", KIND_FILE, mtime_ns);

	s->attr = &e.attr; /* cppcheck-suppress autoVariables */
	s->target = NULL;
	s->req.done(&s->req, status);
}

/* Add a name that must be checked again, because it was checked long ago. */
static void put_due(const char *name)
{
	manifest_checked(m, put(NODE_ROOT, name, KIND_FILE), 0);
}

/* Let the next probe fail. A probe is sent if a second has passed since the
 * last one. */
static void fail_left(void)
{
	struct origin_stat *s;

	pthread_mutex_lock(&hand.lock);
	s = hand.stat;
	hand.stat = NULL;
	pthread_mutex_unlock(&hand.lock);
	if (s)
		answer_stat(s, -EIO, 0);
}

START_TEST(test_a_look_up_that_finds_no_room_for_a_name_is_reported)
{
	struct asker x = {.l.done = asker_done};
	struct node_info info;

	m->bytes_max = 0;
	ck_assert_int_eq(tree_lookup(t, NODE_ROOT, "name", &x.l, &info), 0);
	answer_stat(take_stat(), 0, 1);
	ck_assert_uint_eq(x.done, 1);
	ck_assert_int_eq(x.status, -E2BIG);
	ck_assert_int_eq(last_event, EVENT_NAMES_FULL);
	ck_assert(tree_stop(t));
}
END_TEST

static void *answer_soon(void *arg)
{
	struct origin_stat *s = take_stat();

	answer_stat(s, 0, *(int64_t *)arg);
	return NULL;
}

START_TEST(test_an_origin_that_does_not_answer_is_waited_for_once)
{
	struct origin_stat *s;
	int64_t newer = 4;
	pthread_t thread;

	put_due("a");
	put_due("b");
	put_due("c");
	/* this look-up asks the origin although a question is in flight */
	ck_assert_int_eq(mtime_of("a"), 1);
	s = take_stat();
	ck_assert_int_eq(mtime_of("b"), 1); /* this question is a probe */
	answer_stat(take_stat(), -EIO, 0);
	ck_assert_int_eq(mtime_of("c"), 1);
	fail_left();
	answer_stat(s, 0, 3);
	ck_assert_int_eq(mtime_of("a"), 3);
	/* The origin answers again, and the look-up waits for the answer. */
	ck_assert_int_eq(pthread_create(&thread, NULL, answer_soon, &newer), 0);
	ck_assert_int_eq(mtime_of("c"), 4);
	pthread_join(thread, NULL);
	ck_assert(tree_stop(t));
}
END_TEST

START_TEST(test_a_name_that_a_listed_directory_lacks_does_not_wait_either)
{
	struct waiter w = waiter_new();

	ck_assert_int_eq(tree_list(t, NODE_ROOT, false, &w.w), 0);
	answer_list("there", KIND_FILE, 1);
	ck_assert_int_eq(mtime_of("nothing"), -ENOENT);
	answer_stat(take_stat(), 0, 2);
	ck_assert_int_eq(mtime_of("nothing"), 2);
	ck_assert(tree_stop(t));
}
END_TEST

/* -- The end ------------------------------------------------------------- */

static void *refresh_main(void *arg)
{
	struct tree_walk_result result;
	struct error err;

	(void)arg;
	(void)tree_refresh(t, "file", &result, &err);
	return NULL;
}

static void *stop_main(void *arg)
{
	*(bool *)arg = tree_stop(t);
	return NULL;
}

/*
 * A refresh whose origin answers while the tree is being stopped must not wait
 * for a thread that has ended. On a busy machine the answer may come too late
 * for the stop, which waits a second for it.
 */
START_TEST(test_a_refresh_ends_when_the_tree_is_stopped_meanwhile)
{
	node_id file = put(NODE_ROOT, "file", KIND_FILE);
	uint64_t begun_ns = clock_now_ns(), stopping_ns;
	pthread_t refresh, stop;
	bool quiet = false;

	ck_assert_uint_ne(file, 0);
	pthread_create(&refresh, NULL, refresh_main, NULL);
	wait_for_listing();
	pthread_create(&stop, NULL, stop_main, &quiet);
	/* Requests that have begun continue, but no other requests start. */
	while (tree_list(t, NODE_ROOT, false, NULL) != -ENOTCONN)
		sched_yield();
	/* Give a thread that would end too early time to do so. */
	stopping_ns = clock_now_ns();
	while (clock_now_ns() < stopping_ns + 10 * NS_PER_MS)
		sched_yield();
	answer_list("file", KIND_FILE, 2);
	pthread_join(refresh, NULL);
	pthread_join(stop, NULL);
	ck_assert(quiet || clock_now_ns() - begun_ns >= NS_PER_S);
}
END_TEST

/* After the stop no thread acts on the answer, so no thread may wait for that.
 */
START_TEST(test_an_answer_after_the_stop_is_waited_for_by_nobody)
{
	ck_assert_uint_ne(put(NODE_ROOT, "file", KIND_FILE), 0);
	ck_assert_int_eq(tree_list(t, NODE_ROOT, false, NULL), 0);
	ck_assert(!tree_stop(t));
	answer_list("file", KIND_FILE, 2);
	tree_flush(t);
}
END_TEST

/* -- Attributes ---------------------------------------------------------- */

static void *flush(void *arg)
{
	tree_flush(t);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

START_TEST(test_changes_wait_until_somebody_can_be_told_of_them)
{
	const struct manifest_event ev = {
		.change = MANIFEST_REMOVED, .dir = NODE_ROOT, .name = "gone"};
	atomic_bool flushed = false;
	pthread_t thread;

	tree_on_event(t, &ev);
	ck_assert_int_eq(pthread_create(&thread, NULL, flush, &flushed), 0);
	/* This is long enough for a thread that does not wait. */
	usleep(50000);
	ck_assert_uint_eq(atomic_load(&renames), 0);
	ck_assert(!atomic_load(&flushed));
	tree_resume(t);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(atomic_load(&renames), 1);
	ck_assert(tree_stop(t));
}
END_TEST

START_TEST(test_the_stop_acts_on_changes_that_wait)
{
	const struct manifest_event ev = {
		.change = MANIFEST_REMOVED, .dir = NODE_ROOT, .name = "gone"};

	tree_on_event(t, &ev);
	ck_assert(tree_stop(t));
	ck_assert_uint_eq(atomic_load(&renames), 1);
}
END_TEST

START_TEST(test_the_longest_file_has_as_many_blocks_as_it_needs)
{
	struct node_info info = {
		.attr = {.version.size_bytes = INT64_MAX, .kind = KIND_FILE}};
	struct stat st;

	inode_stat(&info, &st);
	ck_assert_int_eq(st.st_size, INT64_MAX);
	ck_assert_int_eq(st.st_blocks, INT64_C(1) << 54);
	info.attr.version.size_bytes = 513;
	inode_stat(&info, &st);
	ck_assert_int_eq(st.st_blocks, 2);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_a_look_that_is_asked_for_during_a_listing_comes_after_it,
		test_a_stop_ends_the_look_that_waits_for_a_listing,
		test_a_listing_of_a_directory_that_has_gone_fills_no_other,
		test_an_answer_for_a_directory_that_has_gone_is_of_no_other,
		test_a_refresh_ends_when_the_tree_is_stopped_meanwhile,
		test_an_answer_after_the_stop_is_waited_for_by_nobody,
		test_want_of_room_for_names_is_not_hidden_by_another_failure,
		test_a_look_up_that_finds_no_room_for_a_name_is_reported,
	};
	const TTest *const revalidating[] = {
		test_an_origin_that_does_not_answer_is_waited_for_once,
		test_a_name_that_a_listed_directory_lacks_does_not_wait_either,
	};
	const TTest *const paused[] = {
		test_changes_wait_until_somebody_can_be_told_of_them,
		test_the_stop_acts_on_changes_that_wait,
	};
	Suite *s = suite_create("tree");

	case_add(case_with(s, "tree", setup, teardown), tests,
		sizeof(tests) / sizeof(tests[0]));
	case_add(case_with(s, "revalidation", setup_revalidating, teardown),
		revalidating, sizeof(revalidating) / sizeof(revalidating[0]));
	case_add(case_with(s, "paused", setup_paused, teardown), paused,
		sizeof(paused) / sizeof(paused[0]));
	tcase_add_test(case_of(s, "inode"),
		test_the_longest_file_has_as_many_blocks_as_it_needs);
	return run_suite(s);
}
