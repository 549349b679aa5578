/* SPDX-License-Identifier: MIT */
/* The schedule: factors that change during the run, and saved positions. */
#include <errno.h>
#include <string.h>

#include "schedule_fixture.h"
#include "suite.h"

/* Request a change every `every` steps. Returns the number of changes that were
 * made. */
static unsigned run_changes(struct schedule *s, struct stream *st,
	uint64_t every, uint64_t save_at, uint8_t *state, size_t *size)
{
	static const struct schedule_echo echoes[] = {
		{2, 1}, {4, 1}, {1, 1}, {5, 2}, {3, 2}};
	struct schedule_cursor cursor;
	unsigned made = 0;

	ck_assert_int_eq(schedule_seek(s, &cursor, s->step_base), 0);
	do {
		if (cursor.step == save_at)
			*size = schedule_save(s, save_at, state);
		if (cursor.step % every == 0 &&
			schedule_change(s, cursor.step, echoes[made % 5]) == 0)
			made++;
	} while (stream_step(st, s, &cursor));
	return made;
}

START_TEST(test_any_number_of_changes_keeps_the_stream_exact)
{
	struct schedule_config c = run_config(8, "2");
	uint8_t state[SCHEDULE_STATE_BYTES];
	uint32_t *served = calloc(c.examples, 4);
	struct stream st = {0}, rest = {0};
	struct schedule_restored restored;
	struct schedule_cursor cursor;
	struct schedule s, again;
	size_t size = 0;

	c.echo_max = (struct schedule_echo){4, 1};
	c.window = 128;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_uint_gt(run_changes(&s, &st, 40, 3001, state, &size), 50);
	for (uint64_t i = 0; i < st.n; i++)
		ck_assert_uint_eq(
			st.slots[i].echo, served[st.slots[i].fresh]++);
	for (uint64_t f = 0; f < c.examples; f++)
		ck_assert(served[f] > 0);
	for (uint64_t i = 0; i < st.n; i++)
		ck_assert_uint_eq(
			st.slots[i].servings, served[st.slots[i].fresh]);
	/* The schedule no longer has the old segment, and a seek reports this.
	 */
	ck_assert_int_eq(schedule_seek(&s, &cursor, 3001), -ERANGE);
	/* Continue from the middle, with the changes that have not begun, up to
	 * the next change. */
	ck_assert_uint_gt(size, 0);
	ck_assert_int_eq(
		schedule_restore(&again, &c, state, size, &restored, NULL), 0);
	ck_assert_int_eq(schedule_seek(&again, &cursor, restored.step), 0);
	for (int i = 0; i < 30; i++)
		(void)stream_step(&rest, &again, &cursor);
	for (uint64_t i = 0; i < rest.n; i++)
		ck_assert(same_slot(
			&rest.slots[i], &st.slots[st.begin[3001] + i]));
	stream_free(&st);
	stream_free(&rest);
	free(served);
}
END_TEST

START_TEST(test_a_change_waits_for_the_one_before)
{
	struct schedule_config c = run_config(8, "2");
	struct schedule_echo four = {4, 1}, one = {1, 1}, nine = {9, 1};
	struct schedule_slot slot;
	uint64_t begins;
	struct schedule s;

	c.echo_max = four;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_int_eq(schedule_change(&s, 10, nine), -EINVAL);
	ck_assert_int_eq(schedule_change(&s, 10, four), 0);
	ck_assert_int_eq(schedule_change(&s, 11, one), -EBUSY);
	ck_assert_int_eq(
		schedule_fresh(&s, schedule_change_begins(&s), &slot, &begins),
		0);
	ck_assert_uint_eq(slot.servings, 4);
	ck_assert_uint_eq(schedule_echo_at(&s, begins + 1).p, 4);
	ck_assert_uint_eq(schedule_echo_at(&s, begins - 1).p, 2);
	ck_assert_int_eq(schedule_change(&s, begins + 1, one), 0);
	ck_assert_int_eq(
		schedule_change(&s, schedule_steps(&s), four), -ERANGE);
}
END_TEST

START_TEST(test_a_state_of_other_options_is_refused_by_name)
{
	struct schedule_config good = run_config(32, "2"), c;
	uint8_t state[SCHEDULE_STATE_BYTES];
	struct schedule_restored restored;
	struct schedule s, t;
	struct error err;
	size_t size;

	ck_assert_int_eq(schedule_init(&s, &good, NULL), 0);
	size = schedule_save(&s, 100, state);
	ck_assert_uint_le(size, 110);
#define NAMED(field, value, name)                                              \
	do {                                                                   \
		c = good;                                                      \
		c.field = (value);                                             \
		ck_assert_int_eq(schedule_restore(&t, &c, state, size,         \
					 &restored, &err),                     \
			-EINVAL);                                              \
		ck_assert_msg(strstr(err.msg, name), "%s", err.msg);           \
	} while (0)
	NAMED(examples, 20001, "examples");
	NAMED(seed, 4, "seed");
	NAMED(batch, 33, "batch");
	NAMED(window, 1025, "window");
	NAMED(lag, 2, "lag");
	NAMED(echo.p, 3, "echo 2, not 3");
	NAMED(point, SCHEDULE_AFTER, "echo_point");
	NAMED(order, SCHEDULE_IN_ORDER, "order");
	NAMED(share, SCHEDULE_PAD, "share");
	NAMED(drop_last, true, "last");
#undef NAMED
}
END_TEST

START_TEST(test_a_damaged_state_never_does_harm)
{
	struct schedule_config c = run_config(8, "2");
	uint8_t state[SCHEDULE_STATE_BYTES], bad[SCHEDULE_STATE_BYTES];
	struct schedule_slot slots[8];
	struct schedule_restored restored;
	struct dice dice = {1};
	struct stream st = {0};
	struct schedule s;
	size_t size = 0;

	c.echo_max = (struct schedule_echo){4, 1};
	c.window = 128;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	run_changes(&s, &st, 40, 3001, state, &size);
	stream_free(&st);
	for (size_t cut = 0; cut < size; cut++)
		ck_assert_uint_eq(
			schedule_restore(&s, &c, state, cut, &restored, NULL),
			-EBADMSG);
	for (int i = 0; i < 20000; i++) {
		struct schedule_cursor cursor;

		memcpy(bad, state, size);
		for (uint64_t n = 1 + roll(&dice, 3); n > 0; n--)
			bad[roll(&dice, size)] ^=
				(uint8_t)(1 + roll(&dice, 255));
		if (schedule_restore(&s, &c, bad, size, &restored, NULL) < 0)
			continue;
		ck_assert_uint_eq(schedule_seek(&s, &cursor, restored.step), 0);
		for (int t = 0; t < 3; t++)
			(void)schedule_next(&s, &cursor, slots);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("schedule_change");
	TCase *t = case_of(s, "changes");

	tcase_add_test(t, test_any_number_of_changes_keeps_the_stream_exact);
	tcase_add_test(t, test_a_change_waits_for_the_one_before);
	tcase_add_test(t, test_a_state_of_other_options_is_refused_by_name);
	tcase_add_test(t, test_a_damaged_state_never_does_harm);
	return run_suite(s);
}
