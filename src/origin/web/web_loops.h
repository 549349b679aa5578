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
	unsigned loops; /* 0: by the number of processors */
	unsigned depth; /* transfers at a time, all loops; 0: the default */
	const char *ca_file; /* NULL: the system's; copied */
	bool insecure;	     /* do not verify certificates */
	bool http2;	     /* try HTTP/2 over TLS */
	unsigned connect_ms; /* 0: 3,000 */
	unsigned stall_s;    /* no byte for so long ends a transfer; 0: 5 */
	struct counters *counters;
};

/* -errno with err set. */
int loops_new(struct loops **out, const struct loops_config *config,
	struct error *err);

/*
 * End all transfers with -ECANCELED (callbacks run on the loops), stop the
 * threads and free everything. NULL is allowed.
 */
void loops_free(struct loops *e);

/* A loop for a new request; the one after the last. Any thread. */
struct loop *loops_pick(struct loops *e);

/* A loop for a short request: the first that is not behind. A running loop
 * takes one more request without being woken. Any thread. */
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
	const char *body;     /* lent until done; NULL: none */
	size_t body_len;
};

struct transfer_ops {
	/*
	 * The request is about to be sent: fill in the text (initially empty,
	 * with GET). If this returns -EAGAIN, it is called again in 20 ms; with
	 * any other error the request is not sent and done() gets the error.
	 */
	int (*prepare)(struct transfer *t, struct request_text *text);
	/* All headers have arrived. If this does not return 0, no body is read
	 * and the transfer ends with that status. */
	int (*head)(struct transfer *t, const struct head *h);
	/* The body, piece by piece; as head(). */
	int (*data)(struct transfer *t, const void *data, size_t len);
	/* No answer came within the time in which nearly all answers come. May
	 * be NULL. */
	void (*slow)(struct transfer *t);
	/* The end: 0 for a complete answer of any code, or -errno. */
	void (*done)(struct transfer *t, int status);
};

struct transfer {
	uint32_t magic;
	const struct transfer_ops *ops; /* set by the owner */
	bool fresh;	  /* set by the owner: on a new connection */
	unsigned stall_s; /* set by the owner: 0: that of the loops */
	struct head head; /* what came; for the owner until it is freed */
	/* The loop's; loop thread. */
	struct loop *loop;
	struct list node; /* in the queue, the paused or the sent */
	enum { TRANSFER_IDLE, QUEUED, PAUSED, SENT, ARRIVING } state;
	uint64_t since_ns; /* sent at; or paused until */
	void *easy, *lines;
	int refused; /* what head() or data() said */
	int why;     /* libcurl's code, for transfer_why() */
	long verify; /* the same of a certificate */
	bool told_slow;
	unsigned waits;		 /* so far, for a look-up of the host's name */
	unsigned failed_lookups; /* the loop's when that began */
};

/* Start (again): after done(), or zeroed. Loop thread. */
void transfer_start(struct loop *l, struct transfer *t);

/* Start after `pause_ns`; otherwise like transfer_start(). Loop thread. */
void transfer_start_later(
	struct loop *l, struct transfer *t, uint64_t pause_ns);

/* End it without calling done(). Loop thread; not from its own callbacks. */
void transfer_cancel(struct transfer *t);

/* Why the connection failed, in libcurl's words; for messages. */
const char *transfer_why(const struct transfer *t);

/* Was the certificate refused because nobody known has signed it? */
bool transfer_unknown_authority(const struct transfer *t);

/* -- Depth ----------------------------------------------------------------- */

/* The server is busy: lower the depth, at most once a round trip and at most by
 * half. Returns whether it fell. */
bool loops_throttled(struct loops *e);

/* Note an answer of 2xx: the depth may recover. */
void loops_answered(struct loops *e);

/* The current round-trip time, smoothed. */
uint64_t loops_round_trip_ns(const struct loops *e);

/* May one more request be sent as a hedge? Counts it if so. */
bool loops_may_hedge(struct loops *e);

/* The number of transfers that may be in flight now. */
unsigned loops_depth(const struct loops *e);

#endif
