/* SPDX-License-Identifier: MIT */
/*
 * Compares the resize of augmentation with its reference, with Pillow if that
 * is installed, and with itself without SIMD.
 */
#include <stdio.h>
#include <unistd.h>

#include "augment_fixture.h"
#include "loader/image/filter_impl.h"
#include "suite.h"

#define PYTHON "/usr/bin/python3"

struct histogram {
	size_t same, one, more;
};

static void compare(const uint8_t *got, const double *want, size_t count,
	struct histogram *h)
{
	for (size_t i = 0; i < count; i++) {
		int d = abs(got[i] - (int)floor(want[i] + 0.5));

		h->same += d == 0;
		h->one += d == 1;
		h->more += d > 1;
	}
}

static void against_reference(const struct image *in, const struct crop *crop,
	uint32_t width, uint32_t height, struct histogram *h)
{
	struct augment_config c;
	struct augmenter *a;
	size_t count = 3 * (size_t)width * height;
	uint8_t *got = malloc(count);
	double *want;

	config_init(&c, width);
	c.height = height;
	a = augmenter_make(&c, false);
	ck_assert_ptr_nonnull(got);
	ck_assert_int_eq(augment(a, in, crop, got), 0);
	want = reference_resize(in, crop, width, height);
	compare(got, want, count, h);
	augmenter_free(a);
	free(got);
	free(want);
}

static void expect_close(const struct histogram *h, const char *what)
{
	size_t all = h->same + h->one + h->more;

	printf("%s: %zu values, %.3f %% differ by 1, %zu by more\n", what, all,
		100.0 * (double)h->one / (double)all, h->more);
	ck_assert_uint_eq(h->more, 0);
	/* With a precision of twelve bits or more, few values are rounded in
	 * the other direction. */
	ck_assert_uint_lt(h->one * 20, all);
}

START_TEST(test_every_value_is_within_one_of_the_reference)
{
	struct histogram h = {0};
	uint64_t state = 1;

	for (unsigned t = 0; t < 400; t++) {
		uint32_t w = 1 + chance(&state, t % 2 ? 40 : 300);
		uint32_t height = 1 + chance(&state, t % 2 ? 40 : 300);
		unsigned denom = 1U << chance(&state, 4);
		struct image in;
		struct crop crop;

		image_make(&in, w, height, denom, t % 3, &state);
		crop_random(&crop, w, height, &state);
		against_reference(&in, &crop, 1 + chance(&state, 100),
			1 + chance(&state, 100), &h);
		free(in.data);
	}
	expect_close(&h, "random boxes");
}
END_TEST

START_TEST(test_training_crops_are_within_one_of_the_reference)
{
	struct histogram h = {0};
	uint64_t state = 2;

	for (unsigned t = 0; t < 12; t++) {
		struct augment_config c;
		struct image in;
		struct crop crop;

		config_init(&c, 224);
		image_make(&in, 500, 375, 1, t % 3, &state);
		crop_of(&c, t, 500, 375, &crop);
		against_reference(&in, &crop, 224, 224, &h);
		free(in.data);
	}
	expect_close(&h, "training crops of 500 x 375");
}
END_TEST

/* Returns the image that a decoder would return for the box alone. */
static struct image boxed(const struct image *whole, const struct rect *box)
{
	struct image in = *whole;

	in.data += box->y * in.stride_bytes + 3 * (size_t)box->x;
	in.x = box->x;
	in.y = box->y;
	in.width = box->width;
	in.height = box->height;
	return in;
}

