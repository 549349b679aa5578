/* SPDX-License-Identifier: MIT */
/*
 * The loops: a few threads for HTTP, each with a libcurl multi handle, kept
 * connections and a queue. A transfer belongs to one loop: all of its callbacks
 * run there, and only functions marked "loop thread" touch it. Other threads
 * may only post (common/base/loop.h).
 *
 *   queued --room in the depth--> sent --headers--> arriving --> done
 *     |  ^                          |
 *     |  '-- pause over -- paused   '-- slow() once, for a hedge
 *     '-- cancelled at any time -------------------------------> done
 */
#ifndef WEB_LOOPS_H
#define WEB_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/loop.h"
#include "origin/web/body.h"
#include "origin/web/http_head.h"
#include "origin/web/sign.h"

struct loops;

#define LOOPS_MAX 4u
#define LOOPS_DEPTH_DEFAULT 256u

struct loops_config {
	unsigned loops; /* 0: chosen by the number of processors */
	unsigned depth; /* transfers in flight over all loops; 0: the default */
	const char *ca_file; /* NULL: the system's certificates; copied */
	bool insecure;	     /* do not verify certificates */
	bool http2;	     /* try HTTP/2 over TLS */
	unsigned connect_ms; /* 0 stands for 3,000 */
	/* a transfer without a byte for so long ends; 0 stands for 5 */
	unsigned stall_s;
	struct counters *counters;
};

/* Start the loops. Returns 0, or -errno with err set. */
int loops_new(struct loops **out, const struct loops_config *config,
	struct error *err);

/*
 * End all transfers with -ECANCELED (callbacks run on the loops), stop the
 * threads and free everything. NULL is allowed.
 */
void loops_free(struct loops *e);

/* Choose a loop for a new request, each loop in turn. Any thread. */
struct loop *loops_pick(struct loops *e);

/* Choose a loop for a short request: the first that has no backlog. A loop that
 * is running takes one more request without being woken. Any thread. */
struct loop *loops_pick_running(struct loops *e);

/* The loop's cache of the signing key. Loop thread. */
struct sign_key *web_loop_sign_key(struct loop *l);

/* -- Transfers ------------------------------------------------------------- */

struct transfer;

/* The text of a request. The loops own the memory and reuse it. */
struct request_text {
	const char *method; /* "GET" unless set */
	struct bytes url;
	struct bytes headers; /* lines "Name: value\n" */
	const char *body;     /* must stay until done(); NULL: none */
	size_t body_len;
};

struct transfer_ops {
	/*
	 * The request is about to be sent: write its text (initially empty,
	 * with GET). If this returns -EAGAIN, it is called again in 20 ms; on
	 * any other error the request is not sent and done() gets the error.
	 */
	int (*prepare)(struct transfer *t, struct request_text *text);
	/* All headers have arrived. If this does not return 0, no body is read
	 * and the transfer ends with its result. */
	int (*head)(struct transfer *t, const struct head *h);
	/* Called with each piece of the body; returns as head(). */
	int (*data)(struct transfer *t, const void *data, size_t len);
	/* No answer came within the time in which nearly all answers come. May
	 * be NULL. */
	void (*slow)(struct transfer *t);
	/* The end. status 0: a complete answer with any code; or -errno. */
	void (*done)(struct transfer *t, int status);
};

struct transfer {
	uint32_t magic;
	const struct transfer_ops *ops; /* set by the owner */
	bool fresh; /* set by the owner: use a new connection */
	/* set by the owner: as in struct loops_config; 0: that limit */
	unsigned stall_s;
	/* the answer's head; the owner may read it until the transfer is freed
	 */
	struct head head;
	/* The next members belong to the loop; loop thread. */
	struct loop *loop;
	struct list node; /* in the queue, the paused or the sent transfers */
	enum { TRANSFER_IDLE, QUEUED, PAUSED, SENT, ARRIVING } state;
	/* time when it was sent, or until which it is paused */
	uint64_t since_ns;
	void *easy, *lines;
	int refused; /* the result of head() or data() */
	int why;     /* code of libcurl, for transfer_why() */
	long verify; /* code of the certificate's check, for transfer_why() */
	bool told_slow;
	/* number of waits so far for a look-up of the host's name */
	unsigned waits;
	/* value of the loop's member when the wait began */
	unsigned failed_lookups;
};

/* Start a transfer: a zeroed one, or again after done(). Loop thread. */
void transfer_start(struct loop *l, struct transfer *t);

/* Start after `pause_ns`; otherwise like transfer_start(). Loop thread. */
void transfer_start_later(
	struct loop *l, struct transfer *t, uint64_t pause_ns);

/* End the transfer without calling done(). Loop thread; not from a callback of
 * the same transfer. */
void transfer_cancel(struct transfer *t);

/* The reason why the connection failed, in libcurl's words; for messages. */
const char *transfer_why(const struct transfer *t);

/* Was the certificate refused because no known authority has signed it? */
bool transfer_unknown_authority(const struct transfer *t);

/* -- Depth ----------------------------------------------------------------- */

/* The server is busy: lower the depth, at most once a round trip and at most by
 * half. Returns true if it fell. */
bool loops_throttled(struct loops *e);

/* Record an answer of 2xx: the depth may recover. */
void loops_answered(struct loops *e);

/* The current round-trip time, smoothed. */
uint64_t loops_round_trip_ns(const struct loops *e);

/* May one more request be sent as a hedge? If so, it is counted. */
bool loops_may_hedge(struct loops *e);

/* The number of transfers that may be in flight now. */
unsigned loops_depth(const struct loops *e);

#endif
