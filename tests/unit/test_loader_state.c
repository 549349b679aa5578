/* SPDX-License-Identifier: MIT */
/* Tests of saving and restoring: after a restore, the stream and the pixels
 * must equal those of a run without interruption. */
#include "loader_fixture.h"

#include "common/base/hash.h"
#include "loader/core/settings_table.h"
#include "suite.h"

#define STEPS_MAX 1024

/* Hash each step: all properties and the content of its batch. */
static uint64_t hash_batch(const struct refrain_batch *b)
{
	uint64_t h = hash64(b->data, b->data_bytes, b->count);

	h = hash64(b->labels, b->count * sizeof(*b->labels), h);
	h = hash64(b->indices, b->count * sizeof(*b->indices), h);
	h = hash64(b->substitutes, b->count * sizeof(*b->indices), h);
	h = hash64(b->echoes, b->count * sizeof(*b->echoes), h);
	h = hash64(b->seeds, b->count * sizeof(*b->seeds), h);
	h = hash64(b->status, b->count * sizeof(*b->status), h);
	return h + b->step * 31 + b->epoch * 7 + b->ends_epoch + b->fresh * 3;
}

/* Take up to `n` steps. Returns their number. */
static uint64_t take_steps(struct refrain_loader *l, uint64_t n, uint64_t *out)
{
	const struct refrain_batch *b;
	uint64_t taken = 0;

	for (; taken < n; taken++) {
		int rc = refrain_next(l, &b, WAIT_MS);

		ck_assert_msg(rc >= 0, "%d: %s", rc, refrain_message(l));
		if (!rc)
			break;
		if (out)
			out[taken] = hash_batch(b);
		refrain_release(b);
	}
	return taken;
}

