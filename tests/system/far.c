/* SPDX-License-Identifier: MIT */
/* far [--port N] [name=value ...]: stands in for remote services; see far.h.
 * Prints its port, and serves until it is killed or its standard input ends.
 * One thread owns all data. */
#include "far.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define IN_MAX ((size_t)1 << 20)
#define SLICE ((size_t)64 << 10)

struct conn {
	int fd;
	/* neighbours in the list `waiting` or `busy` */
	struct conn *next, *prev;
	bool listed, waits_out;
	bool counted; /* the connection counts in `going` */
	char *in;
	size_t len, used;
	enum { READING, WAITING, SENDING, SILENT } state;
	double due_ms;
	struct far_answer answer;
	char head[3072];
	size_t head_len, head_sent;
	uint64_t sent;
	bool close_after;
};

struct far_settings far_set = {.expire_s = 3600, .files = 1000, .size = 100000};
struct far_counts far_count;
static int epoll_fd;
static struct conn busy = {.next = &busy, .prev = &busy};
static double tokens, tokens_ms;
unsigned far_going;
/* number of bytes that the requests in progress ask for */
static uint64_t going_bytes;

double far_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* -- Lists of connections -------------------------------------------------- */

static void conn_list(struct conn *c)
{
	if (c->listed)
		return;
	c->listed = true;
	c->prev = busy.prev;
	c->next = &busy;
	busy.prev->next = c;
	busy.prev = c;
}

static void conn_unlist(struct conn *c)
{
	if (!c->listed)
		return;
	c->listed = false;
	c->prev->next = c->next;
	c->next->prev = c->prev;
}

