/* SPDX-License-Identifier: MIT */
/*
 * Reading: open, read to the end, close, each an operation of base/uring. What
 * planned servings wait for comes first; what is read ahead leaves a quarter
 * of the memory alone. Shards and raw files stay open. Entered by workers and
 * callers under the loader's lock, and by the ring's threads, which take it.
 *
 *	free -> opening -> reading -> closing -> free
 *	          |           |  (shard: no opening, no closing)
 *	          +-----------+--> failed: again, or entry_fail()
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "loader/impl.h"
#include "loader/mount.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define TRIES_MAX 2
#define GUESS_BYTES ((uint64_t)128 << 10)
#define GUESS_LEAST_BYTES ((uint64_t)2 << 10)
/* An operation reads no more at a time. */
#define READ_MAX ((size_t)1 << 30)

static void on_open(struct uring_op *op, int res);
static void on_read(struct uring_op *op, int res);
static void on_close(struct uring_op *op, int res);

static struct read_op *of(struct uring_op *op)
{
	return CONTAINER_OF(op, struct read_op, op);
}

/* -- One file -------------------------------------------------------------- */

static void release_op(struct refrain_loader *l, struct read_op *r)
{
	r->busy = false;
	r->entry = NULL;
	r->next = l->reader.free;
	l->reader.free = r;
	l->reader.busy--;
}

static struct uring *ring_of(
	const struct refrain_loader *l, const struct read_op *r)
{
	return r->direct ? l->reader.direct : l->reader.ring;
}

/* The entry goes its way; the file, if it is not shared, is closed. */
static struct entry *part(struct refrain_loader *l, struct read_op *r)
{
	struct entry *e = r->entry;
	int fd = r->fd;
	uint64_t ns = clock_now_ns() - r->started_ns;

	l->meter.out.stages[REFRAIN_STAGE_READ].busy_ns += ns;
	r->entry = NULL;
	l->reader.reading--;
	r->fd = -1;
	if (fd < 0 || r->shared_fd) {
		release_op(l, r);
	} else if (l->closing) {
		(void)close(fd); /* was only read */
		release_op(l, r);
	} else {
		r->op.done = on_close;
		uring_close(ring_of(l, r), &r->op, fd);
	}
	return e;
}

static bool may_pass(int rc)
{
	return rc == -EIO || rc == -ETIMEDOUT || rc == -EAGAIN ||
		rc == -EINTR || rc == -ESTALE;
}

/* Without descriptors no more reads at a time than there are now. */
static bool lack_descriptors(struct reader *reader, int rc)
{
	if ((rc != -EMFILE && rc != -ENFILE) || !reader->busy)
		return false;
	reader->allowed = reader->busy;
	return true;
}

/* Lock taken by the caller; followed by after_read(). */
static void read_failed(struct refrain_loader *l, struct read_op *r, int rc)
{
	struct buffer *buffer = r->buffer;
	struct entry *e = part(l, r);
	struct error why;

	memory_put(&l->memory, buffer);
	if (l->closing)
		return;
	if (rc == -ENOBUFS || lack_descriptors(&l->reader, rc) ||
		(may_pass(rc) && e->tries++ < TRIES_MAX)) {
		entry_state(e, ENTRY_ABSENT);
		entry_list(l, e, e->planned ? ON_URGENT : ON_AHEAD);
		return;
	}
	if (rc == -EBADMSG)
		(void)error_set(&why, rc, "the file ends within it");
	else
		(void)error_set(&why, rc, "%m");
	entry_fail(l, e, rc, "read", why.msg);
}

/* A record's label is its first bytes. */
static void take_label(struct refrain_loader *l, struct entry *e)
{
	uint64_t label = 0;

	if (!e->example.label_in_record)
		return;
	for (uint32_t i = 0; i < l->s.c.label_bytes; i++)
		label |= (uint64_t)e->encoded->data[i] << (8 * i);
	e->label = (int64_t)label;
	e->skip = l->s.c.label_bytes;
	e->encoded_bytes -= e->skip;
}

/* Sizes are guessed before a first read: give back what was too much. */
static struct buffer *fit(
	struct refrain_loader *l, struct buffer *b, size_t bytes)
{
	struct buffer *less;

	if (memory_cost(bytes) * 8 > memory_cost(b->bytes) * 5)
		return b;
	less = memory_get(&l->memory, bytes);
	if (!less)
		return b;
	memcpy(less->data, b->data, bytes);
	memory_put(&l->memory, b);
	return less;
}

