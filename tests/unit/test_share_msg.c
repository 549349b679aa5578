/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/loader/share: messages, places and the memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "share_fixture.h"

/* -- Messages -------------------------------------------------------------- */

static struct share_msg message_of_type(unsigned type)
{
	struct share_msg m = hello_of(1, 0);

	if (type == SHARE_HELLO)
		return m;
	memset(&m, 0, sizeof(m));
	m.type = (enum share_type)type;
	if (type == SHARE_REFUSE)
		m.refuse.error = -ESTALE;
	if (type == SHARE_SEGMENT)
		m.segment = (struct share_segment){
			.bytes = 8192, .slot_bytes = 4096, .slots = 2};
	if (type == SHARE_BATCH)
		m.batch.count = m.batch.fresh = 3;
	if (type == SHARE_CHANGE)
		m.change = (struct share_change){7, 5, 2};
	if (type == SHARE_VIEW)
		m.view.jobs_n = 2;
	return m;
}

START_TEST(test_every_message_comes_out_as_it_went_in)
{
	struct share_msg in = message_of_type((unsigned)_i), out;
	char bytes[WIRE_BYTES_MAX];
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	ck_assert_uint_gt(n, sizeof(struct wire_head));
	memset(&out, 0, sizeof(out));
	ck_assert_int_eq(share_msg_parse(bytes, n, &out), 0);
	ck_assert_int_eq(memcmp(&in, &out, sizeof(in)), 0);
	ck_assert_uint_eq(share_msg_print(&in, bytes, n - 1), 0);
}
END_TEST

START_TEST(test_a_message_of_any_other_length_is_refused)
{
	struct share_msg in = message_of_type((unsigned)_i), out;
	char bytes[WIRE_BYTES_MAX + 8] = {0};
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(share_msg_parse(bytes, i, &out), -EBADMSG);
	ck_assert_int_eq(share_msg_parse(bytes, n + 8, &out), -EBADMSG);
}
END_TEST

static int parse_with(unsigned type, size_t at, uint8_t byte)
{
	struct share_msg in = message_of_type(type), out;
	char bytes[WIRE_BYTES_MAX];
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	bytes[at] = (char)byte;
	return share_msg_parse(bytes, n, &out);
}

START_TEST(test_a_message_with_what_cannot_be_is_refused)
{
	size_t head = sizeof(struct wire_head);

	ck_assert_int_eq(parse_with(SHARE_HELLO, 0, 1), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 4, 9), -EPROTONOSUPPORT);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 6, SHARE_TYPES), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 12, 1), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO,
				 head + offsetof(struct share_hello, wish), 9),
		-EBADMSG);
	ck_assert_int_eq(
		parse_with(SHARE_HELLO,
			head + offsetof(struct share_hello, prints_n), 200),
		-EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_BATCH,
				 head + offsetof(struct share_batch, fresh), 4),
		-EBADMSG);
	ck_assert_int_eq(
		parse_with(SHARE_SEGMENT,
			head + offsetof(struct share_segment, slots), 3),
		-EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_VIEW,
				 head + offsetof(struct share_view, jobs_n), 3),
		-EBADMSG);
}
END_TEST

/* -- Places ---------------------------------------------------------------- */

START_TEST(test_names_that_are_no_file_names_are_refused)
{
	char name[256];
	struct error err = {""};

	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	ck_assert_int_eq(share_name_check(name, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "255"));
	ck_assert_int_eq(share_name_check("a/b", &err), -EINVAL);
	ck_assert_int_eq(share_name_check("..", &err), -EINVAL);
	ck_assert_int_eq(share_name_check("", &err), -EINVAL);
	name[SHARE_NAME_MAX] = '\0';
	ck_assert_int_eq(share_name_check(name, &err), 0);
}
END_TEST

