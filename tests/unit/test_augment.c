/* SPDX-License-Identifier: MIT */
/* Crops as functions of a seed, and what becomes of a resized sample. */
#include <errno.h>
#include <stdio.h>

#include "augment_fixture.h"
#include "loader/emitter.h"
#include "suite.h"

/* -- Crops -------------------------------------------------------------- */

#define BINS 20
/* 19 degrees of freedom: passed by chance once in 10,000 times. */
#define CHI_SQUARE_MOST 50.8

static void expect_uniform(const size_t *bins, const char *what)
{
	double total = 0, sum = 0;

	for (unsigned i = 0; i < BINS; i++)
		total += (double)bins[i];
	for (unsigned i = 0; i < BINS; i++) {
		double d = (double)bins[i] - total / BINS;

		sum += d * d / (total / BINS);
	}
	ck_assert_msg(sum < CHI_SQUARE_MOST, "%s: chi square %g", what, sum);
}

static void count(size_t *bins, double share)
{
	ck_assert_msg(share > -0.001 && share < 1.001, "share %g", share);
	bins[(unsigned)fmin(fmax(share * BINS, 0), BINS - 1)]++;
}

/* Where every draw fits, the distributions are the plain ones. */
START_TEST(test_area_aspect_and_place_of_a_crop_are_uniform)
{
	size_t area[BINS] = {0}, aspect[BINS] = {0}, x[BINS] = {0},
	       y[BINS] = {0};
	size_t flips = 0;
	struct augment_config c;

	config_init(&c, 224);
	c.area_max = 0.3F;
	for (uint64_t seed = 0; seed < 100000; seed++) {
		struct crop crop;
		double a, b;

		crop_of(&c, seed, 8000, 8000, &crop);
		a = crop.width * crop.height / 64e6;
		b = log(crop.width / crop.height) / log(4 / 3.0);
		count(area, (a - 0.08) / 0.22);
		count(aspect, (b + 1) / 2);
		count(x, crop.x / (8001 - crop.width));
		count(y, crop.y / (8001 - crop.height));
		flips += crop.flip;
	}
	expect_uniform(area, "area");
	expect_uniform(aspect, "aspect");
	expect_uniform(x, "x");
	expect_uniform(y, "y");
	ck_assert_uint_gt(flips, 49300);
	ck_assert_uint_lt(flips, 50700);
}
END_TEST

/* Moments of torchvision's own code for 500 x 375, by simulation with another
 * generator in the test: same steps, other numbers. */
static void simulate(uint64_t *state, double *width, double *height)
{
	for (unsigned i = 0; i < 10; i++) {
		double u = (chance(state, 1U << 30) + 0.5) / (1U << 30);
		double v = (chance(state, 1U << 30) + 0.5) / (1U << 30);
		double area = 500.0 * 375 * (0.08 + 0.92 * u);
		double aspect = exp((2 * v - 1) * log(4 / 3.0));

		*width = nearbyint(sqrt(area * aspect));
		*height = nearbyint(sqrt(area / aspect));
		if (*width <= 500 && *height <= 375)
			return;
	}
	*width = 500;
	*height = 375;
}

START_TEST(test_crops_that_do_not_fit_are_drawn_again_as_torchvision_does)
{
	double ours[4] = {0}, theirs[4] = {0}, w, h;
	const unsigned n = 200000;
	struct augment_config c;
	uint64_t state = 9;

	config_init(&c, 224);
	for (uint64_t seed = 0; seed < n; seed++) {
		struct crop crop;

		crop_of(&c, seed * 977, 500, 375, &crop);
		ours[0] += crop.width;
		ours[1] += crop.height;
		ours[2] += crop.width * crop.height;
		ours[3] += crop.width / crop.height;
		simulate(&state, &w, &h);
		theirs[0] += w;
		theirs[1] += h;
		theirs[2] += w * h;
		theirs[3] += w / h;
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_double_lt(fabs(ours[i] / theirs[i] - 1), 0.004);
}
END_TEST

START_TEST(test_boxes_lie_inside_images_of_any_shape)
{
	const uint32_t sizes[][2] = {{1, 1}, {1, 2}, {1, 7}, {7, 1}, {1, 60000},
		{60000, 1}, {2, 3}, {5, 5}, {500, 375}, {65535, 65535}};
	struct augment_config c;

	config_init(&c, 224);
	c.cutout = 100;
	for (unsigned i = 0; i < 10; i++)
		for (uint64_t t = 0; t < 3000; t++) {
			uint64_t w = sizes[i][0], h = sizes[i][1];
			struct crop crop;

			c.augment = (int)(t % 3);
			crop_of(&c, t, sizes[i][0], sizes[i][1], &crop);
			ck_assert_uint_ge(crop.box.width, 1);
			ck_assert_uint_ge(crop.box.height, 1);
			ck_assert_uint_le(
				(uint64_t)crop.box.x + crop.box.width, w);
			ck_assert_uint_le(
				(uint64_t)crop.box.y + crop.box.height, h);
			ck_assert(crop.x >= crop.box.x &&
				crop.x + crop.width <=
					crop.box.x + crop.box.width + 1e-9);
			ck_assert(crop.width > 0 && crop.height > 0);
			ck_assert_uint_le(
				crop.cutout_x + crop.cutout_width, 224);
			ck_assert_uint_le(
				crop.cutout_y + crop.cutout_height, 224);
		}
}
END_TEST

/* These numbers are in every stream that was ever saved. */
static void expect_crop(
	const struct crop *crop, const uint32_t *numbers, float factor)
{
	const uint32_t got[7] = {crop->box.x, crop->box.y, crop->box.width,
		crop->box.height, crop->flip, crop->cutout_x, crop->cutout_y};

	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(got[i], numbers[i]);
	ck_assert(crop->jitter[0] == factor); /* exactly */
}

START_TEST(test_a_seed_means_the_same_crop_for_ever)
{
	const uint32_t one[7] = {8, 100, 318, 247, 1, 131, 11};
	const uint32_t last[7] = {666, 486, 1695, 1476, 0, 153, 194};
	struct augment_config c;
	struct crop crop;

	config_init(&c, 224);
	c.cutout = 40;
	c.jitter[0] = 0.4F;
	crop_of(&c, 1, 500, 375, &crop);
	expect_crop(&crop, one, 1.39164734F);
	crop_of(&c, UINT64_MAX, 3000, 2000, &crop);
	expect_crop(&crop, last, 1.28076804F);
}
END_TEST

START_TEST(test_switching_one_augmentation_moves_no_other)
{
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct augment_config c;
		struct crop all, none;

		config_init(&c, 224);
		c.flip = false;
		crop_of(&c, seed, 640, 480, &none);
		ck_assert(!none.flip && none.cutout_width == 0);
		ck_assert(none.jitter[1] == 1); /* exactly */
		c.flip = true;
		c.cutout = 9;
		c.jitter[0] = c.jitter[1] = c.jitter[2] = 0.5F;
		crop_of(&c, seed, 640, 480, &all);
		ck_assert_int_eq(
			memcmp(&all.box, &none.box, sizeof(all.box)), 0);
		for (unsigned i = 0; i < 3; i++)
			ck_assert(
				all.jitter[i] >= 0.5F && all.jitter[i] <= 1.5F);
	}
}
END_TEST

