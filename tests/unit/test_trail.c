/* SPDX-License-Identifier: MIT */
/* Tests of a manifest that another process continues, from the saved file and
 * from the record of the changes since then. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "manifest_fixture.h"

#define NODES_MAX 4096
#define STEPS 300

static const struct hash128 session = {7, 8};
static char kept[64];
static int dir, trail;
static unsigned seed;

static void setup_trail(void)
{
	setup();
	(void)snprintf(kept, sizeof(kept), "/tmp/refrain-trail-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(kept));
	dir = open(kept, O_RDONLY | O_DIRECTORY);
	trail = manifest_record(m, session);
	ck_assert_int_ge(trail, 0);
	trail = dup(trail);
}

static void teardown_trail(void)
{
	teardown();
	(void)unlinkat(dir, MANIFEST_FILE, 0);
	(void)close(dir);
	(void)close(trail);
	ck_assert_int_eq(rmdir(kept), 0);
}

static unsigned draw(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 12) % n;
}

/* The properties of a node that a kernel can know. */
struct seen {
	bool there;
	struct node_info info;
	char path[256], target[16];
	char names[2048]; /* the names of the node, with their positions */
};

static bool add_name(void *arg, const char *name, const struct node_info *info,
	uint64_t next_pos)
{
	char *names = arg;
	size_t n = strlen(names);

	(void)snprintf(names + n, 2048 - n, "%s=%u@%u ", name, info->id,
		(unsigned)next_pos);
	return true;
}

static void look(struct manifest *of, node_id id, struct seen *s)
{
	memset(s, 0, sizeof(*s));
	if (manifest_get(of, id, &s->info) < 0)
		return;
	s->there = true;
	s->info.checked_s = 0; /* these values belong to the process */
	ck_assert_int_ge(manifest_path(of, id, s->path, sizeof(s->path)), 0);
	(void)manifest_target(of, id, s->target, sizeof(s->target));
	(void)manifest_readdir(of, id, 0, false, add_name, s->names);
}

/* The process dies, and another one continues with the same manifest. */
static void die(void)
{
	static struct seen before[NODES_MAX], after;
	struct manifest_totals totals, again;
	node_id end = manifest_end(m);

	ck_assert_uint_lt(end, NODES_MAX);
	for (node_id id = 1; id < end; id++)
		look(m, id, &before[id]);
	manifest_totals(m, &totals);
	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(
		manifest_recover(m, dir, session, fcntl(trail, F_DUPFD, 0)), 0);
	ck_assert_uint_le(manifest_end(m), end);
	for (node_id id = 1; id < end; id++) {
		look(m, id, &after);
		ck_assert_mem_eq(&after, &before[id], sizeof(after));
	}
	manifest_totals(m, &again);
	ck_assert_mem_eq(&totals, &again, sizeof(totals));
}

static node_id some_dir(void)
{
	struct node_info info;

	for (unsigned i = 0; i < 8; i++) {
		node_id id = 1 + draw(manifest_end(m));

		if (manifest_get(m, id, &info) == 0 && !info.retired &&
			info.attr.kind == KIND_DIR)
			return id;
	}
	return NODE_ROOT;
}

static void change(void)
{
	static const enum file_kind kinds[] = {
		KIND_FILE, KIND_FILE, KIND_DIR, KIND_LINK};
	struct file_entry e;
	node_id at = some_dir();
	char name[8];

	(void)snprintf(name, sizeof(name), "n%u", draw(9));
	e = entry(name, kinds[draw(4)], draw(3), draw(3));
	e.attr.mode = draw(8) ? 0644 : 0600;
	e.attr.version.tag = draw(2);
	switch (draw(12)) {
	case 0:
		(void)manifest_remove(m, at, name, on_event, NULL);
		break;
	case 1:
		(void)manifest_list_end(m, at, manifest_list_begin(m) - draw(3),
			on_event, NULL);
		break;
	case 2:
		(void)manifest_follow(m, at, name, &e.attr, on_event, NULL);
		break;
	case 3:
		manifest_unref(m, 1 + draw(manifest_end(m)), 1);
		break;
	case 4:
		e.attr.kind = KIND_DIR;
		manifest_put_root(m, &e.attr);
		break;
	case 5:
		if (draw(4) == 0)
			ck_assert_int_eq(manifest_save(m, dir), 0);
		break;
	default:
		(void)manifest_put(m, at, &e, 1, draw(2), NULL, on_event, NULL);
	}
}

