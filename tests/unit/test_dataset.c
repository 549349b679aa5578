/* SPDX-License-Identifier: MIT */
/* Tests of `refrain make-dataset`: its files, and its failures. */
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "../../tools/make_dataset.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "suite.h"

static char top[64]; /* directory of this test */

static int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void setup(void)
{
	(void)snprintf(top, sizeof(top), "test_dataset.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
	/* The output of the command goes to a file, which the tests check. */
	ck_assert_ptr_nonnull(freopen("stderr", "w", stderr));
	ck_assert_ptr_nonnull(freopen("stdout", "w", stdout));
}

static void teardown(void)
{
	ck_assert_int_eq(chdir(".."), 0);
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Run the command with a NULL-terminated list of words. */
static int run(const char *const *words)
{
	const char *argv[32] = {"make-dataset"};
	int argc = 1;

	for (; words[argc - 1]; argc++)
		argv[argc] = words[argc - 1];
	return cmd_make_dataset(argc, (char **)(uintptr_t)argv);
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static unsigned char *slurp(const char *path, size_t *bytes)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char *data;
	struct stat st;

	ck_assert_msg(fd >= 0, "no %s", path);
	ck_assert_int_eq(fstat(fd, &st), 0);
	data = calloc(1, (size_t)st.st_size + 1);
	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(read(fd, data, (size_t)st.st_size), st.st_size);
	*bytes = (size_t)st.st_size;
	return data;
}

static unsigned char *slurp_image(
	const char *dir, unsigned label, unsigned number, size_t *bytes)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/class_%03u/%08u.jpg", dir, label,
		number);
	return slurp(path, bytes);
}

static void expect_message(const char *part)
{
	CLEANUP_FREE unsigned char *text = NULL;
	size_t bytes;

	(void)fflush(stderr);
	text = slurp("stderr", &bytes);
	ck_assert_msg(strstr((char *)text, part), "no '%s' in '%s'", part,
		(char *)text);
	ck_assert_int_eq(strncmp((char *)text, "refrain: ", 9), 0);
	/* The message is one line. */
	ck_assert_ptr_eq(strchr((char *)text, '\n'), (char *)text + bytes - 1);
}

static uint64_t hash_of(const char *dir, unsigned classes, unsigned images)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < images; i++) {
		CLEANUP_FREE unsigned char *data = NULL;
		size_t bytes;

		data = slurp_image(dir, i % classes, i / classes + 1, &bytes);
		h = hash64(data, bytes, h);
	}
	return h;
}

START_TEST(test_dataset_of_one_seed_is_the_same_at_any_thread_count)
{
	ck_assert_int_eq(RUN("a", "--classes=3", "--images=20", "--seed=7",
				 "--threads=1"),
		0);
	ck_assert_int_eq(RUN("b", "--classes=3", "--images=20", "--seed=7",
				 "--threads=5"),
		0);
	ck_assert(hash_of("a", 3, 20) == hash_of("b", 3, 20));
}
END_TEST

START_TEST(test_dataset_of_another_seed_has_other_bytes)
{
	ck_assert_int_eq(RUN("a", "--classes=2", "--images=4", "--seed=7"), 0);
	ck_assert_int_eq(RUN("b", "--classes=2", "--images=4", "--seed=8"), 0);
	ck_assert(hash_of("a", 2, 4) != hash_of("b", 2, 4));
}
END_TEST

static void decode(const unsigned char *data, size_t bytes, uint8_t **rgb,
	int *width, int *height)
{
	tjhandle jpeg = tjInitDecompress();
	int sampling, colours;

	ck_assert_int_eq(tjDecompressHeader3(jpeg, data, bytes, width, height,
				 &sampling, &colours),
		0);
	*rgb = malloc((size_t)*width * (size_t)*height * 3);
	ck_assert_ptr_nonnull(*rgb);
	ck_assert_int_eq(tjDecompress2(jpeg, data, bytes, *rgb, *width, 0,
				 *height, TJPF_RGB, TJFLAG_STOPONWARNING),
		0);
	ck_assert_int_eq(tjDestroy(jpeg), 0);
}

static unsigned nfiles;

static int count_file(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)ftw;
	nfiles += type == FTW_F;
	return 0;
}

