/* SPDX-License-Identifier: MIT */
/*
 * The budget and its buffers. The struct of a buffer is stored in the first 64
 * bytes of its memory. Large buffers are mapped, so that freeing one returns
 * its memory to the system: on the heap, fragmentation made a budget of 40 MiB
 * take 60 MiB. Called with the lock of the loader held.
 */
#include "loader/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_BYTES 64
#define SMALLEST_BYTES 1024
/* From this size on, all sizes of classes are multiples of a page. */
#define MAPPED_LEAST_BYTES ((size_t)16 << 10)
#define MAPPED_MAX_LOG 14

_Static_assert(sizeof(struct buffer) <= HEAD_BYTES, "head of a buffer");

/* Returns the size of a class. Four classes double the size: 1024, 1280, 1536,
 * 1792, 2048, ... */
static size_t class_bytes(unsigned c)
{
	return (size_t)(4 + c % 4) << (8 + c / 4);
}

static unsigned class_of(size_t bytes)
{
	unsigned c = 0, octave;

	if (bytes <= SMALLEST_BYTES)
		return 0;
	octave = 63 - (unsigned)__builtin_clzll(bytes);
	if (octave > 38)
		return MEMORY_CLASSES - 1;
	c = (octave - 10) * 4;
	while (class_bytes(c) < bytes)
		c++;
	return c;
}

void memory_init(struct memory *m, uint64_t limit)
{
	*m = (struct memory){.limit = limit};
	for (unsigned c = 0; c < MEMORY_CLASSES; c++)
		list_init(&m->free[c]);
}

/* Is a buffer of this size mapped? At most 2^14 buffers fit into the limit at
 * this size, because a process may have only 65,530 mappings. */
static bool is_mapped(const struct memory *m, size_t bytes)
{
	return bytes >= MAPPED_LEAST_BYTES &&
		bytes >= m->limit >> MAPPED_MAX_LOG;
}

static struct buffer *buffer_new(const struct memory *m, unsigned c)
{
	size_t bytes = class_bytes(c);
	struct buffer *b;

	if (!is_mapped(m, bytes)) {
		b = aligned_alloc(HEAD_BYTES, bytes);
	} else {
		b = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			b = NULL;
	}
	if (!b)
		return NULL;
	list_init(&b->node);
	b->size_class = c;
	b->data = (uint8_t *)b + HEAD_BYTES;
	b->bytes = bytes - HEAD_BYTES;
	return b;
}

static void buffer_free(const struct memory *m, struct buffer *b)
{
	size_t bytes = class_bytes(b->size_class);

	if (!is_mapped(m, bytes))
		free(b);
	else
		/* Unmaps exactly what was mapped, so it cannot fail */
		(void)munmap(b, bytes);
}

static struct buffer *take_kept(struct memory *m, unsigned c)
{
	struct buffer *b;

	if (list_empty(&m->free[c]))
		return NULL;
	b = LIST_FIRST(&m->free[c], struct buffer, node);
	list_del(&b->node);
	m->kept -= class_bytes(c);
	return b;
}

static void free_kept(struct memory *m, unsigned c)
{
	struct buffer *b = take_kept(m, c);

	if (!b)
		return;
	m->charged -= class_bytes(c);
	buffer_free(m, b);
}

void memory_trim(struct memory *m)
{
	for (unsigned c = 0; c < MEMORY_CLASSES; c++)
		while (!list_empty(&m->free[c]))
			free_kept(m, c);
}

/* Free kept buffers, large ones first, until `bytes` more bytes can be charged.
 * Returns false if the budget is too small. */
static bool make_room(struct memory *m, uint64_t bytes)
{
	if (bytes > memory_room(m))
		return false;
	for (unsigned c = MEMORY_CLASSES; c-- > 0;)
		while (m->charged + bytes > m->limit &&
			!list_empty(&m->free[c]))
			free_kept(m, c);
	return true;
}

uint64_t memory_cost(size_t bytes)
{
	size_t whole = bytes + HEAD_BYTES;

	if (whole < bytes || whole > class_bytes(MEMORY_CLASSES - 1))
		return UINT64_MAX / 4;
	return class_bytes(class_of(whole));
}

size_t memory_largest(uint64_t cost)
{
	unsigned c = MEMORY_CLASSES - 1;

	while (c > 0 && class_bytes(c) > cost)
		c--;
	return class_bytes(c) - HEAD_BYTES;
}

uint64_t memory_room(const struct memory *m)
{
	uint64_t used = m->charged - m->kept;

	return used < m->limit ? m->limit - used : 0;
}

void memory_charge_over(struct memory *m, uint64_t bytes)
{
	m->charged += bytes;
	if (m->charged > m->peak)
		m->peak = m->charged;
}

bool memory_charge(struct memory *m, uint64_t bytes)
{
	if (!make_room(m, bytes))
		return false;
	memory_charge_over(m, bytes);
	return true;
}

void memory_uncharge(struct memory *m, uint64_t bytes)
{
	m->charged -= bytes;
}

struct buffer *memory_get(struct memory *m, size_t bytes)
{
	uint64_t cost = memory_cost(bytes);
	struct buffer *b;
	unsigned c;

	if (cost > memory_room(m))
		return NULL;
	c = class_of(cost);
	b = take_kept(m, c);
	if (b)
		return b;
	if (!make_room(m, cost))
		return NULL;
	b = buffer_new(m, c);
	if (!b)
		return NULL;
	memory_charge_over(m, cost);
	return b;
}

/* Cut a mapped buffer off where the one of class c ends. */
static void cut_mapped(struct memory *m, struct buffer *b, unsigned c)
{
	size_t bytes = class_bytes(c), before = class_bytes(b->size_class);

	/* Unmaps a part of what was mapped, so it cannot fail */
	(void)munmap((uint8_t *)b + bytes, before - bytes);
	b->size_class = c;
	b->bytes = bytes - HEAD_BYTES;
	memory_uncharge(m, before - bytes);
}

/* Replace a buffer by one of class c, which is so small that both may be
 * charged for a moment, even over the budget. */
static struct buffer *copy_small(
	struct memory *m, struct buffer *b, unsigned c, size_t bytes)
{
	struct buffer *less = take_kept(m, c);

	if (!less) {
		less = buffer_new(m, c);
		if (!less)
			return b;
		m->charged += class_bytes(c);
	}
	memcpy(less->data, b->data, bytes);
	m->charged -= class_bytes(b->size_class);
	buffer_free(m, b);
	return less;
}

struct buffer *memory_shrink(struct memory *m, struct buffer *b, size_t bytes)
{
	unsigned c = class_of(memory_cost(bytes));

	if (c >= b->size_class)
		return b;
	if (!is_mapped(m, class_bytes(c)))
		return copy_small(m, b, c, bytes);
	cut_mapped(m, b, c);
	return b;
}

void memory_put(struct memory *m, struct buffer *b)
{
	if (!b)
		return;
	/* Put the buffer first, so that the next request takes the buffer that
	 * was used last: its bytes are still in the processor's cache. */
	list_add(&m->free[b->size_class], &b->node);
	m->kept += class_bytes(b->size_class);
}