START_TEST(test_evaluation_is_within_one_of_the_reference)
{
	struct histogram h = {0};
	uint64_t state = 3;

	for (unsigned t = 0; t < 60; t++) {
		uint32_t w = 1 + chance(&state, 400);
		uint32_t height = 1 + chance(&state, 400);
		struct augment_config c;
		struct augmenter *a;
		struct image whole, in;
		struct crop crop;
		uint8_t got[3 * 68 * 68];
		double *want;

		config_init(&c, 8 + chance(&state, 60));
		c.augment = REFRAIN_AUGMENT_EVAL;
		image_make(&whole, w, height, 1, t % 3, &state);
		crop_of(&c, 0, w, height, &crop);
		in = boxed(&whole, &crop.box);
		want = reference_resize(&whole, &crop, c.width, c.height);
		a = augmenter_make(&c, false);
		ck_assert_int_eq(augment(a, &in, &crop, got), 0);
		compare(got, want, augment_sample_bytes(&c), &h);
		augmenter_free(a);
		free(want);
		free(whole.data);
	}
	expect_close(&h, "evaluation");
}
END_TEST

START_TEST(test_very_large_factors_stay_precise)
{
	struct histogram h = {0};
	uint64_t state = 4;
	const uint32_t sizes[][4] = {{9001, 20, 3, 3}, {20, 9001, 7, 2},
		{4000, 300, 5, 1}, {2049, 2047, 2, 3}, {65535, 3, 1, 1}};

	for (unsigned t = 0; t < 15; t++) {
		const uint32_t *s = sizes[t / 3];
		struct image in;
		struct crop crop;

		image_make(&in, s[0], s[1], 1, t % 3, &state);
		crop_make(&crop, 0, 0, s[0], s[1]);
		against_reference(&in, &crop, s[2], s[3], &h);
		free(in.data);
	}
	printf("factors to 65535: %zu same, %zu by 1, %zu by more\n", h.same,
		h.one, h.more);
	ck_assert_uint_eq(h.more, 0);
}
END_TEST

START_TEST(test_weights_sum_to_one_and_fit_16_bits)
{
	struct filter f = {0};
	uint64_t state = 8;

	for (unsigned t = 0; t < 3000; t++) {
		uint32_t limit = 1 + chance(&state, t % 50 ? 900 : 65535);
		uint32_t count = 1 + chance(&state, t % 3 ? 300 : 4);
		double length = 0.125 + chance(&state, 8 * limit) / 8.0;
		struct extent extent = {0, length, limit};

		extent.start = chance(&state, 1000) * (limit - length) / 1000;
		ck_assert_int_eq(filter_make(&f, &extent, count, t % 2), 0);
		for (size_t i = 0; i < count; i++) {
			const int16_t *w = f.weights + 2 * f.pairs * i;
			int64_t sum = 0;

			ck_assert_uint_lt(f.start[i], limit);
			for (unsigned j = 0; j < 2 * f.pairs; j++) {
				ck_assert_int_ge(w[j], 0);
				ck_assert(w[j] == 0 || f.start[i] + j < limit);
				sum += w[j];
			}
			ck_assert_int_eq(sum, INT64_C(1) << f.bits);
		}
	}
	filter_release(&f);
}
END_TEST

START_TEST(test_flat_colours_stay_as_they_are)
{
	uint64_t state = 5;

	for (unsigned t = 0; t < 512; t++) {
		struct augment_config c;
		struct augmenter *a;
		struct image in;
		struct crop crop;
		uint8_t out[3 * 19 * 19];

		config_init(&c, 19);
		image_make(&in, 1 + t * 3 / 2, 40, 1, 0, &state);
		memset(in.data, (int)(t / 2), 3 * (size_t)in.width * 40);
		crop_make(&crop, 0, 0, in.width, 40);
		a = augmenter_make(&c, t % 2);
		ck_assert_int_eq(augment(a, &in, &crop, out), 0);
		for (size_t i = 0; i < sizeof(out); i++)
			ck_assert_uint_eq(out[i], t / 2);
		augmenter_free(a);
		free(in.data);
	}
}
END_TEST

/* Check that both samples are equal, and that nothing around them was written.
 */