static void read_whole(struct refrain_loader *l, struct read_op *r)
{
	struct refrain_stats *out = &l->meter.out;
	struct buffer *buffer = r->buffer;
	size_t bytes = r->got;
	struct entry *e = part(l, r);

	if (l->closing) {
		memory_put(&l->memory, buffer);
		return;
	}
	e->encoded = fit(l, buffer, bytes);
	e->encoded_bytes = bytes;
	e->size_hint = bytes + e->example.whole;
	take_label(l, e);
	l->meter.now.reads++;
	l->meter.now.full_reads += l->reader.full;
	out->files_read++;
	out->bytes_read += bytes;
	out->rereads += e->was_read;
	e->was_read = true;
	out->stages[REFRAIN_STAGE_READ].items++;
	out->stages[REFRAIN_STAGE_READ].bytes += bytes;
	l->meter.encoded_sum += memory_cost(bytes);
	l->meter.encoded_count++;
	entry_state(e, ENTRY_ENCODED);
	entry_settle(l, e);
}

static void after_read(struct refrain_loader *l)
{
	if (l->closing)
		return;
	reader_pump(l);
	wake_workers(l);
	if (l->alone)
		pthread_cond_broadcast(&l->memory_c);
}

static void read_on(struct refrain_loader *l, struct read_op *r)
{
	size_t room = r->buffer->bytes - r->got;

	if (!r->entry->example.whole)
		room = r->want - r->got;
	r->op.done = on_read;
	uring_read(l->reader.ring, &r->op, r->fd, r->buffer->data + r->got,
		room < READ_MAX ? room : READ_MAX, r->offset + r->got);
}

/* There is more of it. -ENOBUFS: no room now, to be read later. */
static int grow(struct refrain_loader *l, struct read_op *r)
{
	struct buffer *more = memory_get(&l->memory, r->buffer->bytes * 2);

	r->entry->size_hint = r->buffer->bytes * 2;
	if (!more)
		return -ENOBUFS;
	memcpy(more->data, r->buffer->data, r->got);
	memory_put(&l->memory, r->buffer);
	r->buffer = more;
	return 0;
}

/* 1: all is there. 0: it goes on. -errno. */
static int got_some(struct refrain_loader *l, struct read_op *r, size_t n)
{
	r->got += n;
	if (!r->entry->example.whole) {
		if (r->got == r->want)
			return 1;
		return n ? 0 : -EBADMSG;
	}
	/* The size that was expected, and room was left: that is the end. */
	if (n == 0 || (r->got == r->want && r->got < r->buffer->bytes))
		return 1;
	return r->got == r->buffer->bytes ? grow(l, r) : 0;
}

static void on_read(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct refrain_loader *l = r->l;
	int rc;

	pthread_mutex_lock(l->lock);
	meter_tick(l);
	rc = l->closing ? -ECANCELED : res;
	if (rc >= 0)
		rc = got_some(l, r, (size_t)res);
	if (rc == 0) {
		read_on(l, r);
	} else {
		if (rc < 0)
			read_failed(l, r, rc);
		else
			read_whole(l, r);
		after_read(l);
	}
	pthread_mutex_unlock(l->lock);
}

/* Keep the first descriptors of shards that there are. */
static void share_fd(struct refrain_loader *l, struct read_op *r)
{
	struct reader *reader = &l->reader;
	const struct example *ex = &r->entry->example;

	if (ex->whole || ex->shard >= reader->shards_max ||
		reader->shard_fds[ex->shard] >= 0)
		return;
	reader->shard_fds[ex->shard] = r->fd;
	r->shared_fd = true;
}

/*
 * A folder is looked at without asking for sizes, which would cost as much as
 * opening; once a file is open, its size costs nothing where files are local.
 * Without it a read more would have to find the end, and what was guessed too
 * small or too large be copied. 0: unknown.
 */