START_TEST(test_the_scale_never_goes_below_the_sample)
{
	uint64_t state = 10;
	size_t counts[9] = {0};

	for (unsigned t = 0; t < 20000; t++) {
		uint32_t w = 1 + chance(&state, 5000);
		uint32_t h = 1 + chance(&state, 5000);
		struct augment_config c;
		struct crop crop;
		unsigned d;

		config_init(&c, 224);
		c.height = 100;
		c.augment = (int)chance(&state, 3);
		crop_of(&c, t, w, h, &crop);
		d = crop_denom(&c, &crop);
		ck_assert(d == 1 || d == 2 || d == 4 || d == 8);
		counts[d]++;
		if (d > 1)
			ck_assert(crop.width / d >= 224 &&
				crop.height / d >= 100);
		if (d < 8)
			ck_assert(crop.width / (2 * d) < 224 ||
				crop.height / (2 * d) < 100);
	}
	ck_assert(counts[1] && counts[2] && counts[4] && counts[8]);
}
END_TEST

START_TEST(test_a_union_holds_all_of_its_boxes)
{
	uint64_t state = 11;

	for (unsigned t = 0; t < 1000; t++) {
		struct rect to = {0};
		uint32_t right = 0, bottom = 0, left = 900, top = 900;

		for (unsigned i = 0; i < 5; i++) {
			struct crop crop;
			const struct rect *b = &crop.box;

			crop_random(&crop, 900, 900, &state);
			crop_union(&to, &crop);
			left = b->x < left ? b->x : left;
			top = b->y < top ? b->y : top;
			right = b->x + b->width > right ? b->x + b->width
							: right;
			bottom = b->y + b->height > bottom ? b->y + b->height
							   : bottom;
		}
		ck_assert(to.x == left && to.y == top);
		ck_assert(to.x + to.width == right);
		ck_assert(to.y + to.height == bottom);
	}
}
END_TEST

/* -- Samples ------------------------------------------------------------ */

START_TEST(test_halves_are_rounded_to_nearest_even)
{
	/* Every pair of neighbours, at, below and above what is half way. */
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

/* A value of a finished sample. */
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

/* The same crop in another type and layout. */
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
	ck_assert(low == 0 && high == 1); /* exactly */
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
			/* The grey of a half may be rounded the other way. */
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
	tcase_add_test(tcase, test_area_aspect_and_place_of_a_crop_are_uniform);
	tcase_add_test(tcase,
		test_crops_that_do_not_fit_are_drawn_again_as_torchvision_does);
	tcase_add_test(tcase, test_boxes_lie_inside_images_of_any_shape);
	tcase_add_test(tcase, test_a_seed_means_the_same_crop_for_ever);
	tcase_add_test(tcase, test_switching_one_augmentation_moves_no_other);
	tcase_add_test(tcase, test_the_scale_never_goes_below_the_sample);
	tcase_add_test(tcase, test_a_union_holds_all_of_its_boxes);
	tcase_add_test(tcase, test_halves_are_rounded_to_nearest_even);
	tcase_add_test(tcase, test_all_types_and_layouts_hold_the_same_values);
	tcase_add_test(tcase, test_without_normalisation_floats_go_from_0_to_1);
	tcase_add_test(tcase, test_jitter_is_as_a_naive_one_does_it);
	tcase_add_test(
		tcase, test_a_cutout_is_the_mean_and_nothing_else_changes);
	tcase_add_test(
		tcase, test_an_image_that_does_not_hold_the_box_is_refused);
	tcase_add_test(tcase, test_scratch_memory_stays_what_it_grew_to);
}

int main(void)
{
	Suite *suite = suite_create("augment");
	TCase *tcase = case_of(suite, "augment");

	add_tests(tcase);
	return run_suite(suite);
}
