/* SPDX-License-Identifier: MIT */
/*
 * Keeps the requests that were read but not answered in shared memory, for
 * kernels that cannot send them again. The kernel itself writes a request into
 * its slot before the request counts as read, so a request is never lost. A
 * slot is in use while the `unique` of its request is not 0; it is emptied
 * after the answer has been written. A process that takes over answers the
 * requests that it finds. If one of them was answered just before, the kernel
 * ignores the second answer.
 *
 * A slot is shorter than the buffer that read(2) must offer, so the worker's
 * own buffer follows it. Only lists of FORGETs are longer than a slot, and no
 * process waits for these.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SLOTS 8191u
#define SLOT_BYTES ((size_t)512)
#define JOURNAL_BYTES ((SLOTS + 1) * SLOT_BYTES)
#define JOURNAL_MAGIC "refrjrnl"
#define JOURNAL_VERSION 1
#define JOURNAL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* Uniques are counted up, so requests that are close in time have different
 * places. */
#define PLACES 65536u
#define PLACES_PROBED 64u

/* This follows the slots. */
struct journal_tail {
	char magic[8];
	uint32_t version;
};

struct journal {
	unsigned char *map; /* SLOTS of SLOT_BYTES, each a request; the tail */
	int fd;
	atomic_uint rotor;
	atomic_bool taken[SLOTS]; /* taken by a worker, or in use */
	/* Uniques of the requests in slots; 0: none */
	_Atomic uint64_t unique[PLACES];
	/* Written by the thread that has set the unique */
	uint16_t slot[PLACES];
};

static struct fuse_in_header *slot_head(const struct journal *j, unsigned slot)
{
	return (struct fuse_in_header *)(j->map + slot * SLOT_BYTES);
}

static struct journal_tail *journal_tail(const struct journal *j)
{
	return (struct journal_tail *)(j->map + SLOTS * SLOT_BYTES);
}

/* -- Slots ---------------------------------------------------------------- */

/* Take a free slot. Returns SLOTS if all are in use. */
static unsigned slot_take(struct journal *j)
{
	unsigned first =
		atomic_fetch_add_explicit(&j->rotor, 1, memory_order_relaxed);

	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned slot = (first + i) % SLOTS;
		bool taken = false;

		if (atomic_compare_exchange_strong(
			    &j->taken[slot], &taken, true))
			return slot;
	}
	return SLOTS;
}

static void slot_empty(struct journal *j, unsigned slot)
{
	/* Clear the old unique first, so that it is not found in a slot that is
	 * free. */
	__atomic_store_n(&slot_head(j, slot)->unique, 0, __ATOMIC_RELEASE);
	atomic_store(&j->taken[slot], false);
}

/* Enter the request of a slot. Returns false if there is no place for its
 * unique. */
static bool slot_note(struct journal *j, unsigned slot)
{
	uint64_t unique = slot_head(j, slot)->unique;

	for (unsigned i = 0; i < PLACES_PROBED; i++) {
		unsigned at = (unsigned)(unique / 2 + i) % PLACES;
		uint64_t none = 0;

		if (atomic_load_explicit(
			    &j->unique[at], memory_order_relaxed) != 0 ||
			!atomic_compare_exchange_strong(
				&j->unique[at], &none, UINT64_MAX))
			continue;
		j->slot[at] = (uint16_t)slot;
		atomic_store(&j->unique[at], unique);
		return true;
	}
	return false;
}

void journal_answered(struct journal *j, uint64_t unique)
{
	for (unsigned i = 0; i < PLACES_PROBED; i++) {
		unsigned at = (unsigned)(unique / 2 + i) % PLACES;

		if (atomic_load(&j->unique[at]) != unique)
			continue;
		slot_empty(j, j->slot[at]);
		atomic_store(&j->unique[at], 0); /* the place is free now */
		return;
	}
}

static bool needs_no_answer(uint32_t opcode)
{
	return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET ||
		opcode == FUSE_INTERRUPT;
}

/* -- Requests and answers ------------------------------------------------- */

