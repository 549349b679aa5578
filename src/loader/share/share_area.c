/* SPDX-License-Identifier: MIT */
/*
 * The memory of a share: a memfd without a path, whose size is sealed. The host
 * maps it and then seals it against writing, so no other writable mapping can
 * ever exist. No state; any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "loader/share/share.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the offset of the words, which follow the batches on the next
 * page. */
static size_t words_at(size_t bytes)
{
	size_t page = page_bytes();

	return (bytes + page - 1) / page * page;
}

static size_t mapped_bytes(size_t bytes)
{
	return words_at(bytes) + page_bytes();
}

static void set_area(struct share_area *area, void *base, size_t bytes, int fd)
{
	*area = (struct share_area){.base = base,
		.bytes = bytes,
		.words = (void *)((char *)base + words_at(bytes)),
		.fd = fd};
}

int share_area_new(struct share_area *area, size_t bytes)
{
	CLEANUP_FD int fd =
		memfd_create("refrain-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t all = mapped_bytes(bytes);
	void *base;

	if (fd < 0 || ftruncate(fd, (off_t)all) < 0)
		return -errno;
	base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	set_area(area, base, bytes, -1);
	area->words->magic = SHARE_AREA_MAGIC;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		int rc = -errno;

		share_area_release(area);
		return rc;
	}
	area->fd = steal_fd(&fd);
	return 0;
}

int share_area_map(struct share_area *area, int fd, size_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *base;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
		st.st_size < 0 || (uint64_t)st.st_size < bytes || !bytes ||
		(uint64_t)st.st_size < mapped_bytes(bytes))
		return -EBADMSG;
	base = mmap(NULL, mapped_bytes(bytes), PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	set_area(area, base, bytes, -1);
	if (area->words->magic == SHARE_AREA_MAGIC)
		return 0;
	share_area_release(area);
	return -EBADMSG;
}

void share_area_release(struct share_area *area)
{
	if (area->base) /* unmaps exactly what was mapped */
		(void)munmap(area->base, mapped_bytes(area->bytes));
	if (area->base && area->fd >= 0)
		/* cannot lose data: a memfd is in memory */
		(void)close(area->fd);
	*area = (struct share_area){.fd = -1};
}

char *share_area_base(const struct share_area *area)
{
	return area->base;
}

void share_area_set_parted(
	const struct share_area *area, uint32_t member, bool parted)
{
	atomic_store(&area->words->parted[member], parted);
}

bool share_area_is_parted(const struct share_area *area, uint32_t member)
{
	return atomic_load(&area->words->parted[member]) != 0;
}
