/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/loader/engine and its users: slabs in given memory, the engine
 * as a source of batches, and the public calls on another source.
 */
#include "loader_fixture.h"

#include "loader/engine/batch.h"
#include "loader/engine/engine.h"
#include "loader/api/loader_impl.h"
#include "suite.h"

/* -- Slabs ----------------------------------------------------------------- */

static void nobody(void *arg)
{
	(void)arg;
}

static void settings_of(struct settings *s)
{
	struct refrain_config c = config_of();
	struct error err = {""};

	ck_assert_int_eq(settings_init(s, &c, &err), 0);
}

static bool is_within(
	const struct slab_place *place, const void *p, size_t bytes)
{
	const char *base = place->base, *at = p;

	return at >= base && at + bytes <= base + place->bytes;
}

START_TEST(test_slabs_lie_in_the_memory_that_is_given)
{
	struct slab_place place;
	struct lender *lender;
	struct slab *slabs[3];
	struct settings s;

	settings_of(&s);
	place.bytes = 3 * slab_bytes(&s);
	place.base = aligned_alloc(64, place.bytes);
	ck_assert_int_eq(lender_new(&lender, &s, 3, &place, nobody, NULL), 0);
	for (int i = 0; i < 3; i++) {
		const struct refrain_batch *b;

		slabs[i] = slab_take(lender);
		ck_assert_ptr_nonnull(slabs[i]);
		b = &slabs[i]->lent_batch.batch;
		memset(slabs[i]->data, i, s.c.batch * s.sample_bytes);
		ck_assert(
			is_within(&place, b->data, s.c.batch * s.sample_bytes));
		ck_assert(is_within(
			&place, b->labels, s.c.batch * sizeof(*b->labels)));
		ck_assert(
			is_within(&place, b->crops, s.c.batch * b->crop_bytes));
		ck_assert(is_within(
			&place, b->status, s.c.batch * sizeof(*b->status)));
	}
	ck_assert_ptr_null(slab_take(lender));
	for (uint8_t i = 0; i < 3; i++)
		ck_assert_uint_eq(slabs[i]->data[s.sample_bytes - 1], i);
	lender_leave(lender);
	free(place.base);
}
END_TEST

START_TEST(test_slabs_refuse_a_place_that_is_too_small_or_not_aligned)
{
	struct slab_place place;
	struct lender *lender;
	struct settings s;
	char *base;

	settings_of(&s);
	place.bytes = 3 * slab_bytes(&s);
	base = place.base = aligned_alloc(64, place.bytes + 64);
	place.bytes--;
	ck_assert_int_eq(
		lender_new(&lender, &s, 3, &place, nobody, NULL), -ENOSPC);
	place.bytes++;
	place.base = base + 8;
	ck_assert_int_eq(
		lender_new(&lender, &s, 3, &place, nobody, NULL), -EINVAL);
	free(base);
}
END_TEST

static void count_call(void *arg)
{
	(*(int *)arg)++;
}

START_TEST(test_slab_is_free_again_when_its_batch_is_released)
{
	struct lender *lender;
	struct settings s;
	struct slab *slab;
	int calls = 0;

	settings_of(&s);
	ck_assert_int_eq(
		lender_new(&lender, &s, 1, NULL, count_call, &calls), 0);
	slab = slab_take(lender);
	ck_assert(!lender_has_free(lender));
	slab_lend(slab);
	ck_assert(lender_all_lent(lender));
	refrain_release(&slab->lent_batch.batch);
	/* releasing twice must count once */
	refrain_release(&slab->lent_batch.batch);
	ck_assert(lender_has_free(lender) && !lender_all_lent(lender));
	ck_assert_int_eq(calls, 1);
	slab_lend(slab_take(lender));
	lender_leave(lender);
	/* this frees the lender and its slabs */
	refrain_release(&slab->lent_batch.batch);
	ck_assert_int_eq(calls, 1);
}
END_TEST

