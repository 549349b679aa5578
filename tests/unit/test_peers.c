/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/origin/peer/peer.h with a real memcached: which host fetches an
 * item, which hosts get it from memory, and what happens when a host is gone or
 * memory is full.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "origin/peer/peer_trust_impl.h"
#include "peers_fixture.h"

/* An item has three units, the last of which is short. */
#define ITEM_BYTES (2 * UNIT_BYTES + 70001)
#define CONTENDERS_MAX 8

static pid_t engine;

/* -- The engine ------------------------------------------------------------ */

static int engine_connect(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", peers_socket);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void engine_start(const char *mib, const char *options)
{
	int fd;

	engine = fork();
	ck_assert_int_ge(engine, 0);
	if (engine == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execlp("memcached", "memcached", "-s", peers_socket, "-M",
			"-m", mib, "-t", "1", "-B", "ascii", "-o", options,
			geteuid() == 0 ? "-u" : NULL, "root", NULL);
		_exit(127);
	}
	PEERS_UNTIL((fd = engine_connect()) >= 0);
	(void)close(fd);
}

static void engine_kill(void)
{
	ck_assert_int_eq(kill(engine, SIGKILL), 0);
	ck_assert_int_eq(waitpid(engine, NULL, 0), engine);
}

/* Send one command, and get the first line of its answer. */
static void engine_says(const char *command, char *line, size_t size)
{
	int fd = engine_connect();
	FILE *f;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
		write(fd, command, strlen(command)), (ssize_t)strlen(command));
	f = fdopen(fd, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(line, (int)size, f));
	(void)fclose(f);
}

static void setup(void)
{
	peers_dir_make();
	engine_start("64", "no_slab_reassign");
}

static void setup_small(void)
{
	peers_dir_make();
}

static void teardown(void)
{
	engine_kill();
	peers_dir_remove();
}

/* -- Items that are there -------------------------------------------------- */

START_TEST(test_an_item_that_was_pushed_is_read_by_others)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b = peers_client_up(PEERS_DATASET, "");
	struct asked r;

	ck_assert_int_eq(ask_again(a, &r, 0, ITEM_BYTES, -ENOENT), -ENOENT);
	ck_assert_uint_eq(push_item(a, 0, ITEM_BYTES), 3);
	ck_assert_int_eq(ask_again(b, &r, 0, ITEM_BYTES, 0), 0);
	ck_assert_uint_ge(peers_now(b).hit_bytes, ITEM_BYTES);
	ck_assert_uint_ge(peers_now(a).fill_bytes, ITEM_BYTES);
	peers_stop(a);
	peers_stop(b);
}
END_TEST

START_TEST(test_units_that_are_there_come_even_if_others_are_missing)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct asked r;

	ck_assert_int_eq(push_unit(a, 1, ITEM_BYTES, 0), 0);
	ck_assert_int_eq(push_unit(a, 1, ITEM_BYTES, 2 * UNIT_BYTES), 0);
	ck_assert_int_eq(ask_again(a, &r, 1, ITEM_BYTES, -ENOENT), -ENOENT);
	ck_assert_uint_eq(atomic_load(&r.bytes), ITEM_BYTES - UNIT_BYTES);
	peers_stop(a);
}
END_TEST

static const struct {
	const char *dataset, *secret;
	/* the client finds values, and must recognise that they are not its own
	 */
	unsigned bad;
} strangers[] = {{PEERS_DATASET, "other", 1}, {"another", "", 0}};

START_TEST(test_another_secret_or_dataset_never_gives_a_byte)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b =
		peers_client_up(strangers[_i].dataset, strangers[_i].secret);
	struct asked r;

	ck_assert_uint_eq(push_item(a, 2, ITEM_BYTES), 3);
	ck_assert_int_eq(ask_again(b, &r, 2, ITEM_BYTES, -ENOENT), -ENOENT);
	ck_assert_uint_eq(atomic_load(&r.bytes), 0);
	ck_assert_uint_eq(peers_now(b).bad > 0, strangers[_i].bad);
	peers_stop(a);
	peers_stop(b);
}
END_TEST

