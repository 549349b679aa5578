/* SPDX-License-Identifier: MIT */
/*
 * The memory of a share: a memfd that has no name and cannot change its size.
 * The host's mapping, made before the seals, is the only writable one there can
 * ever be. No state; any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "share/share.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

int share_area_new(struct share_area *area, size_t bytes)
{
	CLEANUP_FD int fd =
		memfd_create("refrain-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *base;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		int rc = -errno;

		(void)munmap(base, bytes); /* it is ours */
		return rc;
	}
	*area = (struct share_area){base, bytes, steal_fd(&fd)};
	return 0;
}

int share_area_map(struct share_area *area, int fd, size_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *base;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
		st.st_size < 0 || (uint64_t)st.st_size < bytes || !bytes)
		return -EBADMSG;
	base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*area = (struct share_area){base, bytes, -1};
	return 0;
}

void share_area_release(struct share_area *area)
{
	if (area->base)
		(void)munmap(area->base, area->bytes); /* it is ours */
	if (area->base && area->fd >= 0)
		(void)close(area->fd); /* nothing is lost */
	*area = (struct share_area){NULL, 0, -1};
}