START_TEST(test_another_process_has_every_node_as_it_was)
{
	seed = (unsigned)_i;
	for (unsigned deaths = 0; deaths < 4; deaths++) {
		for (unsigned i = 0; i < STEPS; i++)
			change();
		die();
	}
}
END_TEST

START_TEST(test_a_file_of_a_session_before_is_gone_on_from)
{
	struct node_info a, b;

	a = put(NODE_ROOT, "gone", KIND_FILE, 1, 1, false);
	(void)put(NODE_ROOT, "kept", KIND_FILE, 1, 1, false);
	ck_assert_int_eq(manifest_remove(m, NODE_ROOT, "gone", NULL, NULL), 0);
	ck_assert_int_eq(manifest_save(m, dir), 0);
	manifest_free(m);
	(void)close(trail);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(manifest_load(m, dir), 0);
	trail = manifest_record(m, (struct hash128){1, 1});
	trail = dup(trail);
	/* A new mount has new numbers. */
	ck_assert_int_eq(manifest_resolve(m, "kept", &b), 0);
	ck_assert_uint_eq(b.id, a.id);
	(void)put(NODE_ROOT, "new", KIND_FILE, 1, 1, false);
	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(manifest_recover(m, dir, (struct hash128){1, 1},
				 fcntl(trail, F_DUPFD, 0)),
		0);
	ck_assert_int_eq(manifest_resolve(m, "kept", &b), 0);
	ck_assert_int_eq(manifest_resolve(m, "new", &b), 0);
}
END_TEST

static int recover_copy(struct hash128 name)
{
	struct manifest *other;
	int rc;

	ck_assert_int_eq(manifest_new(&other, "/data"), 0);
	rc = manifest_recover(other, dir, name, fcntl(trail, F_DUPFD, 0));
	manifest_free(other);
	return rc;
}

START_TEST(test_what_is_of_another_session_or_lacks_its_file_is_refused)
{
	(void)put(NODE_ROOT, "a", KIND_FILE, 1, 1, false);
	ck_assert_int_eq(recover_copy((struct hash128){7, 9}), -EBADMSG);
	ck_assert_int_eq(manifest_save(m, dir), 0);
	ck_assert_int_eq(recover_copy(session), 0);
	for (unsigned i = 0; i < 100; i++)
		(void)put(NODE_ROOT, "a", KIND_FILE, i, 1, false);
	ck_assert_int_eq(manifest_save(m, dir), 0);
	manifest_told(m, manifest_trail(m));
	ck_assert_int_eq(manifest_save(m, dir), 0);
	ck_assert_int_eq(recover_copy(session), 0);
	(void)unlinkat(dir, MANIFEST_FILE, 0);
	ck_assert_int_eq(recover_copy(session), -EBADMSG);
}
END_TEST

START_TEST(test_a_file_that_was_saved_before_any_change_is_enough)
{
	ck_assert_int_eq(manifest_save(m, dir), 0);
	ck_assert_int_eq(recover_copy(session), 0);
}
END_TEST

/* This flips bits in every byte of the head and of the records. */
START_TEST(test_a_flipped_bit_is_never_taken_for_names)
{
	unsigned char *map = mmap(
		NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, trail, 0);
	uint64_t end;

	ck_assert_ptr_ne(map, MAP_FAILED);
	for (unsigned i = 0; i < 20; i++)
		(void)put(some_dir(), i % 3 ? "a" : "b",
			i % 5 ? KIND_FILE : KIND_DIR, i, 1, i % 2);
	end = 4096 + manifest_trail(m);
	for (uint64_t i = 0; i < end; i++) {
		if (i == 80)
			i = 4096; /* the rest of the head is not used */
		map[i] ^= 0x20;
		/* A change of the last three words of the head may have
		 * harmless effects. */
		if (i < 48 || i >= 72 || (i > 50 && i < 56))
			ck_assert_msg(recover_copy(session) == -EBADMSG,
				"byte %u", (unsigned)i);
		else
			(void)recover_copy(session);
		map[i] ^= 0x20;
	}
	ck_assert_int_eq(recover_copy(session), 0);
	(void)munmap(map, 1 << 16);
}
END_TEST

