/* SPDX-License-Identifier: MIT */
/* Crops as functions of a seed. */
#include <stdio.h>

#include "augment_fixture.h"
#include "suite.h"

#define BINS 20
/* The value of chi-square for 19 degrees of freedom that chance exceeds once in
 * 10,000 times. */
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

/* With this limit of the area every draw fits into the image, so no draw is
 * repeated, which would change the distributions. */
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

/* Compute the moments of torchvision's algorithm for an image of 500 x 375.
 * This simulates the algorithm with another generator of random numbers. */
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

/* Check a crop. All streams that were ever saved depend on these numbers. */
static void expect_crop(
	const struct crop *crop, const uint32_t *numbers, float factor)
{
	const uint32_t got[7] = {crop->box.x, crop->box.y, crop->box.width,
		crop->box.height, crop->flip, crop->cutout_x, crop->cutout_y};

	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(got[i], numbers[i]);
	ck_assert(crop->jitter[0] == factor); /* exactly equal */
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
		ck_assert(none.jitter[1] == 1); /* exactly 1 */
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
		c.scale = SCALE_BY_CROP;
		crop_of(&c, t, w, h, &crop);
		d = crop_denom(&c, &crop, w, h);
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

int main(void)
{
	Suite *s = suite_create("crop");
	TCase *tcase = case_of(s, "crop");

	tcase_add_test(tcase, test_area_aspect_and_place_of_a_crop_are_uniform);
	tcase_add_test(tcase,
		test_crops_that_do_not_fit_are_drawn_again_as_torchvision_does);
	tcase_add_test(tcase, test_boxes_lie_inside_images_of_any_shape);
	tcase_add_test(tcase, test_a_seed_means_the_same_crop_for_ever);
	tcase_add_test(tcase, test_switching_one_augmentation_moves_no_other);
	tcase_add_test(tcase, test_the_scale_never_goes_below_the_sample);
	tcase_add_test(tcase, test_a_union_holds_all_of_its_boxes);
	return run_suite(s);
}
