/* SPDX-License-Identifier: MIT */
/* Crops as functions of a seed, and resized samples in all types and layouts.
 */
#include <errno.h>
#include <stdio.h>

#include "augment_fixture.h"
#include "loader/image/emitter_impl.h"
#include "suite.h"

/* -- Samples ------------------------------------------------------------ */

START_TEST(test_halves_are_rounded_to_nearest_even)
{
	/* Loop over all pairs of neighbouring values, and take the numbers at,
	 * below and above the middle between the two. */
	for (uint32_t h = 0; h < 0x7c00; h++) {
		uint32_t e = h >> 10, f = h & 0x3ff;
		double low = e ? ldexp(1024 + f, (int)e - 25) : ldexp(f, -24);
		double step = ldexp(1, e ? (int)e - 25 : -24);
		float middle = (float)(low + step / 2);
		uint32_t even = h & 1 ? h + 1 : h;

		ck_assert_uint_eq(half_of((float)low), h);
		ck_assert_uint_eq(half_of(middle), even);
		ck_assert_uint_eq(half_of(nextafterf(middle, 0)), h);
		ck_assert_uint_eq(half_of(nextafterf(middle, 1e9F)), h + 1);
		ck_assert_uint_eq(half_of(-middle), even | 0x8000);
	}
	ck_assert_uint_eq(half_of(INFINITY), 0x7c00);
	ck_assert_uint_eq(half_of(-1e30F), 0xfc00);
	ck_assert_uint_eq(half_of(-0.0F), 0x8000);
	ck_assert_uint_eq(half_of(1e-30F), 0);
	ck_assert_uint_eq(half_of(NAN) & 0x7e00, 0x7e00);
}
END_TEST

/* Returns one value of a finished sample. */
static double value_at(const struct augment_config *c, const void *sample,
	uint32_t y, uint32_t x, uint32_t channel)
{
	size_t i = c->layout == REFRAIN_NHWC
		? 3 * ((size_t)y * c->width + x) + channel
		: ((size_t)channel * c->height + y) * c->width + x;
	uint16_t h;
	float f;

	if (c->type == REFRAIN_U8)
		return ((const uint8_t *)sample)[i];
	if (c->type == REFRAIN_F32) {
		memcpy(&f, (const uint8_t *)sample + 4 * i, 4);
		return f;
	}
	memcpy(&h, (const uint8_t *)sample + 2 * i, 2);
	f = h >> 10 & 31
		? ldexpf((float)(1024 + (h & 1023)), (h >> 10 & 31) - 25)
		: ldexpf((float)(h & 1023), -24);
	return h >> 15 ? -f : f;
}

static void *sample_of(const struct augment_config *c, const struct image *in,
	const struct crop *crop)
{
	struct augmenter *a = augmenter_make(c, false);
	void *out = malloc(augment_sample_bytes(c));

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(augment(a, in, crop, out), 0);
	augmenter_free(a);
	return out;
}

/* Make the same crop in another type and layout, and compare the values. */
static void expect_converted(
	const struct augment_config *c, const uint8_t *rgb, const void *sample)
{
	double most = c->type == REFRAIN_F32 ? 1e-6 : 1.5e-3;

	for (uint32_t i = 0; i < c->height * c->width * 3; i++) {
		uint32_t k = i % 3;
		double v = rgb[i] / 255.0;
		double got = value_at(
			c, sample, i / 3 / c->width, i / 3 % c->width, k);

		if (c->normalise)
			v = (v - c->mean[k]) / c->std[k];
		if (c->type == REFRAIN_U8)
			ck_assert_uint_eq((uint32_t)got, rgb[i]);
		else
			ck_assert_double_le(fabs(got - v), most);
	}
}

START_TEST(test_all_types_and_layouts_hold_the_same_values)
{
	uint64_t state = 12;

	for (unsigned t = 0; t < 200; t++) {
		struct augment_config c;
		struct image in;
		struct crop crop;
		uint8_t *rgb;
		void *sample;

		config_init(&c, 1 + chance(&state, 60));
		c.height = 1 + chance(&state, 60);
		image_make(&in, 50, 40, 1, t % 2, &state);
		crop_random(&crop, 50, 40, &state);
		rgb = sample_of(&c, &in, &crop);
		c.type = (int)(t % 3);
		c.layout = (int)(t / 3 % 2);
		c.normalise = t / 6 % 2;
		sample = sample_of(&c, &in, &crop);
		expect_converted(&c, rgb, sample);
		free(rgb);
		free(sample);
		free(in.data);
	}
}
END_TEST

