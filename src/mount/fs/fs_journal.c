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
 * own buffer receives the rest. Only lists of FORGETs are longer than a slot,
 * and no process waits for an answer to these.
 *
 * The last word of a slot is a checksum of the request, so that a damaged
 * request is never answered with other bytes than its reader asked for:
 *
 * SUM_EMPTY --slot_take()--> SUM_READING --slot_note()--> checksum
 *     ^                           |                          |
 *     '-------------------- slot_empty() --------------------'
 *
 * A request that was read just before the process died has no checksum yet.
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

#include "common/base/hash.h"
#include "common/base/refuse.h"

#define SLOTS REQUEST_SLOTS
#define SLOT_BYTES ((size_t)REQUEST_SLOT_BYTES)
#define JOURNAL_BYTES ((SLOTS + 1) * SLOT_BYTES)
#define JOURNAL_MAGIC "refrjrnl"
#define JOURNAL_VERSION 2
/* the previous version of the format, whose slots have no checksums */
#define JOURNAL_WITHOUT_SUMS 1
#define JOURNAL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* Size of a slot without its checksum; and two values that stand in the place
 * of the checksum while there is none. */
#define REQUEST_BYTES (SLOT_BYTES - sizeof(uint64_t))
#define SUM_READING UINT64_C(0)
#define SUM_EMPTY UINT64_C(1)

/* Size of the table that finds the slot of an answer by its unique. The kernel
 * counts uniques up, so requests that are close in time are at different
 * indices. */
#define PLACES 65536u
#define PLACES_PROBED 64u

/* The bytes after the slots. */
struct journal_tail {
	char magic[8];
	uint32_t version;
};

struct journal {
	/* SLOTS slots of SLOT_BYTES, each for a request; then the tail */
	unsigned char *map;
	int fd;
	atomic_uint rotor;
	/* the slot is being filled by a worker, or is in use */
	atomic_bool taken[SLOTS];
	/* Uniques of the requests in slots; 0: none */
	_Atomic uint64_t unique[PLACES];
	/* Written by the thread that has set the unique */
	uint16_t slot[PLACES];
};

static struct fuse_in_header *head_in(unsigned char *map, unsigned slot)
{
	return (struct fuse_in_header *)(map + slot * SLOT_BYTES);
}

static struct fuse_in_header *slot_head(const struct journal *j, unsigned slot)
{
	return head_in(j->map, slot);
}

static uint64_t *sum_in(unsigned char *map, unsigned slot)
{
	return (uint64_t *)(map + slot * SLOT_BYTES + REQUEST_BYTES);
}

static struct journal_tail *tail_in(unsigned char *map)
{
	return (struct journal_tail *)(map + SLOTS * SLOT_BYTES);
}

/* -- Slots ---------------------------------------------------------------- */

static void slot_set_sum(struct journal *j, unsigned slot, uint64_t sum)
{
	__atomic_store_n(sum_in(j->map, slot), sum, __ATOMIC_RELEASE);
}

/* Take a free slot. Returns SLOTS if all are in use. */
static unsigned slot_take(struct journal *j)
{
	unsigned first =
		atomic_fetch_add_explicit(&j->rotor, 1, memory_order_relaxed);

	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned slot = (first + i) % SLOTS;
		bool taken = false;

		if (!atomic_compare_exchange_strong(
			    &j->taken[slot], &taken, true))
			continue;
		slot_set_sum(j, slot, SUM_READING);
		return slot;
	}
	return SLOTS;
}

/* Returns the checksum of a request whose length is right. */
static uint64_t request_sum(unsigned char *map, unsigned slot)
{
	const struct fuse_in_header *in = head_in(map, slot);
	uint64_t sum = hash64(in, in->len, slot);

	return sum > SUM_EMPTY ? sum : ~sum;
}

static bool fits_slot(const struct fuse_in_header *in)
{
	return in->len >= sizeof(*in) && in->len <= REQUEST_BYTES;
}

static bool slot_is_damaged(unsigned char *map, unsigned slot)
{
	const struct fuse_in_header *in = head_in(map, slot);
	uint64_t sum = *sum_in(map, slot);

	if (in->unique == 0 || sum == SUM_READING)
		return false;
	return sum == SUM_EMPTY || !fits_slot(in) ||
		sum != request_sum(map, slot);
}