static void conn_poll(struct conn *c, bool out)
{
	struct epoll_event e = {
		.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};

	if (c->waits_out == out)
		return;
	c->waits_out = out;
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static void conn_settle(struct conn *c)
{
	if (!c->counted)
		return;
	far_going--;
	going_bytes -= c->answer.length;
	c->counted = false;
}

static void conn_close(struct conn *c)
{
	conn_unlist(c);
	conn_settle(c);
	close(c->fd);
	free(c->answer.body);
	free(c->in);
	free(c);
}

/* -- Requests -------------------------------------------------------------- */

/* Returns true if *r is a request. It points into c->in, and takes the first
 * c->used bytes. */
static bool parse_request(struct conn *c, struct far_request *r)
{
	char *end, *line, *save = NULL, *word = NULL;
	const char *length;

	memset(r, 0, sizeof(*r));
	c->in[c->len] = '\0';
	end = strstr(c->in, "\r\n\r\n");
	if (!end)
		return false;
	/* Find the length first, because the text is split below. */
	length = strcasestr(c->in, "\r\nContent-Length:");
	if (length && length < end)
		r->body_len = strtoull(length + 17, NULL, 10);
	c->used = (size_t)(end + 4 - c->in) + r->body_len;
	if (c->used > c->len)
		return false;
	r->body = end + 4;
	*end = '\0';
	line = strtok_r(c->in, "\r\n", &save);
	r->method = strtok_r(line, " ", &word);
	r->target = strtok_r(NULL, " ", &word);
	while ((line = strtok_r(NULL, "\r\n", &save)) && r->nheaders < 64) {
		char *colon = strchr(line, ':');

		if (!colon)
			continue;
		*colon++ = '\0';
		colon += strspn(colon, " ");
		r->headers[r->nheaders++] = (struct far_header){line, colon};
	}
	return r->method && r->target;
}

const char *far_header(const struct far_request *r, const char *name)
{
	for (unsigned i = 0; i < r->nheaders; i++)
		if (strcasecmp(r->headers[i].name, name) == 0)
			return r->headers[i].value;
	return NULL;
}

static void conn_answer(struct conn *c, struct far_request *r)
{
	struct far_answer *a = &c->answer;
	char *query, *path = strdup(r->target), length[64] = "";

	memset(a, 0, sizeof(*a));
	query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	/* A client of a proxy sends the whole URL as path. */
	r->path = strncmp(path, "http://", 7) == 0 && strchr(path + 7, '/')
		? strchr(path + 7, '/')
		: path;
	r->query = query ? query : "";
	a->status = 200;
	a->send = UINT64_MAX;
	c->counted = strncmp(r->path, "/-/", 3) != 0;
	far_count.requests += c->counted;
	far_handle(r, a);
	free(path);
	if (!a->unsized)
		snprintf(length, sizeof(length), "Content-Length: %llu\r\n",
			(unsigned long long)a->length);
	c->head_len = (size_t)snprintf(c->head, sizeof(c->head),
		"HTTP/1.1 %u X\r\n%s%s\r\n", a->status, length, a->headers);
	c->close_after = a->unsized || a->send < a->length;
	if (a->send > a->length)
		a->send = a->length;
	if (a->head_only)
		a->send = 0;
	c->head_sent = c->sent = 0;
	c->due_ms = far_now_ms() + a->delay_ms;
	c->state = a->never ? SILENT : a->delay_ms > 0 ? WAITING : SENDING;
	far_going += c->counted;
	going_bytes += c->counted ? a->length : 0;
	if (far_going > far_count.most)
		far_count.most = far_going;
	if (going_bytes > far_count.most_bytes)
		far_count.most_bytes = going_bytes;
	if (c->state == WAITING || c->state == SENDING)
		conn_list(c);
}

static void conn_next(struct conn *c)
{
	struct far_request r;

	if (c->state != READING || !parse_request(c, &r))
		return;
	conn_answer(c, &r);
	memmove(c->in, c->in + c->used, c->len - c->used);
	c->len -= c->used;
}

/* -- Bytes ----------------------------------------------------------------- */

static size_t allowed(size_t want)
{
	double now = far_now_ms();

	if (far_set.rate <= 0)
		return want;
	tokens += (now - tokens_ms) * far_set.rate / 1e3;
	tokens_ms = now;
	if (tokens > far_set.rate / 200 + 65536)
		tokens = far_set.rate / 200 + 65536;
	if (tokens < 1)
		return 0;
	return tokens < (double)want ? (size_t)tokens : want;
}

static size_t body_slice(struct conn *c, const void **at)
{
	struct far_answer *a = &c->answer;
	uint64_t left = a->send - c->sent;

	if (a->pattern) {
		size_t start = (a->pattern_at + c->sent) % FAR_PATTERN;

		*at = a->pattern + start;
		return left < FAR_PATTERN ? (size_t)left : FAR_PATTERN;
	}
	*at = a->body + c->sent;
	return (size_t)left;
}

/* End the request. Returns false if the connection was closed. */
static bool conn_finish(struct conn *c)
{
	free(c->answer.body);
	c->answer.body = NULL;
	conn_unlist(c);
	conn_poll(c, false);
	if (c->close_after) {
		conn_close(c);
		return false;
	}
	c->state = READING;
	conn_settle(c);
	conn_next(c);
	return true;
}

/* Send one slice of the answer. Returns false if the connection was closed. */
static bool conn_send(struct conn *c)
{
	const void *at = NULL;
	size_t head = c->head_len - c->head_sent;
	size_t body = body_slice(c, &at), can;
	struct iovec iov[2];
	ssize_t n;

	if (far_set.rate > 0 && body > SLICE)
		body = SLICE;
	can = allowed(body);
	if (body > 0 && can == 0 && head == 0)
		return true;
	iov[0] = (struct iovec){c->head + c->head_sent, head};
	iov[1] = (struct iovec){(void *)(uintptr_t)at, can};
	n = writev(c->fd, iov, can > 0 && !(head > 0 && far_set.nagle) ? 2 : 1);
	if (n < 0) {
		if (errno == EAGAIN) {
			conn_poll(c, true);
			return true;
		}
		conn_close(c);
		return false;
	}
	if ((size_t)n < head) {
		c->head_sent += (size_t)n;
		return true;
	}
	c->head_sent = c->head_len;
	c->sent += (size_t)n - head;
	far_count.bytes += (size_t)n - head;
	if (c->answer.object)
		far_count.object_bytes += (size_t)n - head;
	if (far_set.rate > 0)
		tokens -= (double)n - (double)head;
	if (c->sent == c->answer.send)
		return conn_finish(c);
	return true;
}

static void conn_read(struct conn *c)
{
	ssize_t n;

	if (!c->in)
		c->in = malloc(IN_MAX + 1);
	if (c->len == IN_MAX) {
		conn_close(c);
		return;
	}
	n = read(c->fd, c->in + c->len, IN_MAX - c->len);
	if (n <= 0) {
		if (n < 0 && errno == EAGAIN)
			return;
		conn_close(c);
		return;
	}
	c->len += (size_t)n;
	conn_next(c);
}

/* -- The loop -------------------------------------------------------------- */

/* Work on all connections once. Returns how long to sleep, in ms. */
static int work(void)
{
	double now = far_now_ms(), next = 1000;
	struct conn *c, *after;

	for (c = busy.next; c != &busy; c = after) {
		after = c->next;
		if (c->state == WAITING && c->due_ms <= now)
			c->state = SENDING;
		if (c->state == WAITING) {
			if (c->due_ms - now < next)
				next = c->due_ms - now;
		} else if (!c->waits_out) {
			uint64_t sent = c->sent;

			if (!conn_send(c))
				continue;
			if (c->state == SENDING && !c->waits_out)
				next = c->sent == sent ? (next < 1 ? next : 1)
						       : 0;
		}
	}
	/* Move the first connection to the end, so that all get their turn. */
	if (busy.next != busy.prev) {
		c = busy.next;
		conn_unlist(c);
		conn_list(c);
	}
	return next <= 0 ? 0 : next < 1 ? 1 : (int)next;
}

static void accept_all(int listener)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL,
			SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

		if (far_set.down > 0) {
			close(fd);
			free(c);
			continue;
		}
		if (far_set.nagle == 0)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				sizeof(one));
		c->fd = fd;
		far_count.connections++;
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
	}
}

static int open_listener(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int one = 1,
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(fd, 1024) < 0) {
		perror("far: cannot listen");
		exit(1);
	}
	getsockname(fd, (struct sockaddr *)&at, &len);
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static void serve(int listener)
{
	struct epoll_event listen_event = {.events = EPOLLIN};
	struct epoll_event input_event = {.events = 0, .data.ptr = &busy};
	struct epoll_event events[128];

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &listen_event);
	/* If standard input is a pipe, epoll reports that its writer has ended.
	 * A file never ends this program. */
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &input_event);
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 128, work());

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!c)
				accept_all(listener);
			else if (c == &busy)
				return;
			else if (events[i].events & EPOLLOUT)
				conn_poll(c, false);
			else
				conn_read(c);
		}
	}
}

int main(int argc, char **argv)
{
	int port = 0;
	struct far_answer a;

	signal(SIGPIPE, SIG_IGN);
	far_make_pattern();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--port") == 0 && i + 1 < argc) {
			port = atoi(argv[++i]);
		} else {
			struct far_request r = {.method = "GET",
				.path = "/-/set",
				.query = argv[i]};

			memset(&a, 0, sizeof(a));
			far_handle(&r, &a);
			free(a.body);
		}
	}
	tokens_ms = far_now_ms();
	serve(open_listener(port));
	return 0;
}