START_TEST(test_without_normalisation_floats_go_from_0_to_1)
{
	struct augment_config c;
	struct emitter e;
	float low, high;

	config_init(&c, 8);
	c.type = REFRAIN_F32;
	c.normalise = false;
	emitter_init(&e, &c);
	memcpy(&low, &e.table[0][0], 4);
	memcpy(&high, &e.table[0][255], 4);
	/* the lowest and the highest value are exactly 0 and 1 */
	ck_assert(low == 0 && high == 1);
}
END_TEST

static double clamp(double v)
{
	return floor(fmin(fmax(v, 0), 255) + 0.5);
}

static double naive_grey(const double *p)
{
	return floor(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] + 0.5);
}

static void naive_jitter(const float *factors, double *rgb, size_t pixels)
{
	double mean = 0;

	for (size_t i = 0; i < 3 * pixels; i++)
		rgb[i] = clamp(rgb[i] * factors[0]);
	for (size_t i = 0; i < pixels; i++)
		mean += naive_grey(rgb + 3 * i) / (double)pixels;
	for (size_t i = 0; i < 3 * pixels; i++)
		rgb[i] = clamp(mean + (rgb[i] - mean) * factors[1]);
	for (size_t i = 0; i < pixels; i++) {
		double g = naive_grey(rgb + 3 * i);

		for (size_t k = 3 * i; k < 3 * i + 3; k++)
			rgb[k] = clamp(g + (rgb[k] - g) * factors[2]);
	}
}

START_TEST(test_jitter_is_as_a_naive_one_does_it)
{
	const float factors[][3] = {{0.6F, 1, 1}, {1, 1.4F, 1}, {1, 1, 0},
		{1, 1, 1.7F}, {1.3F, 0.7F, 1.2F}, {0, 1, 1}, {9, 9, 9}};
	const size_t pixels = (size_t)33 * 33;
	uint64_t state = 13;
	size_t off = 0, all = 0;

	for (unsigned t = 0; t < 70; t++) {
		struct augment_config c;
		struct image in;
		struct crop crop;
		uint8_t *was, *got;
		double want[33 * 33 * 3];

		config_init(&c, 33);
		image_make(&in, 33, 33, 1, t % 3, &state);
		crop_make(&crop, 0, 0, 33, 33);
		was = sample_of(&c, &in, &crop);
		for (size_t i = 0; i < 3 * pixels; i++)
			want[i] = was[i];
		memcpy(crop.jitter, factors[t % 7], sizeof(crop.jitter));
		naive_jitter(crop.jitter, want, pixels);
		c.layout = (int)(t / 7 % 2);
		got = sample_of(&c, &in, &crop);
		for (uint32_t i = 0; i < 3 * pixels; i++, all++) {
			double d = fabs(want[i] -
				value_at(&c, got, i / 99, i / 3 % 33, i % 3));

			off += d > 0;
			/* A grey value of .5 may be rounded the other way. */
			ck_assert_double_le(d, factors[t % 7][2] > 2 ? 9 : 1);
		}
		free(was);
		free(got);
		free(in.data);
	}
	ck_assert_uint_lt(off * 1000, all);
}
END_TEST