START_TEST(test_a_place_is_one_object_for_all_openers)
{
	struct share_place *a, *b;
	struct error err = {""};

	ck_assert_int_eq(share_place_get(&a, "x", &err), 0);
	ck_assert_int_eq(share_place_get(&b, "x", &err), 0);
	ck_assert_ptr_eq(a, b);
	ck_assert_int_eq(place_lock(a, &err), 0);
	ck_assert_int_eq(place_lock(b, &err), -EAGAIN);
	share_place_put(b);
	place_unlock(a);
	ck_assert_int_eq(place_lock(a, &err), 0);
	ck_assert_int_eq(place_connect(a), -ENOENT);
	share_place_put(a);
}
END_TEST

START_TEST(test_a_directory_that_others_can_enter_is_refused)
{
	struct share_place *place;
	struct error err = {""};
	char dir[300];

	(void)snprintf(dir, sizeof(dir), "%s/refrain-share", run_dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(share_place_get(&place, "x", &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "other users"));
}
END_TEST

/* -- The memory ------------------------------------------------------------ */

START_TEST(test_memory_is_writable_for_its_host_alone)
{
	struct share_area host, member;
	char *bytes;

	ck_assert_int_eq(share_area_new(&host, 8192), 0);
	ck_assert_int_eq(share_area_map(&member, host.fd, 8192), 0);
	bytes = host.base;
	bytes[5000] = 42;
	ck_assert_int_eq(((char *)member.base)[5000], 42);
	ck_assert_int_ne(mprotect(member.base, 8192, PROT_WRITE), 0);
	ck_assert_ptr_eq(mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, host.fd, 0),
		MAP_FAILED);
	ck_assert_int_lt(pwrite(host.fd, "x", 1, 0), 0);
	ck_assert_int_ne(ftruncate(host.fd, 0), 0);
	share_area_release(&member);
	share_area_release(&host);
}
END_TEST

START_TEST(test_memory_that_could_change_under_its_reader_is_refused)
{
	CLEANUP_FD int open_fd = memfd_create("x", MFD_ALLOW_SEALING);
	struct share_area host, member;

	ck_assert_int_eq(share_area_new(&host, 4096), 0);
	ck_assert_int_eq(share_area_map(&member, host.fd, 8192), -EBADMSG);
	ck_assert_int_eq(ftruncate(open_fd, 8192), 0);
	ck_assert_int_eq(share_area_map(&member, open_fd, 8192), -EBADMSG);
	ck_assert_int_eq(
		fcntl(open_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	ck_assert_int_eq(share_area_map(&member, open_fd, 8192), -EBADMSG);
	share_area_release(&host);
}
END_TEST

START_TEST(test_memory_without_the_magic_number_is_refused)
{
	struct share_area host, member;

	ck_assert_int_eq(share_area_new(&host, 8192), 0);
	host.words->magic++;
	ck_assert_int_eq(share_area_map(&member, host.fd, 8192), -EBADMSG);
	ck_assert_ptr_null(member.base);
	share_area_release(&host);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("share-msg");
	TCase *t = case_with(s, "share-msg", make_dir, remove_dir);

	tcase_add_loop_test(t, test_every_message_comes_out_as_it_went_in,
		SHARE_HELLO, SHARE_TYPES);
	tcase_add_loop_test(t, test_a_message_of_any_other_length_is_refused,
		SHARE_HELLO, SHARE_TYPES);
	tcase_add_test(t, test_a_message_with_what_cannot_be_is_refused);
	tcase_add_test(t, test_names_that_are_no_file_names_are_refused);
	tcase_add_test(t, test_a_place_is_one_object_for_all_openers);
	tcase_add_test(t, test_a_directory_that_others_can_enter_is_refused);
	tcase_add_test(t, test_memory_is_writable_for_its_host_alone);
	tcase_add_test(
		t, test_memory_that_could_change_under_its_reader_is_refused);
	tcase_add_test(t, test_memory_without_the_magic_number_is_refused);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
