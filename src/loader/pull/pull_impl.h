/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the puller. The *clerk* is the thread that talks with
 * the board; the *carrier* is the thread that pulls. The turn's lock guards
 * everything that is not marked otherwise. Private to this room.
 */
#ifndef PULL_IMPL_H
#define PULL_IMPL_H

#include <pthread.h>

#include "common/base/magic.h"
#include "common/memcached/memcached_ask.h"
#include "common/memcached/memcached_remote.h"
#include "loader/pull/pull.h"
#include "loader/service/service_board.h"
#include "loader/service/service_conf.h"
#include "loader/service/service_range.h"
#include "loader/service/service_value.h"

#define PULL_STORES_MAX 32u
/* A store or a board that has not answered for this time counts as gone. */
#define PULL_ANSWER_MS 250u
/* How often the clerk looks at the board while workers make something. */
#define PULL_LOOK_NS (20 * NS_PER_MS)
/* Memory for samples on their way, and the most that workers make ahead. */
#define PULL_OPS_BYTES ((uint64_t)4 << 20)
#define PULL_OPS_MAX 64u
#define PULL_AHEAD_BYTES ((uint64_t)256 << 20)

/* The state of a range, as far as it is known. */
enum pull_range_state {
	PULL_RANGE_UNKNOWN, /* free, or nobody has looked yet */
	PULL_RANGE_CLAIMED, /* a worker makes it */
	PULL_RANGE_DONE,
};

struct pull_range {
	struct hash128 name;	     /* used by the clerk alone */
	enum pull_range_state state; /* only the clerk changes it */
	uint32_t mask;	/* done: bit i: all samples of example i are there */
	uint32_t store; /* done: its number */
	uint64_t cas;	/* done: of the state */
	bool broken;	/* done: a sample was missing */
};

/* A sample on its way. While it is in flight, it belongs to the carrier, but
 * `pull` is guarded by the lock. */
struct pull_op {
	struct request q;
	struct list node; /* in a list of the puller, or of the carrier */
	struct puller *puller;
	struct pull *pull; /* NULL: nobody waits for it any more */
	struct pull_store *store;
	uint64_t sent_ns, took_ns;
	char key[SERVICE_KEY_MAX];
	/* The answer: 0, or -errno; -ENOENT: missing; -EBADMSG: bad */
	int status;
	struct sample_value value;
	uint8_t *room; /* for the pixels */
};

struct pull_store {
	char host[ADDRESS_MAX + 1]; /* set once */
	struct remote *remote;	    /* used by the carrier; NULL: not opened */
	bool resting;		    /* it has failed */
	uint32_t window, flying;    /* how many pulls it may have, and has */
};

struct puller {
	uint32_t magic;
	struct pull_config config; /* set once, as all of this paragraph */
	struct schedule schedule;
	struct hash128 job;
	char conf[SERVICE_CONF_MAX]; /* text of the configuration */
	size_t conf_bytes;
	char id[SERVICE_ID_MAX + 1];
	struct reader_note note; /* but its cursor, begin and end: the clerk */
	uint64_t seed, sample_bytes, fresh_end, ahead_max;
	uint32_t range_size; /* fresh numbers of a range */
	bool also;	     /* service_local is also */
	struct asker *board;
	struct loop loop;
	pthread_t clerk, carrier;
	bool clerk_started, carrier_started;

	/* All below is guarded by the lock. */
	bool ending, stirred;
	struct list waits, ready, sent; /* pulls, those needed first before */
	uint32_t waiting;		/* number of pulls in the three lists */
	struct list ops;		/* those that are free */
	/* Ranges from range_first to range_end - 1, by their number modulo
	 * ranges_room */
	struct pull_range *ranges;
	uint64_t range_first, range_end, ranges_room;
	struct pull_store stores[PULL_STORES_MAX];
	uint32_t nstores;
	struct pull_counts counts;

	struct list arrived;	  /* ops with an answer; used by the carrier */
	struct pull_op *op_table; /* set once */
	uint32_t nops;
};

static inline struct pull_range *pull_range_at(
	const struct puller *p, uint64_t number)
{
	return &p->ranges[number % p->ranges_room];
}

/* -- pull.c -- */

/* End a pull that cannot be had. */
void pull_miss(struct puller *p, struct pull *q);
/* Move a pull to another list, in which those needed first come before. */
void pull_move(struct list *list, struct pull *q, enum pull_state state);

/* -- pull_clerk.c -- */

void *pull_clerk_main(void *arg);

/* -- pull_carrier.c -- */

void *pull_carrier_main(void *arg);
/* Release what the carrier has, after its end. */
void pull_carrier_release(struct puller *p);

/* -- pull_open.c -- */

/* Find out whether the service can be used, and set the job. */
int pull_open_job(struct puller *p, struct error *err);

#endif