START_TEST(test_a_cutout_is_the_mean_and_nothing_else_changes)
{
	uint64_t state = 14;

	for (unsigned t = 0; t < 120; t++) {
		struct augment_config c;
		struct image in;
		struct crop crop, without;
		void *whole, *got;

		config_init(&c, 30);
		c.type = (int)(t % 3);
		c.layout = (int)(t / 3 % 2);
		c.cutout = 1 + t / 2;
		image_make(&in, 40, 40, 1, 0, &state);
		crop_of(&c, t, 40, 40, &crop);
		got = sample_of(&c, &in, &crop);
		ck_assert(crop.cutout_width && crop.cutout_height);
		without = crop;
		without.cutout_width = without.cutout_height = 0;
		whole = sample_of(&c, &in, &without);
		for (uint32_t i = 0; i < 30 * 30 * 3; i++) {
			uint32_t y = i / 90, x = i / 3 % 30, k = i % 3;
			bool cut = x >= crop.cutout_x && y >= crop.cutout_y &&
				x < crop.cutout_x + crop.cutout_width &&
				y < crop.cutout_y + crop.cutout_height;
			double mean = c.type == REFRAIN_U8
				? floor(255 * c.mean[k] + 0.5)
				: 0;

			ck_assert(value_at(&c, got, y, x, k) ==
				(cut ? mean : value_at(&c, whole, y, x, k)));
		}
		free(got);
		free(whole);
		free(in.data);
	}
}
END_TEST

/* Check that the part of the sample that shows the image equals a sample of
 * that size. */
static void fits(const struct augment_config *c, const struct image *in)
{
	struct augment_config part = *c;
	struct crop crop, of_part;
	void *whole, *inner;

	crop_of(c, 1, in->width, in->height, &crop);
	part.width = crop.inner.width;
	part.height = crop.inner.height;
	part.augment = REFRAIN_AUGMENT_NONE;
	crop_of(&part, 1, in->width, in->height, &of_part);
	ck_assert(part.width == c->width || part.height == c->height);
	/* The corners of the image are the corners of that part. */
	ck_assert_double_eq_tol(
		-crop.x * c->width / crop.width, crop.inner.x, 1e-9);
	ck_assert_double_eq_tol((in->height - crop.y) * c->height / crop.height,
		crop.inner.y + part.height, 1e-9);
	ck_assert_uint_le(crop.inner.x - (c->width - part.width) / 2, 0);
	whole = sample_of(c, in, &crop);
	inner = sample_of(&part, in, &of_part);
	for (uint32_t i = 0; i < c->width * c->height * 3; i++) {
		uint32_t y = i / 3 / c->width, x = i / 3 % c->width, k = i % 3;
		double want = c->type == REFRAIN_U8
			? floor(255 * c->mean[k] + 0.5)
			: 0;

		y -= crop.inner.y;
		x -= crop.inner.x;
		if (x < part.width && y < part.height)
			want = value_at(&part, inner, y, x, k);
		ck_assert(value_at(c, whole, y + crop.inner.y, x + crop.inner.x,
				  k) == want);
	}
	free(whole);
	free(inner);
}

START_TEST(test_fit_shows_the_whole_image_and_fills_the_rest)
{
	uint64_t state = 16;

	for (unsigned t = 0; t < 240; t++) {
		struct augment_config c;
		struct image in;

		config_init(&c, 1 + chance(&state, 40));
		c.width = 1 + chance(&state, 40);
		c.augment = REFRAIN_AUGMENT_FIT;
		c.type = (int)(t % 3);
		c.layout = (int)(t / 3 % 2);
		image_make(&in, 1 + chance(&state, t % 7 ? 60 : 3),
			1 + chance(&state, t % 5 ? 60 : 2), 1, 0, &state);
		fits(&c, &in);
		free(in.data);
	}
}
END_TEST

/* Another augmenter makes u8 pixels without a cutout; augment_finish() turns
 * them into the sample. */
