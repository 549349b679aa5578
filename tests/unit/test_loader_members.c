/* SPDX-License-Identifier: MIT */
/* Tests of a loader whose examples have several parts. Each serving must have
 * the members of its example, even if data is kept, dropped or read again. A
 * missing member is damage. */
#include "loader_fixture.h"
#include "members_fixture.h"
#include "suite.h"

#include "loader/engine/reader_files_impl.h"

static struct dataset *seen; /* the dataset as the loader has it */

#define SOME 60 /* number of images; a third lack the optional member */

static void write_member(const char *path)
{
	uint8_t content[MEMBER_MAX];
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", top, path);
	write_file(full, content, member_content(path, content));
}

static void make_members(void)
{
	char path[64];

	for (unsigned i = 0; i < SOME; i++) {
		unsigned c = i % CLASSES;

		make_image(i, 64 + i % 7, 48 + i % 5);
		(void)snprintf(path, sizeof(path), "c%u/%04u.json", c, i);
		write_member(path);
		(void)snprintf(path, sizeof(path), "c%u/%04u.seg.png", c, i);
		if (i % 3)
			write_member(path);
		(void)snprintf(path, sizeof(path), "masks/c%u/%04u.png", c, i);
		write_member(path);
	}
}

static void setup_some(void)
{
	CLEANUP_FREE char *cwd = getcwd(NULL, 0);
	char path[256], cache[PATH_MAX];

	(void)snprintf(top, sizeof(top), "test_members.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(path, sizeof(path), "%s/masks", top);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	for (unsigned c = 0; c < CLASSES; c++) {
		(void)snprintf(path, sizeof(path), "%s/c%u", top, c);
		ck_assert_int_eq(mkdir(path, 0777), 0);
		(void)snprintf(path, sizeof(path), "%s/masks/c%u", top, c);
		ck_assert_int_eq(mkdir(path, 0777), 0);
	}
	make_members();
	(void)snprintf(cache, sizeof(cache), "%s/%s.index", cwd, top);
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
}

static void teardown_some(void)
{
	char tar[160];

	fixture_remove();
	(void)snprintf(tar, sizeof(tar), "%s.tar", top);
	(void)unlink(tar);
}

/* -- What is expected ------------------------------------------------------ */

/* Open the same dataset as the loader does. */
static void see(const struct refrain_config *c)
{
	struct dataset_options o = {.path = c->dataset,
		.source = c->source,
		.members = MEMBERS_TEXT};
	struct error err = {""};

	ck_assert_msg(dataset_open(&seen, &o, &err) == 0, "%s", err.msg);
}

static void take_batches(
	struct refrain_loader *l, unsigned most, uint64_t *servings)
{
	const struct refrain_batch *b;
	int rc = 1;

	for (unsigned i = 0; i < most && rc > 0; i++) {
		rc = refrain_next(l, &b, WAIT_MS);
		ck_assert_msg(rc >= 0, "%s", refrain_message(l));
		if (rc == 0)
			return;
		*servings += b->count;
		expect_members(seen, b);
		refrain_release(b);
	}
}

/* Run to the end, and check that each serving has all its members. */
static struct refrain_stats check_run(const struct refrain_config *c)
{
	struct refrain_loader *l;
	struct refrain_stats st;
	uint64_t servings = 0;

	see(c);
	l = open_loader(c);
	take_batches(l, UINT32_MAX, &servings);
	st = stats_of(l);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_uint_eq(servings, st.served);
	dataset_close(seen);
	return st;
}

static uint64_t parts_in_all(void)
{
	return SOME * 4 - SOME / 3;
}

/* Make a tar whose members are in another order. */
static void make_tar(char tar[160])
{
	char command[1024];

	(void)snprintf(tar, 160, "%s.tar", top);
	(void)snprintf(command, sizeof(command),
		"cd %s && find . -type f | sort -t/ -k3.4 >../%s.names && "
		"tar -cf ../%s -T ../%s.names && rm ../%s.names",
		top, top, tar, top, top);
	ck_assert_int_eq(system(command), 0);
}

static struct refrain_config config_of_some(void)
{
	struct refrain_config c = config_of();

	c.batch = 8;
	c.window = 48;
	c.epochs = 2;
	c.fields = MEMBERS_FIELDS;
	return c;
}

/* -- Every serving has its members ----------------------------------------- */