static void expect_same_samples(const struct augment_config *c,
	const struct image *in, const struct crop *crop, unsigned offset)
{
	size_t n = augment_sample_bytes(c);
	uint8_t *out[2];

	for (unsigned plain = 0; plain < 2; plain++) {
		struct augmenter *a = augmenter_make(c, plain);

		out[plain] = malloc(n + 128);
		ck_assert_ptr_nonnull(out[plain]);
		memset(out[plain], 0xa5, n + 128);
		ck_assert_int_eq(augment(a, in, crop, out[plain] + offset), 0);
		for (size_t i = 0; i < n + 128; i++)
			if (i < offset || i >= n + offset)
				ck_assert_uint_eq(out[plain][i], 0xa5);
		augmenter_free(a);
	}
	ck_assert_int_eq(memcmp(out[0], out[1], n + 128), 0);
	free(out[0]);
	free(out[1]);
}

START_TEST(test_simd_gives_the_same_bytes_as_plain_c)
{
	uint64_t state = 6;

	for (unsigned t = 0; t < 4000; t++) {
		uint32_t most = t % 8 ? 80 : 600;
		uint32_t w = 1 + chance(&state, most);
		uint32_t height = 1 + chance(&state, most);
		struct augment_config c;
		struct image in;
		struct crop crop;

		config_init(&c, 1 + chance(&state, t % 8 ? 70 : 240));
		c.height = 1 + chance(&state, 70);
		c.type = (int)chance(&state, 3);
		c.layout = (int)chance(&state, 2);
		c.normalise = chance(&state, 4);
		image_make(&in, w, height, 1U << chance(&state, 4),
			chance(&state, 2), &state);
		crop_random(&crop, w, height, &state);
		if (t % 7 == 0)
			crop.jitter[chance(&state, 3)] = 1.3F;
		expect_same_samples(&c, &in, &crop, chance(&state, 65));
		free(in.data);
	}
}
END_TEST

/* Write the input of the script: size of the image, the box, the resized size,
 * the offset of the crop after it, and the pixels. */
static const char script[] =
	"import sys, struct\n"
	"from PIL import Image\n"
	"f, o = open(sys.argv[1], 'rb'), open(sys.argv[2], 'wb')\n"
	"while True:\n"
	"    h = f.read(48)\n"
	"    if not h: break\n"
	"    w, t, x, y, bw, bh, rw, rh, cx, cy, cw, ch = "
	"struct.unpack('<12I', h)\n"
	"    i = Image.frombytes('RGB', (w, t), f.read(3 * w * t))\n"
	"    i = i.crop((x, y, x + bw, y + bh))\n"
	"    i = i.resize((rw, rh), Image.BILINEAR)\n"
	"    i = i.crop((cx, cy, cx + cw, cy + ch))\n"
	"    o.write(i.tobytes())\n";

struct pillow {
	char in[32], out[32], script[32];
	FILE *f;
};

