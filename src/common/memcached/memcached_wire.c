/* SPDX-License-Identifier: MIT */
/* One connection to a memcached. Only the thread of its loop uses it. */
#include "common/memcached/memcached_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/clock.h"

/* Room for some of the next answers after one with the longest value. */
#define WIRE_MORE_BYTES ((size_t)256 << 10)
#define WIRE_IOV_MAX 32
/* A request has up to four parts: line, head, body, CR LF. */
#define WIRE_PARTS 4

enum wire_state { WIRE_CLOSED, WIRE_CONNECTING, WIRE_OPEN };

struct wire {
	void *owner; /* set once, like the next two members */
	struct wire_config config;
	size_t in_bytes;
	int fd;
	enum wire_state state;
	uint32_t events;  /* events for which the loop watches the connection */
	uint32_t opaque;  /* the last opaque that was used */
	struct list line; /* requests in flight, oldest first */
	unsigned nline;
	size_t cost_bytes;
	/* The first request that is not sent in full, and how many of its bytes
	 * are sent. */
	struct list *unsent;
	size_t sent_bytes;
	/* time at which the oldest request began to wait for its answer; while
	 * connecting, the time at which that began */
	uint64_t since_ns;
	uint64_t received;
	size_t from, to; /* in[from] to in[to - 1] are not parsed yet */
	uint8_t in[];
};

/* Room for an answer with the longest value. */
static size_t wire_answer_max(const struct wire *w)
{
	return (size_t)w->config.value_max_bytes + META_LINE_MAX;
}

struct wire *wire_new(const struct wire_config *config, void *owner)
{
	size_t in_bytes = (size_t)config->value_max_bytes + META_LINE_MAX +
		WIRE_MORE_BYTES;
	struct wire *w = malloc(sizeof(*w) + in_bytes);

	if (!w)
		return NULL;
	*w = (struct wire){
		.owner = owner, .config = *config, .in_bytes = in_bytes};
	w->fd = -1;
	list_init(&w->line);
	w->unsent = &w->line;
	return w;
}

void wire_free(struct wire *w)
{
	if (w)
		wire_shut(w, -ECANCELED);
	free(w);
}

void *wire_owner(const struct wire *w)
{
	return w->owner;
}

bool wire_is_closed(const struct wire *w)
{
	return w->state == WIRE_CLOSED;
}

bool wire_is_open(const struct wire *w)
{
	return w->state == WIRE_OPEN;
}

size_t wire_cost(const struct wire *w)
{
	return w->cost_bytes;
}

unsigned wire_requests(const struct wire *w)
{
	return w->nline;
}

uint64_t wire_take_received(struct wire *w)
{
	uint64_t bytes = w->received;

	w->received = 0;
	return bytes;
}

/* -- Life ------------------------------------------------------------------ */

static int wire_poll_for(struct wire *w, uint32_t events)
{
	if (events == w->events)
		return 0;
	w->events = events;
	return loop_watch(w->config.loop, w->fd, events, (uintptr_t)w);
}