static uint64_t size_of_open(const struct read_op *r, int fd)
{
	struct stat st;

	if (fd < 0 || !r->unsized || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

/* A buffer of that size, and one byte more, if there is one; else grow() will
 * have to see to it. */
static void take_size(struct refrain_loader *l, struct read_op *r, size_t bytes)
{
	uint64_t cost = memory_cost(bytes + 1);
	struct buffer *b;

	r->want = bytes;
	r->entry->size_hint = bytes + 1;
	if (cost == memory_cost(r->buffer->bytes))
		return;
	b = memory_get(&l->memory, bytes + 1);
	if (!b)
		return;
	memory_put(&l->memory, r->buffer);
	r->buffer = b;
}

static void on_open(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct refrain_loader *l = r->l;
	uint64_t bytes = size_of_open(r, res);

	pthread_mutex_lock(l->lock);
	if (res >= 0)
		r->fd = res;
	if (res < 0 || l->closing) {
		read_failed(l, r, res < 0 ? res : -ECANCELED);
		after_read(l);
	} else {
		share_fd(l, r);
		if (bytes)
			take_size(l, r, bytes);
		read_on(l, r);
	}
	pthread_mutex_unlock(l->lock);
}

void reader_done(struct refrain_loader *l, struct read_op *r)
{
	meter_tick(l);
	read_whole(l, r);
	after_read(l);
}

void reader_cancel(struct refrain_loader *l, struct read_op *r)
{
	read_failed(l, r, -ECANCELED);
}

static void on_close(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct refrain_loader *l = r->l;

	(void)res; /* was only read */
	pthread_mutex_lock(l->lock);
	release_op(l, r);
	if (!l->closing)
		reader_pump(l);
	pthread_mutex_unlock(l->lock);
}

/* -- Which is next --------------------------------------------------------- */

void reader_open(struct refrain_loader *l, struct read_op *r)
{
	r->op.done = on_open;
	uring_open(l->reader.ring, &r->op, dataset_dir(l->dataset),
		r->entry->example.file, O_RDONLY);
}

static void start(struct refrain_loader *l, struct entry *e, struct buffer *b)
{
	struct reader *reader = &l->reader;
	struct read_op *r = reader->free;
	uint64_t now_ns = clock_now_ns();

	reader->free = r->next;
	reader->busy++;
	reader->reading++;
	l->meter.out.stages[REFRAIN_STAGE_READ].wait_ns += now_ns - e->since_ns;
	entry_list(l, e, ON_NONE);
	entry_state(e, ENTRY_READING);
	r->busy = true;
	r->entry = e;
	r->buffer = b;
	r->got = 0;
	r->want = e->example.bytes;
	if (e->example.whole && e->size_hint)
		r->want = e->size_hint - 1;
	r->offset = e->example.whole ? 0 : e->example.offset;
	r->started_ns = now_ns;
	r->fd = -1;
	r->shared_fd = r->direct = r->unsized = false;
	if (direct_start(l, r))
		return;
	r->unsized = reader->local && e->example.whole && !e->size_hint &&
		!e->example.bytes;
	if (!e->example.whole && e->example.shard < reader->shards_max)
		r->fd = reader->shard_fds[e->example.shard];
	if (r->fd >= 0) {
		r->shared_fd = true;
		read_on(l, r);
		return;
	}
	reader_open(l, r);
}

/* What files have been like, and a quarter more; no large share of memory. */
static size_t guess(const struct refrain_loader *l)
{
	const struct meter *m = &l->meter;
	uint64_t bytes = GUESS_BYTES, most = l->memory_share / 64;

	if (m->encoded_count)
		bytes = m->encoded_sum / m->encoded_count * 5 / 4;
	if (bytes > most)
		bytes = most;
	return bytes < GUESS_LEAST_BYTES ? GUESS_LEAST_BYTES : bytes;
}

static size_t bytes_needed(
	const struct refrain_loader *l, const struct entry *e)
{
	size_t direct = direct_bytes(l, e);

	if (direct)
		return direct;
	if (!e->example.whole)
		return e->example.bytes + !e->example.bytes;
	if (e->size_hint)
		return e->size_hint;
	/* One more, so that the end is seen in one go. */
	return e->example.bytes ? e->example.bytes + 1 : guess(l);
}

/* Is nothing going on that could make room? */
static bool at_rest(const struct refrain_loader *l)
{
	return !l->working && !l->reader.reading && !l->ready;
}

/* False: later. */
static bool start_urgent(struct refrain_loader *l, struct entry *e)
{
	size_t bytes = bytes_needed(l, e);
	bool fits = room_alone(l, memory_cost(bytes));
	struct buffer *b;

	do
		b = memory_get(&l->memory, bytes);
	while (!b && fits && entries_reclaim(l));
	if (b) {
		start(l, e, b);
		return true;
	}
	if (fits && !at_rest(l))
		return false;
	entry_list(l, e, ON_NONE);
	entry_fail(l, e, -E2BIG, "read", "it is larger than the memory");
	return true;
}

/* What is left alone, so that what is planned does not wait for memory. */
static bool start_ahead(struct refrain_loader *l, struct entry *e)
{
	uint64_t cost = memory_cost(bytes_needed(l, e));
	struct buffer *b = NULL;

	if (cost + l->memory_share / 4 <= memory_room(&l->memory))
		b = memory_get(&l->memory, bytes_needed(l, e));
	if (b)
		start(l, e, b);
	return b != NULL;
}

/*
 * To be timed, reading must be as busy as it can be for a while. When the
 * trainer is slower it would be asked for an example now and then; so what is
 * read ahead is then read in bursts, of twice what is read at a time.
 */
static bool reads_ahead(struct refrain_loader *l)
{
	struct reader *reader = &l->reader;

	if (!l->s.measures)
		return !list_empty(&l->ahead);
	if (list_empty(&l->ahead))
		reader->bursting = false;
	else if (l->ahead_count >= 2 * l->s.c.reads_ahead ||
		l->planner.read_fresh >= l->planner.fresh_end)
		reader->bursting = true;
	return reader->bursting;
}

/* False: there is nothing more to be read, or no room. */
static bool start_next(struct refrain_loader *l)
{
	bool urgent = !list_empty(&l->urgent);
	struct entry *e;

	if (!urgent && !reads_ahead(l))
		return false;
	e = CONTAINER_OF(
		(urgent ? &l->urgent : &l->ahead)->next, struct entry, node);
	if (!mount_knows(l, e))
		return false;
	return urgent ? start_urgent(l, e) : start_ahead(l, e);
}

void reader_pump(struct refrain_loader *l)
{
	struct reader *reader = &l->reader;

	meter_tick(l);
	while (!l->closing && !l->stopped && !l->alone && reader->free &&
		reader->busy < reader->allowed && start_next(l))
		;
	reader->full = reader->busy >= reader->allowed &&
		(!list_empty(&l->urgent) || reads_ahead(l));
}

/* -- Life ------------------------------------------------------------------ */

/* Does the kernel answer reads of cached files there on the spot? */
static bool is_local(uint32_t fs_type)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, SQUASHFS_MAGIC};
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (fs_type == local[i])
			return true;
	return false;
}