/* -- Mounts of other datasets ---------------------------------------------- */

#define SHARED_ITEMS 10u

static void push_items(struct peers *p, unsigned from)
{
	for (unsigned i = 0; i < SHARED_ITEMS; i++)
		ck_assert_uint_eq(push_item(p, from + i, UNIT_BYTES), 1);
}

START_TEST(test_a_few_units_of_another_mount_are_compared)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b = peers_client_up(PEERS_DATASET, "");
	struct asked r;

	push_items(a, 400);
	for (unsigned i = 0; i < SHARED_ITEMS; i++)
		ck_assert_int_eq(ask_again(b, &r, 400 + i, UNIT_BYTES, 0), 0);
	ck_assert_uint_eq(atomic_load(&peers_compared), TRUST_UNITS);
	/* The units of its own dataset are used. */
	ck_assert_int_eq(ask_again(a, &r, 400, UNIT_BYTES, 0), 0);
	ck_assert_uint_eq(atomic_load(&peers_compared), TRUST_UNITS);
	peers_stop(a);
	peers_stop(b);
}
END_TEST

START_TEST(test_units_of_another_dataset_are_neither_used_nor_replaced)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b =
		peers_client_of(PEERS_ORIGIN_OTHERS, NULL, PEERS_DATASET, "");
	struct peers *c;
	struct asked r;

	push_items(a, 420);
	for (unsigned i = 0; i < SHARED_ITEMS; i++) {
		ck_assert_int_eq(ask_again(b, &r, 420 + i, UNIT_BYTES, -ENOENT),
			-ENOENT);
		ck_assert_uint_eq(atomic_load(&r.bytes), 0);
	}
	ck_assert(peers_differ(b));
	ck_assert_uint_ge(peers_now(b).foreign, 1);
	ck_assert_uint_eq(peers_now(b).bad, 0);
	/* The tiers of this host store the units that the peers refuse. */
	ck_assert_int_eq(push_unit(b, 421, UNIT_BYTES, 0), -ENOSPC);
	ck_assert_int_eq(push_unit(b, 440, UNIT_BYTES, 0), -ENOSPC);
	c = peers_client_up(PEERS_DATASET, "");
	for (unsigned i = 0; i < SHARED_ITEMS; i++)
		ck_assert_int_eq(ask_again(c, &r, 420 + i, UNIT_BYTES, 0), 0);
	ck_assert(!peers_differ(c));
	peers_stop(a);
	peers_stop(b);
	peers_stop(c);
}
END_TEST

START_TEST(test_nothing_that_the_origin_does_not_confirm_is_used)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b =
		peers_client_of(PEERS_ORIGIN_FAILS, NULL, PEERS_DATASET, "");
	struct asked r;

	ck_assert_uint_eq(push_item(a, 450, ITEM_BYTES), 3);
	ck_assert_int_eq(ask_again(b, &r, 450, ITEM_BYTES, -ENOENT), -ENOENT);
	ck_assert_uint_eq(atomic_load(&r.bytes), 0);
	ck_assert_uint_lt(asked_ns(&r), 5 * NS_PER_S);
	ck_assert(!peers_differ(b));
	peers_stop(a);
	peers_stop(b);
}
END_TEST

START_TEST(test_hosts_know_that_their_secrets_differ)
{
	struct peers *a = peers_client_of(
		PEERS_ORIGIN, peers_socket, PEERS_DATASET, "one");
	struct peers *b, *c;

	PEERS_UNTIL(peers_now(a).secret == PEER_MATCH_SAME);
	b = peers_client_up(PEERS_DATASET, "two");
	c = peers_client_up(PEERS_DATASET, "one");
	ck_assert_int_eq(peers_now(b).secret, PEER_MATCH_DIFFERS);
	ck_assert_int_eq(peers_now(c).secret, PEER_MATCH_SAME);
	peers_stop(a);
	peers_stop(b);
	peers_stop(c);
}
END_TEST

