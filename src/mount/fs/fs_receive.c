/* SPDX-License-Identifier: MIT */
/*
 * Reads the kernel's requests. If the daemon is killed while the kernel copies
 * a request to it, and a page of the buffer is not in memory, the copy fails
 * and the reader gets an I/O error. Therefore the first pages of each buffer,
 * which are enough for the requests of readers, are allocated at the start and
 * stay in memory.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <unistd.h>

/* The kernel refuses a buffer that is too small for a WRITE of max_write
 * bytes. */
#define BUFFER_BYTES ((size_t)FS_REQUEST_MAX)
/* Only lists of FORGETs can be longer, and no process waits for an answer to
 * these. */
#define PRESENT_BYTES ((size_t)8192)

void *receive_buffer_new(void)
{
	void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		return NULL;
	for (size_t at = 0; at < PRESENT_BYTES; at += 4096)
		((volatile char *)buffer)[at] = 0;
	/* A child process does not get these pages. Otherwise the next write
	 * would copy each page, and memory for the copy could be short just
	 * when the daemon is killed. */
	(void)madvise(buffer, BUFFER_BYTES, MADV_DONTFORK);
	/* If this fails, the pages stay in memory unless memory is short. */
	(void)mlock(buffer, PRESENT_BYTES);
	return buffer;
}

void receive_buffer_free(void *buffer)
{
	if (buffer)
		(void)munmap(buffer, BUFFER_BYTES);
}

ssize_t receive_request(struct fs *fs, void *buffer)
{
	int fd = fuse_session_fd(fs->se);
	ssize_t n;

	if (fs->journal)
		n = journal_receive(fs->journal, fd, buffer);
	else
		n = read(fd, buffer, BUFFER_BYTES);
	if (n >= 0)
		return n >= (ssize_t)sizeof(struct fuse_in_header) ? n : -EIO;
	switch (fs->journal ? (int)-n : errno) {
	case ENODEV:
		return 0;
	case ENOENT: /* the request was interrupted */
	case EAGAIN:
	case EINTR:
		return -EINTR;
	default:
		return fs->journal ? n : -errno;
	}
}
