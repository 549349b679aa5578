/* SPDX-License-Identifier: MIT */
/*
 * Tests of the properties of samples in a batch, of the scale at which images
 * are decoded, of a decode() that declines, and of ranks that get equally many
 * batches.
 */
#include "loader_fixture.h"

#include "common/base/hash.h"
#include "loader/engine/sample.h"
#include "suite.h"

#define LARGE 40 /* number of images of the large dataset */

static void make_large(void)
{
	fixture_make();
	for (unsigned i = 0; i < LARGE; i++)
		make_image(i * 7, 500 + i, 400 + 2 * i);
}

/* -- The scale ------------------------------------------------------------- */

/* Evaluation, NONE and REFRAIN_FLAG_EXACT decode at full size. */
START_TEST(test_exact_samples_are_those_of_a_full_decode)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct simple r;

	c.augment = _i;
	c.flags = _i == REFRAIN_AUGMENT_TRAIN ? REFRAIN_FLAG_EXACT : 0;
	l = open_loader(&c);
	simple_open(&r, &c);
	r.s.augment.scale = SCALE_EXACT;
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_uint_gt(simple_next(&r, b), 0);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(l), 0);
	simple_close(&r);
}
END_TEST

/* Hash the first two servings of each example, by its index. */
static void hash_servings(double echo, uint64_t out[2][IMAGES])
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	c.echo = echo;
	c.window = 0;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			const char *at = b->data;

			if (b->echoes[i] < 2)
				out[b->echoes[i]][b->indices[i]] =
					hash64(at + i * b->sample_bytes,
						b->sample_bytes, b->seeds[i]);
		}
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(l), 0);
}

START_TEST(test_pixels_do_not_depend_on_the_crops_of_other_echoes)
{
	static uint64_t two[2][IMAGES], four[2][IMAGES];

	hash_servings(2, two);
	hash_servings(4, four);
	for (unsigned i = 0; i < IMAGES; i++)
		ck_assert_msg(
			two[0][i] == four[0][i] && two[1][i] == four[1][i],
			"index %u differs", i);
}
END_TEST

/* At the scale of its image, every crop has at least as many pixels as the
 * sample. */
START_TEST(test_scale_of_an_image_does_for_all_of_its_crops)
{
	struct augment_config c = {.height = 224,
		.width = 224,
		.augment = REFRAIN_AUGMENT_TRAIN,
		.area_min = 0.08F,
		.area_max = 1,
		.aspect_min = 0.75F,
		.aspect_max = 4.F / 3,
		.scale = SCALE_BY_IMAGE};
	unsigned denoms[9] = {0};

	for (uint32_t side = 200; side < 9000; side += 311)
		for (uint64_t seed = 0; seed < 500; seed++) {
			uint32_t height = side * 2 / (2 + (uint32_t)seed % 7);
			struct crop crop;
			unsigned d;

			crop_of(&c, seed, side, height, &crop);
			d = crop_denom(&c, &crop, side, height);
			denoms[d]++;
			if (d > 1)
				ck_assert(crop.width >= 224. * d &&
					crop.height >= 224. * d);
		}
	ck_assert(denoms[1] && denoms[2] && denoms[4] && denoms[8]);
}
END_TEST

/* -- What a batch says ----------------------------------------------------- */

static void check_crop(const struct refrain_loader *l, const struct settings *s,
	const struct refrain_batch *b, uint32_t i)
{
	const struct refrain_crop *said = refrain_crop_at(b, i);
	struct crop crop;

	(void)l;
	crop_of(&s->augment, b->seeds[i], said->image_width, said->image_height,
		&crop);
	ck_assert(said->x == crop.x && said->y == crop.y);
	ck_assert(said->width == crop.width && said->height == crop.height);
	ck_assert_uint_eq(said->flip, crop.flip);
	ck_assert_uint_ge(said->image_width, 64);
	ck_assert_uint_ge(said->image_height, 48);
	ck_assert(said->x + said->width <= said->image_width);
}

/* Check this for kept, decoded and copied samples. */
START_TEST(test_batch_says_which_part_of_the_image_a_sample_shows)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct settings s;
	struct error err;

	c.augment = _i < 4 ? REFRAIN_AUGMENT_TRAIN : REFRAIN_AUGMENT_EVAL;
	c.echo = _i == 0 || _i == 4 ? 1 : 2;
	c.echo_point = _i % 4 ? _i % 4 - 1 : 0;
	ck_assert_int_eq(settings_init(&s, &c, &err), 0);
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++)
			check_crop(l, &s, b, i);
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_batch_says_which_epoch_ended)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	uint64_t ended = 0, mixed = 0;

	c.batch = 17; /* an epoch ends within a batch */
	c.epochs = 4;
	c.echo = 1 + _i;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		if (b->ends_epoch) {
			ck_assert_uint_eq(b->ended_epoch, ended++);
			mixed += b->epoch != b->ended_epoch;
		} else {
			ck_assert_uint_eq(b->ended_epoch, UINT64_MAX);
		}
		refrain_release(b);
	}
	ck_assert_uint_eq(ended, 4);
	ck_assert_uint_gt(mixed, 0);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* -- decode() -------------------------------------------------------------- */

