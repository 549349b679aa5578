/* SPDX-License-Identifier: MIT */
/*
 * A trace of READs; see read_trace.h. The owner of a ring writes records and
 * then, with release order, `head`; the tracer reads records and then writes
 * `tail`. Both count without end, and their difference is the number of
 * records. A thread that has not yet seen the end of a trace may add a record
 * after it; the next trace begins behind it.
 */
#include "common/base/read_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/base/list.h"
#include "common/base/per_thread.h"

#define RING_BYTES (READ_TRACE_RECORDS * sizeof(struct read_record))

struct ring {
	struct per_thread shard;
	/* Written by the thread that has taken the shard */
	_Atomic(struct read_record *) records; /* release; set once */
	_Atomic uint64_t head;		       /* release */
	_Atomic uint64_t lost;		       /* relaxed */
	/* Written by the tracer */
	_Atomic uint64_t tail; /* release */
	uint64_t lost_told;
};

struct read_trace {
	struct per_threads rings;
	_Atomic uint64_t slow_ns; /* relaxed */
};

static struct ring *ring_of_thread(struct per_thread *shard)
{
	return CONTAINER_OF(shard, struct ring, shard);
}

const char *read_trace_source(enum latency_kind source)
{
	return source == READ_TRACE_FAILED ? "failed"
					   : latency_table[source].value;
}

int read_trace_new(struct read_trace **out)
{
	struct read_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (per_threads_init(&t->rings, sizeof(struct ring)) < 0) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void read_trace_free(struct read_trace *t)
{
	if (!t)
		return;
	for (struct per_thread *s = per_threads_first(&t->rings); s;
		s = per_threads_next(s)) {
		struct read_record *records = ring_of_thread(s)->records;

		if (records)
			(void)munmap(records, RING_BYTES); /* it is mapped */
	}
	per_threads_release(&t->rings);
	free(t);
}

/* Returns the memory of this thread's ring; NULL if the thread has none. */
static struct read_record *ring_records(struct ring *r)
{
	struct read_record *records =
		atomic_load_explicit(&r->records, memory_order_relaxed);
	void *map;

	if (records)
		return records;
	map = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	atomic_store_explicit(&r->records, map, memory_order_release);
	return map;
}

static void ring_lose(struct ring *r)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed);

	atomic_store_explicit(&r->lost, lost + 1, memory_order_relaxed);
}

void read_trace_add(struct read_trace *t, const struct read_record *record)
{
	struct read_record *records;
	struct per_thread *shard;
	struct ring *r;
	uint64_t head;

	if (record->ns <
		atomic_load_explicit(&t->slow_ns, memory_order_relaxed))
		return;
	shard = per_thread_take(&t->rings);
	if (!shard)
		return;
	r = ring_of_thread(shard);
	records = ring_records(r);
	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (!records ||
		head - atomic_load_explicit(&r->tail, memory_order_acquire) >=
			READ_TRACE_RECORDS) {
		ring_lose(r);
		return;
	}
	records[head % READ_TRACE_RECORDS] = *record;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* Drop all records in the ring. */
static void ring_empty(struct ring *r)
{
	atomic_store_explicit(&r->tail,
		atomic_load_explicit(&r->head, memory_order_acquire),
		memory_order_release);
	r->lost_told = atomic_load_explicit(&r->lost, memory_order_relaxed);
}

void read_trace_begin(struct read_trace *t, uint64_t slow_ns)
{
	atomic_store_explicit(&t->slow_ns, slow_ns, memory_order_relaxed);
	for (struct per_thread *s = per_threads_first(&t->rings); s;
		s = per_threads_next(s))
		ring_empty(ring_of_thread(s));
}

static size_t ring_take(struct ring *r, struct read_record *out, size_t max)
{
	const struct read_record *records =
		atomic_load_explicit(&r->records, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t n = 0;

	for (; n < max && tail != head; n++, tail++)
		out[n] = records[tail % READ_TRACE_RECORDS];
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	return n;
}

static int ends_earlier(const void *a, const void *b)
{
	uint64_t x = ((const struct read_record *)a)->end_ns;
	uint64_t y = ((const struct read_record *)b)->end_ns;

	return (x > y) - (x < y);
}

size_t read_trace_take(struct read_trace *t, struct read_record *out,
	size_t max, uint64_t *lost)
{
	size_t n = 0;

	for (struct per_thread *s = per_threads_first(&t->rings); s;
		s = per_threads_next(s)) {
		struct ring *r = ring_of_thread(s);
		uint64_t all =
			atomic_load_explicit(&r->lost, memory_order_relaxed);

		n += ring_take(r, out + n, max - n);
		*lost += all - r->lost_told;
		r->lost_told = all;
	}
	qsort(out, n, sizeof(*out), ends_earlier);
	return n;
}

void read_trace_end(struct read_trace *t)
{
	for (struct per_thread *s = per_threads_first(&t->rings); s;
		s = per_threads_next(s)) {
		struct ring *r = ring_of_thread(s);
		struct read_record *records =
			atomic_load_explicit(&r->records, memory_order_acquire);

		ring_empty(r);
		if (records)
			/* a failure costs memory only */
			(void)madvise(records, RING_BYTES, MADV_DONTNEED);
	}
}
