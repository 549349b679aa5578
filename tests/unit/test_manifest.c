/* SPDX-License-Identifier: MIT */
/* The manifest: names, versions, references, listings. */
#include <errno.h>
#include <stdio.h>

#include "manifest_fixture.h"

START_TEST(test_a_name_that_was_put_is_found_with_its_attributes)
{
	struct node_info a = put(NODE_ROOT, "a", KIND_FILE, 10, 5, false);
	struct node_info found;

	ck_assert_int_eq(manifest_lookup(m, NODE_ROOT, "a", false, &found), 0);
	ck_assert_uint_eq(found.id, a.id);
	ck_assert_uint_eq(found.attr.version.size_bytes, 10);
	ck_assert_uint_eq(found.attr.mode, 0644);
	ck_assert_int_eq(
		manifest_lookup(m, NODE_ROOT, "b", false, &found), -ENOENT);
	ck_assert_int_eq(
		manifest_lookup(m, a.id, "x", false, &found), -ENOTDIR);
	ck_assert_int_eq(
		manifest_lookup(m, 999999, "x", false, &found), -ESTALE);
}
END_TEST

START_TEST(test_a_new_version_is_a_new_node_and_the_old_one_keeps_its_own)
{
	struct node_info old = put(NODE_ROOT, "a", KIND_FILE, 10, 5, true);
	struct node_info now = put(NODE_ROOT, "a", KIND_FILE, 11, 6, false);
	struct node_info info;

	ck_assert_uint_ne(old.id, now.id);
	ck_assert_uint_ne(old.ino, now.ino);
	ck_assert_uint_eq(events[MANIFEST_REPLACED], 1);
	ck_assert_uint_eq(last.old.attr.version.size_bytes, 10);
	ck_assert_int_eq(manifest_get(m, old.id, &info), 0);
	ck_assert(info.retired);
	ck_assert_uint_eq(info.attr.version.size_bytes, 10);
	manifest_unref(m, old.id, 1);
	ck_assert_int_eq(manifest_get(m, old.id, &info), -ESTALE);
	ck_assert_int_eq(manifest_get(m, now.id, &info), 0);
}
END_TEST

START_TEST(test_the_same_version_keeps_its_node_and_other_modes_are_told)
{
	struct node_info a = put(NODE_ROOT, "a", KIND_FILE, 10, 5, false);
	struct file_entry e = entry("a", KIND_FILE, 10, 5);
	struct node_info b;

	e.attr.mode = 0600;
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 2, false, &b, on_event, NULL),
		0);
	ck_assert_uint_eq(a.id, b.id);
	ck_assert_uint_eq(b.attr.mode, 0600);
	ck_assert_uint_eq(events[MANIFEST_ATTR], 1);
	ck_assert_uint_eq(events[MANIFEST_REPLACED], 0);
}
END_TEST

START_TEST(test_inode_numbers_are_the_same_in_another_manifest)
{
	struct node_info d = put(NODE_ROOT, "d", KIND_DIR, 0, 1, false);
	struct node_info a = put(d.id, "a", KIND_FILE, 10, 5, false);
	struct node_info d2, a2;

	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	(void)put(NODE_ROOT, "other", KIND_FILE, 1, 1, false);
	/* The number of a directory does not depend on its mtime. */
	d2 = put(NODE_ROOT, "d", KIND_DIR, 0, 2, false);
	a2 = put(d2.id, "a", KIND_FILE, 10, 5, false);
	ck_assert_uint_eq(d.ino, d2.ino);
	ck_assert_uint_eq(a.ino, a2.ino);
	ck_assert_uint_ne(a.id, a2.id);
}
END_TEST

START_TEST(test_a_listing_removes_what_it_did_not_name)
{
	struct node_info info;
	uint32_t stamp;

	(void)put(NODE_ROOT, "keep", KIND_FILE, 1, 1, false);
	(void)put(NODE_ROOT, "drop", KIND_FILE, 1, 1, false);
	stamp = manifest_list_begin(m);
	(void)put(NODE_ROOT, "keep", KIND_FILE, 1, 1, false);
	(void)put(NODE_ROOT, "new", KIND_FILE, 1, 1, false);
	ck_assert_int_eq(
		manifest_list_end(m, NODE_ROOT, stamp, on_event, NULL), 0);
	ck_assert_int_eq(
		manifest_lookup(m, NODE_ROOT, "drop", false, &info), -ENOENT);
	ck_assert_int_eq(
		manifest_lookup(m, NODE_ROOT, "keep", false, &info), 0);
	ck_assert_uint_eq(events[MANIFEST_REMOVED], 1);
	ck_assert_int_eq(manifest_get(m, NODE_ROOT, &info), 0);
	ck_assert(info.listed);
}
END_TEST

