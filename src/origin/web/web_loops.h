/* SPDX-License-Identifier: MIT */
/*
 * The loops: a few threads for HTTP, each with a libcurl multi handle,
 * connections that are kept open, and a queue. A transfer belongs to one loop:
 * all of its callbacks run on the thread of this loop, and only functions
 * marked "loop thread" may use it. Other threads may only post
 * (common/base/loop.h).
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
	unsigned loops; /* 0: the number of processors decides */
	/* maximum number of transfers in flight over all loops; 0: the default
	 */
	unsigned depth;
	const char *ca_file; /* copied; NULL: the system's certificates */
	bool insecure;	     /* certificates are not verified */
	bool http2;	     /* HTTP/2 over TLS is tried */
	unsigned connect_ms; /* time limit for connecting; 0 stands for 3,000 */
	/* a transfer that gets no byte for this time ends; 0 stands for 5 */
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

/* Choose a loop for a new request; the loops take turns. Any thread. */
struct loop *loops_pick(struct loops *e);

/* Choose a loop for a short request: the first loop that has no backlog. If it
 * is running, it takes one more request without being woken. Any thread. */
struct loop *loops_pick_running(struct loops *e);

/* Returns the loop's cache of the signing key. Loop thread. */
struct sign_key *web_loop_sign_key(struct loop *l);

/* -- Transfers ------------------------------------------------------------- */

struct transfer;

/* The text of a request. The loops own the memory and reuse it. */
struct request_text {
	const char *method; /* NULL: "GET" */
	struct bytes url;
	struct bytes headers; /* lines "Name: value\n" */
	const char *body;     /* must be valid until done(); NULL: no body */
	size_t body_len;
};

struct transfer_ops {
	/* Called before the request is sent: write its text, which is empty at
	 * first. If this returns -EAGAIN, it is called again in 20 ms. After
	 * any other error the request is not sent, and done() gets the error.
	 */
	int (*prepare)(struct transfer *t, struct request_text *text);
	/* Called when all headers have arrived. If this does not return 0, no
	 * body is read, and the transfer ends with the returned status. */
	int (*head)(struct transfer *t, const struct head *h);
	/* Called with each piece of the body. Returns like head(). */
	int (*data)(struct transfer *t, const void *data, size_t len);
	/* Called if no answer came within the time of nearly all answers. May
	 * be NULL. */
	void (*slow)(struct transfer *t);
	/* Called at the end. status 0: the answer is complete, with any code;
	 * otherwise -errno. */
	void (*done)(struct transfer *t, int status);
};

struct transfer {
	uint32_t magic;
	const struct transfer_ops *ops; /* set by the owner */
	bool fresh; /* set by the owner: use a new connection for the request */
	/* set by the owner: like the one in struct loops_config; 0: use that
	 * one */
	unsigned stall_s;
	/* head of the answer, valid until the transfer is freed */
	struct head head;
	/* The members below belong to the loop, and only its thread uses them.
	 */
	struct loop *loop;
	/* in the list of queued, paused, sent or arriving transfers */
	struct list node;
	enum { TRANSFER_IDLE, QUEUED, PAUSED, SENT, ARRIVING } state;
	/* time at which it was sent, or at which its pause ends */
	uint64_t since_ns;
	void *easy, *lines;
	int refused; /* status that head() or data() has returned */
	int why;     /* error of libcurl, for transfer_why() */
	long verify; /* error of the certificate's check, for transfer_why() */
	bool told_slow;
	/* how often the transfer has waited for a look-up of the host's name */
	unsigned waits;
	/* the loop's failed_lookups when the wait began */
	unsigned failed_lookups;
};

/* Start a transfer that was zeroed, or one that has ended. Loop thread. */
void transfer_start(struct loop *l, struct transfer *t);

/* Like transfer_start(), but after `pause_ns`. Loop thread. */
void transfer_start_later(
	struct loop *l, struct transfer *t, uint64_t pause_ns);

/* End the transfer without calling done(). Loop thread, but not in a callback
 * of the same transfer. */
void transfer_cancel(struct transfer *t);

/* Returns the reason why the connection failed, in libcurl's words, for
 * messages. */
const char *transfer_why(const struct transfer *t);

/* Was the certificate refused because no known authority has signed it? */
bool transfer_unknown_authority(const struct transfer *t);

/* -- Depth ----------------------------------------------------------------- */

/* Note that the server is busy: lower the depth, at most once in a round trip
 * and at most by half. Returns true if it fell. */
bool loops_throttled(struct loops *e);

/* Note an answer of 2xx, so that the depth may grow again. */
void loops_answered(struct loops *e);

/* Returns the current round-trip time, smoothed. */
uint64_t loops_round_trip_ns(const struct loops *e);

/* May one more request be sent as a hedge? If so, it is counted. */
bool loops_may_hedge(struct loops *e);

/* Returns the number of transfers that may be in flight now. */
unsigned loops_depth(const struct loops *e);

#endif
