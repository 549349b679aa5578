/* SPDX-License-Identifier: MIT */
/* The structs of one loop and of all loops, and the functions of their files.
 */
#ifndef WEB_LOOP_IMPL_H
#define WEB_LOOP_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/magic.h"
#include "origin/web/web_loops.h"
#include "origin/web/throttle.h"

#define LOOP_EASY_MAX 64u
/* The histogram of first-byte times has eight buckets for each power of two of
 * microseconds. */
#define TIMES_BUCKETS 256u

struct web_loop {
	uint32_t magic;
	struct loop loop;
	/* Set once. */
	struct loops *e;
	pthread_t thread;
	bool started;
	void *multi; /* a CURLM */

	/* relaxed: copy of `active` that other threads may read */
	_Atomic unsigned held;

	/* Only the loop's thread uses the members from here on. */
	struct list queue, paused, sent, arriving;
	unsigned active; /* number of transfers in `sent` and `arriving` */
	/* time at which to call libcurl; 0: no time is set */
	uint64_t curl_due_ns;
	void *idle[LOOP_EASY_MAX]; /* handles for reuse, each a CURL */
	unsigned nidle;
	struct sign_key key;
	struct request_text text;
	uint32_t times[TIMES_BUCKETS], ntimes;
	uint64_t slow_ns; /* 3 times the 95th percentile, or the minimum */
	/* The last look-up of a name; see look_up() in transfer.c. */
	/* the transfer that has started it; NULL: this transfer has left the
	 * loop */
	struct transfer *resolving;
	/* time before which no other look-up starts; 0: the look-up has ended
	 */
	uint64_t lookup_until_ns;
	unsigned failed_lookups;
	int lookup_status; /* status of the last look-up that failed */
};

struct loops {
	/* set once, as are the next three members */
	struct loops_config config;
	char *ca_file;
	bool proxies; /* the environment names proxies */
	unsigned nloops;
	struct web_loop loops[LOOPS_MAX];
	/* The members below are relaxed: they guide choices, and no other data
	 * depends on them. */
	_Atomic unsigned turn;
	_Atomic unsigned depth; /* copy of the depth in `throttle` */
	/* smoothed time from sending a request to its headers */
	_Atomic uint64_t round_ns;
	_Atomic uint64_t requests, hedges;
	/* guards `throttle`; no lock is taken while it is held */
	pthread_mutex_t throttle_lock;
	struct throttle throttle;
};

static inline struct web_loop *web_loop_of(struct loop *l)
{
	return CONTAINER_OF(l, struct web_loop, loop);
}

/* -- transfer.c: one transfer and libcurl ---------------------------------- */

/* Send the transfer. If its prepare() fails, end the transfer with that status.
 */
void transfer_send(struct web_loop *l, struct transfer *t);

/* Handle the transfers that libcurl has completed. */
void transfer_reap(struct web_loop *l);

/* End the transfer without a callback, and remove it from libcurl. */
void transfer_drop(struct transfer *t);

void web_loop_release_handles(struct web_loop *l);

/* -- suites.c -------------------------------------------------------------- */

/* Have this CURL prefer AES-128 to AES-256. */
void suites_order(void *easy);

/* -- pace.c ---------------------------------------------------------------- */

/* The shortest time that counts as slow. */
#define SLOW_LEAST_NS (300 * NS_PER_MS)

/* Note that headers came `ns` after the request was sent. Loop thread. */
void web_loop_note_time(struct web_loop *l, uint64_t ns);

/* -- web_loop.c ------------------------------------------------------------ */

void *web_loop_main(void *arg); /* `arg` is a struct web_loop */

#endif