START_TEST(test_a_removed_directory_takes_all_below_it_deepest_first)
{
	struct node_info d = put(NODE_ROOT, "d", KIND_DIR, 0, 1, false);
	struct node_info e = put(d.id, "e", KIND_DIR, 0, 1, false);
	struct node_info f = put(e.id, "f", KIND_FILE, 7, 1, true);
	struct manifest_totals totals;
	char path[64];

	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "d", on_event, NULL), 0);
	ck_assert_uint_eq(events[MANIFEST_REMOVED], 3);
	ck_assert_uint_eq(last.old.id, d.id);
	manifest_totals(m, &totals);
	ck_assert_uint_eq(totals.files + totals.directories, 0);
	ck_assert_uint_eq(totals.bytes, 0);
	/* The manifest still knows the path for a reader of the file. */
	ck_assert_int_eq(manifest_path(m, f.id, path, sizeof(path)), 5);
	ck_assert_str_eq(path, "d/e/f");
	ck_assert(!manifest_is_under(m, f.id, NODE_ROOT));
	manifest_unref(m, f.id, 1);
	ck_assert_int_eq(manifest_get(m, d.id, &d), -ESTALE);
}
END_TEST

struct seen {
	char names[8][8];
	uint64_t pos[8];
	size_t n, max;
};

static bool note(void *arg, const char *name, const struct node_info *info,
	uint64_t next_pos)
{
	struct seen *s = arg;

	(void)info;
	if (s->n == s->max)
		return false;
	(void)snprintf(s->names[s->n], sizeof(s->names[0]), "%s", name);
	s->pos[s->n++] = next_pos;
	return true;
}

START_TEST(test_positions_hold_while_names_come_and_go)
{
	struct seen s = {.max = 2};

	for (int i = 0; i < 6; i++)
		(void)put(NODE_ROOT, (char[]){(char)('a' + i), 0}, KIND_FILE, 1,
			1, false);
	ck_assert_int_eq(manifest_readdir(m, NODE_ROOT, 0, false, note, &s), 0);
	ck_assert_uint_eq(s.n, 2);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "a", NULL, NULL), 0);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "d", NULL, NULL), 0);
	(void)put(NODE_ROOT, "g", KIND_FILE, 1, 1, false);
	/* A new version keeps the position of its name. */
	(void)put(NODE_ROOT, "e", KIND_FILE, 2, 2, false);
	s.max = 8;
	ck_assert_int_eq(
		manifest_readdir(m, NODE_ROOT, s.pos[1], false, note, &s), 0);
	/* "g" may have the position of "a", which the listing has passed. */
	ck_assert_uint_eq(s.n, 5);
	ck_assert_str_eq(s.names[2], "c");
	ck_assert_str_eq(s.names[3], "e");
	ck_assert_str_eq(s.names[4], "f");
}
END_TEST

START_TEST(test_a_directory_of_one_name_takes_others_as_well)
{
	struct node_info d = put(NODE_ROOT, "d", KIND_DIR, 0, 0, false);
	struct node_info found;

	put(d.id, "a", KIND_FILE, 1, 1, false);
	ck_assert_int_eq(manifest_remove(m, d.id, "a", on_event, NULL), 0);
	put(d.id, "b", KIND_FILE, 2, 2, false);
	ck_assert_int_eq(manifest_lookup(m, d.id, "a", false, &found), -ENOENT);
	put(d.id, "b", KIND_FILE, 3, 3, false);
	put(d.id, "c", KIND_FILE, 4, 4, false);
	ck_assert_int_eq(manifest_lookup(m, d.id, "b", false, &found), 0);
	ck_assert_uint_eq(found.attr.version.size_bytes, 3);
	ck_assert_int_eq(manifest_lookup(m, d.id, "c", false, &found), 0);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "d", on_event, NULL), 0);
	/* The events for a come first, then those for b, c and d. */
	ck_assert_uint_eq(events[MANIFEST_REMOVED], 4);
	ck_assert_uint_eq(events[MANIFEST_REPLACED], 1);
	ck_assert_int_eq(manifest_get(m, d.id, &found), -ESTALE);
}
END_TEST

