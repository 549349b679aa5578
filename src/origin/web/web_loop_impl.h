/* SPDX-License-Identifier: MIT */
/* Shared by the files of the loops: one loop, all loops, and the functions of
 * each file. Private to them. */
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
	void *multi; /* CURLM */

	_Atomic unsigned held; /* relaxed: copy of `active` for other threads */

	/* The members from here on belong to the loop's thread. */
	struct list queue, paused, sent, arriving;
	unsigned active;	   /* length of `sent` and `arriving` */
	uint64_t curl_due_ns;	   /* when to call libcurl; 0: not */
	void *idle[LOOP_EASY_MAX]; /* CURL */
	unsigned nidle;
	struct sign_key key;
	struct request_text text;
	uint32_t times[TIMES_BUCKETS], ntimes;
	uint64_t slow_ns; /* 3 times the 95th percentile, or the minimum */
	/* The last look-up of a name; see look_up() in transfer.c. */
	/* the transfer that started it; NULL: it has left the loop */
	struct transfer *resolving;
	/* time before which no other look-up starts; 0: it has ended */
	uint64_t lookup_until_ns;
	unsigned failed_lookups;
	int lookup_status; /* status of the last look-up that failed */
};

struct loops {
	struct loops_config config; /* set once, as the next three members */
	char *ca_file;
	bool proxies; /* the environment names some */
	unsigned nloops;
	struct web_loop loops[LOOPS_MAX];
	/* All are relaxed: they guide choices, and no other data depends on
	 * them. */
	_Atomic unsigned turn;
	_Atomic unsigned depth;	   /* the depth in `throttle` */
	_Atomic uint64_t round_ns; /* smoothed time to the headers */
	_Atomic uint64_t requests, hedges;
	pthread_mutex_t throttle_lock; /* guards `throttle`; innermost */
	struct throttle throttle;
};

static inline struct web_loop *web_loop_of(struct loop *l)
{
	return CONTAINER_OF(l, struct web_loop, loop);
}

/* -- transfer.c: one transfer and libcurl ---------------------------------- */

/* Send the transfer, or end it with the status of its prepare(). */
void transfer_send(struct web_loop *l, struct transfer *t);

/* Handle the transfers that libcurl has completed. */
void transfer_reap(struct web_loop *l);

/* End the transfer without a callback, and remove it from libcurl. */
void transfer_drop(struct transfer *t);

void web_loop_release_handles(struct web_loop *l);

/* -- suites.c -------------------------------------------------------------- */

/* Make this CURL prefer AES-128 over AES-256. */
void suites_order(void *easy);

/* -- pace.c ---------------------------------------------------------------- */

/* The shortest time that counts as slow. */
#define SLOW_LEAST_NS (300 * NS_PER_MS)

/* Record that headers came `ns` after the request was sent. Loop thread. */
void web_loop_note_time(struct web_loop *l, uint64_t ns);

/* -- web_loop.c ------------------------------------------------------------ */

void *web_loop_main(void *arg); /* `arg` is a struct web_loop */

#endif