START_TEST(test_dataset_has_the_images_asked_for_and_they_decode)
{
	ck_assert_int_eq(
		RUN("d", "--classes", "4", "--images", "10", "--size", "70x50"),
		0);
	for (unsigned i = 0; i < 10; i++) {
		CLEANUP_FREE unsigned char *data = NULL;
		CLEANUP_FREE uint8_t *rgb = NULL;
		int width, height;
		size_t bytes;

		data = slurp_image("d", i % 4, i / 4 + 1, &bytes);
		decode(data, bytes, &rgb, &width, &height);
		ck_assert_int_eq(width, 70);
		ck_assert_int_eq(height, 50);
	}
	nfiles = 0;
	ck_assert_int_eq(nftw("d", count_file, 16, FTW_PHYS), 0);
	ck_assert_uint_eq(nfiles, 10);
}
END_TEST

START_TEST(test_dataset_sizes_are_spread_around_110_kilobytes)
{
	size_t sum = 0, least = SIZE_MAX, most = 0;
	unsigned n = 200;

	ck_assert_int_eq(RUN("d", "--classes=2", "--images=200"), 0);
	for (unsigned i = 0; i < n; i++) {
		size_t bytes;

		free(slurp_image("d", i % 2, i / 2 + 1, &bytes));
		sum += bytes;
		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	ck_assert_uint_gt(sum / n, 90000);
	ck_assert_uint_lt(sum / n, 130000);
	ck_assert_uint_lt(least, 40000);
	ck_assert_uint_gt(most, 250000);
}
END_TEST

/* -- Can the classes be told apart? Nearest mean of what is seen. -- */

#define CLASSES 5
#define TRAIN 24
#define TEST 16
#define BLOCKS 4
#define SEEN_MAX (BLOCKS * BLOCKS * 3)

/* Compute the means of the blocks of a picture without its total mean: 48
 * numbers. */
static int see_blocks(const uint8_t *rgb, int w, int h, double *seen)
{
	double count[SEEN_MAX] = {0}, mean[3] = {0};

	memset(seen, 0, SEEN_MAX * sizeof(*seen));
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			for (int c = 0; c < 3; c++) {
				int b = y * BLOCKS / h * BLOCKS +
					x * BLOCKS / w;

				seen[b * 3 + c] += rgb[(y * w + x) * 3 + c];
				count[b * 3 + c]++;
			}
	for (int i = 0; i < SEEN_MAX; i++) {
		seen[i] /= count[i];
		mean[i % 3] += seen[i] / (BLOCKS * BLOCKS);
	}
	for (int i = 0; i < SEEN_MAX; i++)
		seen[i] -= mean[i % 3];
	return SEEN_MAX;
}

/* Compute the mean colour of a picture: 3 numbers. */
static int see_colour(const uint8_t *rgb, int w, int h, double *seen)
{
	memset(seen, 0, 3 * sizeof(*seen));
	for (int i = 0; i < w * h * 3; i++)
		seen[i % 3] += rgb[i] / (double)(w * h);
	return 3;
}

typedef int see_fn(const uint8_t *rgb, int w, int h, double *seen);

static int look_at(see_fn *see, unsigned label, unsigned number, double *seen)
{
	CLEANUP_FREE unsigned char *data = NULL;
	CLEANUP_FREE uint8_t *rgb = NULL;
	int width, height;
	size_t bytes;

	data = slurp_image("d", label, number, &bytes);
	decode(data, bytes, &rgb, &width, &height);
	return see(rgb, width, height, seen);
}

static unsigned nearest(
	double centre[CLASSES][SEEN_MAX], const double *seen, int n)
{
	double best = INFINITY;
	unsigned at = 0;

	for (unsigned label = 0; label < CLASSES; label++) {
		double d = 0;

		for (int i = 0; i < n; i++)
			d += pow(centre[label][i] - seen[i], 2);
		if (d < best) {
			best = d;
			at = label;
		}
	}
	return at;
}

/* Returns the share of test images whose nearest centre is the centre of their
 * class. */
static double accuracy(see_fn *see)
{
	double centre[CLASSES][SEEN_MAX] = {{0}}, seen[SEEN_MAX];
	unsigned right = 0;
	int n = 0;

	for (unsigned label = 0; label < CLASSES; label++)
		for (unsigned k = 1; k <= TRAIN; k++) {
			n = look_at(see, label, k, seen);
			for (int i = 0; i < n; i++)
				centre[label][i] += seen[i] / TRAIN;
		}
	for (unsigned label = 0; label < CLASSES; label++)
		for (unsigned k = TRAIN + 1; k <= TRAIN + TEST; k++) {
			n = look_at(see, label, k, seen);
			right += nearest(centre, seen, n) == label;
		}
	return (double)right / (CLASSES * TEST);
}

START_TEST(test_dataset_classes_can_be_told_apart_but_not_by_mean_colour)
{
	ck_assert_int_eq(
		RUN("d", "--classes=5", "--images=200", "--size=96x64"), 0);
	ck_assert_double_gt(accuracy(see_blocks), 0.8);
	ck_assert_double_lt(accuracy(see_colour), 0.4);
}
END_TEST

/* -- Failures -- */

START_TEST(test_dataset_refuses_a_directory_that_is_not_empty)
{
	ck_assert_int_eq(mkdir("full", 0755), 0);
	ck_assert_int_eq(mkdir("full/something", 0755), 0);
	ck_assert_int_eq(RUN("full", "--classes=1", "--images=1"), 1);
	expect_message("'full' is not empty");
	ck_assert_int_eq(rmdir("full/something"), 0);
	ck_assert_int_eq(rmdir("full"), 0);
}
END_TEST

START_TEST(test_dataset_takes_an_empty_directory)
{
	ck_assert_int_eq(mkdir("empty", 0755), 0);
	ck_assert_int_eq(
		RUN("empty", "--classes=1", "--images=1", "--size=16x16"), 0);
}
END_TEST

START_TEST(test_dataset_names_a_missing_parent)
{
	ck_assert_int_eq(RUN("no/such", "--classes=1", "--images=1"), 1);
	expect_message("cannot create 'no/such': No such file or directory");
}
END_TEST

static const char *const wrong_usage[][4] = {
	{"--classes=1", "--images=1"},
	{"d", "--classes=1"},
	{"d", "--images=1"},
	{"d", "--classes=0", "--images=1"},
	{"d", "--classes=3", "--images=2"},
	{"d", "--classes=x", "--images=2"},
	{"d", "--classes=1", "--images=1", "--size=10"},
	{"d", "--classes=1", "--images=1", "--size=10x0"},
	{"d", "--classes=1", "--images=1", "--size=10x10x10"},
	{"d", "--classes=1", "--images=1", "--size=9000x10"},
	{"d", "e", "--classes=1", "--images=1"},
	{"d", "--classes=1", "--images=1", "--colour=red"},
};

START_TEST(test_dataset_refuses_wrong_usage_in_one_line)
{
	const char *words[5] = {NULL};

	memcpy(words, wrong_usage[_i], sizeof(wrong_usage[_i]));
	ck_assert_int_eq(run(words), 2);
	expect_message("make-dataset");
	ck_assert_int_ne(access("d", F_OK), 0);
}
END_TEST

START_TEST(test_dataset_names_the_file_that_could_not_be_written)
{
	struct rlimit small = {.rlim_cur = 4000, .rlim_max = RLIM_INFINITY};

	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert_int_eq(
		RUN("d", "--classes=1", "--images=4", "--threads=1"), 1);
	small.rlim_cur = RLIM_INFINITY;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	expect_message(
		"cannot create 'd/class_000/00000001.jpg': File too large");
	ck_assert_int_ne(access("d/class_000/00000001.jpg", F_OK), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dataset");
	TCase *t = case_with(s, "dataset", setup, teardown);

	tcase_add_test(
		t, test_dataset_of_one_seed_is_the_same_at_any_thread_count);
	tcase_add_test(t, test_dataset_of_another_seed_has_other_bytes);
	tcase_add_test(
		t, test_dataset_has_the_images_asked_for_and_they_decode);
	tcase_add_test(t, test_dataset_sizes_are_spread_around_110_kilobytes);
	tcase_add_test(t,
		test_dataset_classes_can_be_told_apart_but_not_by_mean_colour);
	tcase_add_test(t, test_dataset_refuses_a_directory_that_is_not_empty);
	tcase_add_test(t, test_dataset_takes_an_empty_directory);
	tcase_add_test(t, test_dataset_names_a_missing_parent);
	tcase_add_loop_test(t, test_dataset_refuses_wrong_usage_in_one_line, 0,
		sizeof(wrong_usage) / sizeof(wrong_usage[0]));
	tcase_add_test(
		t, test_dataset_names_the_file_that_could_not_be_written);
	return run_suite(s);
}
