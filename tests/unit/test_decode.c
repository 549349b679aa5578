/* SPDX-License-Identifier: MIT */
/*
 * Tests of JPEG decoding by region: for every kind of file, scale, orientation
 * and region, the pixels are those of a full decode.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "loader/image/decode.h"
#include "jpeg_fixture.h"
#include "suite.h"

#define CROPS 10 /* number of regions of each file, at each scale */
#define GUARD 0xa5
#define GUARD_BYTES ((size_t)64)

static const struct decode_limits limits = {
	.max_pixels = 200000000,
	.max_memory_bytes = (uint64_t)1 << 30,
	.max_scans = 100,
};

static struct decoder *decoder;

static void setup(void)
{
	ck_assert_int_eq(decoder_new(&decoder, &limits), 0);
}

static void teardown(void)
{
	decoder_free(decoder);
}

/* Find the place of the stored pixel (x, y) in the upright image, as EXIF
 * defines it. */
static void upright_of(unsigned orientation, const struct jpeg_pixels *p,
	uint32_t x, uint32_t y, uint32_t *ux, uint32_t *uy)
{
	uint32_t last_x = p->width - 1, last_y = p->height - 1;
	const uint32_t table[8][2] = {
		{x, y},			  /* top, left */
		{last_x - x, y},	  /* top, right */
		{last_x - x, last_y - y}, /* bottom, right */
		{x, last_y - y},	  /* bottom, left */
		{y, x},			  /* left, top */
		{last_y - y, x},	  /* right, top */
		{last_y - y, last_x - x}, /* right, bottom */
		{y, last_x - x},	  /* left, bottom */
	};

	*ux = table[orientation - 1][0];
	*uy = table[orientation - 1][1];
}

static void rgb_of(
	const struct jpeg_pixels *p, const uint8_t *from, uint8_t rgb[3])
{
	for (int c = 0; c < 3; c++) {
		double ink, white;

		if (p->channels == 3) {
			rgb[c] = from[c];
			continue;
		}
		ink = p->adobe ? 255 - from[c] : from[c];
		white = p->adobe ? from[3] : 255 - from[3];
		rgb[c] = (uint8_t)((255 - ink) * white / 255 + 0.5);
	}
}

/* Decode the whole image to upright RGB. */
static uint8_t *upright(const struct jpeg_pixels *p, unsigned orientation)
{
	uint32_t width = orientation >= 5 ? p->height : p->width, x, y;
	uint8_t *out = malloc((size_t)p->width * p->height * 3);

	ck_assert_ptr_nonnull(out);
	for (uint32_t sy = 0; sy < p->height; sy++)
		for (uint32_t sx = 0; sx < p->width; sx++) {
			upright_of(orientation, p, sx, sy, &x, &y);
			rgb_of(p,
				p->data +
					((size_t)sy * p->width + sx) *
						p->channels,
				out + ((size_t)y * width + x) * 3);
		}
	return out;
}

static uint8_t *alloc_guarded(size_t bytes)
{
	uint8_t *p = aligned_alloc(64, (bytes + 2 * GUARD_BYTES) / 64 * 64);

	ck_assert_ptr_nonnull(p);
	memset(p, GUARD, (bytes + 2 * GUARD_BYTES) / 64 * 64);
	return p;
}

static void check_guard(const uint8_t *data, size_t bytes)
{
	for (size_t i = bytes; i < (bytes + 2 * GUARD_BYTES) / 64 * 64; i++)
		ck_assert_int_eq(data[i], GUARD);
}

/* Check that the decoded region has all scaled pixels that it must have, and
 * that they are right. */
static void check_pixels(const char *name, const struct image *out,
	const uint8_t *all, const struct rect *r)
{
	uint32_t to_x = (r->x + r->width + out->denom - 1) / out->denom;
	uint32_t to_y = (r->y + r->height + out->denom - 1) / out->denom;
	size_t bytes = (to_x - r->x / out->denom) * 3;

	ck_assert_msg(out->x <= r->x / out->denom &&
			out->x + out->width >= to_x &&
			out->y <= r->y / out->denom &&
			out->y + out->height >= to_y,
		"%s: does not hold the region", name);
	for (uint32_t y = r->y / out->denom; y < to_y; y++) {
		uint32_t x = r->x / out->denom;
		const uint8_t *got = out->data +
			(y - out->y) * out->stride_bytes + (x - out->x) * 3;
		const uint8_t *want =
			all + ((size_t)y * out->full_width + x) * 3;

		ck_assert_msg(memcmp(got, want, bytes) == 0,
			"%s: row %u of %u x %u + %u + %u at 1/%u differs", name,
			y, r->width, r->height, r->x, r->y, out->denom);
	}
}

