/* SPDX-License-Identifier: MIT */
/*
 * Histograms of durations. Each thread counts in memory of its own, so that no
 * cache line goes from one processor to another, and a reader adds them up. The
 * bounds of the buckets are powers of two times 16 us, up to 134 s. Any thread
 * adds and reads; counts that are being added meanwhile may be missing.
 */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* The last bucket has everything that is longer. */
#define LATENCY_BUCKETS 25u

enum latency_kind {
	LATENCY_TIER,
	LATENCY_STAGING,
	LATENCY_PEER,
	LATENCY_ORIGIN,
	LATENCY_WAIT,
	LATENCY_ORIGIN_READ,
	LATENCY_ORIGIN_STAT,
	LATENCY_ORIGIN_LIST,
	LATENCY_KINDS,
};

/* A histogram: one of a family if it has a label. */
struct latency_info {
	const char *name; /* of the member of the status */
	const char *family, *label, *value;
	const char *help; /* of the family */
};

/* One element per kind; families are together. */
extern const struct latency_info latency_table[LATENCY_KINDS];

struct latency;

/* 0 or -ENOMEM. */
int latency_new(struct latency **out);
/* No thread adds any more. NULL is allowed. */
void latency_free(struct latency *latency);

/* Count a duration. NULL: nothing is counted. */
void latency_add(struct latency *latency, enum latency_kind kind, uint64_t ns);

struct latency_sum {
	uint64_t count[LATENCY_BUCKETS];
	uint64_t ns; /* the sum of all durations */
};

void latency_read(const struct latency *latency, enum latency_kind kind,
	struct latency_sum *out);

/* The upper bound of a bucket but the last. */
static inline uint64_t latency_bound_us(unsigned bucket)
{
	return UINT64_C(16) << bucket;
}

/* The bucket of a duration. */
unsigned latency_bucket(uint64_t ns);

/*
 * The duration that this share of all is not longer than, estimated inside its
 * bucket as Prometheus does. 0 for an empty histogram; a lower limit if it is
 * in the last bucket.
 */
uint64_t latency_quantile_us(
	const uint64_t count[LATENCY_BUCKETS], double share);

#endif
