/* SPDX-License-Identifier: MIT */
/* Histograms of durations; see latency.h. Each thread that counts has a shard
 * of its own. When the thread ends, its shard stays with its counts, and the
 * next new thread takes the shard over. So there are no more shards than there
 * were threads at one time. */
#include "common/base/latency.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

/* Shards are aligned to two cache lines, because processors fetch lines in
 * pairs. */
#define SHARD_ALIGN 128

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
	struct latency_shard *next; /* set once */
	atomic_bool taken;	    /* set with acquire, cleared with release */
	/* Relaxed; written by the thread that has taken it. */
	_Atomic uint64_t count[LATENCY_KINDS][LATENCY_BUCKETS];
	_Atomic uint64_t ns[LATENCY_KINDS];
};

struct latency {
	pthread_key_t key; /* each thread's value is its shard */
	_Atomic(struct latency_shard *) shards;
};

static struct latency_shard *shard_new(struct latency *l)
{
	size_t size = (sizeof(struct latency_shard) + SHARD_ALIGN - 1) /
		SHARD_ALIGN * SHARD_ALIGN;
	struct latency_shard *s = aligned_alloc(SHARD_ALIGN, size);

	if (!s)
		return NULL;
	memset(s, 0, size);
	atomic_init(&s->taken, true);
	s->next = atomic_load_explicit(&l->shards, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&l->shards, &s->next, s,
		memory_order_release, memory_order_relaxed))
		;
	return s;
}

/* Runs when a thread ends: another thread may take its shard. */
static void shard_give(void *arg)
{
	struct latency_shard *s = arg;

	atomic_store_explicit(&s->taken, false, memory_order_release);
}

static struct latency_shard *shard_find(struct latency *l)
{
	struct latency_shard *s =
		atomic_load_explicit(&l->shards, memory_order_acquire);
	bool taken;

	for (; s; s = s->next) {
		taken = atomic_load_explicit(&s->taken, memory_order_relaxed);
		if (!taken &&
			atomic_compare_exchange_strong_explicit(&s->taken,
				&taken, true, memory_order_acquire,
				memory_order_relaxed))
			return s;
	}
	return shard_new(l);
}

/* Returns the shard of this thread; NULL if memory is short. */
static struct latency_shard *shard_take(struct latency *l)
{
	struct latency_shard *s = pthread_getspecific(l->key);

	if (s)
		return s;
	s = shard_find(l);
	if (s && pthread_setspecific(l->key, s) != 0) {
		shard_give(s);
		return NULL;
	}
	return s;
}

int latency_new(struct latency **out)
{
	struct latency *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	if (pthread_key_create(&l->key, shard_give) != 0) {
		free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void latency_free(struct latency *l)
{
	struct latency_shard *s, *next;

	if (!l)
		return;
	(void)pthread_key_delete(l->key); /* cannot fail: the key exists */
	for (s = l->shards; s; s = next) {
		next = s->next;
		free(s);
	}
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
	struct latency_shard *s = l ? shard_take(l) : NULL;

	if (!s)
		return;
	shard_add(&s->count[kind][latency_bucket(ns)], 1);
	shard_add(&s->ns[kind], ns);
}

void latency_read(const struct latency *l, enum latency_kind kind,
	struct latency_sum *out)
{
	const struct latency_shard *s =
		atomic_load_explicit(&l->shards, memory_order_acquire);

	*out = (struct latency_sum){.ns = 0};
	for (; s; s = s->next) {
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