static FILE *temporary(char path[32])
{
	int fd;

	strcpy(path, "/tmp/refrain-pillow.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	return fdopen(fd, "w+");
}

static bool pillow_is_there(void)
{
	return system(PYTHON " -c 'import PIL.Image' 2>/dev/null") == 0;
}

static void pillow_open(struct pillow *p)
{
	FILE *f = temporary(p->script);

	ck_assert_int_ge(fputs(script, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(fclose(temporary(p->out)), 0);
	p->f = temporary(p->in);
}

static void pillow_ask(
	struct pillow *p, const struct image *in, const uint32_t *numbers)
{
	const uint32_t size[2] = {in->width, in->height};

	ck_assert_uint_eq(fwrite(size, 4, 2, p->f), 2);
	ck_assert_uint_eq(fwrite(numbers, 4, 10, p->f), 10);
	ck_assert_uint_eq(fwrite(in->data, in->stride_bytes, in->height, p->f),
		in->height);
}

/* Run the script. Returns its answers. */
static FILE *pillow_answers(struct pillow *p)
{
	char command[160];

	ck_assert_int_eq(fclose(p->f), 0);
	(void)snprintf(command, sizeof(command), "%s %s %s %s", PYTHON,
		p->script, p->in, p->out);
	ck_assert_int_eq(system(command), 0);
	return fopen(p->out, "r");
}

static void pillow_close(struct pillow *p, FILE *answers)
{
	(void)fclose(answers); /* nothing was written to it */
	/* if this fails, the file that stays does no harm */
	(void)unlink(p->in);
	(void)unlink(p->out);
	(void)unlink(p->script);
}

#define PILLOW_CASES 120

/* Half of the cases use crops of boxes, half the crop of evaluation. */
static void pillow_case(unsigned t, uint64_t *state, struct augment_config *c,
	struct image *in, struct crop *crop, uint32_t numbers[10])
{
	uint32_t w = 1 + chance(state, 400), h = 1 + chance(state, 400);

	config_init(c, 7 + chance(state, 120));
	image_make(in, w, h, 1, t % 3, state);
	if (t % 2) {
		uint32_t made[2] = {c->width * 8 / 7, c->width * 8 / 7};
		uint32_t at[2];

		c->augment = REFRAIN_AUGMENT_EVAL;
		crop_of(c, 0, w, h, crop);
		if (w < h)
			made[1] = made[0] * h / w;
		else
			made[0] = made[1] * w / h;
		for (unsigned i = 0; i < 2; i++)
			at[i] = (uint32_t)nearbyint((made[i] - c->width) / 2.0);
		memcpy(numbers,
			(uint32_t[]){0, 0, w, h, made[0], made[1], at[0], at[1],
				c->width, c->width},
			40);
		return;
	}
	crop_random(crop, w, h, state);
	crop->flip = false;
	c->height = 1 + chance(state, 120);
	memcpy(numbers,
		(uint32_t[]){crop->box.x, crop->box.y, crop->box.width,
			crop->box.height, c->width, c->height, 0, 0, c->width,
			c->height},
		40);
}

START_TEST(test_values_are_within_one_of_pillow)
{
	struct histogram h = {0};
	struct pillow p;
	uint32_t numbers[10];
	struct augment_config c;
	struct image in;
	struct crop crop;
	uint64_t state = 7;
	FILE *answers;

	if (!pillow_is_there()) {
		printf("no Pillow for " PYTHON ": not compared\n");
		return;
	}
	pillow_open(&p);
	for (unsigned t = 0; t < PILLOW_CASES; t++) {
		pillow_case(t, &state, &c, &in, &crop, numbers);
		pillow_ask(&p, &in, numbers);
		free(in.data);
	}
	answers = pillow_answers(&p);
	ck_assert_ptr_nonnull(answers);
	state = 7;
	for (unsigned t = 0; t < PILLOW_CASES; t++) {
		struct augmenter *a;
		size_t n;
		uint8_t *got, *theirs;
		double *want;

		pillow_case(t, &state, &c, &in, &crop, numbers);
		n = augment_sample_bytes(&c);
		got = malloc(n);
		theirs = malloc(n);
		want = malloc(n * sizeof(*want));
		ck_assert(got && theirs && want);
		a = augmenter_make(&c, false);
		ck_assert_int_eq(augment(a, &in, &crop, got), 0);
		ck_assert_uint_eq(fread(theirs, 1, n, answers), n);
		for (size_t i = 0; i < n; i++)
			want[i] = theirs[i];
		compare(got, want, n, &h);
		augmenter_free(a);
		free(got);
		free(theirs);
		free(want);
		free(in.data);
	}
	pillow_close(&p, answers);
	printf("Pillow: %zu same, %zu by 1, %zu by more\n", h.same, h.one,
		h.more);
	ck_assert_uint_eq(h.more, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("resize");
	TCase *tcase = case_of(suite, "resize");

	tcase_add_test(tcase, test_every_value_is_within_one_of_the_reference);
	tcase_add_test(
		tcase, test_training_crops_are_within_one_of_the_reference);
	tcase_add_test(tcase, test_evaluation_is_within_one_of_the_reference);
	tcase_add_test(tcase, test_very_large_factors_stay_precise);
	tcase_add_test(tcase, test_weights_sum_to_one_and_fit_16_bits);
	tcase_add_test(tcase, test_flat_colours_stay_as_they_are);
	tcase_add_test(tcase, test_simd_gives_the_same_bytes_as_plain_c);
	tcase_add_test(tcase, test_values_are_within_one_of_pillow);
	return run_suite(suite);
}
