/* SPDX-License-Identifier: MIT */
/*
 * A memcached that is asked without waiting, by the thread of a loop. After a
 * failure it rests for a while, so that a server that is gone costs its users
 * no time.
 *
 *	       remote_open()            a failure, or no answer in time
 *	CLOSED -------------> CONNECTED -------------------------------> RESTING
 *	   ^                                                                |
 *	   +--------------------------- after rest_ms ----------------------+
 */
#ifndef MEMCACHED_REMOTE_H
#define MEMCACHED_REMOTE_H

#include "common/base/loop.h"
#include "common/memcached/memcached_wire.h"

struct remote_config {
	struct loop *loop; /* its events have the remote's connection */
	const char *host;  /* has passed address_check() */
	uint32_t value_max_bytes;
	/* An answer must be complete this long after the one before it. */
	unsigned answer_ms;
	unsigned rest_ms;
};

struct remote;

/* Returns 0 or -errno. */
int remote_new(struct remote **out, const struct remote_config *config);
/* Ends its requests with -ECANCELED. NULL is allowed. */
void remote_free(struct remote *r);

/* Returns 0 if requests can be queued; -EAGAIN while the address is looked up;
 * -EHOSTDOWN while the server rests; or the -errno with which a rest begins. */
int remote_open(struct remote *r, uint64_t now_ns);
/* Queue a request after remote_open() has returned 0; remote_flush() sends the
 * queue. answered() is called once, with -errno if the connection is lost. */
void remote_queue(struct remote *r, struct request *q, uint64_t now_ns);
void remote_flush(struct remote *r, uint64_t now_ns);
/* Close the connection, and rest, if an answer is overdue. */
void remote_check(struct remote *r, uint64_t now_ns);
/* Close the connection, and rest. */
void remote_fail(struct remote *r, int status, uint64_t now_ns);
bool remote_rests(const struct remote *r, uint64_t now_ns);
/* Returns the number of requests without an answer. */
unsigned remote_requests(const struct remote *r);
/* Returns the status of the last failure since the last call, or 0. */
int remote_take_failure(struct remote *r);

/* For loop_wait(): handle events of the connection of any remote. */
void remote_ready(struct loop *l, uint64_t data, uint32_t events);

#endif