static struct rect draw_rect(uint64_t *state, uint32_t width, uint32_t height)
{
	struct rect r;

	r.width = 1 + jpeg_below(state, width);
	r.height = 1 + jpeg_below(state, height);
	/* Small regions are frequent. */
	if (jpeg_below(state, 3) == 0)
		r.width = 1 + r.width / 16;
	if (jpeg_below(state, 3) == 0)
		r.height = 1 + r.height / 16;
	r.x = jpeg_below(state, width - r.width + 1);
	r.y = jpeg_below(state, height - r.height + 1);
	return r;
}

static void check_region(const char *name, const struct jpeg_file *f,
	const struct image_info *info, const uint8_t *all, const struct rect *r,
	unsigned denom)
{
	CLEANUP_FREE uint8_t *data = NULL;
	struct error err = {""};
	struct image out;
	size_t bytes = decode_layout(info, r, denom, &out);

	ck_assert_uint_eq(out.denom, denom);
	ck_assert_uint_ge(out.stride_bytes, out.width * 3);
	ck_assert_uint_eq(bytes, out.stride_bytes * out.height);
	out.data = data = alloc_guarded(bytes);
	ck_assert_msg(decode_region(decoder, f->data, f->bytes, info, &out,
			      &err) == 0,
		"%s: %s", name, err.msg);
	check_pixels(name, &out, all, r);
	check_guard(data, bytes);
}

static void check_scale(const char *name, const struct jpeg_file *f,
	const struct image_info *info, unsigned denom, unsigned crops,
	uint64_t *state)
{
	struct jpeg_pixels p = jpeg_decode_all(f->data, f->bytes, denom);
	CLEANUP_FREE uint8_t *all = upright(&p, info->orientation);
	struct rect whole = {0, 0, info->width, info->height};

	check_region(name, f, info, all, &whole, denom);
	for (unsigned i = 0; i < crops; i++) {
		struct rect r = draw_rect(state, info->width, info->height);

		check_region(name, f, info, all, &r, denom);
	}
	free(p.data);
}

static void check_file(const char *name, const struct jpeg_file *f,
	unsigned orientation, unsigned crops, uint64_t *state)
{
	struct error err = {""};
	struct image_info info;

	ck_assert_msg(
		decode_probe(decoder, f->data, f->bytes, &info, &err) == 0,
		"%s: %s", name, err.msg);
	ck_assert_uint_eq(info.orientation, orientation);
	for (unsigned denom = 1; denom <= 8; denom *= 2)
		check_scale(name, f, &info, denom, crops, state);
}

static void check_made(const struct jpeg_kind *kind, uint32_t width,
	uint32_t height, unsigned orientation, unsigned crops, uint64_t *state)
{
	struct jpeg_file f = jpeg_make(
		kind, width, height, orientation, jpeg_draw(state), true);

	check_file(kind->name, &f, orientation ? orientation : 1, crops, state);
	free(f.data);
}

START_TEST(test_region_is_that_of_the_whole_image)
{
	uint64_t state = 11 + (uint64_t)_i;

	for (unsigned i = 0; i < 3; i++)
		check_made(&jpeg_kinds[_i], 1 + jpeg_below(&state, 300),
			1 + jpeg_below(&state, 300), 0, CROPS, &state);
}
END_TEST

START_TEST(test_tiny_images_are_decoded)
{
	uint64_t state = 22 + (uint64_t)_i;

	check_made(&jpeg_kinds[_i], 1, 1, 0, CROPS, &state);
	check_made(&jpeg_kinds[_i], 1, 40, 0, CROPS, &state);
	check_made(&jpeg_kinds[_i], 40, 1, 0, CROPS, &state);
	for (unsigned i = 0; i < 10; i++)
		check_made(&jpeg_kinds[_i], 1 + jpeg_below(&state, 40),
			1 + jpeg_below(&state, 40), 0, CROPS, &state);
}
END_TEST

START_TEST(test_every_orientation_is_turned_upright)
{
	uint64_t state = 33 + (uint64_t)_i;

	for (unsigned o = 1; o <= 8; o++)
		check_made(&jpeg_kinds[_i], 1 + jpeg_below(&state, 120),
			1 + jpeg_below(&state, 120), o, CROPS, &state);
}
END_TEST

START_TEST(test_large_image_is_decoded)
{
	uint64_t state = 44;

	check_made(&jpeg_kinds[2], 2500, 2001, 6, 1, &state);
}
END_TEST

