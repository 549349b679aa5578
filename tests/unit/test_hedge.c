/* SPDX-License-Identifier: MIT */
/* Tests of a read that is requested twice, because its answer is late. The test
 * is the server: the test decides the answers and their times. */
#include "origin_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "origin/object/object.h"

#define FILE_BYTES 5000u
#define FIRST 100u
#define LENGTH 1000u
#define HALF (LENGTH / 2)

static int listener;
static struct origin *o;
static struct counters counters;

static unsigned char byte_of(size_t i)
{
	return (unsigned char)(i % 251);
}

static void open_server(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct object_config config = {.loops = 1, .counters = &counters};
	socklen_t size = sizeof(at);
	struct error err = {""};
	char url[64];

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	memset(&counters, 0, sizeof(counters));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(
		bind(listener, (struct sockaddr *)(void *)&at, size), 0);
	ck_assert_int_eq(listen(listener, 4), 0);
	ck_assert_int_eq(
		getsockname(listener, (struct sockaddr *)(void *)&at, &size),
		0);
	(void)snprintf(
		url, sizeof(url), "http://127.0.0.1:%d/d", ntohs(at.sin_port));
	ck_assert_msg(object_new(&o, url, &config, &err) == 0, "%s", err.msg);
}

/* Read a whole request. */
static void read_request(int fd)
{
	char head[4096];
	size_t n = 0;

	do {
		ssize_t got = recv(fd, head + n, sizeof(head) - 1 - n, 0);

		ck_assert_int_gt(got, 0);
		n += (size_t)got;
		head[n] = '\0';
	} while (!strstr(head, "\r\n\r\n"));
	ck_assert_ptr_nonnull(strstr(head, "Range: bytes=100-1099\r\n"));
}

/* Wait until the next request has arrived completely. Returns its connection,
 * which must be new. */
static int take_request(void)
{
	int fd = accept(listener, NULL, NULL);

	ck_assert_int_ge(fd, 0);
	read_request(fd);
	return fd;
}

static void send_head(int fd)
{
	char head[200];

	(void)snprintf(head, sizeof(head),
		"HTTP/1.1 206 Partial Content\r\nContent-Length: %u\r\n"
		"Content-Range: bytes %u-%u/%u\r\n\r\n",
		LENGTH, FIRST, FIRST + LENGTH - 1, FILE_BYTES);
	ck_assert_int_gt(send(fd, head, strlen(head), MSG_NOSIGNAL), 0);
}

/* Send bytes from `at` on of the requested range. */
static void send_bytes(int fd, size_t at, size_t len)
{
	unsigned char bytes[LENGTH];

	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_of(FIRST + at + i);
	(void)send(fd, bytes, len, MSG_NOSIGNAL);
}

static size_t got_so_far(struct read_wait *w)
{
	size_t got;

	pthread_mutex_lock(&fixture_lock);
	got = w->got;
	pthread_mutex_unlock(&fixture_lock);
	return got;
}

/* The answer to the first request comes in the middle of the answer to the
 * second one. */
START_TEST(test_of_two_answers_each_byte_comes_from_one)
{
	struct origin_file *f;
	struct read_wait w;
	int late, hedge;
	char c;

	version = (struct file_version){.size_bytes = FILE_BYTES};
	open_server();
	f = origin_file_new(o, "f");
	read_begin(o, &w, f, version, FIRST, LENGTH);
	late = take_request();
	hedge = take_request();
	send_head(hedge);
	send_bytes(hedge, 0, HALF);
	while (got_so_far(&w) < HALF)
		/* this waits for a condition; the time does not matter */
		(void)usleep(100);
	send_head(late);
	send_bytes(late, 0, LENGTH);
	/* The slower request is no longer wanted, and its connection ends. */
	ck_assert_int_le(recv(late, &c, 1, 0), 0);
	ck_assert_uint_eq(got_so_far(&w), HALF);
	send_bytes(hedge, HALF, LENGTH - HALF);
	ck_assert_int_eq(read_end(&w), LENGTH);
	for (size_t i = 0; i < LENGTH; i++)
		ck_assert_uint_eq(w.data[i], byte_of(FIRST + i));
	ck_assert_uint_eq(counters.origin_hedged, 1);
	ck_assert_uint_eq(w.done, 1);
	free(w.data);
	origin_file_free(o, f);
	ck_assert(origin_free(o));
	close(late);
	close(hedge);
	close(listener);
}
END_TEST

/* Returns which of these descriptors has data to read or a connection to
 * accept. */
static int first_ready(int a, int b, int c)
{
	struct pollfd p[3] = {{.fd = a, .events = POLLIN},
		{.fd = b, .events = POLLIN}, {.fd = c, .events = POLLIN}};

	ck_assert_int_gt(poll(p, 3, -1), 0);
	for (int i = 0; i < 3; i++)
		if (p[i].revents)
			return p[i].fd;
	return -1;
}

/* Make two reads at a time, so that two connections are kept open. Returns
 * false if the test was so slow that a read was requested twice. */
static bool keep_two(struct origin_file *f, int fd[2])
{
	struct read_wait w[2];

	for (int i = 0; i < 2; i++)
		read_begin(o, &w[i], f, version, FIRST, LENGTH);
	for (int i = 0; i < 2; i++)
		fd[i] = take_request();
	for (int i = 0; i < 2; i++) {
		send_head(fd[i]);
		send_bytes(fd[i], 0, LENGTH);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(read_end(&w[i]), LENGTH);
		free(w[i].data);
	}
	return counters.origin_hedged == 0;
}

static struct origin_file *open_with_two(int fd[2])
{
	for (;;) {
		struct origin_file *f;

		open_server();
		f = origin_file_new(o, "f");
		if (keep_two(f, fd))
			return f;
		origin_file_free(o, f);
		ck_assert(origin_free(o));
		close(fd[0]);
		close(fd[1]);
		close(listener);
	}
}

/* All kept connections may be slow for the same reason, so the second request
 * uses a new one. */
START_TEST(test_the_second_request_goes_over_a_new_connection)
{
	struct origin_file *f;
	struct read_wait w;
	int fd[2], late, hedge;

	version = (struct file_version){.size_bytes = FILE_BYTES};
	f = open_with_two(fd);
	read_begin(o, &w, f, version, FIRST, LENGTH);
	late = first_ready(fd[0], fd[1], listener);
	ck_assert_int_ne(late, listener);
	read_request(late);
	ck_assert_int_eq(first_ready(fd[0], fd[1], listener), listener);
	hedge = take_request();
	ck_assert_uint_eq(counters.origin_hedged, 1);
	send_head(hedge);
	send_bytes(hedge, 0, LENGTH);
	ck_assert_int_eq(read_end(&w), LENGTH);
	free(w.data);
	origin_file_free(o, f);
	ck_assert(origin_free(o));
	close(fd[0]);
	close(fd[1]);
	close(hedge);
	close(listener);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hedge");
	TCase *t = case_of(s, "hedge");

	tcase_add_test(t, test_of_two_answers_each_byte_comes_from_one);
	tcase_add_test(t, test_the_second_request_goes_over_a_new_connection);
	return run_suite(s);
}
