/* SPDX-License-Identifier: MIT */
/* Tests of crops that depend on boxes: which boxes they contain, and that the
 * search for a crop always ends. */
#include <string.h>

#include "augment_fixture.h"
#include "suite.h"

#define SEEDS 20000

static struct augment_config config;

static void setup(void)
{
	config_init(&config, 300);
	config.augment = REFRAIN_AUGMENT_IOU;
}

static void teardown(void)
{
}

static bool is_whole(const struct crop *crop, uint32_t width, uint32_t height)
{
	return crop->box.width == width && crop->box.height == height;
}

/* Returns the highest intersection over union among the boxes whose centres are
 * in the crop; -1 if there is none. */
static double best_iou(
	const struct rect *r, const struct box *boxes, uint32_t count)
{
	double x1 = r->x + (double)r->width, y1 = r->y + (double)r->height;
	double best = -1;

	for (uint32_t i = 0; i < count; i++) {
		const struct box *b = &boxes[i];
		double x = (b->x0 + (double)b->x1) / 2;
		double y = (b->y0 + (double)b->y1) / 2;
		double w = fmax(fmin(b->x1, x1) - fmax(b->x0, r->x), 0);
		double h = fmax(fmin(b->y1, y1) - fmax(b->y0, r->y), 0);
		double area = ((double)b->x1 - b->x0) * (b->y1 - b->y0);

		area += (double)r->width * r->height - w * h;
		if (!(b->flags & BOX_CROWD) && x >= r->x && x < x1 &&
			y >= r->y && y < y1)
			best = fmax(best, w * h / area);
	}
	return best;
}

static void make_boxes(struct box *boxes, uint32_t count, uint32_t width,
	uint32_t height, uint64_t *state)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t w = 1 + chance(state, width);
		uint32_t h = 1 + chance(state, height);
		uint32_t x = chance(state, width - w + 1);
		uint32_t y = chance(state, height - h + 1);

		boxes[i] = (struct box){(float)x, (float)y, (float)(x + w),
			(float)(y + h), 1, 0};
	}
}

START_TEST(test_a_crop_has_a_box_and_the_sides_of_ssd)
{
	struct box boxes[5];
	uint64_t state = 1;
	unsigned cropped = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t w = 50 + chance(&state, 600);
		uint32_t h = 50 + chance(&state, 600);
		uint32_t n = 1 + chance(&state, 5);
		struct crop crop, again;

		make_boxes(boxes, n, w, h, &state);
		crop_by_boxes(&config, seed, w, h, boxes, n, &crop);
		crop_by_boxes(&config, seed, w, h, boxes, n, &again);
		ck_assert_int_eq(memcmp(&crop, &again, sizeof(crop)), 0);
		ck_assert_uint_le(crop.box.x + crop.box.width, w);
		ck_assert_uint_le(crop.box.y + crop.box.height, h);
		if (is_whole(&crop, w, h))
			continue;
		cropped++;
		ck_assert_double_ge(best_iou(&crop.box, boxes, n), 0);
		ck_assert_uint_ge(crop.box.width, (uint32_t)(0.3 * w));
		ck_assert_uint_ge(crop.box.height, (uint32_t)(0.3 * h));
		ck_assert_uint_le(crop.box.width, 2 * crop.box.height);
		ck_assert_uint_le(crop.box.height, 2 * crop.box.width);
	}
	ck_assert_uint_gt(cropped, SEEDS / 2);
}
END_TEST

/* There is one box, in the centre, with half of the image's sides. */
START_TEST(test_thresholds_are_drawn_evenly)
{
	struct box box = {100, 100, 300, 300, 1, 0};
	unsigned whole = 0, above[10] = {0};

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct crop crop;
		double iou;

		crop_by_boxes(&config, seed, 400, 400, &box, 1, &crop);
		if (is_whole(&crop, 400, 400)) {
			whole++;
			continue;
		}
		iou = best_iou(&crop.box, &box, 1);
		for (int i = 0; i < 10; i++)
			above[i] += iou >= i / 10.0;
	}
	/* One of seven thresholds stands for the whole image. Draws for
	 * thresholds that are hardly ever reached end with it, too. */
	ck_assert_uint_gt(whole, SEEDS / 7 - SEEDS / 50);
	ck_assert_uint_lt(whole, SEEDS / 4);
	/* Two of seven draws reach .5, and some of them reach .9. */
	ck_assert_uint_gt(above[5], SEEDS * 2 / 7);
	ck_assert_uint_lt(above[9], SEEDS / 6);
	ck_assert_uint_gt(above[9], 0);
}
END_TEST

