/* SPDX-License-Identifier: MIT */
/* The buffers for the reads of the posix origin. Their number limits the reads
 * in progress: a read that gets no buffer waits until another read ends. Called
 * by any thread that starts or ends a read. */
#include "origin/local/posix_read_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* Maximum number of reads in progress, including hung and abandoned ones. */
#define BUFFERS_MAX 512
/* Maximum number of unused buffers that are kept. */
#define SPARES_MAX 32

static void posix_buffer_buffer_free(struct read_buffer *b)
{
	if (!b)
		return;
	if (b->bytes)
		/* cannot fail: the mapping is ours */
		(void)munmap(b->bytes, BUFFER_BYTES);
	free(b);
}

/* Allocate a buffer. The memory is mapped, so it is aligned, and its pages take
 * no memory until a read uses them. */
static struct read_buffer *posix_buffer_buffer_new(void)
{
	struct read_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->bytes = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->bytes == MAP_FAILED) {
		free(b);
		return NULL;
	}
	return b;
}

int posix_buffer_get(struct posix_read *pr)
{
	struct posix *p = pr->p;
	LOCK_SCOPE(&p->lock);

	if (!list_empty(&p->spare)) {
		pr->buf = LIST_FIRST(&p->spare, struct read_buffer, node);
		list_del(&pr->buf->node);
		p->spares--;
		return 0;
	}
	if (p->buffers == BUFFERS_MAX) {
		list_add_tail(&p->waiting, &pr->node);
		return -EINPROGRESS;
	}
	pr->buf = posix_buffer_buffer_new();
	if (!pr->buf)
		return -ENOMEM;
	p->buffers++;
	return 0;
}

struct posix_read *posix_buffer_put(struct posix *p, struct read_buffer *b)
{
	struct posix_read *next;

	ASSERT_HELD(&p->lock);
	if (!b)
		return NULL;
	if (!list_empty(&p->waiting)) {
		next = LIST_FIRST(&p->waiting, struct posix_read, node);
		list_del(&next->node);
		next->buf = b;
		return next;
	}
	if (p->spares < SPARES_MAX) {
		p->spares++;
		/* Add the buffer at the front, where the next read takes it. So
		 * the same few buffers are used, and the pages of the others
		 * take no memory. */
		list_add(&p->spare, &b->node);
		return NULL;
	}
	p->buffers--;
	posix_buffer_buffer_free(b);
	return NULL;
}

void posix_free_buffers(struct posix *p)
{
	LIST_FOREACH_SAFE(pos, tmp, &p->spare)
		posix_buffer_buffer_free(
			CONTAINER_OF(pos, struct read_buffer, node));
}