#define OTHER_SIDE 8

/* A decode() that makes a square of the value that follows "OTHER", and
 * declines all other examples. */
static int decode_other_kind(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	const uint8_t *at = in->data;

	(void)ctx;
	if (in->bytes != 6 || memcmp(at, "OTHER", 5) != 0)
		return REFRAIN_DECLINE;
	out->width = out->height = OTHER_SIDE;
	out->channels = 3;
	out->bytes = OTHER_SIDE * OTHER_SIDE * 3;
	memset(out->data, at[5], out->bytes);
	return 0;
}

static bool is_other(uint64_t index)
{
	return index % 9 == 4;
}

static void put_others(void)
{
	char path[256], text[7] = "OTHER?";

	for (unsigned i = 0; i < IMAGES; i++) {
		/* Examples are in the order of classes, then numbers. */
		uint64_t index = i % CLASSES * (IMAGES / CLASSES) + i / CLASSES;

		image_path(path, i);
		text[5] = (char)('0' + index % 40);
		if (is_other(index))
			write_file(path, text, 6);
	}
}

static bool is_filled(const uint8_t *at, size_t bytes, uint8_t value)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* decode() declines JPEGs; their samples must be the same as without decode().
 */
START_TEST(test_declined_examples_are_decoded_as_jpegs)
{
	struct refrain_config c = config_of();
	struct refrain_loader *plain, *l;
	const struct refrain_batch *a, *b;

	put_others();
	c.echo = _i ? 2 : 1;
	c.echo_point = _i ? _i - 1 : 0;
	c.max_damage = 1;
	c.memory_bytes = _i == 1 ? 3 << 20 : c.memory_bytes;
	plain = open_loader(&c);
	c.decode = decode_other_kind;
	c.decoded_max_bytes = OTHER_SIDE * OTHER_SIDE * 3;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		ck_assert_int_eq(refrain_next(plain, &a, WAIT_MS), 1);
		for (uint32_t i = 0; i < b->count; i++) {
			size_t n = b->sample_bytes;
			const uint8_t *at = (const uint8_t *)b->data + i * n;

			ck_assert_int_eq(b->status[i], 0);
			if (is_other(b->indices[i]))
				ck_assert(is_filled(at, n,
					(uint8_t)('0' + b->indices[i] % 40)));
			else
				ck_assert(
					memcmp((const uint8_t *)a->data + i * n,
						at, n) == 0);
		}
		refrain_release(a);
		refrain_release(b);
	}
	ck_assert_uint_eq(stats_of(l).errors, 0);
	ck_assert_uint_gt(stats_of(plain).errors, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(refrain_close(plain), 0);
}
END_TEST

/* -- Ranks ----------------------------------------------------------------- */

START_TEST(test_ranks_get_equally_many_batches_if_asked)
{
	struct refrain_config c = config_of();
	unsigned seen[IMAGES] = {0}, dropped = 0;
	uint64_t steps[7], fresh = 0;
	struct refrain_stats st;

	c.world = 7; /* 300 examples for 7 ranks: 300 = 7 * 42 + 6 */
	c.batch = 6;
	c.last = REFRAIN_LAST_DROP;
	c.flags = REFRAIN_FLAG_EQUAL_RANKS;
	c.echo = 1 + _i;
	for (c.rank = 0; c.rank < c.world; c.rank++) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;

		steps[c.rank] = 0;
		while (refrain_next(l, &b, WAIT_MS) == 1) {
			ck_assert_uint_eq(b->count, c.batch);
			for (uint32_t i = 0; i < b->count; i++)
				seen[b->indices[i]] += !b->echoes[i];
			fresh += b->fresh;
			steps[c.rank]++;
			refrain_release(b);
		}
		ck_assert_uint_eq(steps[c.rank], steps[0]);
		st = stats_of(l);
		dropped += (unsigned)st.dropped_fresh;
		ck_assert_int_eq(refrain_close(l), 0);
	}
	ck_assert_uint_eq(steps[0], (uint64_t)(1 + _i) * 42 / 6);
	for (unsigned i = 0; i < IMAGES; i++)
		ck_assert_uint_le(seen[i], 1);
	ck_assert_uint_eq(fresh, 7 * 42);
	ck_assert_uint_eq(dropped, 6);
}
END_TEST

/* -- Without a loader ------------------------------------------------------ */