START_TEST(test_without_a_box_the_image_is_whole)
{
	struct box crowd = {0, 0, 100, 100, 1, BOX_CROWD};
	struct box nowhere = {-50, -50, -10, -10, 1, 0};
	struct box bad = {NAN, NAN, NAN, NAN, 1, 0};
	const struct box *one[] = {NULL, &crowd, &nowhere, &bad};

	for (uint64_t seed = 0; seed < 2000; seed++)
		for (unsigned i = 0; i < 4; i++) {
			struct crop crop;

			crop_by_boxes(&config, seed, 100, 100, one[i],
				one[i] != NULL, &crop);
			ck_assert(is_whole(&crop, 100, 100));
			ck_assert(crop.x == 0 && crop.width == 100);
		}
}
END_TEST

START_TEST(test_images_of_any_size_have_a_crop)
{
	uint64_t state = 3;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t w = 1 + chance(&state, 5);
		uint32_t h = 1 + chance(&state, seed % 3 ? 5 : 3000);
		struct crop crop;
		struct box box;

		make_boxes(&box, 1, w, h, &state);
		crop_by_boxes(&config, seed, w, h, &box, 1, &crop);
		ck_assert(crop.box.width > 0 && crop.box.height > 0);
		ck_assert_uint_le(crop.box.x + crop.box.width, w);
		ck_assert_uint_le(crop.box.y + crop.box.height, h);
	}
}
END_TEST

/* The other options of crops do not change the scale. */
START_TEST(test_the_scale_suits_the_smallest_crop)
{
	static const uint32_t sides[][2] = {
		{2400, 600}, {600, 2400}, {1000, 1000}, {3000, 2000}};
	uint64_t state = 4;

	config_init(&config, 128);
	config.augment = REFRAIN_AUGMENT_IOU;
	config.scale = SCALE_BY_IMAGE;
	config.area_min = _i ? 0.9F : 0.08F;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t w = sides[seed % 4][0], h = sides[seed % 4][1];
		struct box boxes[3];
		struct crop crop;
		unsigned denom;

		make_boxes(boxes, 3, w, h, &state);
		crop_by_boxes(&config, seed, w, h, boxes, 3, &crop);
		denom = crop_denom(&config, &crop, w, h);
		ck_assert_msg(denom == 1 ||
				(crop.box.width >= 128 * denom &&
					crop.box.height >= 128 * denom),
			"%u x %u at 1/%u", crop.box.width, crop.box.height,
			denom);
	}
}
END_TEST

/* Saved streams depend on these values. */
START_TEST(test_a_seed_means_the_same_boxed_crop_for_ever)
{
	static const struct box boxes[] = {
		{10, 20, 200, 220, 1, 0}, {300, 100, 480, 360, 2, 0}};
	static const struct {
		uint64_t seed;
		struct rect box;
	} want[] = {
		{1, {39, 18, 165, 296}},
		{3, {154, 144, 274, 179}},
		{4, {105, 87, 356, 223}},
		{7, {0, 0, 500, 375}},
		{11, {30, 32, 198, 262}},
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct crop crop;

		crop_by_boxes(&config, want[i].seed, 500, 375, boxes, 2, &crop);
		ck_assert_int_eq(
			memcmp(&crop.box, &want[i].box, sizeof(crop.box)), 0);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("crop-boxes");
	TCase *tc = case_with(s, "crops", setup, teardown);

	tcase_add_test(tc, test_a_crop_has_a_box_and_the_sides_of_ssd);
	tcase_add_test(tc, test_thresholds_are_drawn_evenly);
	tcase_add_test(tc, test_without_a_box_the_image_is_whole);
	tcase_add_test(tc, test_images_of_any_size_have_a_crop);
	tcase_add_loop_test(tc, test_the_scale_suits_the_smallest_crop, 0, 2);
	tcase_add_test(tc, test_a_seed_means_the_same_boxed_crop_for_ever);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