static void check_points(struct refrain_config *c)
{
	static const unsigned threads[] = {1, 2, 8};
	uint64_t hash = 0;

	for (unsigned i = 0; i < 3; i++) {
		struct refrain_stats st;

		c->threads = threads[i];
		st = check_run(c);
		ck_assert(!hash || st.stream_hash == hash);
		hash = st.stream_hash;
		ck_assert_uint_eq(st.errors, 0);
		ck_assert_uint_eq(st.files_read, 2 * parts_in_all());
		ck_assert_uint_eq(st.decodes, 2 * SOME);
		ck_assert_uint_eq(st.rereads, 0);
	}
}

START_TEST(test_every_serving_has_the_members_of_its_example)
{
	struct refrain_config c = config_of_some();

	c.echo = _i == 3 ? 1 : 2.5;
	c.echo_point = _i % 3;
	check_points(&c);
}
END_TEST

START_TEST(test_members_of_a_tar_reach_their_examples)
{
	struct refrain_config c = config_of_some();
	char tar[160];

	make_tar(tar);
	c.dataset = tar;
	c.echo = 2;
	check_points(&c);
}
END_TEST

/* The memory has room for few examples, so files are read again. */
START_TEST(test_members_are_read_again_with_little_memory)
{
	struct refrain_config c = config_of_some();
	struct refrain_stats st;
	uint64_t hash = check_run(&c).stream_hash;

	ck_assert_uint_gt(hash, 0);
	c.echo = 3;
	c.window = 48;
	c.threads = _i ? 2 : 1;
	c.memory_bytes = UINT64_C(1100) << 10;
	st = check_run(&c);
	ck_assert_uint_eq(st.errors, 0);
	ck_assert_uint_gt(st.rereads, 0);
	ck_assert_uint_le(st.memory_bytes_peak, c.memory_bytes);
}
END_TEST

/* Pixels and stream equal those of a loader without members. */
START_TEST(test_members_change_no_sample)
{
	struct refrain_config c = config_of_some();
	const struct refrain_batch *b;
	struct refrain_loader *l;
	struct simple r;

	c.echo = 2;
	c.flags = REFRAIN_FLAG_NO_FLIP;
	see(&c);
	simple_open(&r, &c);
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_gt(simple_next(&r, b), 0);
		refrain_release(b);
	}
	ck_assert_uint_eq(simple_next(&r, NULL), 0);
	simple_close(&r);
	ck_assert_int_eq(refrain_close(l), 0);
	dataset_close(seen);
}
END_TEST

START_TEST(test_a_resumed_run_has_the_members_of_the_rest)
{
	struct refrain_config c = config_of_some();
	uint64_t before = 0, servings = 0;
	struct refrain_loader *l;
	char state[REFRAIN_STATE_MAX];

	c.echo = 2;
	see(&c);
	l = open_loader(&c);
	take_batches(l, 9, &before);
	c.state_bytes = (size_t)refrain_save(l, state, sizeof(state));
	ck_assert_int_eq(refrain_close(l), 0);
	c.state = state;
	l = open_loader(&c);
	take_batches(l, UINT32_MAX, &servings);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_uint_eq(before + servings, 2 * 2 * SOME);
	dataset_close(seen);
	/* The state belongs to a dataset with other members. */
	c.fields = "image; json=json kind=bytes max=3000";
	ck_assert_int_eq(refrain_open(&l, &c), -ESTALE);
}
END_TEST

