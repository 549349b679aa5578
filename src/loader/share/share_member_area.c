/* SPDX-License-Identifier: MIT */
/*
 * The memory of a host in a member: slots with shared batches, and slices of
 * them that are lent. The lock of the loader guards everything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "loader/share/share_member_impl.h"

/* Release a slice. This may be the last access to the loader. */
static void slice_release(struct lent_batch *b)
{
	struct shared_slice *p =
		CONTAINER_OF(b, struct shared_slice, lent_batch);
	struct shared_whole *w = p->whole;
	struct shared *sh = w->area->owner;

	if (sh->pid != getpid())
		return;
	pthread_mutex_lock(&sh->lock);
	if (!p->lent) { /* the user has released this slice before */
		pthread_mutex_unlock(&sh->lock);
		return;
	}
	p->lent = false;
	sh->lending.lent--;
	if (--w->left == 0) {
		w->used = false;
		w->release_due = true;
		if (sh->course != SHARED_CLOSING)
			shared_tell_released(sh);
		shared_area_unref(w->area);
	}
	shared_unref(sh);
}

/* Returns how many offsets a slice has. */
static size_t slice_offsets(const struct shared *sh)
{
	return slab_offsets(&sh->run.s, sh->run.own_config.batch);
}

uint64_t *shared_area_offsets(
	const struct shared_area *area, const struct shared_slice *slice)
{
	size_t n = (size_t)(slice - area->slice);

	return area->offsets ? area->offsets + n * slice_offsets(area->owner)
			     : NULL;
}

int shared_area_new(struct shared_area **out, struct shared *owner,
	uint32_t slices, const struct share_segment *said, int fd)
{
	struct shared_area *area = calloc(1, sizeof(*area));
	size_t n = (size_t)said->slots * slices;
	int rc = area ? 0 : -ENOMEM;

	ASSERT_HELD(&owner->lock);
	if (rc == 0) {
		area->wholes = calloc(said->slots, sizeof(*area->wholes));
		area->slice = calloc(n, sizeof(*area->slice));
		if (!area->wholes || !area->slice)
			rc = -ENOMEM;
	}
	if (rc == 0 && slice_offsets(owner)) {
		area->offsets = calloc(
			n, slice_offsets(owner) * sizeof(*area->offsets));
		if (!area->offsets)
			rc = -ENOMEM;
	}
	if (rc == 0)
		rc = share_area_map(&area->memory, fd, said->bytes);
	if (rc < 0) {
		if (area) {
			free(area->wholes);
			free(area->slice);
			free(area->offsets);
		}
		free(area);
		return rc;
	}
	area->owner = owner;
	area->slot_bytes = said->slot_bytes;
	area->slots = said->slots;
	area->word = owner->link.word;
	area->refs = 1;
	for (uint32_t i = 0; i < said->slots; i++)
		area->wholes[i].area = area;
	for (size_t i = 0; i < n; i++) {
		area->slice[i].whole = &area->wholes[i / slices];
		MAGIC_BEGIN(&area->slice[i].lent_batch, lent_batch);
		area->slice[i].lent_batch.release = slice_release;
	}
	*out = area;
	return 0;
}

void shared_area_unref(struct shared_area *area)
{
	ASSERT_HELD(&area->owner->lock);
	if (--area->refs > 0)
		return;
	share_area_release(&area->memory);
	free(area->wholes);
	free(area->slice);
	free(area->offsets);
	free(area);
}

/* -- Batches that outlive their slots -------------------------------------- */

/*
 * Replace the mapping of these bytes by a private copy. Readers see the same
 * bytes before and after, because the host does not write to a slot that is
 * lent. The first and the last page may contain bytes of neighbouring slots;
 * these slots are either lent and therefore constant, too, or not in use.
 */
static int keep_range(char *from, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = from - (uintptr_t)from % page;
	size_t all = (size_t)(from - begin) + bytes;
	void *copy;

	all = (all + page - 1) / page * page;
	copy = mmap(NULL, all, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -ENOMEM;
	memcpy(copy, begin, all);
	if (mprotect(copy, all, PROT_READ) < 0 ||
		mremap(copy, all, all, MREMAP_MAYMOVE | MREMAP_FIXED, begin) ==
			MAP_FAILED) {
		/* cannot fail: the mapping was made above */
		(void)munmap(copy, all);
		return -ENOMEM;
	}
	return 0;
}

static bool is_lent(
	const struct shared_area *area, uint32_t slot, uint32_t slices)
{
	for (uint32_t i = 0; i < slices; i++)
		if (area->slice[slot * slices + i].lent)
			return true;
	return false;
}

int shared_area_keep(struct shared_area *area, uint32_t slices)
{
	int rc = 0;

	ASSERT_HELD(&area->owner->lock);
	for (uint32_t i = 0; rc == 0 && i < area->slots; i++)
		if (is_lent(area, i, slices))
			rc = keep_range(share_area_base(&area->memory) +
					i * area->slot_bytes,
				area->slot_bytes);
	return rc;
}
