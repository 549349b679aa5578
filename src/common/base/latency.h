/* SPDX-License-Identifier: MIT */
/*
 * Histograms of durations. Each thread counts in memory of its own, so that no
 * cache line moves between processors, and a reader adds up the counts of all
 * threads. The upper limits of the buckets are powers of two times 16 us, up to
 * 134 s. Any thread adds and reads; a reader may miss counts that are being
 * added at that time.
 */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Number of buckets. The last one counts all durations above the limit of the
 * one before. */
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

/* A histogram. If it has a label, it belongs to a family of histograms of the
 * same name. */
struct latency_info {
	const char *name; /* name of the member in the status */
	const char *family, *label, *value;
	const char *help; /* help text of the family */
};

/* One element for each kind. The members of a family follow one another. */
extern const struct latency_info latency_table[LATENCY_KINDS];

struct latency;

/* Returns 0 or -ENOMEM. */
int latency_new(struct latency **out);
/* Free the histograms; no thread may add any more. NULL is allowed. */
void latency_free(struct latency *latency);

/* Count a duration. Does nothing if `latency` is NULL. */
void latency_add(struct latency *latency, enum latency_kind kind, uint64_t ns);

struct latency_sum {
	uint64_t count[LATENCY_BUCKETS];
	uint64_t ns; /* the sum of all durations */
};

void latency_read(const struct latency *latency, enum latency_kind kind,
	struct latency_sum *out);

/* Returns the upper limit of a bucket. The last bucket has none. */
static inline uint64_t latency_bound_us(unsigned bucket)
{
	return UINT64_C(16) << bucket;
}

/* Returns the bucket of a duration. */
unsigned latency_bucket(uint64_t ns);

/* Returns the duration that a given share of all durations does not exceed. It
 * is estimated inside its bucket as Prometheus does. Returns 0 for an empty
 * histogram, and a lower limit if the result is in the last bucket. */
uint64_t latency_quantile_us(
	const uint64_t count[LATENCY_BUCKETS], double share);

#endif