START_TEST(test_jobs_that_share_have_one_read_of_each_member)
{
	struct refrain_config c = config_of_some(), small;
	struct refrain_loader *l[2];
	uint64_t whole = 0, halves = 0;
	char dir[160];

	(void)snprintf(
		dir, sizeof(dir), "%s/refrain.XXXXXX", test_memory_dir());
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	c.share = "x";
	c.share_jobs = 2;
	c.echo = 2;
	c.share_batch = 8;
	small = c;
	small.batch = 4;
	see(&c);
	l[0] = open_loader(&c);
	l[1] = open_loader(&small);
	for (unsigned i = 0; i < 30; i++) {
		take_batches(l[0], 1, &whole);
		take_batches(l[1], 2, &halves);
	}
	ck_assert_uint_eq(whole, 2 * 2 * SOME);
	ck_assert_uint_eq(halves, whole);
	ck_assert_uint_eq(
		stats_of(l[0]).decodes + stats_of(l[1]).decodes, 2 * SOME);
	ck_assert_int_eq(refrain_close(l[1]), 0);
	ck_assert_int_eq(refrain_close(l[0]), 0);
	dataset_close(seen);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
END_TEST

/* -- Damage ---------------------------------------------------------------- */

static void remove_member(const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", top, path);
	ck_assert_int_eq(unlink(full), 0);
}

/* Returns the statistics of a run in which damaged examples are replaced. */
static struct refrain_stats damaged_run(struct refrain_config *c)
{
	c->max_damage = 1;
	c->echo = 2;
	return check_run(c);
}

static void check_failure(const struct refrain_config *of, const char *says)
{
	struct refrain_config c = *of;
	const struct refrain_batch *b;
	struct refrain_loader *l;
	int rc;

	c.policy = REFRAIN_FAIL;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
		refrain_release(b);
	ck_assert_int_lt(rc, 0);
	ck_assert_msg(strstr(refrain_message(l), says) != NULL, "%s",
		refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
}

START_TEST(test_an_example_without_a_required_member_is_damaged)
{
	struct refrain_config c = config_of_some();
	struct refrain_stats st;
	char tar[160];

	remove_member("masks/c3/0003.png");
	remove_member("c4/0014.json");
	if (_i) {
		make_tar(tar);
		c.dataset = tar;
	}
	st = damaged_run(&c);
	ck_assert_uint_eq(st.errors, 4);
	ck_assert_uint_eq(st.errors_read, 4);
	ck_assert_uint_eq(st.substituted, 8);
	ck_assert_uint_eq(st.damaged_examples, 2);
	check_failure(&c, "': it has no member '");
	c.policy = REFRAIN_ZERO_FILL;
	c.echo = 1;
	ck_assert_uint_eq(check_run(&c).zero_filled, 4);
}
END_TEST

/* Begin a run in index order that reads slowly, so that the last example is not
 * read yet. */
static struct refrain_loader *open_slowly(void)
{
	struct refrain_config c = config_of_some();

	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.epochs = 1;
	c.batches_ahead = c.reads_ahead = 1;
	c.policy = REFRAIN_FAIL;
	return open_loader(&c);
}

/* Run to the end. Returns the last result of refrain_next(). */
static int run_on(struct refrain_loader *l)
{
	const struct refrain_batch *b;
	int rc;

	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
		refrain_release(b);
	return rc;
}

START_TEST(test_a_member_that_cannot_be_read_is_damage_of_its_example)
{
	struct refrain_loader *l = open_slowly();
	char path[256];

	remove_member("c9/0059.json");
	(void)snprintf(path, sizeof(path), "%s/c9/0059.json", top);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	ck_assert_int_eq(run_on(l), -EISDIR);
	ck_assert_ptr_nonnull(strstr(refrain_message(l),
		"cannot read 'c9/0059.jpg': its member 'c9/0059.json': Is"));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_an_optional_member_may_be_removed_before_it_is_read)
{
	struct refrain_loader *l = open_slowly();

	remove_member("c9/0059.seg.png");
	ck_assert_int_eq(run_on(l), 0);
	ck_assert_uint_eq(stats_of(l).errors, 0);
	ck_assert_uint_eq(stats_of(l).files_read, parts_in_all() - 1);
	ck_assert_int_eq(refrain_close(l), 0);
	l = open_slowly();
	remove_member("c9/0049.json");
	ck_assert_int_eq(run_on(l), -ENOENT);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_a_member_of_a_wrong_kind_is_damage_of_its_example)
{
	struct refrain_config c = config_of_some();
	struct refrain_loader *l;
	uint64_t servings = 0;
	char path[256];

	for (unsigned i = 0; i < SOME; i++) {
		(void)snprintf(path, sizeof(path), "%s/c%u/%04u.json", top,
			i % CLASSES, i);
		write_file(path, i % 10 ? "[]" : "[}", 2);
	}
	c.fields = "image; boxes=json; seg=seg.png kind=bytes optional; "
		   "below=masks/ kind=bytes";
	c.max_damage = 1;
	l = open_loader(&c);
	for (const struct refrain_batch *b; refrain_next(l, &b, WAIT_MS) == 1;
		refrain_release(b))
		servings += b->count;
	ck_assert_uint_eq(servings, 2 * SOME);
	ck_assert_uint_eq(stats_of(l).damaged_examples, SOME / 10);
	ck_assert_uint_eq(stats_of(l).errors_damaged, 2 * SOME / 10);
	ck_assert_int_eq(refrain_close(l), 0);
	check_failure(&c, ".jpg': field 'boxes': damaged JSON, at byte 1");
}
END_TEST

START_TEST(test_next_into_would_lose_the_fields)
{
	struct refrain_config c = config_of_some();
	struct refrain_loader *l = open_loader(&c);
	static uint8_t data[8 * SIDE * SIDE * 3];

	ck_assert_int_eq(
		refrain_next_into(l, data, sizeof(data), NULL, 0, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(l), "fields"));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_members_that_no_example_has_are_refused_at_open)
{
	struct refrain_config c = config_of_some();
	struct refrain_loader *l;

	c.fields = "image; json=json; text=txt";
	ck_assert_int_eq(refrain_open(&l, &c), -ENODATA);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "'txt'"));
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "json"));
}
END_TEST

