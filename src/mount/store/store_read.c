/* SPDX-License-Identifier: MIT */
/*
 * Reads from an entry: open, read, verify, close. Any number of threads may
 * read, because each passes a scratch of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/format/entry.h"
#include "mount/store/store_impl.h"

/* The blocks that a read touches, and one byte past the end of the file. */
#define CONTENT_BYTES (STORE_READ_MAX_BYTES + 2 * ENTRY_BLOCK_BYTES)
#define SCRATCH_BYTES (CONTENT_BYTES + ENTRY_TRAILER_MAX_BYTES + 4096)

struct store_scratch {
	unsigned char *buf;
};

/* The range of an entry that a read needs, and the trailer of the entry. */
struct window {
	uint64_t begin, end;	      /* the content bytes to read */
	const unsigned char *trailer; /* points into the scratch */
};

struct store_scratch *store_scratch_new(void)
{
	CLEANUP_FREE struct store_scratch *scratch = malloc(sizeof(*scratch));
	void *buf;

	if (!scratch || posix_memalign(&buf, 4096, SCRATCH_BYTES))
		return NULL;
	scratch->buf = buf;
	return steal_ptr(&scratch);
}

void store_scratch_free(struct store_scratch *scratch)
{
	if (!scratch)
		return;
	free(scratch->buf);
	free(scratch);
}

/* Open an entry for reading. Returns the descriptor or -errno. */
static int store_open_entry(struct store *s, const struct entry_ref *ref)
{
	char path[ENTRY_PATH_MAX];
	CLEANUP_FD int fd = -1;
	struct stat st;

	(void)entry_path(path, ref->key, ref->item_bytes);
	/* O_NONBLOCK, because the name may belong to a FIFO now. */
	fd = openat(s->tiers[ref->tier].fd, path,
		O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == s->tiers[ref->tier].uid)
		return steal_fd(&fd);
	/* Checksums do not protect against this: they need no secret, so
	 * another user can make valid ones */
	return -EPERM;
}