static int save_and_close(struct refrain_loader *l, char *state)
{
	int n = refrain_save(l, state, REFRAIN_STATE_MAX);

	ck_assert_msg(n > 0, "%s", refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
	return n;
}

static struct refrain_config config_with_echo(int i)
{
	static const double factors[] = {1, 1.5, 2, 4};
	struct refrain_config c = config_of();

	c.echo = factors[i % 4];
	c.echo_point = i / 4;
	c.epochs = 2;
	return c;
}

/* The run is interrupted repeatedly, even at its very beginning and end. */
START_TEST(test_restored_run_goes_on_with_the_same_batches)
{
	struct refrain_config c = config_with_echo(_i);
	static uint64_t whole[STEPS_MAX], parts[STEPS_MAX];
	char state[REFRAIN_STATE_MAX];
	struct refrain_loader *l = open_loader(&c);
	uint64_t steps = take_steps(l, STEPS_MAX, whole), done = 0;
	const uint64_t pieces[] = {0, 1, 7, 23, 2, 31, STEPS_MAX};

	ck_assert_int_eq(refrain_close(l), 0);
	for (unsigned i = 0; i < 7; i++) {
		l = open_loader(&c);
		ck_assert_uint_eq(refrain_steps_left(l), steps - done);
		ck_assert_uint_eq(refrain_step(l), done);
		done += take_steps(l, pieces[i], parts + done);
		c.state_bytes = (size_t)save_and_close(l, state);
		c.state = state;
		c.threads = 1 + i % 4;
		c.batches_ahead = 1 + i;
	}
	ck_assert_uint_eq(done, steps);
	for (uint64_t i = 0; i < steps; i++)
		ck_assert_msg(whole[i] == parts[i], "step %lu differs",
			(unsigned long)i);
	l = open_loader(&c); /* no steps are left */
	ck_assert_uint_eq(take_steps(l, 1, NULL), 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_restore_decodes_again_what_was_partly_used)
{
	struct refrain_config c = config_with_echo(3);
	char state[REFRAIN_STATE_MAX];
	struct refrain_loader *l = open_loader(&c);

	ck_assert_uint_eq(take_steps(l, 40, NULL), 40);
	c.state_bytes = (size_t)save_and_close(l, state);
	c.state = state;
	l = open_loader(&c);
	(void)take_steps(l, STEPS_MAX, NULL);
	ck_assert_uint_gt(stats_of(l).redecodes, 0);
	ck_assert_uint_le(stats_of(l).redecodes, c.window);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* Lists the examples that each rank of the first world served, and then those
 * of the second world. */
START_TEST(test_another_world_sees_the_rest_fresh_once)
{
	static const uint32_t worlds[] = {1, 2, 3, 7};
	uint32_t from = worlds[_i / 4], to = worlds[_i % 4];
	unsigned seen[IMAGES] = {0};
	char state[REFRAIN_STATE_MAX];
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	int size = 0;

	c.echo = 2;
	c.batch = 4;
	for (unsigned part = 0; part < 2; part++) {
		c.world = part ? to : from;
		c.state = part ? state : NULL;
		c.state_bytes = (size_t)size;
		for (c.rank = 0; c.rank < c.world; c.rank++) {
			uint64_t steps = part ? UINT64_MAX : 10;

			l = open_loader(&c);
			for (; steps && refrain_next(l, &b, WAIT_MS) == 1;
				steps--) {
				for (uint32_t i = 0; i < b->count; i++)
					seen[b->indices[i]] += !b->echoes[i];
				refrain_release(b);
			}
			if (!part)
				size = refrain_save(l, state, sizeof(state));
			else if (from != to)
				ck_assert_uint_gt(
					stats_of(l).dropped_echoes, 0);
			ck_assert_int_gt(size, 0);
			ck_assert_int_eq(refrain_close(l), 0);
		}
	}
	for (unsigned i = 0; i < IMAGES; i++)
		ck_assert_uint_eq(seen[i], 1);
}
END_TEST

/* -- Refusals -------------------------------------------------------------- */

static int save_one(const struct refrain_config *c, char *state)
{
	struct refrain_loader *l = open_loader(c);

	ck_assert_uint_eq(take_steps(l, 3, NULL), 3);
	return save_and_close(l, state);
}

static void refused(const struct refrain_config *c, int rc, const char *word)
{
	struct refrain_loader *l;

	ck_assert_msg(refrain_open(&l, c) == rc &&
			strstr(refrain_message(NULL), word),
		"%s: %s", word, refrain_message(NULL));
}

#define OTHER(member, value)                                                   \
	do {                                                                   \
		struct refrain_config other = c;                               \
                                                                               \
		other.member = value;                                          \
		refused(&other, -ESTALE, #member);                             \
	} while (0)

START_TEST(test_state_of_another_configuration_is_refused_by_name)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX];

	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	OTHER(seed, 8);
	OTHER(batch, 8);
	OTHER(height, 16);
	OTHER(type, REFRAIN_F32);
	OTHER(layout, REFRAIN_NCHW);
	OTHER(augment, REFRAIN_AUGMENT_NONE);
	OTHER(area_min, 0.5F);
	OTHER(aspect_max, 2);
	OTHER(cutout, 4);
	OTHER(flags, REFRAIN_FLAG_NO_FLIP);
	OTHER(echo, 2.5);
	OTHER(flags, REFRAIN_FLAG_EXACT);
}
END_TEST

/* For each member on which a state depends, a text with another value, with
 * which restoring fails. NULL: the member may differ, or has no meaning in this
 * configuration. */
static const struct {
	const char *name, *text;
} other_values[] = {
	{"record_bytes", NULL}, /* only for raw datasets */
	{"label_bytes", NULL},
	{"batch", "8"},
	{"epochs", NULL},
	{"seed", "8"},
	{"echo", "2.5"},
	{"echo_point", "after"},
	{"window", "256"},
	{"min_lag", "2"},
	{"shuffle_window", "64"},
	{"rank", NULL}, /* another world may continue the run */
	{"world", NULL},
	{"last", "drop"},
	{"height", "16"},
	{"width", "16"},
	{"type", "u8"},
	{"layout", "nchw"},
	{"augment", "eval"},
	{"mean", "0.1,0.2,0.3"},
	{"std", "0.1,0.2,0.3"},
	{"area_min", "0.5"},
	{"area_max", "0.5"},
	{"aspect_min", "0.5"},
	{"aspect_max", "2"},
	{"jitter", "0,0,0.4"},
	{"cutout", "4"},
	{"sample_bytes", NULL}, /* only for callbacks */
	{"policy", NULL},
	{"max_pixels", NULL},
	{"echo_max", NULL}, /* only for echo auto */
	{"in_order", "1"},
	{"no_flip", "1"},
	{"no_orient", "1"},
	{"pad_ranks", "1"},
	{"allow_duplicates", NULL},
	{"no_normalise", "1"},
	{"exact", "1"},
	{"equal_ranks", "1"},
	{"fields", "image"},
	{"epoch_examples", NULL}, /* the stream does not depend on it */
	{"subset", "5"},
	{"subset_seed", "1"},
	{"mix", "classes=1"},
	{"bucket", "4"},
};
#define OTHER_VALUES (sizeof(other_values) / sizeof(*other_values))

static size_t other_value(const char *name)
{
	size_t i = 0;

	while (i < OTHER_VALUES && strcmp(other_values[i].name, name) != 0)
		i++;
	ck_assert_msg(
		i < OTHER_VALUES, "what of a state with another %s?", name);
	return i;
}

START_TEST(test_every_member_that_a_state_depends_on_is_compared)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX];
	const struct member *m;
	size_t rows = 0;

	/* The member accepts every type. */
	c.type = REFRAIN_F32;
	for (int i = 0; i < 3; i++)
		c.mean[i] = c.std[i] = .5F;
	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	for (size_t i = 0; (m = member_at(i)); i++) {
		struct refrain_config other = c;
		const char *text;

		if (m->saved < SAVED_SCHEDULE || m->type == MEMBER_OTHER)
			continue;
		rows++;
		text = other_values[other_value(m->name)].text;
		if (!text)
			continue;
		ck_assert_int_eq(refrain_config_set(&other, m->name, text), 0);
		refused(&other, -ESTALE, "another configuration");
	}
	ck_assert_uint_eq(rows, OTHER_VALUES);
}
END_TEST