START_TEST(test_a_change_that_was_not_completed_did_not_happen)
{
	unsigned char *map = mmap(
		NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, trail, 0);
	struct node_info info;
	uint64_t before, after;

	ck_assert_ptr_ne(map, MAP_FAILED);
	(void)put(NODE_ROOT, "a", KIND_FILE, 1, 1, true);
	before = manifest_trail(m);
	(void)put(NODE_ROOT, "a", KIND_FILE, 2, 1, true);
	after = manifest_trail(m);
	/* Simulate a process that has died before it had written and announced
	 * the last byte. */
	map[4096 + after - 1] ^= 1;
	memcpy(map + 48, &before, sizeof(before));
	manifest_free(m);
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
	ck_assert_int_eq(
		manifest_recover(m, dir, session, fcntl(trail, F_DUPFD, 0)), 0);
	ck_assert_int_eq(manifest_resolve(m, "a", &info), 0);
	ck_assert_uint_eq(info.attr.version.size_bytes, 1);
	(void)munmap(map, 1 << 16);
}
END_TEST

START_TEST(test_what_nobody_was_told_is_told_again)
{
	(void)put(NODE_ROOT, "a", KIND_FILE, 1, 1, true);
	manifest_told(m, manifest_trail(m));
	(void)put(NODE_ROOT, "b", KIND_FILE, 1, 1, true);
	(void)put(NODE_ROOT, "a", KIND_FILE, 2, 1, true);
	die();
	memset(events, 0, sizeof(events));
	manifest_untold(m, on_event, NULL);
	ck_assert_uint_eq(events[MANIFEST_ADDED], 2);
	ck_assert_uint_eq(events[MANIFEST_REMOVED], 1);
	ck_assert_str_eq(last.name, "a");
	manifest_told(m, manifest_trail(m));
	memset(events, 0, sizeof(events));
	manifest_untold(m, on_event, NULL);
	ck_assert_uint_eq(events[MANIFEST_ADDED], 0);
}
END_TEST

static void note_full(void *arg)
{
	++*(unsigned *)arg;
}

/* The record gives its memory back, and positions continue after the end of the
 * ring. */
START_TEST(test_a_full_record_asks_to_be_saved_and_goes_round)
{
	unsigned full = 0, saved = 0;
	char name[240];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (unsigned i = 0; saved < 40; i++) {
		manifest_when_full(m, note_full, &full);
		(void)put(NODE_ROOT, name, KIND_FILE, i, 1, false);
		if (full == saved)
			continue;
		manifest_told(m, manifest_trail(m));
		ck_assert_int_eq(manifest_save(m, dir), 0);
		saved++;
		ck_assert(manifest_is_recorded(m));
	}
	ck_assert_uint_gt(manifest_trail(m), (uint64_t)1 << 30);
	(void)put(NODE_ROOT, "last", KIND_FILE, 1, 1, false);
	die();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trail");
	TCase *t = case_with(s, "trail", setup_trail, teardown_trail);

	tcase_add_loop_test(
		t, test_another_process_has_every_node_as_it_was, 0, 20);
	tcase_add_test(t, test_a_file_of_a_session_before_is_gone_on_from);
	tcase_add_test(t,
		test_what_is_of_another_session_or_lacks_its_file_is_refused);
	tcase_add_test(
		t, test_a_file_that_was_saved_before_any_change_is_enough);
	tcase_add_test(t, test_a_flipped_bit_is_never_taken_for_names);
	tcase_add_test(t, test_a_change_that_was_not_completed_did_not_happen);
	tcase_add_test(t, test_what_nobody_was_told_is_told_again);
	tcase_add_test(t, test_a_full_record_asks_to_be_saved_and_goes_round);
	return run_suite(s);
}