/* Shards may take half of the descriptors that the process may have. */
static int shards_init(struct refrain_loader *l)
{
	struct reader *reader = &l->reader;
	uint32_t n = dataset_shards(l->dataset);
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && n > rl.rlim_cur / 2)
		n = (uint32_t)(rl.rlim_cur / 2);
	reader->shard_fds = calloc(n + 1, sizeof(int));
	if (!reader->shard_fds)
		return -ENOMEM;
	reader->shards_max = n;
	for (uint32_t i = 0; i < n; i++)
		reader->shard_fds[i] = -1;
	return 0;
}

int reader_init(struct refrain_loader *l, struct error *err)
{
	struct reader *reader = &l->reader;
	uint32_t n = l->s.c.reads_ahead;
	int rc;

	reader->local = is_local(dataset_fs_type(l->dataset));
	reader->depth = reader->allowed = n;
	reader->ops = calloc(n, sizeof(*reader->ops));
	if (!reader->ops || shards_init(l) < 0)
		return error_set(err, -ENOMEM, "no memory for the reads");
	for (uint32_t i = 0; i < n; i++) {
		struct read_op *r = &reader->ops[i];

		r->l = l;
		r->next = reader->free;
		reader->free = r;
	}
	rc = reader->local ? uring_new(&reader->ring, n, n)
			   : uring_new_threads(&reader->ring, n);
	if (rc < 0)
		return error_set(err, rc, "cannot start reading: %m");
	return 0;
}

static uint64_t time_left(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? until_ns - now_ns : 0;
}

uint32_t reader_stop(struct refrain_loader *l, uint64_t wait_ns)
{
	struct reader *reader = &l->reader;
	uint64_t until_ns = clock_now_ns() + wait_ns;
	struct uring *direct;
	uint32_t left = 0;

	if (!reader->ring)
		return 0;
	pthread_mutex_lock(l->lock);
	direct = reader->direct;
	for (uint32_t i = 0; i < reader->depth; i++)
		if (reader->ops[i].busy && reader->ops[i].entry)
			uring_cancel(ring_of(l, &reader->ops[i]),
				&reader->ops[i].op);
	pthread_mutex_unlock(l->lock);
	if ((!direct || direct == reader->ring ||
		    uring_free(direct, wait_ns)) &&
		uring_free(reader->ring, time_left(until_ns))) {
		reader->ring = NULL;
		return 0;
	}
	pthread_mutex_lock(l->lock);
	for (uint32_t i = 0; i < reader->depth; i++)
		left += reader->ops[i].busy;
	pthread_mutex_unlock(l->lock);
	return left ? left : 1;
}

uint64_t reader_cpu_ns(const struct refrain_loader *l)
{
	struct uring *ring = l->reader.ring, *direct = l->reader.direct;
	uint64_t ns = ring ? uring_cpu_ns(ring) : 0;

	return direct && direct != ring ? ns + uring_cpu_ns(direct) : ns;
}

void reader_release(struct refrain_loader *l)
{
	for (uint32_t i = 0; i < l->reader.shards_max; i++)
		if (l->reader.shard_fds[i] >= 0)
			(void)close(l->reader.shard_fds[i]); /* only read */
	free(l->reader.shard_fds);
	free(l->reader.ops);
}