START_TEST(test_a_mismatch_of_echo_factors_speaks_of_factors)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX];

	c.echo = 2.5;
	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	c.echo = 7. / 3;
	refused(&c, -ESTALE, "saved with echo 2.5, not 7/3");
}
END_TEST

/* Members that do not change the stream may differ. */
START_TEST(test_a_mismatch_of_words_speaks_of_words)
{
	struct refrain_config c = config_of(), other;
	char state[REFRAIN_STATE_MAX];

	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	other = c;
	other.last = REFRAIN_LAST_DROP;
	refused(&other, -ESTALE, "saved with last short, not drop");
	other = c;
	other.flags |= REFRAIN_FLAG_EQUAL_RANKS;
	refused(&other, -ESTALE, "saved with shares uneven, not equal_ranks");
	other = c;
	other.echo_point = REFRAIN_ECHO_BATCH;
	refused(&other, -ESTALE, "saved with echo_point before, not batch");
}
END_TEST

START_TEST(test_state_goes_on_with_another_policy_or_bound)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX];
	struct refrain_loader *l;

	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	c.policy = REFRAIN_FAIL;
	c.max_pixels = 1 << 20;
	c.max_damage = 0.5;
	l = open_loader(&c);
	ck_assert_uint_gt(take_steps(l, STEPS_MAX, NULL), 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A state that was saved in the first of two epochs gives the same batches as
 * one of a run with one epoch. */
START_TEST(test_state_goes_on_with_more_epochs)
{
	struct refrain_config c = config_with_echo(_i);
	static uint64_t whole[STEPS_MAX], more[STEPS_MAX];
	char state[REFRAIN_STATE_MAX];
	struct refrain_loader *l;
	uint64_t steps, done = 13 + (uint64_t)_i % 3;

	c.epochs = 3;
	l = open_loader(&c);
	steps = take_steps(l, STEPS_MAX, whole);
	ck_assert_int_eq(refrain_close(l), 0);
	c.epochs = 1;
	l = open_loader(&c);
	ck_assert_uint_eq(take_steps(l, done, more), done);
	c.state_bytes = (size_t)save_and_close(l, state);
	c.state = state;
	c.epochs = 3;
	l = open_loader(&c);
	ck_assert_uint_eq(refrain_steps_left(l), steps - done);
	(void)take_steps(l, STEPS_MAX, more + done);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert(memcmp(whole, more, steps * sizeof(*whole)) == 0);
	/* A run with fewer epochs accepts the state, too, if its last epoch is
	 * not over. */
	c.epochs = 1;
	l = open_loader(&c);
	ck_assert_uint_gt(take_steps(l, STEPS_MAX, NULL), 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A finished run continues with more epochs. Each example is fresh once in each
 * epoch. */
START_TEST(test_state_of_a_finished_run_goes_on_with_more_epochs)
{
	struct refrain_config c = config_with_echo(_i);
	unsigned seen[IMAGES] = {0};
	char state[REFRAIN_STATE_MAX];
	const struct refrain_batch *b;
	struct refrain_loader *l;
	uint64_t step, ended = UINT64_MAX;

	c.epochs = 1;
	l = open_loader(&c);
	step = take_steps(l, STEPS_MAX, NULL);
	c.state_bytes = (size_t)save_and_close(l, state);
	c.state = state;
	c.epochs = 2;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_eq(b->step, step++);
		for (uint32_t i = 0; i < b->count; i++)
			seen[b->indices[i]] += !b->echoes[i];
		if (b->ends_epoch)
			ended = b->ended_epoch;
		refrain_release(b);
	}
	ck_assert_uint_eq(ended, 1);
	for (unsigned i = 0; i < IMAGES; i++)
		ck_assert_uint_eq(seen[i], 1);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_damaged_state_is_refused)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX];
	int n = save_one(&c, state);

	c.state = state;
	for (int i = 0; i < n; i++) {
		c.state_bytes = (size_t)n;
		state[i] ^= 0x10;
		refused(&c, -EBADMSG, "state");
		state[i] ^= 0x10;
		c.state_bytes = (size_t)i;
		if (i > 0)
			refused(&c, -EBADMSG, "state");
	}
}
END_TEST

