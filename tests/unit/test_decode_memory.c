/* SPDX-License-Identifier: MIT */
/* Tests of the memory for decoding: a decoder never uses more than the check of
 * the header has announced, does not keep it, and allocates nothing of its own
 * for each image. This program counts its heap memory, which includes that of
 * libjpeg. One thread. */
#include <errno.h>
#include <malloc.h>

#include "common/base/cleanup.h"
#include "loader/image/decode.h"
#include "jpeg_fixture.h"
#include "png_fixture.h"
#include "suite.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
	printf("skipped: the heap is the sanitizer's\n");
	return 77;
}
#else

#define EXPORT __attribute__((visibility("default")))

/* The functions of the C library, which this program's malloc() calls. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void __libc_free(void *p);

EXPORT void *malloc(size_t bytes);
EXPORT void *calloc(size_t count, size_t bytes);
EXPORT void *realloc(void *p, size_t bytes);
EXPORT void free(void *p);

/* Volatile, because the compiler assumes that malloc() changes no variable. */
static volatile size_t held, peak, calls;

static void *count(void *p)
{
	calls++;
	held += p ? malloc_usable_size(p) : 0;
	peak = held > peak ? held : peak;
	return p;
}

void *malloc(size_t bytes)
{
	return count(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
	return count(__libc_calloc(n, bytes));
}

void *realloc(void *p, size_t bytes)
{
	held -= p ? malloc_usable_size(p) : 0;
	return count(__libc_realloc(p, bytes));
}

void free(void *p)
{
	held -= p ? malloc_usable_size(p) : 0;
	__libc_free(p);
}

/* Memory of the dynamic linker, which loads libraries for the first PNG. */
#define LOADED_BYTES ((size_t)64 << 10)

static const struct decode_limits limits = {
	.max_pixels = 200000000,
	.max_memory_bytes = (uint64_t)1 << 30,
	.max_scans = 100,
};

struct taken {
	uint64_t said;
	size_t peak, calls;
};

/* Decode a part. Returns the memory used in addition to `before`. */
static struct taken decode_part(struct decoder *d, size_t before,
	const struct jpeg_file *f, struct rect r, unsigned denom)
{
	CLEANUP_FREE uint8_t *memory = NULL;
	struct taken t = {0, 0, 0};
	struct error err = {""};
	struct image_info info;
	struct image out;
	int rc;

	ck_assert_int_eq(decode_probe(d, f->data, f->bytes, &info, NULL), 0);
	r.width = r.width ? r.width : info.width;
	r.height = r.height ? r.height : info.height;
	memory = malloc(decode_layout(&info, &r, denom, &out));
	ck_assert_ptr_nonnull(memory);
	out.data = memory;
	before += malloc_usable_size(memory);
	peak = held;
	calls = 0;
	rc = decode_region(d, f->data, f->bytes, &info, &out, &err);
	ck_assert_msg(rc == 0, "%s", err.msg);
	t.said = info.memory_bytes;
	t.peak = peak - before;
	t.calls = calls;
	return t;
}

static const struct rect whole = {0, 0, 0, 0};

/* Check that a decoder takes as much memory as the check of the header has
 * announced. */
static void check_kind(
	const struct jpeg_kind *kind, uint32_t width, uint32_t height)
{
	struct jpeg_file f = jpeg_make(kind, width, height, 7, 1, true);
	size_t before = held;
	struct decoder *d;

	ck_assert_int_eq(decoder_new(&d, &limits), 0);
	for (unsigned denom = 1; denom <= 8; denom *= 2) {
		struct taken t = decode_part(d, before, &f, whole, denom);

		ck_assert_msg(t.peak <= t.said,
			"%s, %u x %u: %zu bytes instead of %llu", kind->name,
			width, height, t.peak, (unsigned long long)t.said);
		ck_assert_uint_le(decoder_memory_bytes(d), held - before);
		ck_assert_uint_ge(decoder_memory_bytes(d) + 64, held - before);
	}
	decoder_free(d);
	ck_assert_uint_eq(held, before);
	free(f.data);
}

START_TEST(test_decoding_takes_no_more_than_the_probe_said)
{
	check_kind(&jpeg_kinds[_i], 1, 1);
	check_kind(&jpeg_kinds[_i], 301, 203);
	check_kind(&jpeg_kinds[_i], 3000, 40);
	check_kind(&jpeg_kinds[_i], 40, 3000);
}
END_TEST

/* libjpeg frees its memory after each image, and the decoder keeps none of its
 * own. */
START_TEST(test_images_after_the_first_take_no_memory_that_stays)
{
	struct jpeg_file f = jpeg_make(&jpeg_kinds[_i], 200, 150, 6, 1, true);
	struct decoder *d;
	struct taken t;
	size_t first, after;

	ck_assert_int_eq(decoder_new(&d, &limits), 0);
	t = decode_part(d, held, &f, whole, 1);
	first = t.calls;
	after = held;
	for (int i = 0; i < 20; i++) {
		t = decode_part(d, held, &f, whole, 1);
		ck_assert_uint_le(t.calls, first);
		ck_assert_uint_eq(held, after);
	}
	printf("%s: %zu allocations of libjpeg's an image\n",
		jpeg_kinds[_i].name, t.calls);
	decoder_free(d);
	free(f.data);
}
END_TEST

/* The file has a megabyte, and its pixels would take 300 MB. */
START_TEST(test_hundred_megapixels_are_decoded_in_little_memory)
{
	static const struct rect middle = {4000, 5000, 2000, 1000};
	struct jpeg_file f =
		jpeg_make(&jpeg_kinds[_i], 10000, 10000, 0, 1, false);
	size_t before = held;
	struct decoder *d;
	struct taken t;

	ck_assert_int_eq(decoder_new(&d, &limits), 0);
	t = decode_part(d, before, &f, middle, 2);
	ck_assert_uint_lt(t.peak, 4 << 20);
	ck_assert_uint_lt(t.said, 4 << 20);
	decoder_free(d);
	free(f.data);
}
END_TEST

START_TEST(test_hundred_megapixels_in_several_scans_can_be_refused)
{
	struct decode_limits little = limits;
	struct jpeg_file f =
		jpeg_make(&jpeg_kinds[21], 10000, 10000, 0, 1, false);
	struct error err = {""};
	struct image_info info;
	struct decoder *d;

	little.max_memory_bytes = (uint64_t)256 << 20;
	ck_assert_int_eq(decoder_new(&d, &little), 0);
	peak = held;
	ck_assert_int_eq(decode_probe(d, f.data, f.bytes, &info, &err), -E2BIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "in several scans"));
	ck_assert_uint_lt(peak - held, 65536);
	decoder_free(d);
	free(f.data);
}
END_TEST