ssize_t store_pread(int fd, void *buf, size_t len, size_t more, uint64_t off)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (char *)buf + got, len + more - got,
			(off_t)(off + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Read exactly len bytes, which must end the file. Otherwise returns
 * -EBADMSG. */
static int read_to_end(int fd, void *buf, size_t len, uint64_t off)
{
	ssize_t n = store_pread(fd, buf, len, 1, off);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EBADMSG;
}

/* Read content and trailer. One call does it if the read reaches the end of the
 * content. */
static int read_window(int fd, struct store_scratch *scratch,
	uint64_t item_bytes, struct window *w)
{
	size_t len = (size_t)(w->end - w->begin);
	size_t trailer = entry_trailer_bytes(item_bytes);
	ssize_t n;

	w->trailer = scratch->buf + len;
	if (w->end == item_bytes)
		return read_to_end(fd, scratch->buf, len + trailer, w->begin);
	n = store_pread(fd, scratch->buf, len, 0, w->begin);
	if (n < 0)
		return (int)n;
	if ((size_t)n != len)
		return -EBADMSG;
	return read_to_end(fd, scratch->buf + len, trailer, item_bytes);
}

/* Read and verify a window. Returns 0, -EBADMSG if the entry is damaged, or the
 * -errno of a failed read. */
static int read_checked(struct store *s, int fd, struct store_scratch *scratch,
	const struct entry_ref *ref, struct window *w)
{
	uint64_t first = w->begin / ENTRY_BLOCK_BYTES;
	int rc = read_window(fd, scratch, ref->item_bytes, w);

	/* The entry is not a regular file any more. */
	if (rc == -ESPIPE || rc == -EISDIR || rc == -EINVAL || rc == -ENXIO)
		return -EBADMSG;
	if (rc)
		return rc;
	if (entry_check_trailer(
		    w->trailer, ref->key, ref->item_bytes, s->verify))
		return -EBADMSG;
	if (s->verify &&
		!entry_check_blocks(w->trailer, ref->key, scratch->buf,
			(size_t)(w->end - w->begin), first))
		return -EBADMSG;
	return 0;
}

static struct window window_of(
	const struct store *s, uint64_t item_bytes, uint64_t off, size_t len)
{
	struct window w = {.begin = off, .end = off + len};

	if (!s->verify)
		return w;
	w.begin -= w.begin % ENTRY_BLOCK_BYTES;
	w.end += ENTRY_BLOCK_BYTES - 1;
	w.end -= w.end % ENTRY_BLOCK_BYTES;
	if (w.end > item_bytes)
		w.end = item_bytes;
	return w;
}

static void drop_damaged(
	struct store *s, const struct entry_ref *ref, const struct stat *seen)
{
	char path[ENTRY_PATH_MAX];
	struct entry_ref now;

	if (!entries_drop(s->entries, ref->key, &now))
		return; /* another thread has dropped and counted it */
	if (!store_remove(s, &now, REMOVE_SEEN, seen))
		return;
	COUNT(s->counters, checksum_errors);
	store_report(s, now.tier, EVENT_ENTRY_DAMAGED,
		entry_path(path, now.key, now.item_bytes));
}

/* Handle an entry that could not be opened because of the error `rc`. */
static void open_failed(struct store *s, const struct entry_ref *ref, int rc)
{
	struct entry_ref now;
	struct stat st;
	char path[ENTRY_PATH_MAX];

	(void)entry_path(path, ref->key, ref->item_bytes);
	if (rc == -ENOENT) {
		if (!entries_drop(s->entries, ref->key, &now) ||
			!store_remove(s, &now, REMOVE_LOST, NULL))
			return;
		COUNT(s->counters, entries_lost);
		store_report(s, ref->tier, EVENT_ENTRY_LOST, path);
		return;
	}
	if ((rc == -ELOOP || rc == -ENXIO || rc == -EPERM) &&
		fstatat(s->tiers[ref->tier].fd, path, &st,
			AT_SYMLINK_NOFOLLOW) == 0)
		/* The name belongs to a link, a socket, or a file of another
		 * user. */
		drop_damaged(s, ref, &st);
	else /* this error does not show that the entry is damaged */
		store_failed(s, ref->tier, EVENT_TIER_READ_FAILED, path, rc);
}

/* Handle data that could not be read or verified because of the error `rc`. */
static void entry_read_failed(
	struct store *s, const struct entry_ref *ref, int fd, int rc)
{
	char path[ENTRY_PATH_MAX];
	struct entry_ref now;
	struct stat seen;

	if (rc != -EBADMSG)
		store_failed(s, ref->tier, EVENT_TIER_READ_FAILED,
			entry_path(path, ref->key, ref->item_bytes), rc);
	if (fstat(fd, &seen) < 0)
		return;
	if (rc == -EBADMSG)
		drop_damaged(s, ref, &seen);
	else if (entries_drop(s->entries, ref->key, &now))
		/* store_remove() counts its own failure */
		(void)store_remove(s, &now, REMOVE_SEEN, &seen);
}

ssize_t store_read(struct store *s, struct store_scratch *scratch,
	struct hash128 key, uint64_t item_bytes, uint64_t off, size_t len,
	const void **data)
{
	CLEANUP_FD int fd = -1;
	struct entry_ref ref;
	struct window w;
	int rc;

	if (!len || len > STORE_READ_MAX_BYTES || off > item_bytes ||
		len > item_bytes - off || item_bytes > ENTRY_ITEM_MAX_BYTES)
		return -EINVAL;
	if (!store_find(s, key, item_bytes, &ref))
		return -ENOENT;
	fd = store_open_entry(s, &ref);
	if (fd < 0) {
		open_failed(s, &ref, fd);
		return -ENOENT;
	}
	w = window_of(s, item_bytes, off, len);
	rc = read_checked(s, fd, scratch, &ref, &w);
	if (rc) {
		entry_read_failed(s, &ref, fd, rc);
		return -ENOENT;
	}
	*data = scratch->buf + (off - w.begin);
	return (ssize_t)len;
}