START_TEST(test_pixels_made_elsewhere_become_the_same_sample)
{
	uint64_t state = 17;

	for (unsigned t = 0; t < 240; t++) {
		struct augment_config c, u8;
		struct augmenter *a;
		struct image in;
		struct crop crop, without;
		void *whole, *pixels, *got;
		size_t bytes;

		config_init(&c, 1 + chance(&state, 60));
		c.height = 1 + chance(&state, 60);
		c.type = (int)(t % 3);
		c.layout = (int)(t / 3 % 2);
		c.normalise = t / 6 % 2;
		c.cutout = t % 5 ? 0 : 20;
		c.augment = t % 4 ? REFRAIN_AUGMENT_TRAIN : REFRAIN_AUGMENT_FIT;
		c.jitter[0] = t % 7 ? 0 : 0.4F;
		image_make(&in, 40, 30, 1, 0, &state);
		crop_of(&c, t, 40, 30, &crop);
		whole = sample_of(&c, &in, &crop);
		u8 = c;
		u8.type = REFRAIN_U8;
		u8.layout = REFRAIN_NHWC;
		without = crop;
		without.cutout_width = without.cutout_height = 0;
		pixels = sample_of(&u8, &in, &without);
		pixels = realloc(pixels,
			augment_sample_bytes(&u8) + AUGMENT_SLACK_BYTES);
		bytes = augment_sample_bytes(&c);
		got = malloc(bytes);
		a = augmenter_make(&c, false);
		ck_assert(pixels && got);
		augment_finish(a, &crop, pixels, got);
		ck_assert_mem_eq(got, whole, bytes);
		augmenter_free(a);
		free(whole);
		free(pixels);
		free(got);
		free(in.data);
	}
}
END_TEST

START_TEST(test_an_image_that_does_not_hold_the_box_is_refused)
{
	struct augment_config c;
	struct augmenter *a;
	struct image in;
	struct crop crop;
	uint64_t state = 15;
	uint8_t out[3 * 8 * 8];

	config_init(&c, 8);
	a = augmenter_make(&c, false);
	image_make(&in, 20, 20, 1, 0, &state);
	crop_make(&crop, 11, 0, 10, 10);
	ck_assert_int_eq(augment(a, &in, &crop, out), -EINVAL);
	crop_make(&crop, 0, 0, 10, 21);
	ck_assert_int_eq(augment(a, &in, &crop, out), -EINVAL);
	in.x = 5;
	crop_make(&crop, 4, 0, 10, 10);
	ck_assert_int_eq(augment(a, &in, &crop, out), -EINVAL);
	crop_make(&crop, 15, 0, 10, 10);
	ck_assert_int_eq(augment(a, &in, &crop, out), 0);
	crop.width = NAN;
	ck_assert_int_eq(augment(a, &in, &crop, out), -EINVAL);
	augmenter_free(a);
	free(in.data);
}
END_TEST

START_TEST(test_scratch_memory_stays_what_it_grew_to)
{
	struct augment_config c;
	struct augmenter *a;
	struct image in;
	uint64_t state = 16;
	size_t first = 0;
	uint8_t *out;

	config_init(&c, 64);
	c.type = REFRAIN_F32;
	c.jitter[2] = 0.3F;
	out = malloc(augment_sample_bytes(&c));
	ck_assert_ptr_nonnull(out);
	a = augmenter_make(&c, false);
	image_make(&in, 300, 200, 1, 0, &state);
	for (uint64_t t = 0; t < 400; t++) {
		struct crop crop;

		crop_of(&c, t % 200, 300, 200, &crop);
		ck_assert_int_eq(augment(a, &in, &crop, out), 0);
		if (t == 199)
			first = augmenter_memory_bytes(a);
	}
	ck_assert_uint_eq(augmenter_memory_bytes(a), first);
	ck_assert_uint_lt(first, 64 * 1024);
	augmenter_free(a);
	free(out);
	free(in.data);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, test_halves_are_rounded_to_nearest_even);
	tcase_add_test(tcase, test_all_types_and_layouts_hold_the_same_values);
	tcase_add_test(tcase, test_without_normalisation_floats_go_from_0_to_1);
	tcase_add_test(tcase, test_jitter_is_as_a_naive_one_does_it);
	tcase_add_test(
		tcase, test_a_cutout_is_the_mean_and_nothing_else_changes);
	tcase_add_test(
		tcase, test_fit_shows_the_whole_image_and_fills_the_rest);
	tcase_add_test(
		tcase, test_an_image_that_does_not_hold_the_box_is_refused);
	tcase_add_test(
		tcase, test_pixels_made_elsewhere_become_the_same_sample);
	tcase_add_test(tcase, test_scratch_memory_stays_what_it_grew_to);
}

int main(void)
{
	Suite *suite = suite_create("augment");
	TCase *tcase = case_of(suite, "augment");

	add_tests(tcase);
	return run_suite(suite);
}