START_TEST(test_state_of_another_dataset_is_refused)
{
	struct refrain_config c = config_of();
	char state[REFRAIN_STATE_MAX], path[256];

	c.state_bytes = (size_t)save_one(&c, state);
	c.state = state;
	(void)snprintf(path, sizeof(path), "%s/c1/more.jpg", top);
	write_file(path, "", 0);
	refused(&c, -ESTALE, "dataset");
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(test_save_says_how_much_room_it_needs)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	char state[REFRAIN_STATE_MAX];

	ck_assert_int_eq(refrain_save(l, state, 10), -ENOSPC);
	ck_assert_int_le(
		refrain_save(l, state, sizeof(state)), REFRAIN_STATE_MAX);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* Save the states of all steps at any time. */
START_TEST(test_state_of_any_step_is_what_was_saved_there)
{
	struct refrain_config c = config_with_echo(_i);
	char now[40][REFRAIN_STATE_MAX], later[REFRAIN_STATE_MAX];
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	int n;

	for (unsigned step = 0; step < 12; step++) {
		ck_assert_int_gt(refrain_save(l, now[step], sizeof(later)), 0);
		ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
		refrain_release(b);
	}
	for (unsigned step = 0; step < 12; step++) {
		n = refrain_save_at(l, step, later, sizeof(later));
		ck_assert_msg(n > 0, "%s", refrain_message(l));
		ck_assert_mem_eq(later, now[step], n);
	}
	ck_assert_int_eq(
		refrain_save_at(l, STEPS_MAX, later, sizeof(later)), -ERANGE);
	n = refrain_save_at(l, 30, later, sizeof(later));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	c.state = later;
	c.state_bytes = (size_t)n;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	ck_assert_uint_eq(b->step, 30);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* 300 examples for 7 ranks: 43 for the first ones, 42 for the others. With
 * batches of 42, the ranks' own examples of an epoch end at different steps. */
START_TEST(test_an_epoch_ends_at_the_same_step_on_all_ranks)
{
	struct refrain_config c = config_of();
	uint64_t ends[7][3], apart = 0;

	c.world = 7;
	c.batch = 42;
	c.epochs = 3;
	c.window = 0;
	c.echo = _i ? 2 : 1;
	c.flags = REFRAIN_FLAG_PAD_RANKS;
	for (c.rank = 0; c.rank < 7; c.rank++) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;
		uint64_t own = 0;

		for (unsigned e = 0; e < 3; e++)
			ends[c.rank][e] = refrain_epoch_end(l, e);
		ck_assert_uint_eq(refrain_epoch_end(l, 9), ends[c.rank][2]);
		while (refrain_next(l, &b, WAIT_MS) == 1) {
			if (b->ends_epoch && !own)
				own = b->step + 1;
			refrain_release(b);
		}
		apart += own != ends[c.rank][0];
		ck_assert_uint_le(own, ends[c.rank][0]);
		ck_assert_mem_eq(ends[c.rank], ends[0], sizeof(ends[0]));
		ck_assert_int_eq(refrain_close(l), 0);
	}
	ck_assert(_i || apart);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_state");
	TCase *tc = case_of(s, "state");

	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_loop_test(
		tc, test_restored_run_goes_on_with_the_same_batches, 0, 12);
	tcase_add_test(tc, test_restore_decodes_again_what_was_partly_used);
	tcase_add_loop_test(
		tc, test_another_world_sees_the_rest_fresh_once, 0, 16);
	tcase_add_test(
		tc, test_state_of_another_configuration_is_refused_by_name);
	tcase_add_test(
		tc, test_every_member_that_a_state_depends_on_is_compared);
	tcase_add_test(tc, test_a_mismatch_of_echo_factors_speaks_of_factors);
	tcase_add_test(tc, test_a_mismatch_of_words_speaks_of_words);
	tcase_add_test(tc, test_state_goes_on_with_another_policy_or_bound);
	tcase_add_loop_test(tc, test_state_goes_on_with_more_epochs, 0, 12);
	tcase_add_loop_test(tc,
		test_state_of_a_finished_run_goes_on_with_more_epochs, 0, 12);
	tcase_add_test(tc, test_damaged_state_is_refused);
	tcase_add_test(tc, test_state_of_another_dataset_is_refused);
	tcase_add_test(tc, test_save_says_how_much_room_it_needs);
	tcase_add_loop_test(
		tc, test_state_of_any_step_is_what_was_saved_there, 0, 12);
	tcase_add_loop_test(
		tc, test_an_epoch_ends_at_the_same_step_on_all_ranks, 0, 2);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