static uint64_t the_seed(const void *ctx, uint32_t k)
{
	(void)k;
	return *(const uint64_t *)ctx;
}

/* Make the sample of one serving with its own decode. */
static int make_sample(struct sampler *p, const struct settings *s,
	const struct encoded *in, uint64_t seed, uint8_t *out,
	struct refrain_crop *crop, struct error *err)
{
	struct seeds one = {0, 1, the_seed, &seed};
	struct picture pic = {.declined = false};
	struct sample_layout layout;
	struct decoded d;
	uint8_t *room;
	int rc = sample_probe(p, &pic, in, err);

	if (rc < 0)
		return rc;
	sample_find_region(p, &pic, &one);
	sample_layout(p, &pic, 1, &one, &layout);
	room = malloc(layout.bytes);
	ck_assert_ptr_nonnull(room);
	rc = sample_decode(p, &pic, in, &layout, room, &d, err);
	if (rc == 0)
		rc = sample_augment(p, &pic, &d, seed, out);
	if (rc == 0)
		sample_crop(s, &pic, &d, seed, crop);
	free(room);
	return rc;
}

/* Check that a sample depends only on its bytes, a seed and a configuration. */
static void check_alone(struct sampler *p, const struct settings *s,
	const struct refrain_batch *b, uint32_t i, const char *path)
{
	uint8_t *out = malloc(s->sample_bytes), *bytes;
	struct refrain_crop crop;
	struct error err = {""};
	struct encoded in = {.name = path};

	bytes = slurp(AT_FDCWD, path, &in.bytes);
	in.data = bytes;
	ck_assert_msg(
		make_sample(p, s, &in, b->seeds[i], out, &crop, &err) == 0,
		"%s", err.msg);
	ck_assert_mem_eq(out, (const uint8_t *)b->data + i * b->sample_bytes,
		s->sample_bytes);
	ck_assert_mem_eq(&crop, refrain_crop_at(b, i), sizeof(crop));
	free(bytes);
	free(out);
}

START_TEST(test_sample_of_a_slot_can_be_made_without_a_loader)
{
	struct refrain_config c = config_of();
	const struct refrain_batch *b;
	struct refrain_loader *l;
	struct error err = {""};
	struct settings s;
	struct sampler *p;

	c.type = _i % 2 ? REFRAIN_F32 : REFRAIN_U8;
	c.echo = _i < 2 ? 1 : 2.5;
	ck_assert_int_eq(settings_init(&s, &c, &err), 0);
	ck_assert_int_eq(sampler_new(&p, &s), 0);
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			char path[512];

			(void)snprintf(path, sizeof(path), "%s/%s", c.dataset,
				refrain_path(l, b->indices[i]));
			check_alone(p, &s, b, i, path);
		}
		refrain_release(b);
	}
	ck_assert_int_eq(refrain_close(l), 0);
	sampler_free(p);
}
END_TEST

START_TEST(test_sample_of_a_damaged_file_is_refused)
{
	struct refrain_config c = config_of();
	struct encoded in = {(const uint8_t *)"no image", 8, 0, "x", 0};
	struct refrain_crop crop;
	struct error err = {""};
	struct settings s;
	struct sampler *p;
	uint8_t *out;

	ck_assert_int_eq(settings_init(&s, &c, &err), 0);
	ck_assert_int_eq(sampler_new(&p, &s), 0);
	out = malloc(s.sample_bytes);
	ck_assert_int_lt(make_sample(p, &s, &in, 1, out, &crop, &err), 0);
	ck_assert(err.msg[0]);
	free(out);
	sampler_free(p);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_samples");
	TCase *large = case_of(s, "scale"), *tc = case_of(s, "samples");
	TCase *other = case_with(s, "decode", fixture_make, fixture_remove);

	tcase_add_unchecked_fixture(large, make_large, fixture_remove);
	tcase_add_loop_test(
		large, test_exact_samples_are_those_of_a_full_decode, 0, 3);
	tcase_add_test(
		large, test_pixels_do_not_depend_on_the_crops_of_other_echoes);
	tcase_add_test(large, test_scale_of_an_image_does_for_all_of_its_crops);
	tcase_add_loop_test(large,
		test_sample_of_a_slot_can_be_made_without_a_loader, 0, 4);
	tcase_add_test(large, test_sample_of_a_damaged_file_is_refused);
	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_loop_test(tc,
		test_batch_says_which_part_of_the_image_a_sample_shows, 0, 5);
	tcase_add_loop_test(tc, test_batch_says_which_epoch_ended, 0, 3);
	tcase_add_loop_test(
		tc, test_ranks_get_equally_many_batches_if_asked, 0, 2);
	tcase_add_loop_test(
		other, test_declined_examples_are_decoded_as_jpegs, 0, 4);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
