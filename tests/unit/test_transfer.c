/* SPDX-License-Identifier: MIT */
/* Transfers of the HTTP engine, from a server that sends as slowly as a link
 * that many share. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "suite.h"
#include "web/web.h"

#define PIECES 300
#define PIECE_BYTES 1000
/* The link's time for a piece. */
#define PIECE_NS (200 * NS_PER_US)

/* -- The server: one connection, a long answer and a short one ------------- */

static int listener;
static char pieces[PIECE_BYTES];

static void put(int fd, const void *bytes, size_t len)
{
	ck_assert_int_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void read_request(int fd)
{
	char text[4096] = "";
	size_t len = 0;

	while (!strstr(text, "\r\n\r\n")) {
		ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

		ck_assert_int_gt(n, 0);
		len += (size_t)n;
		text[len] = '\0';
	}
}

static void *serve(void *arg)
{
	const struct timespec pause = {0, PIECE_NS};
	int one = 1, fd = accept(listener, NULL, NULL);
	char head[100];

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	read_request(fd);
	put(fd, head,
		(size_t)snprintf(head, sizeof(head),
			"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
			PIECES * PIECE_BYTES));
	for (int i = 0; i < PIECES; i++) {
		nanosleep(&pause, NULL);
		put(fd, pieces, PIECE_BYTES);
	}
	read_request(fd);
	strcpy(head, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
	put(fd, head, strlen(head));
	ck_assert_int_eq(recv(fd, head, 1, 0), 0); /* the client closes it */
	close(fd);
	return arg;
}

static unsigned listen_here(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&at, &len);
	return ntohs(at.sin_port);
}

/* -- The client ------------------------------------------------------------ */

struct get {
	struct transfer t;
	struct post begin;
	struct loop *loop;
	char url[64];
	size_t bytes, calls;
	int status;
	sem_t ended;
};

static struct get *get_of(struct transfer *t)
{
	return CONTAINER_OF(t, struct get, t);
}

static int get_prepare(struct transfer *t, struct request_text *text)
{
	bytes_text(&text->url, get_of(t)->url);
	return 0;
}

static int get_head(struct transfer *t, const struct head *h)
{
	(void)t;
	return h->code == 200 ? 0 : -1;
}

static int get_data(struct transfer *t, const void *data, size_t len)
{
	(void)data;
	get_of(t)->bytes += len;
	get_of(t)->calls++;
	return 0;
}

static void get_done(struct transfer *t, int status)
{
	get_of(t)->status = status;
	sem_post(&get_of(t)->ended);
}

static void get_begin(struct post *p)
{
	struct get *g = CONTAINER_OF(p, struct get, begin);

	transfer_start(g->loop, &g->t);
}

static void get(struct get *g, struct engine *e, unsigned port)
{
	static const struct transfer_ops ops = {
		.prepare = get_prepare,
		.head = get_head,
		.data = get_data,
		.done = get_done,
	};

	*g = (struct get){.t.ops = &ops, .begin.run = get_begin};
	sem_init(&g->ended, 0, 0);
	(void)snprintf(g->url, sizeof(g->url), "http://127.0.0.1:%u/", port);
	g->loop = engine_pick(e);
	loop_post(g->loop, &g->begin);
	while (sem_wait(&g->ended) < 0)
		continue;
	sem_destroy(&g->ended);
	ck_assert_int_eq(g->status, 0);
}

/* Both over one connection, which would miss the end of the short answer if it
 * still waited for as many bytes as before. */
START_TEST(test_a_slow_link_wakes_a_loop_for_several_pieces_at_a_time)
{
	struct counters counters = {0};
	struct engine_config config = {.loops = 1, .counters = &counters};
	unsigned port = listen_here();
	struct engine *e;
	struct error err;
	struct get g;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
	ck_assert_int_eq(engine_new(&e, &config, &err), 0);
	get(&g, e, port);
	ck_assert_uint_eq(g.bytes, PIECES * PIECE_BYTES);
	ck_assert_uint_lt(g.calls, PIECES / 4);
	get(&g, e, port);
	ck_assert_uint_eq(g.bytes, 3);
	engine_free(e);
	pthread_join(thread, NULL);
	close(listener);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("transfer");
	TCase *t = case_of(s, "slow");

	tcase_add_test(t,
		test_a_slow_link_wakes_a_loop_for_several_pieces_at_a_time);
	return run_suite(s);
}