/* -- The engine ------------------------------------------------------------ */

START_TEST(test_engine_is_a_source_whose_batches_lie_where_they_should)
{
	struct refrain_config c = config_of();
	struct slab_place place;
	struct batch_source *source;
	struct lent_batch *b;
	struct simple r;
	struct error err = {""};
	uint32_t n;
	int rc;

	ck_assert_int_eq(engine_place(&c, &n, &place.bytes, &err), 0);
	ck_assert_uint_eq(n, c.batches_ahead ? c.batches_ahead + 1 : 5);
	place.base = aligned_alloc(64, place.bytes);
	ck_assert_int_eq(engine_open(&source, &c, &place, &err), 0);
	simple_open(&r, &c);
	while ((rc = batch_next(source, &b, WAIT_MS)) == 1) {
		ck_assert(
			is_within(&place, b->batch.data, b->batch.data_bytes));
		ck_assert_uint_gt(simple_next(&r, &b->batch), 0);
		b->release(b);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(batch_close(source), 0);
	simple_close(&r);
	free(place.base);
}
END_TEST

/* -- Another source -------------------------------------------------------- */

struct made {
	struct batch_source source;
	struct lent_batch batch;
	int left, released, closed;
};

static void made_release(struct lent_batch *b)
{
	CONTAINER_OF(b, struct made, batch)->released++;
}

static int made_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	struct made *m = CONTAINER_OF(source, struct made, source);

	if (timeout_ms == 0)
		return -ETIMEDOUT;
	if (m->left-- == 0)
		return 0;
	MAGIC_BEGIN(&m->batch, lent_batch);
	m->batch.release = made_release;
	m->batch.batch.step++;
	*out = &m->batch;
	return 1;
}

static int made_fd(struct batch_source *source)
{
	(void)source;
	return 12345;
}

static int made_close(struct batch_source *source)
{
	CONTAINER_OF(source, struct made, source)->closed++;
	return 0;
}

static void made_message(struct batch_source *source, struct error *out)
{
	(void)source;
	(void)error_set(out, -ETIMEDOUT, "it is made up");
}

START_TEST(test_loader_takes_its_batches_from_any_source)
{
	const struct loader_ops ops = {.next = made_next,
		.fd = made_fd,
		.close = made_close,
		.message = made_message};
	struct made m = {.source = {&ops}, .left = 2};
	struct refrain_stats stats = {.size = sizeof(stats)};
	const struct refrain_batch *b;
	struct refrain_loader *l;

	ck_assert_int_eq(loader_over(&l, &m.source), 0);
	ck_assert_int_eq(refrain_fd(l), 12345);
	ck_assert_int_eq(refrain_next(l, &b, 0), -ETIMEDOUT);
	ck_assert_ptr_null(b);
	ck_assert_str_eq(refrain_message(l), "it is made up");
	for (int i = 1; i < 3; i++) {
		ck_assert_int_eq(refrain_next(l, &b, 1), 1);
		ck_assert_uint_eq(b->step, i);
		refrain_release(b);
		ck_assert_int_eq(m.released, i);
	}
	ck_assert_int_eq(refrain_next(l, &b, 1), 0);
	ck_assert_uint_eq(refrain_examples(l), 0);
	ck_assert_int_eq(refrain_stats_get(l, &stats), -ENOSYS);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(m.closed, 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("batch");
	TCase *t = case_with(s, "batch", fixture_make, fixture_remove);

	tcase_add_test(t, test_slabs_lie_in_the_memory_that_is_given);
	tcase_add_test(
		t, test_slabs_refuse_a_place_that_is_too_small_or_not_aligned);
	tcase_add_test(t, test_slab_is_free_again_when_its_batch_is_released);
	tcase_add_test(
		t, test_engine_is_a_source_whose_batches_lie_where_they_should);
	tcase_add_test(t, test_loader_takes_its_batches_from_any_source);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
