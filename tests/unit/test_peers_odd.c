/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/origin/peer/peer.h with a stand-in for memcached that has every
 * value, and gives wrong answers: no wrong byte is used, done() is called once
 * in time, and the error is counted. The stand-in has a thread for each
 * connection.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "peers_fixture.h"

#define ITEM_BYTES (2 * UNIT_BYTES + 70001)
#define LARGE_BYTES ((uint64_t)8 << 20)
/* A read ends earlier than this; the limit allows for a busy machine. */
#define READ_MAX_NS (5 * NS_PER_S)
#define CONNECTIONS_MAX 64

enum fault {
	HONEST,
	SHORT,	 /* the value ends too early */
	LONG,	 /* the announced length is larger than the value */
	HUGE,	 /* the announced length exceeds every limit */
	SWAPPED, /* the value is that of the next unit */
	OPAQUE,	 /* the answer belongs to another request */
	CUT,	 /* the answer stops in the middle of a value */
	DRIP,	 /* a byte comes every 50 ms */
	GARBAGE,
	ENDLESS, /* a line never ends */
	RESET,	 /* the connection is reset in the middle of a value */
	FLOOD,	 /* the statistics never end */
	SLOW,	 /* all connections together get 5 MB/s */
};

struct stand_in {
	int listener;
	enum fault fault;
	uint64_t item_bytes;
	struct hash128 item;
	pthread_t thread, served[CONNECTIONS_MAX];
	int fd[CONNECTIONS_MAX];
	unsigned n;
	/* number of connections that the client has closed */
	_Atomic unsigned closed;
	_Atomic unsigned stats; /* number of requests for statistics */
	_Atomic bool stopping;
};

static struct stand_in it;

struct serving {
	int fd;
	FILE *in;
};