static void slot_empty(struct journal *j, unsigned slot)
{
	/* Clear the old unique first, so that it is not found in a slot that is
	 * free. */
	__atomic_store_n(&slot_head(j, slot)->unique, 0, __ATOMIC_RELEASE);
	slot_set_sum(j, slot, SUM_EMPTY);
	atomic_store(&j->taken[slot], false);
}

/* Enter the unique of a slot's request into the table, and write its checksum.
 * Returns false if the table has no space near the index of the unique, or if
 * the request is too long. */
static bool slot_note(struct journal *j, unsigned slot)
{
	uint64_t unique = slot_head(j, slot)->unique;

	if (!fits_slot(slot_head(j, slot)))
		return false;
	slot_set_sum(j, slot, request_sum(j->map, slot));
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
		/* the element can be used again */
		atomic_store(&j->unique[at], 0);
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
	iov[0] = (struct iovec){j->map + slot * SLOT_BYTES, REQUEST_BYTES};
	iov[1] = (struct iovec){(unsigned char *)buffer + REQUEST_BYTES,
		FS_REQUEST_MAX - REQUEST_BYTES};
	n = readv(fd, iov, 2);
	if (n < (ssize_t)sizeof(*in)) {
		int rc = n < 0 ? -errno : -EIO;

		slot_empty(j, slot);
		return rc;
	}
	memcpy(buffer, iov[0].iov_base, REQUEST_BYTES);
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
	struct fuse_buf buf = {.mem = malloc(REQUEST_BYTES)};

	/* First look at all slots, because the first answer frees its slot for
	 * other requests. */
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct fuse_in_header *in = slot_head(j, i);

		if (in->unique == 0)
			continue;
		atomic_store(&j->taken[i], true);
		if (needs_no_answer(in->opcode) || !slot_note(j, i))
			slot_empty(j, i);
	}
	for (unsigned i = 0; i < SLOTS && buf.mem; i++) {
		if (slot_head(j, i)->unique == 0)
			continue;
		memcpy(buf.mem, slot_head(j, i), REQUEST_BYTES);
		buf.size = ((struct fuse_in_header *)buf.mem)->len;
		fs_process(fs, &buf);
	}
	free(buf.mem);
}

/* -- Life ----------------------------------------------------------------- */

/* Map the journal, with all pages in memory, because the kernel does not
 * allocate pages for a process that is being killed. */
static int journal_map(struct journal *j)
{
	void *map = mmap(NULL, JOURNAL_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, j->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	/* if this fails, pages stay in memory unless memory is short */
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
	for (unsigned i = 0; j && i < SLOTS; i++)
		slot_set_sum(j, i, SUM_EMPTY);
	if (j) {
		memcpy(tail_in(j->map)->magic, JOURNAL_MAGIC, 8);
		tail_in(j->map)->version = JOURNAL_VERSION;
	}
	return j;
}

bool fs_journal_known(int fd)
{
	struct journal_tail tail;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		(size_t)st.st_size == JOURNAL_BYTES &&
		fcntl(fd, F_GET_SEALS) == JOURNAL_SEALS &&
		pread(fd, &tail, sizeof(tail), SLOTS * SLOT_BYTES) ==
		(ssize_t)sizeof(tail) &&
		memcmp(tail.magic, JOURNAL_MAGIC, sizeof(tail.magic)) == 0 &&
		(tail.version == JOURNAL_VERSION ||
			tail.version == JOURNAL_WITHOUT_SUMS);
}

bool fs_journal_valid(int fd)
{
	unsigned char *map;
	bool valid = true;

	if (!fs_journal_known(fd))
		return false;
	map = mmap(NULL, JOURNAL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return false;
	for (unsigned i = 0;
		i < SLOTS && tail_in(map)->version == JOURNAL_VERSION; i++)
		valid = valid && !slot_is_damaged(map, i);
	(void)munmap(map, JOURNAL_BYTES);
	return valid;
}

struct journal *journal_open(int fd)
{
	struct journal *j;

	if (!fs_journal_known(fd)) {
		(void)close(fd);
		return NULL;
	}
	j = journal_of(fd);
	/* The checksums are missing if the previous process died while it read,
	 * or had an older version. Mark each request as unchecked. */
	for (unsigned i = 0; j && i < SLOTS; i++)
		slot_set_sum(j, i,
			slot_head(j, i)->unique == 0 ? SUM_EMPTY : SUM_READING);
	if (j)
		tail_in(j->map)->version = JOURNAL_VERSION;
	return j;
}

int journal_fd(const struct journal *j)
{
	return j ? j->fd : -1;
}