/* -- Runs of a shard ------------------------------------------------------- */

static unsigned runs_of(const struct dataset *ds, uint64_t index)
{
	const struct settings settings = {0};
	struct engine_parts parts = {
		.s = &settings,
		.c = &settings.c,
		.dataset = (struct dataset *)(uintptr_t)ds};
	struct reader reader = {.parts = &parts};
	struct original o = {.index = index};
	struct part_run run;
	uint32_t done = 0;
	unsigned n = 0;

	dataset_example(ds, index, &o.example);
	for (; parts_run(&reader, &o, done, &run); done |= run.bits) {
		ck_assert_uint_eq(done & run.bits, 0);
		n++;
	}
	return n;
}

START_TEST(test_members_that_lie_together_cost_one_read)
{
	struct dataset_options o = {.members = "json;txt"};
	char command[1024], tar[160];
	struct error err = {""};

	(void)snprintf(tar, sizeof(tar), "%s.tar", top);
	(void)snprintf(command, sizeof(command),
		"cd %s && head -c 70000 /dev/zero >z && head -c 50000 z >y && "
		"cp z x && "
		"for k in a b c; do cp c0/0000.jpg $k.jpg; echo $k >$k.json; "
		"echo $k >$k.txt; done && "
		"tar -cf ../%s b.json a.txt a.jpg a.json y b.jpg z b.txt "
		"c.json x c.jpg",
		top, tar);
	ck_assert_int_eq(system(command), 0);
	o.path = tar;
	ck_assert_int_eq(dataset_open(&seen, &o, &err), 0);
	ck_assert_uint_eq(dataset_count(seen), 3);
	/* b: 50,000 bytes are between its first parts and z */
	ck_assert_uint_eq(runs_of(seen, 0), 2);
	/* a: all parts are near each other */
	ck_assert_uint_eq(runs_of(seen, 1), 1);
	ck_assert_uint_eq(runs_of(seen, 2), 2); /* c: it lacks a member */
	dataset_close(seen);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_members");
	TCase *t = case_with(s, "members", setup_some, teardown_some);

	tcase_add_loop_test(
		t, test_every_serving_has_the_members_of_its_example, 0, 4);
	tcase_add_test(t, test_members_of_a_tar_reach_their_examples);
	tcase_add_loop_test(
		t, test_members_are_read_again_with_little_memory, 0, 2);
	tcase_add_test(t, test_members_change_no_sample);
	tcase_add_test(t, test_a_resumed_run_has_the_members_of_the_rest);
	tcase_add_test(t, test_jobs_that_share_have_one_read_of_each_member);
	tcase_add_loop_test(
		t, test_an_example_without_a_required_member_is_damaged, 0, 2);
	tcase_add_test(
		t, test_a_member_that_cannot_be_read_is_damage_of_its_example);
	tcase_add_test(
		t, test_an_optional_member_may_be_removed_before_it_is_read);
	tcase_add_test(
		t, test_a_member_of_a_wrong_kind_is_damage_of_its_example);
	tcase_add_test(t, test_next_into_would_lose_the_fields);
	tcase_add_test(t, test_members_that_no_example_has_are_refused_at_open);
	tcase_add_test(t, test_members_that_lie_together_cost_one_read);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