static void nap(long ms)
{
	(void)nanosleep(
		&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* -- Answers --------------------------------------------------------------- */

static bool say(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0 && !atomic_load(&it.stopping)) {
		size_t part = n;
		ssize_t sent;

		if (it.fault == DRIP)
			part = 1;
		else if (it.fault == SLOW && part > 25000)
			part = 25000;
		sent = send(fd, at, part, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
		if (it.fault == DRIP)
			nap(50);
		else if (it.fault == SLOW)
			/* half of the speed, because there are two connections
			 */
			nap(sent / 2500);
	}
	return n == 0;
}

static bool say_text(int fd, const char *text)
{
	return send(fd, text, strlen(text), MSG_NOSIGNAL) ==
		(ssize_t)strlen(text);
}

/* Write the value of a unit of item 0. Returns its length. */
static size_t unit_value(uint8_t *value, uint32_t n)
{
	uint64_t begin = (uint64_t)n * UNIT_BYTES;
	uint64_t left = it.item_bytes - begin;
	struct unit u = {it.item, n,
		(uint32_t)(left < UNIT_BYTES ? left : UNIT_BYTES), 7};

	for (uint32_t i = 0; i < u.bytes; i++)
		value[UNIT_HEAD_BYTES + i] = item_byte(0, begin + i);
	unit_seal(value, unit_seed(key_digest(PEERS_DATASET), "", 0), &u,
		value + UNIT_HEAD_BYTES);
	return UNIT_HEAD_BYTES + u.bytes;
}

static bool say_noise(int fd)
{
	static const char line[] = "VA what is this\r\n\1\2\377\r\nEN\r\n";
	char endless[8192];

	if (it.fault == GARBAGE)
		return say_text(fd, line);
	memset(endless, 'x', sizeof(endless));
	while (say(fd, endless, sizeof(endless)))
		nap(1);
	return false;
}

static void reset(int fd)
{
	const struct linger now = {1, 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)shutdown(fd, SHUT_RDWR);
}

static bool say_value(int fd, uint32_t n, unsigned opaque)
{
	uint8_t *value = malloc(UNIT_VALUE_MAX + 2);
	size_t bytes = unit_value(value, it.fault == SWAPPED ? n ^ 1 : n);
	size_t said = bytes;
	char line[64];
	bool going;

	if (it.fault == SHORT)
		said = bytes -= 100;
	if (it.fault == LONG)
		said += 10;
	if (it.fault == HUGE)
		said = UNIT_VALUE_MAX + 1;
	if (it.fault == OPAQUE)
		opaque ^= 1;
	if (it.fault == CUT || it.fault == RESET)
		bytes /= 2;
	(void)snprintf(line, sizeof(line), "VA %zu O%u\r\n", said, opaque);
	going = say(fd, line, strlen(line)) && say(fd, value, bytes);
	if (it.fault == RESET)
		reset(fd);
	if (it.fault != CUT && it.fault != RESET)
		going = going && say(fd, "\r\n", 2);
	free(value);
	return going;
}

/* Answer a get of a unit or of a lease. Each client that asks gets the lease.
 */
static bool say_get(int fd, const char *line)
{
	const char *opaque = strstr(line, " O"), *n = strrchr(line, ':');
	unsigned number = opaque ? (unsigned)strtoul(opaque + 2, NULL, 10) : 0;
	char text[64];

	(void)snprintf(text, sizeof(text), "EN O%u\r\n", number);
	if (strstr(line, ":secret"))
		return say_text(fd, text);
	if (it.fault == GARBAGE || it.fault == ENDLESS)
		return say_noise(fd);
	if (n && n[1] >= '0' && n[1] <= '9')
		return say_value(
			fd, (uint32_t)strtoul(n + 1, NULL, 10), number);
	(void)snprintf(text, sizeof(text), "VA 0 W O%u\r\n\r\n", number);
	return say_text(fd, text);
}

static bool say_done(struct serving *s, const char *line)
{
	const char *opaque = strstr(line, " O"), *space;
	size_t body = 0;
	char text[64];

	space = strchr(line + 3, ' ');
	if (strncmp(line, "ms ", 3) == 0 && space)
		body = strtoul(space, NULL, 10) + 2;
	while (body-- > 0)
		if (getc(s->in) == EOF)
			return false;
	(void)snprintf(text, sizeof(text), "HD O%lu\r\n",
		opaque ? strtoul(opaque + 2, NULL, 10) : 0);
	return say_text(s->fd, text);
}

static bool say_flood(int fd)
{
	char stats[8000];

	for (size_t i = 0; i < sizeof(stats); i += 10)
		memcpy(stats + i, "STAT a 1\r\n", 10);
	while (say(fd, stats, sizeof(stats)))
		continue;
	return false;
}

static bool say_answer(struct serving *s, const char *line)
{
	if (strncmp(line, "version", 7) == 0)
		return say_text(s->fd, "VERSION 1.6.18\r\n");
	if (strncmp(line, "stats settings", 14) == 0)
		return say_text(s->fd,
			"STAT evictions off\r\nSTAT slab_reassign no\r\n"
			"STAT item_size_max 1048576\r\nEND\r\n");
	if (strncmp(line, "stats", 5) == 0 && it.fault == FLOOD &&
		atomic_fetch_add(&it.stats, 1) > 0)
		return say_flood(s->fd);
	if (strncmp(line, "stats", 5) == 0)
		return say_text(s->fd,
			"STAT bytes 1\r\nSTAT limit_maxbytes 67108864\r\n"
			"STAT evictions 0\r\nEND\r\n");
	if (strncmp(line, "mg ", 3) == 0)
		return say_get(s->fd, line);
	return say_done(s, line);
}

/* -- Connections ----------------------------------------------------------- */

static void *serve(void *arg)
{
	struct serving s = {*(int *)arg, NULL};
	char line[512];

	s.in = fdopen(dup(s.fd), "r");
	while (fgets(line, sizeof(line), s.in))
		if (!say_answer(&s, line))
			break;
	/* The stand-in may have stopped sending; the client closes the
	 * connection. */
	while (it.fault != RESET && fgets(line, sizeof(line), s.in))
		continue;
	if (!atomic_load(&it.stopping))
		atomic_fetch_add(&it.closed, 1);
	(void)fclose(s.in);
	return NULL;
}

static void *accept_all(void *arg)
{
	(void)arg;
	while (it.n < CONNECTIONS_MAX) {
		int fd = accept(it.listener, NULL, NULL);

		if (fd < 0)
			return NULL;
		it.fd[it.n] = fd;
		if (pthread_create(
			    &it.served[it.n], NULL, serve, &it.fd[it.n]) != 0)
			abort();
		it.n++;
	}
	return NULL;
}

static void stand_in_start(enum fault fault, uint64_t item_bytes)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct provider_item item = item_of(0, item_bytes);

	it.fault = fault;
	it.item = item_key(&item);
	it.item_bytes = item_bytes;
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", peers_socket);
	it.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(it.listener, 0);
	ck_assert_int_eq(
		bind(it.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(it.listener, CONNECTIONS_MAX), 0);
	ck_assert_int_eq(pthread_create(&it.thread, NULL, accept_all, NULL), 0);
}

static void stand_in_stop(void)
{
	atomic_store(&it.stopping, true);
	(void)shutdown(it.listener, SHUT_RDWR);
	ck_assert_int_eq(pthread_join(it.thread, NULL), 0);
	(void)close(it.listener);
	for (unsigned i = 0; i < it.n; i++) {
		(void)shutdown(it.fd[i], SHUT_RDWR);
		ck_assert_int_eq(pthread_join(it.served[i], NULL), 0);
		(void)close(it.fd[i]);
	}
}

/* -- Tests ----------------------------------------------------------------- */

START_TEST(test_an_honest_stand_in_gives_the_item)
{
	struct peers *p;
	struct asked r;

	stand_in_start(HONEST, ITEM_BYTES);
	p = peers_client_up(PEERS_DATASET, "");
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(ask_again(p, &r, 0, ITEM_BYTES, 0), 0);
	ck_assert_uint_eq(peers_now(p).bad, 0);
	peers_stop(p);
	stand_in_stop();
}
END_TEST

static const struct {
	enum fault fault;
	bool bad; /* the value is bad, but the connection is not */
} faults[] = {
	{SHORT, true},
	{LONG, false},
	{HUGE, false},
	{SWAPPED, true},
	{OPAQUE, false},
	{CUT, false},
	{DRIP, false},
	{GARBAGE, false},
	{ENDLESS, false},
	{RESET, false},
	{FLOOD, false},
};

START_TEST(test_a_wrong_answer_costs_a_bounded_time_and_no_wrong_byte)
{
	struct peers *p;
	struct asked r;

	stand_in_start(faults[_i].fault, ITEM_BYTES);
	p = peers_client_up(PEERS_DATASET, "");
	/* The result is -ENOENT, because the client knows only that the values
	 * are bad. */
	(void)ask_again(
		p, &r, 0, ITEM_BYTES, faults[_i].bad ? -ENOENT : INT_MIN);
	ck_assert_int_lt(answer_of(&r), 0);
	printf("fault %d: %.0f ms\n", faults[_i].fault,
		(double)asked_ns(&r) / 1e6);
	ck_assert_uint_lt(asked_ns(&r), READ_MAX_NS);
	ck_assert_uint_eq(peers_now(p).bad > 0, faults[_i].bad);
	if (!faults[_i].bad) {
		ck_assert_uint_gt(peers_now(p).errors, 0);
		PEERS_UNTIL(atomic_load(&it.closed) > 0);
	}
	peers_stop(p);
	ck_assert_uint_eq(atomic_load(&r.done), 1);
	ck_assert_uint_eq(atomic_load(&r.wrong), 0);
	stand_in_stop();
}
END_TEST

START_TEST(test_a_reader_waits_no_longer_for_a_slow_server_than_for_none)
{
	struct peers *p;
	struct asked r;

	stand_in_start(SLOW, LARGE_BYTES);
	p = peers_client_up(PEERS_DATASET, "");
	for (unsigned i = 0; i < PEERS_TRIES; i++) {
		PEERS_UNTIL(peers_now(p).state == PEER_UP);
		ask(p, &r, 0, LARGE_BYTES);
		ck_assert_int_eq(answer_of(&r), -ETIMEDOUT);
		printf("%.1f MB in %.0f ms\n",
			(double)atomic_load(&r.bytes) / 1e6,
			(double)asked_ns(&r) / 1e6);
		ck_assert_uint_lt(asked_ns(&r), READ_MAX_NS);
		if (atomic_load(&r.bytes) > 0)
			/* on a busy machine no connection may have come */
			break;
	}
	ck_assert_uint_gt(atomic_load(&r.bytes), 0);
	peers_stop(p);
	ck_assert_uint_eq(atomic_load(&r.done), 1);
	ck_assert_uint_eq(atomic_load(&r.wrong), 0);
	stand_in_stop();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("peers_odd");
	TCase *t = case_with(s, "peers_odd", peers_dir_make, peers_dir_remove);

	tcase_add_test(t, test_an_honest_stand_in_gives_the_item);
	tcase_add_loop_test(t,
		test_a_wrong_answer_costs_a_bounded_time_and_no_wrong_byte, 0,
		(int)(sizeof(faults) / sizeof(faults[0])));
	tcase_add_test(t,
		test_a_reader_waits_no_longer_for_a_slow_server_than_for_none);
	return run_suite(s);
}