/* -- Leases ---------------------------------------------------------------- */

static unsigned how_many_are_done(struct asked *r, unsigned n)
{
	unsigned done = 0;

	for (unsigned i = 0; i < n; i++)
		done += atomic_load(&r[i].done) > 0;
	return done;
}

/* All clients ask for an item that no server has. The first client whose read
 * fails pushes the item. Returns the number of clients that would read from the
 * origin. */
static unsigned contend(struct peers **p, unsigned n, unsigned number)
{
	struct asked r[CONTENDERS_MAX];
	unsigned winners = 0;

	for (unsigned i = 0; i < n; i++)
		ask(p[i], &r[i], number, ITEM_BYTES);
	PEERS_UNTIL(how_many_are_done(r, n) > 0);
	for (unsigned i = 0; i < n; i++)
		if (atomic_load(&r[i].done) > 0) {
			ck_assert_int_eq(answer_of(&r[i]), -ENOENT);
			(void)push_item(p[i], number, ITEM_BYTES);
			break;
		}
	for (unsigned i = 0; i < n; i++)
		winners += answer_of(&r[i]) != 0;
	return winners;
}

static const unsigned contenders[] = {2, CONTENDERS_MAX};

START_TEST(test_exactly_one_of_those_that_ask_reads_the_origin)
{
	unsigned n = contenders[_i], number = 10, clean = 0;
	struct peers *p[CONTENDERS_MAX];

	for (unsigned i = 0; i < n; i++)
		p[i] = peers_client_up(PEERS_DATASET, "");
	for (; clean < 5 && number < 10 + PEERS_TRIES; number++) {
		uint64_t begin_ns = clock_now_ns();
		unsigned winners = contend(p, n, number);

		if (clock_now_ns() < begin_ns + PEERS_LIMIT_NS)
			ck_assert_uint_eq(winners, 1);
		clean += winners == 1;
	}
	ck_assert_uint_eq(clean, 5);
	for (unsigned i = 0; i < n; i++)
		peers_stop(p[i]);
}
END_TEST

START_TEST(test_a_dead_holder_is_waited_for_no_longer_than_its_beats)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	struct peers *b = peers_client_up(PEERS_DATASET, "");
	struct asked first, second;

	ck_assert_int_eq(
		ask_again(a, &first, 40, ITEM_BYTES, -ENOENT), -ENOENT);
	ask(b, &second, 40, ITEM_BYTES);
	peers_stop(a);
	ck_assert_int_eq(answer_of(&second), -ENOENT);
	/* The read cannot end earlier, unless the server was slow, too. */
	ck_assert_uint_ge(asked_ns(&second), PEERS_LIMIT_NS);
	printf("the holder was waited for %.0f ms\n",
		(double)asked_ns(&second) / 1e6);
	ck_assert_uint_lt(asked_ns(&second), 10 * NS_PER_S);
	peers_stop(b);
}
END_TEST

/* -- Memory that is full --------------------------------------------------- */

/* memcached has two ways to run out of memory: at once, and in the middle of a
 * value. */
static const char *const full_options[] = {
	"no_slab_reassign", "no_slab_reassign,slab_chunk_max=16384"};

/* Push at most `most` items, beginning with `from`. Returns the item that is
 * refused. */
static unsigned fill_up(struct peers *p, unsigned from, unsigned most)
{
	for (unsigned number = from; number < from + most; number++)
		if (push_item(p, number, UNIT_BYTES) == 0)
			return number;
	ck_abort_msg("nothing was refused");
}

