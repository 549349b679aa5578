/* SPDX-License-Identifier: MIT */
/*
 * One connection to a memcached: requests go out in order, pipelined, and are
 * answered in order. Any error, including a time-out, closes the connection and
 * fails every request on it. Only the thread of its loop uses it.
 */
#ifndef MEMCACHED_WIRE_H
#define MEMCACHED_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/base/list.h"
#include "common/base/loop.h"
#include "common/memcached/memcached_meta.h"

#define WIRE_LINE_MAX 192u
/* Room for the bytes that a user puts before the content of a value. */
#define WIRE_HEAD_MAX 64u

/* Embedded in a struct of its owner, who frees it in answered(). */
struct request {
	/*
	 * Called once; if `lines` is set, also once before that for each line
	 * with META_STAT. With status 0, `a` is the answer, and `value` the
	 * value of META_VA, valid during the call. Otherwise the status is
	 * -errno: the connection is lost, and `a` is NULL. answered() may send
	 * more requests, but must not close connections.
	 */
	void (*answered)(struct request *q, int status,
		const struct meta_answer *a, const uint8_t *value);
	/* the line of the request, with CR LF, but without the opaque */
	char line[WIRE_LINE_MAX];
	size_t line_bytes;
	/* Sent after the line if body_bytes > 0: head, body, CR LF. */
	uint8_t head[WIRE_HEAD_MAX];
	size_t head_bytes;
	const void *body; /* must be valid until answered() */
	size_t body_bytes;
	size_t cost_bytes; /* expected length of the answer, for wire_cost() */
	/* the answer has several STAT lines and ends with END, like that of
	 * `stats` */
	bool lines;
	/* the request has no opaque, like `stats`, `version` and `mn` */
	bool plain;
	struct list link; /* private */
	uint32_t opaque;  /* private */
};

struct wire_config {
	/* Events of this loop have the connection as their data. */
	struct loop *loop;
	/* Answers with a longer value are invalid. */
	uint32_t value_max_bytes;
	/* An answer must be complete this long after the one before it. */
	unsigned answer_ms;
};

struct wire;

/* Create a connection. Returns NULL if memory is short. */
struct wire *wire_new(const struct wire_config *config, void *owner);
void *wire_owner(const struct wire *w);
/* ends the requests of an open connection with -ECANCELED */
void wire_free(struct wire *w);

/* Begin to connect. Returns 0 or -errno. */
int wire_open(struct wire *w, const struct sockaddr *addr, socklen_t len,
	uint64_t now_ns);
/* Close the connection and fail all requests with this status. Do not call this
 * in answered(). */
void wire_shut(struct wire *w, int status);

bool wire_is_closed(const struct wire *w);
/* has the connection been established? */
bool wire_is_open(const struct wire *w);

/* Write the line of a request: "COMMAND KEY FLAGS", and for ms the number of
 * bytes between KEY and FLAGS. The caller sets the other members of the
 * request. */
void request_line(struct request *q, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Queue a request on a connection that is not closed; wire_flush() sends it. */
void wire_queue(struct wire *w, struct request *q, uint64_t now_ns);
/* Send the queued requests. Returns 0, or -errno: the caller then closes the
 * connection with that status. */
int wire_flush(struct wire *w);

/* Handle events that epoll has reported. Returns like wire_flush(). */
int wire_event(struct wire *w, uint32_t events, uint64_t now_ns);

/* Returns 0, or -ETIMEDOUT if an answer is overdue: the caller then closes the
 * connection. */
int wire_check(const struct wire *w, uint64_t now_ns);

/* Returns the number of bytes that are expected in answers or still have to be
 * sent. */
size_t wire_cost(const struct wire *w);
unsigned wire_requests(const struct wire *w);
/* Returns the number of bytes received since the last call. */
uint64_t wire_take_received(struct wire *w);

#endif