START_TEST(test_wide_and_tall_images_are_decoded)
{
	uint64_t state = 55;

	check_made(&jpeg_kinds[2], 65500, 3, 0, 1, &state);
	check_made(&jpeg_kinds[2], 3, 65500, 0, 1, &state);
	check_made(&jpeg_kinds[0], 65500, 1, 8, 1, &state);
}
END_TEST

/* libjpeg upsamples in another way in narrow crops, so test all of these. */
START_TEST(test_every_small_region_of_a_small_image_is_right)
{
	static const uint8_t kinds[] = {1, 2, 3, 4, 12, 21};
	const struct jpeg_kind *kind = &jpeg_kinds[kinds[_i]];
	struct jpeg_file f = jpeg_make(kind, 53, 37, 0, 5, true);
	struct jpeg_pixels p = jpeg_decode_all(f.data, f.bytes, 1);
	CLEANUP_FREE uint8_t *all = upright(&p, 1);
	struct image_info info;

	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, NULL), 0);
	for (uint32_t x = 0; x < 53; x++)
		for (uint32_t width = 1; width < 6 && x + width <= 53; width++)
			for (uint32_t y = x % 7; y < 37; y += 7) {
				struct rect r = {x, y, width,
					37 - y < width ? 37 - y : width};

				check_region(kind->name, &f, &info, all, &r, 1);
			}
	free(p.data);
	free(f.data);
}
END_TEST

START_TEST(test_header_tells_what_the_image_is)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[21], 70, 50, 6, 1, true);
	struct image_info info;

	ck_assert_int_eq(
		decode_probe(decoder, f.data, f.bytes, &info, NULL), 0);
	ck_assert_uint_eq(info.width, 50);
	ck_assert_uint_eq(info.height, 70);
	ck_assert_uint_eq(info.orientation, 6);
	ck_assert_uint_eq(info.components, 3);
	ck_assert_uint_eq(info.mcu_width, 16);
	free(f.data);
}
END_TEST

START_TEST(test_orientation_can_be_ignored)
{
	struct decode_limits ignoring = limits;
	struct jpeg_file f = jpeg_make(&jpeg_kinds[2], 70, 50, 6, 1, true);
	struct decoder *other;
	struct image_info info;

	ignoring.ignore_orientation = true;
	ck_assert_int_eq(decoder_new(&other, &ignoring), 0);
	ck_assert_int_eq(decode_probe(other, f.data, f.bytes, &info, NULL), 0);
	ck_assert_uint_eq(info.width, 70);
	ck_assert_uint_eq(info.height, 50);
	ck_assert_uint_eq(info.orientation, 1);
	decoder_free(other);
	free(f.data);
}
END_TEST

/* -- Decoders from elsewhere ----------------------------------------------- */

static void write_file(const char *path, const struct jpeg_file *f)
{
	CLEANUP_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, f->data, f->bytes), (ssize_t)f->bytes);
}

/* Returns the output of `djpeg` for a file; NULL if djpeg is not installed. */
static uint8_t *ask_djpeg(
	const char *path, unsigned denom, uint32_t *width, uint32_t *height)
{
	char command[256];
	uint8_t *pixels;
	unsigned max;
	FILE *f;

	(void)snprintf(command, sizeof(command),
		"djpeg -rgb -scale 1/%u -pnm %s", denom, path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "P6 %u %u %u", width, height, &max), 3);
	ck_assert_int_eq(fgetc(f), '\n');
	pixels = malloc((size_t)*width * *height * 3);
	ck_assert_uint_eq(
		fread(pixels, (size_t)*width * 3, *height, f), *height);
	ck_assert_int_eq(pclose(f), 0);
	return pixels;
}

static void check_against_djpeg(
	const char *path, const struct jpeg_file *f, const char *name)
{
	uint64_t state = 7;
	struct image_info info;

	ck_assert_int_eq(
		decode_probe(decoder, f->data, f->bytes, &info, NULL), 0);
	for (unsigned denom = 1; denom <= 8; denom *= 2) {
		uint32_t width, height;
		CLEANUP_FREE uint8_t *all =
			ask_djpeg(path, denom, &width, &height);

		ck_assert_uint_eq(width, (info.width + denom - 1) / denom);
		for (unsigned i = 0; i < 20; i++) {
			struct rect r =
				draw_rect(&state, info.width, info.height);

			check_region(name, f, &info, all, &r, denom);
		}
	}
}