START_TEST(test_a_refused_unit_leaves_nothing_that_others_wait_for)
{
	char command[200], line[200], key[UNIT_KEY_MAX];
	struct provider_item item;
	struct peers *a, *b;
	struct asked r;
	unsigned number;

	engine_start("8", full_options[_i]);
	a = peers_client_up(PEERS_DATASET, "");
	b = peers_client_up(PEERS_DATASET, "");
	(void)fill_up(a, 50, 100);
	number = fill_up(b, 150, 100);
	ck_assert_uint_eq(peers_now(b).refused, 1);
	item = item_of(number, UNIT_BYTES);
	(void)unit_key(key, item_key(&item), 0);
	/* After the answer, the client deletes the key. */
	(void)snprintf(command, sizeof(command), "mg %s t\r\n", key);
	PEERS_UNTIL((engine_says(command, line, sizeof(line)),
		strcmp(line, "EN\r\n") == 0));
	/* A host that fetches an item whose push is refused leaves a note for
	 * the other hosts. */
	number += 100;
	ck_assert_int_eq(
		ask_again(a, &r, number, UNIT_BYTES, -ENOENT), -ENOENT);
	ck_assert_uint_eq(push_item(a, number, UNIT_BYTES), 0);
	for (unsigned i = 0; i < PEERS_TRIES; i++) {
		ask(b, &r, number, UNIT_BYTES);
		ck_assert_int_lt(answer_of(&r), 0);
		if (asked_ns(&r) < PEERS_LIMIT_NS)
			break;
	}
	ck_assert_int_eq(answer_of(&r), -ENOENT);
	ck_assert_uint_lt(asked_ns(&r), PEERS_LIMIT_NS);
	peers_stop(a);
	peers_stop(b);
}
END_TEST

/* -- Servers that come back ------------------------------------------------ */

START_TEST(test_a_restarted_server_is_used_again)
{
	struct peers *a = peers_client_up(PEERS_DATASET, "");
	uint64_t begin_ns;
	struct asked r;

	ck_assert_uint_eq(push_item(a, 300, ITEM_BYTES), 3);
	engine_kill();
	ask(a, &r, 300, ITEM_BYTES);
	ck_assert_int_lt(answer_of(&r), 0);
	PEERS_UNTIL(peers_now(a).state == PEER_DOWN);
	engine_start("64", "no_slab_reassign");
	begin_ns = clock_now_ns();
	PEERS_UNTIL(peers_now(a).state == PEER_UP);
	printf("used again after %.0f ms\n",
		(double)(clock_now_ns() - begin_ns) / 1e6);
	ck_assert_uint_lt(clock_now_ns() - begin_ns, 20 * NS_PER_S);
	ck_assert_uint_eq(push_item(a, 300, ITEM_BYTES), 3);
	ck_assert_int_eq(ask_again(a, &r, 300, ITEM_BYTES, 0), 0);
	peers_stop(a);
}
END_TEST

int main(void)
{
	Suite *s;
	TCase *t, *full;

	if (system("memcached -V >/dev/null 2>&1") != 0) {
		printf("SKIP: needs memcached\n");
		return 77;
	}
	s = suite_create("peers");
	t = case_with(s, "peers", setup, teardown);
	full = case_with(s, "full", setup_small, teardown);
	tcase_add_test(t, test_an_item_that_was_pushed_is_read_by_others);
	tcase_add_test(
		t, test_units_that_are_there_come_even_if_others_are_missing);
	tcase_add_loop_test(
		t, test_another_secret_or_dataset_never_gives_a_byte, 0, 2);
	tcase_add_test(t, test_a_few_units_of_another_mount_are_compared);
	tcase_add_test(
		t, test_units_of_another_dataset_are_neither_used_nor_replaced);
	tcase_add_test(
		t, test_nothing_that_the_origin_does_not_confirm_is_used);
	tcase_add_test(t, test_hosts_know_that_their_secrets_differ);
	tcase_add_loop_test(
		t, test_exactly_one_of_those_that_ask_reads_the_origin, 0, 2);
	tcase_add_test(
		t, test_a_dead_holder_is_waited_for_no_longer_than_its_beats);
	tcase_add_loop_test(full,
		test_a_refused_unit_leaves_nothing_that_others_wait_for, 0, 2);
	tcase_add_test(t, test_a_restarted_server_is_used_again);
	return run_suite(s);
}