ssize_t journal_receive(struct journal *j, int fd, void *buffer)
{
	unsigned slot = slot_take(j);
	const struct fuse_in_header *in = slot_head(j, slot);
	struct iovec iov[2];
	ssize_t n;

	if (slot == SLOTS)
		return -ENOMEM; /* too many readers wait already */
	iov[0] = (struct iovec){j->map + slot * SLOT_BYTES, SLOT_BYTES};
	iov[1] = (struct iovec){(unsigned char *)buffer + SLOT_BYTES,
		FS_REQUEST_MAX - SLOT_BYTES};
	n = readv(fd, iov, 2);
	if (n < (ssize_t)sizeof(*in)) {
		int rc = n < 0 ? -errno : -EIO;

		slot_empty(j, slot);
		return rc;
	}
	memcpy(buffer, iov[0].iov_base, SLOT_BYTES);
	if (needs_no_answer(in->opcode) || !slot_note(j, slot))
		slot_empty(j, slot);
	return n;
}

/* libfuse writes an answer, or a notification, whose unique is 0. */
static ssize_t journal_writev(
	int fd, struct iovec *iov, int count, void *userdata)
{
	const struct fs *fs = OBJECT(fs, userdata);
	const struct fuse_out_header *out = iov[0].iov_base;
	uint64_t unique = out->unique;
	ssize_t n = writev(fd, iov, count);
	int why = errno;

	if (fs->journal && unique != 0)
		journal_answered(fs->journal, unique);
	errno = why;
	return n;
}

static ssize_t journal_read(int fd, void *buf, size_t size, void *userdata)
{
	(void)userdata;
	return read(fd, buf, size);
}

int journal_attach(struct fs *fs)
{
	static const struct fuse_custom_io io = {
		.writev = journal_writev, .read = journal_read};

	return fuse_session_custom_io(fs->se, &io, fuse_session_fd(fs->se));
}

void journal_replay(struct fs *fs)
{
	struct journal *j = fs->journal;
	struct fuse_buf buf = {.mem = malloc(SLOT_BYTES)};

	/* Look at all slots before an answer frees one. */
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct fuse_in_header *in = slot_head(j, i);

		if (in->unique == 0)
			continue;
		atomic_store(&j->taken[i], true);
		if (in->len < sizeof(*in) || in->len > SLOT_BYTES ||
			needs_no_answer(in->opcode) || !slot_note(j, i))
			slot_empty(j, i);
	}
	for (unsigned i = 0; i < SLOTS && buf.mem; i++) {
		if (slot_head(j, i)->unique == 0)
			continue;
		memcpy(buf.mem, slot_head(j, i), SLOT_BYTES);
		buf.size = ((struct fuse_in_header *)buf.mem)->len;
		fs_process(fs, &buf);
	}
	free(buf.mem);
}

/* -- Life ----------------------------------------------------------------- */

/* Map the journal, with all pages in memory: the kernel cannot get pages for a
 * process that is being killed. */
static int journal_map(struct journal *j)
{
	void *map = mmap(NULL, JOURNAL_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, j->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	/* If it fails, pages stay unless memory is short */
	(void)mlock(map, JOURNAL_BYTES);
	j->map = map;
	return 0;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	if (j->map)
		(void)munmap(j->map, JOURNAL_BYTES);
	if (j->fd >= 0)
		(void)close(j->fd);
	free(j);
}

static struct journal *journal_of(int fd)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (!j) {
		(void)close(fd);
		return NULL;
	}
	j->fd = fd;
	if (journal_map(j) == 0)
		return j;
	journal_free(j);
	return NULL;
}

struct journal *journal_new(void)
{
	struct journal *j;
	int fd = memfd_create(
		"refrain-requests", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return NULL;
	if (ftruncate(fd, JOURNAL_BYTES) < 0 ||
		fcntl(fd, F_ADD_SEALS, JOURNAL_SEALS) < 0) {
		(void)close(fd);
		return NULL;
	}
	j = journal_of(fd);
	if (j) {
		memcpy(journal_tail(j)->magic, JOURNAL_MAGIC, 8);
		journal_tail(j)->version = JOURNAL_VERSION;
	}
	return j;
}

bool fs_journal_valid(int fd)
{
	struct journal_tail tail;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		(size_t)st.st_size == JOURNAL_BYTES &&
		fcntl(fd, F_GET_SEALS) == JOURNAL_SEALS &&
		pread(fd, &tail, sizeof(tail), SLOTS * SLOT_BYTES) ==
		(ssize_t)sizeof(tail) &&
		memcmp(tail.magic, JOURNAL_MAGIC, sizeof(tail.magic)) == 0 &&
		tail.version == JOURNAL_VERSION;
}

struct journal *journal_open(int fd)
{
	if (fs_journal_valid(fd))
		return journal_of(fd);
	(void)close(fd);
	return NULL;
}

int journal_fd(const struct journal *j)
{
	return j ? j->fd : -1;
}