START_TEST(test_pixels_are_those_of_djpeg)
{
	const struct jpeg_kind *kind = &jpeg_kinds[_i];
	char path[] = "test_decode.XXXXXX";
	struct jpeg_file f;
	int fd;

	if (system("djpeg -version >/dev/null 2>&1") != 0) {
		printf("%s: skipped: no djpeg\n", kind->name);
		return;
	}
	if (kind->space == JCS_CMYK || kind->space == JCS_YCCK)
		return; /* djpeg does not convert this kind to RGB */
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	f = jpeg_make(kind, 157, 101, 0, 3, true);
	write_file(path, &f);
	check_against_djpeg(path, &f, kind->name);
	(void)unlink(path);
	free(f.data);
}
END_TEST

/* -- Files from cameras ---------------------------------------------------- */

static size_t number_at(const char *octal)
{
	return strtoul(octal, NULL, 8);
}

/* Get the next file of a tar; *at is the offset of its header, and moves to the
 * next one. */
static bool next_member(
	const uint8_t *tar, size_t bytes, size_t *at, struct jpeg_file *f)
{
	while (*at + 512 <= bytes && tar[*at] != 0) {
		const char *header = (const char *)tar + *at;
		size_t size = number_at(header + 124);
		bool regular = header[156] == '0' || header[156] == 0;

		*at += 512;
		f->data = (uint8_t *)(uintptr_t)tar + *at;
		f->bytes = size;
		*at += (size + 511) / 512 * 512;
		if (regular && *at <= bytes)
			return true;
	}
	return false;
}

static uint8_t *read_all(const char *path, size_t *bytes)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *data;
	size_t got = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	*bytes = (size_t)st.st_size;
	data = malloc(*bytes);
	ck_assert_ptr_nonnull(data);
	while (got < *bytes) {
		ssize_t n = read(fd, data + got, *bytes - got);

		ck_assert_int_gt(n, 0);
		got += (size_t)n;
	}
	return data;
}

static uint8_t *read_test_data(size_t *bytes)
{
	const char *dir = getenv("REFRAIN_TEST_DATA");
	const char *srcdir = getenv("srcdir");
	char path[4096];

	if (dir)
		(void)snprintf(path, sizeof(path), "%s/imagenet-500.tar", dir);
	else
		(void)snprintf(path, sizeof(path),
			"%s/../shared/data/imagenet-500.tar",
			srcdir ? srcdir : ".");
	return read_all(path, bytes);
}

/* Decode one image in nine, because all of them would take a minute. */
START_TEST(test_real_images_are_decoded_by_region)
{
	CLEANUP_FREE uint8_t *tar = NULL;
	size_t bytes = 0, at = 0;
	uint64_t state = 66;
	struct jpeg_file f;
	unsigned n = 0;

	tar = read_test_data(&bytes);
	if (!tar) {
		printf("skipped: no imagenet-500.tar\n");
		return;
	}
	while (next_member(tar, bytes, &at, &f)) {
		struct image_info info;
		struct error err = {""};

		ck_assert_msg(decode_probe(decoder, f.data, f.bytes, &info,
				      &err) == 0,
			"image %u: %s", n, err.msg);
		if (n++ % 9 == 0)
			check_file(
				"a real one", &f, info.orientation, 3, &state);
	}
	ck_assert_uint_ge(n, 100);
}
END_TEST

static Suite *decode_suite(void)
{
	Suite *s = suite_create("decode");
	TCase *tc = case_with(s, "region", setup, teardown);

	tcase_add_loop_test(
		tc, test_region_is_that_of_the_whole_image, 0, JPEG_KINDS);
	tcase_add_loop_test(tc, test_tiny_images_are_decoded, 0, JPEG_KINDS);
	tcase_add_test(tc, test_large_image_is_decoded);
	tcase_add_test(tc, test_wide_and_tall_images_are_decoded);
	tcase_add_loop_test(
		tc, test_every_small_region_of_a_small_image_is_right, 0, 6);
	tc = case_with(s, "orientation", setup, teardown);
	tcase_add_loop_test(
		tc, test_every_orientation_is_turned_upright, 0, JPEG_KINDS);
	tcase_add_test(tc, test_header_tells_what_the_image_is);
	tcase_add_test(tc, test_orientation_can_be_ignored);
	tc = case_with(s, "elsewhere", setup, teardown);
	tcase_add_loop_test(tc, test_pixels_are_those_of_djpeg, 0, JPEG_KINDS);
	tcase_add_test(tc, test_real_images_are_decoded_by_region);
	return s;
}

int main(void)
{
	return run_suite(decode_suite());
}
