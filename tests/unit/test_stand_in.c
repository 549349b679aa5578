/* SPDX-License-Identifier: MIT */
/* Tests of images that a mount serves in place of others: which image it
 * chooses, and which bytes it serves. */
#include <string.h>

#include "analysis/subject/stand_in.h"
#include "suite.h"

static struct stand_ins *table(uint64_t first, uint64_t last, uint64_t step)
{
	struct stand_ins *s = stand_ins_new();

	ck_assert_ptr_nonnull(s);
	for (uint64_t size = last; size >= first; size -= step)
		stand_ins_add(s, (struct hash128){size, 1}, size);
	stand_ins_sort(s);
	return s;
}

START_TEST(test_a_stand_in_is_not_larger_and_of_like_size)
{
	struct stand_ins *s = table(1000, 100000, 100);
	struct stand_in in;

	ck_assert_uint_eq(stand_ins_count(s), 991);
	ck_assert(!stand_ins_find(s, 999, 7, &in));
	for (uint64_t choice = 0; choice < 100; choice++) {
		ck_assert(stand_ins_find(s, 50050, choice, &in));
		ck_assert_uint_le(in.size_bytes, 50050);
		ck_assert_uint_gt(in.size_bytes, 50050 - 1700);
		ck_assert_uint_eq(in.key.hi, in.size_bytes);
		ck_assert(stand_ins_find(s, 1100, choice, &in));
		ck_assert_uint_le(in.size_bytes, 1100);
	}
	stand_ins_free(s);
}
END_TEST

START_TEST(test_the_choice_decides_among_images_of_like_size)
{
	struct stand_ins *s = table(1000, 100000, 100);
	struct stand_in first, in;
	unsigned others = 0;

	for (uint64_t choice = 0; choice < 16; choice++) {
		ck_assert(stand_ins_find(s, 60000, choice, &first));
		ck_assert(stand_ins_find(s, 60000, choice, &in));
		ck_assert_uint_eq(first.size_bytes, in.size_bytes);
		others += in.size_bytes != 60000;
	}
	ck_assert_uint_eq(others, 15);
	stand_ins_free(s);
}
END_TEST

START_TEST(test_of_many_images_a_few_of_all_sizes_stay)
{
	struct stand_ins *s = table(1, 40 * STAND_INS_MAX, 1);
	struct stand_in in;

	ck_assert_uint_eq(stand_ins_count(s), 40 * STAND_INS_MAX);
	/* The stand-ins keep one of 40 sizes, so 16 images of similar sizes lie
	 * within about 640 bytes. */
	for (uint64_t size = 4000; size < 40 * STAND_INS_MAX; size += 4000) {
		ck_assert(stand_ins_find(s, size, size, &in));
		ck_assert_uint_gt(in.size_bytes + 3000, size);
	}
	stand_ins_free(s);
}
END_TEST

START_TEST(test_a_tiny_image_is_the_same_in_parts)
{
	unsigned char whole[1000], part[1000];

	memset(whole, 1, sizeof(whole));
	stand_in_tiny(0, sizeof(whole), whole);
	ck_assert_mem_eq(whole, "\xff\xd8\xff", 3);
	ck_assert_mem_eq(whole + STAND_IN_TINY_BYTES - 2, "\xff\xd9\0", 3);
	for (size_t off = 0; off < sizeof(part); off += 100)
		stand_in_tiny(off, 100, part + off);
	ck_assert_mem_eq(whole, part, sizeof(whole));
}
END_TEST

START_TEST(test_images_are_known_by_their_names)
{
	ck_assert(stand_in_is_image("a/b.jpg"));
	ck_assert(stand_in_is_image("n01440764_tench.JPEG"));
	ck_assert(!stand_in_is_image("a.jpg/list"));
	ck_assert(!stand_in_is_image("a/jpg"));
	ck_assert(!stand_in_is_image("a/b.png"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stand_in");
	TCase *t = case_of(s, "stand_in");

	tcase_add_test(t, test_a_stand_in_is_not_larger_and_of_like_size);
	tcase_add_test(t, test_the_choice_decides_among_images_of_like_size);
	tcase_add_test(t, test_of_many_images_a_few_of_all_sizes_stay);
	tcase_add_test(t, test_a_tiny_image_is_the_same_in_parts);
	tcase_add_test(t, test_images_are_known_by_their_names);
	return run_suite(s);
}
