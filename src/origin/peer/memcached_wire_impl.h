/* SPDX-License-Identifier: MIT */
/*
 * One connection to a memcached: requests go out in order, pipelined, and are
 * answered in order. Any error, including a time-out, closes the connection and
 * fails every request on it. Used only by the thread of the peers. Private to
 * this room.
 */
#ifndef PEER_MEMCACHED_WIRE_IMPL_H
#define PEER_MEMCACHED_WIRE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/base/list.h"
#include "common/base/loop.h"
#include "origin/peer/memcached_meta_impl.h"
#include "origin/peer/peer_unit_impl.h"

/* The time in which an answer must be complete after the one before it. */
#define WIRE_ANSWER_MS 500u

#define WIRE_LINE_MAX 192u

/* Embedded in its owner, who frees it in answered(). */
struct request {
	/*
	 * Called once, or once for each line of `lines` with META_STAT before
	 * the last. status 0: `a` is the answer, and `value` the value of
	 * META_VA, lent for the call. Otherwise -errno: the connection is lost,
	 * `a` is NULL. May send more, but not close connections.
	 */
	void (*answered)(struct request *q, int status,
		const struct meta_answer *a, const uint8_t *value);
	char line[WIRE_LINE_MAX]; /* with CR LF, but for the opaque */
	size_t line_bytes;
	/* After the line, if body_bytes > 0: head, body, CR LF. */
	uint8_t head[UNIT_HEAD_BYTES];
	size_t head_bytes;
	const void *body; /* lent until answered() */
	size_t body_bytes;
	size_t cost_bytes; /* expected of the answer, for wire_cost() */
	bool lines;	   /* `stats`: STAT lines until END */
	bool plain;	   /* no opaque: `stats`, `version`, `mn` */
	struct list link;  /* private */
	uint32_t opaque;   /* private */
};

struct wire;

/* NULL: no memory. The connection is the data of its events. */
struct wire *wire_new(struct loop *loop, void *owner);
void *wire_owner(const struct wire *w);
void wire_free(struct wire *w); /* closed, or it closes with -ECANCELED */

/* Begin to connect. -errno. */
int wire_open(struct wire *w, const struct sockaddr *addr, socklen_t len,
	uint64_t now_ns);
/* Fail all requests with that status. Not from inside answered(). */
void wire_shut(struct wire *w, int status);

bool wire_is_closed(const struct wire *w);
bool wire_is_open(const struct wire *w); /* connected */

/* Write the line of a request: "COMMAND KEY FLAGS", and for ms the number of
 * bytes between KEY and FLAGS. The caller sets the rest of the request. */
void request_line(struct request *q, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Queue a request on a connection that is not closed; wire_flush() sends. */
void wire_queue(struct wire *w, struct request *q, uint64_t now_ns);
/* Returns 0, or -errno: close the connection with that status. */
int wire_flush(struct wire *w);

/* Handle events of epoll. Returns as wire_flush(). */
int wire_event(struct wire *w, uint32_t events, uint64_t now_ns);

/* Returns 0, or -ETIMEDOUT if an answer is overdue: close the connection. */
int wire_check(const struct wire *w, uint64_t now_ns);

/* The number of bytes expected in answers or still to be sent. */
size_t wire_cost(const struct wire *w);
unsigned wire_requests(const struct wire *w);
/* Bytes received since the last call. */
uint64_t wire_take_received(struct wire *w);

#endif