START_TEST(test_names_of_many_owners_keep_their_own)
{
	struct file_entry e = entry("a", KIND_FILE, 10, 5);
	struct node_info found;
	char name[16];

	for (unsigned i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		e.name = name;
		e.attr.uid = i % 100;
		e.attr.gid = 1000 + i % 7;
		e.attr.mode = i % 2 ? 0644 : 0600;
		ck_assert_int_eq(manifest_put(m, NODE_ROOT, &e, 1, false,
					 &found, on_event, NULL),
			0);
	}
	for (unsigned i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(
			manifest_lookup(m, NODE_ROOT, name, false, &found), 0);
		ck_assert_uint_eq(found.attr.uid, i % 100);
		ck_assert_uint_eq(found.attr.gid, 1000 + i % 7);
		ck_assert_uint_eq(found.attr.mode, i % 2 ? 0644 : 0600);
	}
}
END_TEST

START_TEST(test_names_that_no_directory_can_hold_are_refused)
{
	const char *bad[] = {"", ".", "..", "a/b", "/"};
	char longest[257];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct file_entry e = entry(bad[i], KIND_FILE, 1, 1);

		ck_assert_int_eq(manifest_put(m, NODE_ROOT, &e, 1, false, NULL,
					 NULL, NULL),
			-EINVAL);
	}
	memset(longest, 'x', 256);
	longest[256] = '\0';
	struct file_entry e = entry(longest, KIND_FILE, 1, 1);
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, false, NULL, NULL, NULL),
		-EINVAL);
	longest[255] = '\0';
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, false, NULL, NULL, NULL), 0);
}
END_TEST

START_TEST(test_a_link_keeps_its_target_and_a_new_target_is_a_new_node)
{
	struct node_info a = put(NODE_ROOT, "l", KIND_LINK, 9, 1, true);
	struct file_entry e = entry("l", KIND_LINK, 9, 1);
	struct node_info b;
	char target[64];

	ck_assert_int_eq(manifest_target(m, a.id, target, sizeof(target)), 9);
	ck_assert_str_eq(target, "elsewhere");
	e.target = "somewhere";
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, false, &b, on_event, NULL),
		0);
	ck_assert_uint_ne(a.id, b.id);
	ck_assert_int_eq(manifest_target(m, b.id, target, sizeof(target)), 9);
	ck_assert_str_eq(target, "somewhere");
}
END_TEST

START_TEST(test_a_hundred_thousand_names_come_and_go_with_their_numbers)
{
	struct node_info info;
	char name[16];
	node_id end;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100000; i++) {
			(void)snprintf(name, sizeof(name), "f%d", i);
			(void)put(NODE_ROOT, name, KIND_FILE, 1, round, false);
		}
		if (round == 0)
			end = manifest_end(m);
		for (int i = 0; i < 100000; i += 997) {
			(void)snprintf(name, sizeof(name), "f%d", i);
			ck_assert_int_eq(manifest_lookup(m, NODE_ROOT, name,
						 false, &info),
				0);
			ck_assert_int_eq(info.attr.version.mtime_ns, round);
		}
	}
	ck_assert_uint_eq(events[MANIFEST_REPLACED], 200000);
	ck_assert_uint_le(manifest_end(m), end + 1);
}
END_TEST

START_TEST(test_another_tag_is_another_version)
{
	struct node_info a = put_tagged("a", 1);

	ck_assert_uint_eq(put_tagged("a", 1).ino, a.ino);
	ck_assert_uint_eq(events[MANIFEST_REPLACED], 0);
	ck_assert_uint_ne(put_tagged("a", 2).ino, a.ino);
	ck_assert(last.change == MANIFEST_REPLACED);
	ck_assert_uint_eq(last.old.attr.version.tag, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("manifest");
	TCase *t = case_with(s, "manifest", setup, teardown);

	tcase_add_test(
		t, test_a_name_that_was_put_is_found_with_its_attributes);
	tcase_add_test(t,
		test_a_new_version_is_a_new_node_and_the_old_one_keeps_its_own);
	tcase_add_test(t,
		test_the_same_version_keeps_its_node_and_other_modes_are_told);
	tcase_add_test(t, test_inode_numbers_are_the_same_in_another_manifest);
	tcase_add_test(t, test_a_listing_removes_what_it_did_not_name);
	tcase_add_test(
		t, test_a_removed_directory_takes_all_below_it_deepest_first);
	tcase_add_test(t, test_positions_hold_while_names_come_and_go);
	tcase_add_test(t, test_a_directory_of_one_name_takes_others_as_well);
	tcase_add_test(t, test_names_of_many_owners_keep_their_own);
	tcase_add_test(t, test_names_that_no_directory_can_hold_are_refused);
	tcase_add_test(
		t, test_a_link_keeps_its_target_and_a_new_target_is_a_new_node);
	tcase_add_test(t,
		test_a_hundred_thousand_names_come_and_go_with_their_numbers);
	tcase_add_test(t, test_another_tag_is_another_version);
	return run_suite(s);
}
