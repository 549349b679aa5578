/* SPDX-License-Identifier: MIT */
/*
 * The counters of one mount. Any thread adds with relaxed order, because the
 * counters are only statistics: no decision depends on them.
 */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/latency.h"
#include "common/base/read_trace.h"

struct counters {
	struct latency *latency; /* set once; NULL: no histograms */
	/* NULL unless READs are traced now; acquire and release */
	_Atomic(struct read_trace *) trace;
#define COUNTER(name, unit, help) _Atomic uint64_t name;
#include "common/base/counters.def"
#undef COUNTER
};

struct counter_info {
	const char *name, *unit, *help;
	size_t offset; /* offset of the counter in struct counters */
};

/* One element for each counter, in the order of counters.def. The last one has
 * no name. */
extern const struct counter_info counter_table[];

#define COUNT_ADD(c, name, n)                                                  \
	((void)atomic_fetch_add_explicit(                                      \
		&(c)->name, (uint64_t)(n), memory_order_relaxed))
#define COUNT(c, name) COUNT_ADD(c, name, 1)

/* Count a duration in a histogram. */
#define COUNT_TIME(c, kind, ns) latency_add((c)->latency, kind, ns)

/* The trace of READs, or NULL if they are not traced. */
static inline struct read_trace *counters_trace(const struct counters *c)
{
	return atomic_load_explicit(&c->trace, memory_order_acquire);
}

static inline uint64_t counter_get(
	const struct counters *c, const struct counter_info *info)
{
	const _Atomic uint64_t *v =
		(const void *)((const char *)c + info->offset);

	return atomic_load_explicit(v, memory_order_relaxed);
}

#endif