int wire_open(struct wire *w, const struct sockaddr *addr, socklen_t len,
	uint64_t now_ns)
{
	int one = 1, rc;

	w->fd = socket(
		addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0)
		return -errno;
	if (addr->sa_family != AF_UNIX)
		/* If this fails, the connection is only slower. */
		(void)setsockopt(
			w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	w->events = 0;
	rc = connect(w->fd, addr, len) < 0 && errno != EINPROGRESS ? -errno : 0;
	if (rc == 0)
		rc = wire_poll_for(w, EPOLLIN | EPOLLOUT);
	if (rc < 0) {
		(void)close(w->fd); /* cannot lose data: no request was sent */
		w->fd = -1;
		return rc;
	}
	w->state = WIRE_CONNECTING;
	w->since_ns = now_ns;
	w->from = w->to = 0;
	w->received = 0;
	return 0;
}

static void wire_forget(struct wire *w, struct request *q)
{
	list_del(&q->link);
	w->nline--;
	w->cost_bytes -= q->cost_bytes + q->body_bytes;
}

void wire_shut(struct wire *w, int status)
{
	struct list failed;

	if (w->state == WIRE_CLOSED)
		return;
	w->state = WIRE_CLOSED;
	/* close() also removes the descriptor from the loop */
	(void)close(w->fd);
	w->fd = -1;
	list_init(&failed);
	list_splice_tail(&failed, &w->line);
	w->unsent = &w->line;
	w->sent_bytes = 0;
	w->nline = 0;
	w->cost_bytes = 0;
	while (!list_empty(&failed)) {
		struct request *q = LIST_FIRST(&failed, struct request, link);

		list_del(&q->link);
		q->answered(q, status, NULL, NULL);
	}
}

int wire_check(const struct wire *w, uint64_t now_ns)
{
	if (w->state == WIRE_CLOSED ||
		(w->state == WIRE_OPEN && list_empty(&w->line)))
		return 0;
	return now_ns > w->since_ns + w->config.answer_ms * NS_PER_MS
		? -ETIMEDOUT
		: 0;
}

/* -- Sending --------------------------------------------------------------- */

void request_line(struct request *q, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(q->line, sizeof(q->line), format, args);
	va_end(args);
	q->line_bytes = len < (int)sizeof(q->line) ? (size_t)len : 0;
}

void wire_queue(struct wire *w, struct request *q, uint64_t now_ns)
{
	/* The line fits into this room, because its parts, the key and the
	 * numbers have limited lengths. */
	size_t room = sizeof(q->line) - q->line_bytes;
	int len;

	if (++w->opaque == 0)
		w->opaque = 1;
	q->opaque = q->plain ? 0 : w->opaque;
	len = q->plain ? snprintf(q->line + q->line_bytes, room, "\r\n")
		       : snprintf(q->line + q->line_bytes, room, " O%u\r\n",
				 q->opaque);
	q->line_bytes += (size_t)len;
	if (list_empty(&w->line) && w->state == WIRE_OPEN)
		w->since_ns = now_ns;
	list_add_tail(&w->line, &q->link);
	if (w->unsent == &w->line) {
		w->unsent = &q->link;
		w->sent_bytes = 0;
	}
	w->nline++;
	w->cost_bytes += q->cost_bytes + q->body_bytes;
}

static size_t request_bytes(const struct request *q)
{
	return q->line_bytes +
		(q->body_bytes ? q->head_bytes + q->body_bytes + 2 : 0);
}

/* Add a part of the request. *skip bytes of the request have been sent, so
 * leave them out. */
static int wire_part(
	struct iovec *iov, const void *data, size_t len, size_t *skip)
{
	if (*skip >= len) {
		*skip -= len;
		return 0;
	}
	/* sendmsg() does not write to it. */
	iov->iov_base = (void *)((uintptr_t)data + *skip);
	iov->iov_len = len - *skip;
	*skip = 0;
	return 1;
}

static int wire_gather(const struct wire *w, struct iovec *iov)
{
	size_t skip = w->sent_bytes;
	int n = 0;

	for (struct list *l = w->unsent;
		l != &w->line && n + WIRE_PARTS <= WIRE_IOV_MAX;
		l = list_next(l)) {
		const struct request *q = CONTAINER_OF(l, struct request, link);

		n += wire_part(iov + n, q->line, q->line_bytes, &skip);
		if (q->body_bytes == 0)
			continue;
		n += wire_part(iov + n, q->head, q->head_bytes, &skip);
		n += wire_part(iov + n, q->body, q->body_bytes, &skip);
		n += wire_part(iov + n, "\r\n", 2, &skip);
	}
	return n;
}

static void wire_sent(struct wire *w, size_t bytes)
{
	w->sent_bytes += bytes;
	while (w->unsent != &w->line) {
		size_t all = request_bytes(
			CONTAINER_OF(w->unsent, struct request, link));

		if (w->sent_bytes < all)
			return;
		w->sent_bytes -= all;
		w->unsent = list_next(w->unsent);
	}
}

int wire_flush(struct wire *w)
{
	struct iovec iov[WIRE_IOV_MAX];

	if (w->state != WIRE_OPEN)
		return 0;
	while (w->unsent != &w->line) {
		struct msghdr m = {.msg_iov = iov};
		ssize_t n;

		m.msg_iovlen = (size_t)wire_gather(w, iov);
		n = sendmsg(w->fd, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return wire_poll_for(w, EPOLLIN | EPOLLOUT);
		if (n < 0)
			return -errno;
		wire_sent(w, (size_t)n);
	}
	return 0; /* wire_event() returns, and the loop watches for EPOLLOUT */
}

/* -- Receiving ------------------------------------------------------------- */

/* Does the answer belong to the request? An error line has no opaque; every
 * other answer to a meta command has one. */
static bool wire_fits(const struct request *q, const struct meta_answer *a)
{
	if (a->kind == META_ERROR || a->kind == META_FULL)
		return true;
	if (q->lines)
		return a->kind == META_STAT || a->kind == META_END;
	if (q->plain)
		return a->kind == META_VERSION || a->kind == META_MN;
	return a->opaque == q->opaque && a->kind <= META_EX;
}

/* Take one answer out of the buffer. Returns 1 if there was one, 0 if more
 * bytes are needed, or -errno. If a request has not been sent in full, its only
 * possible answer is an error. */
static int wire_take(struct wire *w, uint64_t now_ns)
{
	const uint8_t *at = w->in + w->from;
	size_t have = w->to - w->from, all;
	struct meta_answer a;
	struct request *q;
	ssize_t n = meta_parse(at, have, w->config.value_max_bytes, &a);

	if (n <= 0)
		return (int)n;
	if (list_empty(&w->line))
		return -EBADMSG;
	q = LIST_FIRST(&w->line, struct request, link);
	all = (size_t)n;
	if (!wire_fits(q, &a))
		return -EBADMSG;
	/* A server may refuse a value before it has received all of it. */
	if (list_next(&w->line) == w->unsent)
		return a.kind >= META_FULL ? 0 : -EBADMSG;
	if (a.kind == META_VA) {
		all += a.value_bytes + 2u;
		if (have < all)
			return 0;
		if (memcmp(at + all - 2, "\r\n", 2) != 0)
			return -EBADMSG;
	}
	w->from += all;
	if (a.kind != META_STAT) {
		w->since_ns = now_ns;
		wire_forget(w, q);
	}
	q->answered(q, 0, &a, a.kind == META_VA ? at + n : NULL);
	return 1;
}

static int wire_parse(struct wire *w, uint64_t now_ns)
{
	int rc;

	do
		rc = w->from < w->to ? wire_take(w, now_ns) : 0;
	while (rc > 0);
	return rc;
}

/* Move the bytes that are not parsed to the front, so that a whole answer fits
 * after them. */
static void wire_make_room(struct wire *w)
{
	if (w->from == w->to)
		w->from = w->to = 0;
	if (w->in_bytes - w->from >= wire_answer_max(w) &&
		w->in_bytes - w->to >= META_LINE_MAX)
		return;
	memmove(w->in, w->in + w->from, w->to - w->from);
	w->to -= w->from;
	w->from = 0;
}

static int wire_receive(struct wire *w, uint64_t now_ns)
{
	ssize_t n;

	wire_make_room(w);
	n = recv(w->fd, w->in + w->to, w->in_bytes - w->to, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	w->to += (size_t)n;
	w->received += (size_t)n;
	return wire_parse(w, now_ns);
}

static int wire_connected(struct wire *w, uint64_t now_ns)
{
	int status = 0;
	socklen_t len = sizeof(status);

	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &status, &len) < 0)
		return -errno;
	if (status != 0)
		return -status;
	w->state = WIRE_OPEN;
	w->since_ns = now_ns;
	return wire_flush(w);
}

int wire_event(struct wire *w, uint32_t events, uint64_t now_ns)
{
	int rc = 0;

	if (w->state == WIRE_CLOSED)
		/* the loop had queued the event before the connection was
		 * closed */
		return 0;
	if (w->state == WIRE_CONNECTING) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			rc = wire_connected(w, now_ns);
		return rc;
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		rc = wire_receive(w, now_ns);
	if (rc == 0 && events & EPOLLOUT)
		rc = wire_flush(w);
	/* Parse answers again: one may have waited until its request was sent
	 * in full. */
	if (rc == 0)
		rc = wire_parse(w, now_ns);
	if (rc == 0 && w->unsent == &w->line)
		rc = wire_poll_for(w, EPOLLIN);
	return rc;
}