START_TEST(test_a_png_takes_no_more_than_the_probe_said)
{
	static const uint32_t sides[][2] = {
		{1, 1}, {301, 203}, {3000, 40}, {40, 3000}};

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		struct png_file f =
			png_make(&png_kinds[_i], sides[i][0], sides[i][1], 1);
		struct jpeg_file as = {f.data, f.bytes};
		size_t before = held;
		struct decoder *d;

		ck_assert_int_eq(decoder_new(&d, &limits), 0);
		for (unsigned n = 0; n < 2; n++) {
			struct taken t = decode_part(d, before, &as, whole, 1);

			ck_assert_msg(t.peak <= t.said + LOADED_BYTES * !n,
				"%s: %zu bytes instead of %llu",
				png_kinds[_i].name, t.peak,
				(unsigned long long)t.said);
		}
		decoder_free(d);
		png_drop(&f);
	}
}
END_TEST

static Suite *memory_suite(void)
{
	Suite *s = suite_create("decode-memory");
	TCase *tc = case_of(s, "memory");

	tcase_add_loop_test(tc, test_decoding_takes_no_more_than_the_probe_said,
		0, JPEG_KINDS);
	tcase_add_loop_test(tc,
		test_images_after_the_first_take_no_memory_that_stays, 0,
		JPEG_KINDS);
	tcase_add_loop_test(
		tc, test_a_png_takes_no_more_than_the_probe_said, 0, PNG_KINDS);
	/* two kinds: 4:2:0 and grey */
	tcase_add_loop_test(
		tc, test_hundred_megapixels_are_decoded_in_little_memory, 2, 3);
	tcase_add_loop_test(tc,
		test_hundred_megapixels_are_decoded_in_little_memory, 13, 14);
	tcase_add_test(
		tc, test_hundred_megapixels_in_several_scans_can_be_refused);
	return s;
}

/* Is the malloc() of this program called, so that it can count? Valgrind
 * replaces it by its own malloc(). */
static bool counts(void)
{
	size_t before = calls;
	void *volatile p = malloc(1);

	free(p);
	return calls > before;
}

int main(void)
{
	if (!counts()) {
		printf("skipped: the heap is somebody else's\n");
		return 77;
	}

	return run_suite(memory_suite());
}
#endif
