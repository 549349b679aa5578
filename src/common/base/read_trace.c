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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/per_thread.h"
#include "common/base/proc.h"

/* The `source` of a note. */
#define MET LATENCY_KINDS
#define MET_SLOTS 256u
#define MET_NS NS_PER_S

/* A thread that has been noted. */
struct met {
	pid_t thread;
	uint64_t until_ns;
};

struct ring_memory {
	struct read_record record[READ_TRACE_RECORDS];
	struct met met[MET_SLOTS]; /* used by the owner alone */
};

struct ring {
	struct per_thread shard;
	/* Written by the thread that has taken the shard */
	_Atomic(struct ring_memory *) memory; /* release; set once */
	_Atomic uint64_t head;		      /* release */
	_Atomic uint64_t lost;		      /* relaxed */
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
		struct ring_memory *memory = ring_of_thread(s)->memory;

		if (memory)
			(void)munmap(
				memory, sizeof(*memory)); /* it is mapped */
	}
	per_threads_release(&t->rings);
	free(t);
}

/* Returns the memory of this thread's ring; NULL: memory is short. */
static struct ring_memory *ring_memory(struct ring *r)
{
	struct ring_memory *memory =
		atomic_load_explicit(&r->memory, memory_order_relaxed);
	void *map;

	if (memory)
		return memory;
	map = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	atomic_store_explicit(&r->memory, map, memory_order_release);
	return map;
}

static void ring_lose(struct ring *r)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed);

	atomic_store_explicit(&r->lost, lost + 1, memory_order_relaxed);
}

/* Returns the ring of this thread; NULL: memory is short. */
static struct ring *ring_own(struct read_trace *t)
{
	struct per_thread *shard = per_thread_take(&t->rings);

	return shard ? ring_of_thread(shard) : NULL;
}

/* Add a record. Returns false if the ring has no room. */
static bool ring_put(struct ring *r, const struct read_record *record)
{
	struct ring_memory *memory = ring_memory(r);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (!memory ||
		head - atomic_load_explicit(&r->tail, memory_order_acquire) >=
			READ_TRACE_RECORDS)
		return false;
	memory->record[head % READ_TRACE_RECORDS] = *record;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

void read_trace_add(struct read_trace *t, const struct read_record *record)
{
	struct ring *r;

	if (record->ns <
		atomic_load_explicit(&t->slow_ns, memory_order_relaxed))
		return;
	r = ring_own(t);
	if (r && !ring_put(r, record))
		ring_lose(r);
}

/* A note takes the place of a record: its process that of the offset, and its
 * name that of the duration and the node, which are side by side. */
_Static_assert(offsetof(struct read_record, node) ==
		offsetof(struct read_record, ns) + 8,
	"a name has room");

static struct read_record note_of(
	const struct read_thread *who, uint64_t now_ns)
{
	struct read_record r = {.end_ns = now_ns,
		.off = (uint64_t)who->process,
		.thread = who->thread,
		.source = MET};

	memcpy(&r.ns, who->program, 8);
	memcpy(&r.node, who->program + 8, 8);
	return r;
}

bool read_trace_met(const struct read_record *r, struct read_thread *out)
{
	if (r->source != MET)
		return false;
	*out = (struct read_thread){
		.thread = r->thread, .process = (pid_t)r->off};
	memcpy(out->program, &r->ns, 8);
	memcpy(out->program + 8, &r->node, 7);
	return true;
}

void read_trace_meet(struct read_trace *t, pid_t thread, uint64_t now_ns)
{
	struct ring *r = ring_own(t);
	struct ring_memory *memory = r ? ring_memory(r) : NULL;
	struct read_thread who = {.thread = thread};
	char name[PROC_NAME_MAX];
	struct read_record note;
	struct met *met;

	if (!memory || thread <= 0)
		return;
	met = &memory->met[(unsigned)thread % MET_SLOTS];
	if (met->thread == thread && met->until_ns > now_ns)
		return;
	who.process = proc_of_thread(thread);
	if (who.process <= 0)
		return;
	proc_name(who.process, name);
	(void)snprintf(who.program, sizeof(who.program), "%.15s", name);
	note = note_of(&who, now_ns);
	if (ring_put(r, &note))
		*met = (struct met){thread, now_ns + MET_NS};
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
	const struct ring_memory *memory =
		atomic_load_explicit(&r->memory, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t n = 0;

	for (; n < max && tail != head; n++, tail++)
		out[n] = memory->record[tail % READ_TRACE_RECORDS];
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
		struct ring_memory *memory =
			atomic_load_explicit(&r->memory, memory_order_acquire);

		ring_empty(r);
		if (memory)
			/* a failure costs memory only */
			(void)madvise(memory, sizeof(*memory), MADV_DONTNEED);
	}
}
