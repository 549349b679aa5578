/* SPDX-License-Identifier: MIT */
/* Histograms of durations; see latency.h. Each thread has a shard. */
#include "common/base/latency.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/per_thread.h"

#define READS                                                                  \
	"Time from a READ's arrival until its bytes are there, by where "      \
	"the last of them came from. A READ of several items counts once "     \
	"for each."
#define REQUESTS                                                               \
	"Time of attempts at requests to the origin, by operation. "           \
	"One that is given up counts with the time until then."

const struct latency_info latency_table[LATENCY_KINDS] = {
	[LATENCY_TIER] = {"read_tier", "read_duration", "source", "tier",
		READS},
	[LATENCY_STAGING] = {"read_staging", "read_duration", "source",
		"staging", READS},
	[LATENCY_PEER] = {"read_peer", "read_duration", "source", "peer",
		READS},
	[LATENCY_ORIGIN] = {"read_origin", "read_duration", "source", "origin",
		READS},
	[LATENCY_WAIT] = {"read_wait", "read_wait", NULL, NULL,
		"Time that READs waited for bytes that the mount did not "
		"have."},
	[LATENCY_ORIGIN_READ] = {"origin_read", "origin_request_duration",
		"operation", "read", REQUESTS},
	[LATENCY_ORIGIN_STAT] = {"origin_stat", "origin_request_duration",
		"operation", "stat", REQUESTS},
	[LATENCY_ORIGIN_LIST] = {"origin_list", "origin_request_duration",
		"operation", "list", REQUESTS},
};

struct latency_shard {
	struct per_thread shard;
	/* Relaxed; only the thread that has taken the shard writes. */
	_Atomic uint64_t count[LATENCY_KINDS][LATENCY_BUCKETS];
	_Atomic uint64_t ns[LATENCY_KINDS];
};

struct latency {
	struct per_threads shards;
};

int latency_new(struct latency **out)
{
	struct latency *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	if (per_threads_init(&l->shards, sizeof(struct latency_shard)) < 0) {
		free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void latency_free(struct latency *l)
{
	if (!l)
		return;
	per_threads_release(&l->shards);
	free(l);
}

unsigned latency_bucket(uint64_t ns)
{
	uint64_t n = ns > 0 ? (ns - 1) / (latency_bound_us(0) * NS_PER_US) : 0;
	unsigned bucket = n ? 64 - (unsigned)__builtin_clzll(n) : 0;

	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* A load and a store are enough, because no other thread writes. */
static void shard_add(_Atomic uint64_t *to, uint64_t n)
{
	uint64_t old = atomic_load_explicit(to, memory_order_relaxed);

	atomic_store_explicit(to, old + n, memory_order_relaxed);
}

void latency_add(struct latency *l, enum latency_kind kind, uint64_t ns)
{
	struct per_thread *shard = l ? per_thread_take(&l->shards) : NULL;
	struct latency_shard *s;

	if (!shard)
		return;
	s = CONTAINER_OF(shard, struct latency_shard, shard);
	shard_add(&s->count[kind][latency_bucket(ns)], 1);
	shard_add(&s->ns[kind], ns);
}

void latency_read(const struct latency *l, enum latency_kind kind,
	struct latency_sum *out)
{
	struct per_thread *at = per_threads_first(&l->shards);

	*out = (struct latency_sum){.ns = 0};
	for (; at; at = per_threads_next(at)) {
		const struct latency_shard *s =
			CONTAINER_OF(at, struct latency_shard, shard);

		for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
			out->count[i] += atomic_load_explicit(
				&s->count[kind][i], memory_order_relaxed);
		out->ns += atomic_load_explicit(
			&s->ns[kind], memory_order_relaxed);
	}
}

uint64_t latency_quantile_us(
	const uint64_t count[LATENCY_BUCKETS], double share)
{
	uint64_t all = 0, below = 0;
	double rank, lower;
	unsigned i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		all += count[i];
	if (all == 0)
		return 0;
	rank = share * (double)all;
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		if ((double)(below + count[i]) >= rank && count[i] > 0)
			break;
		below += count[i];
	}
	lower = i ? (double)latency_bound_us(i - 1) : 0;
	if (i == LATENCY_BUCKETS - 1)
		return (uint64_t)lower;
	return (uint64_t)(lower +
		((double)latency_bound_us(i) - lower) * (rank - (double)below) /
			(double)count[i]);
}
