/* SPDX-License-Identifier: MIT */
/*
 * Reading a file: open, read to the end, close, each an operation of
 * base/uring. Shards and raw files stay open. Which file is next is
 * reader_next.c's. Entered by the ring's threads, which take the loader's lock.
 *
 *	free -> opening -> reading -> closing -> free
 *	          |           |  (shard: no opening, no closing)
 *	          +-----------+--> failed: again, or entry_fail()
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/engine_impl.h"

#define TRIES_MAX 2
/* An operation reads no more at a time. */
#define READ_MAX ((size_t)1 << 30)

static void on_open(struct uring_op *op, int res);
static void on_read(struct uring_op *op, int res);
static void on_close(struct uring_op *op, int res);

static struct read_op *of(struct uring_op *op)
{
	return CONTAINER_OF(op, struct read_op, op);
}

/* -- Operations, which begin when the lock has been released ----------------
 */

void reader_queue(struct engine *engine, struct read_op *r,
	void (*begin)(struct read_op *r))
{
	r->begin = begin;
	r->next = NULL;
	*engine->reader.queued_end = r;
	engine->reader.queued_end = &r->next;
}

struct read_op *reader_take_queued(struct engine *engine)
{
	struct read_op *first = engine->reader.queued;

	engine->reader.queued = NULL;
	engine->reader.queued_end = &engine->reader.queued;
	return first;
}

/* Once begun, it may end and be used again at any time. */
void reader_begin(struct read_op *first)
{
	for (struct read_op *r = first, *next; r; r = next) {
		next = r->next;
		r->begin(r);
	}
}

static void begin_close(struct read_op *r)
{
	r->op.done = on_close;
	uring_close(r->ring, &r->op, r->fd_closing);
}

static void begin_read(struct read_op *r)
{
	size_t room = r->buffer->bytes - r->got;

	if (!r->entry->example.whole)
		room = r->want - r->got;
	r->op.done = on_read;
	uring_read(r->ring, &r->op, r->fd, r->buffer->data + r->got,
		room < READ_MAX ? room : READ_MAX, r->offset + r->got);
}

static void begin_open(struct read_op *r)
{
	r->op.done = on_open;
	uring_open(
		r->ring, &r->op, r->dir_fd, r->entry->example.file, O_RDONLY);
}

/* -- Its end ----------------------------------------------------------------
 */

static void release_op(struct engine *engine, struct read_op *r)
{
	r->busy = false;
	r->entry = NULL;
	r->next = engine->reader.free;
	engine->reader.free = r;
	engine->reader.busy--;
}

/* The entry goes its way; the file, if it is not shared, is closed. */
static struct entry *part(struct engine *engine, struct read_op *r)
{
	struct entry *e = r->entry;
	int fd = r->fd;
	uint64_t ns = meter_now_ns(engine->meter) - r->started_ns;

	meter_stats(engine->meter)->stages[REFRAIN_STAGE_READ].busy_ns += ns;
	r->entry = NULL;
	engine->reader.reading--;
	r->fd = -1;
	if (fd < 0 || r->shared_fd) {
		release_op(engine, r);
	} else if (engine->closing) {
		(void)close(fd); /* was only read */
		release_op(engine, r);
	} else {
		r->fd_closing = fd;
		reader_queue(engine, r, begin_close);
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

/* Lock taken by the caller. */
static void read_failed(struct engine *engine, struct read_op *r, int rc)
{
	struct buffer *buffer = r->buffer;
	struct entry *e = part(engine, r);
	struct error why;

	memory_put(&engine->memory, buffer);
	if (engine->closing)
		return;
	if (rc == -ENOBUFS || lack_descriptors(&engine->reader, rc) ||
		(may_pass(rc) && e->tries++ < TRIES_MAX)) {
		entry_state(engine, e, ENTRY_ABSENT);
		entry_list(engine, e, e->planned ? ON_URGENT : ON_AHEAD);
		return;
	}
	if (rc == -EBADMSG)
		(void)error_set(&why, rc, "the file ends within it");
	else
		(void)error_set(&why, rc, "%m");
	entry_fail(engine, e, rc, "read", why.msg);
}

/* A record's label is its first bytes. */
static void take_label(struct engine *engine, struct entry *e)
{
	uint64_t label = 0;

	if (!e->example.label_in_record)
		return;
	for (uint32_t i = 0; i < engine->s.c.label_bytes; i++)
		label |= (uint64_t)e->encoded->data[i] << (8 * i);
	e->label = (int64_t)label;
	e->skip = engine->s.c.label_bytes;
	e->encoded_bytes -= e->skip;
}

/* Sizes are guessed before a first read: give back what was too much. */
static struct buffer *fit(struct engine *engine, struct buffer *b, size_t bytes)
{
	struct buffer *less;

	if (memory_cost(bytes) * 8 > memory_cost(b->bytes) * 5)
		return b;
	less = memory_get(&engine->memory, bytes);
	if (!less)
		return b;
	memcpy(less->data, b->data, bytes);
	memory_put(&engine->memory, b);
	return less;
}

/* An unchanged speed also ends a lasting burst. */
static void time_read(struct engine *engine)
{
	struct reader *r = &engine->reader;
	uint64_t ns;
	uint32_t timed;

	if (!r->full && !(r->burst.since && r->reading > r->allowed / 4)) {
		r->burst = (struct auto_burst){0};
		return;
	}
	timed = auto_burst_read(&r->burst, meter_now_ns(engine->meter), &ns);
	meter_timed(engine->meter, timed, ns);
}

static void read_whole(struct engine *engine, struct read_op *r)
{
	struct refrain_stats *out = meter_stats(engine->meter);
	struct buffer *buffer = r->buffer;
	size_t bytes = r->got;
	struct entry *e = part(engine, r);

	if (engine->closing) {
		memory_put(&engine->memory, buffer);
		return;
	}
	e->encoded = fit(engine, buffer, bytes);
	e->encoded_bytes = bytes;
	e->size_hint = bytes + e->example.whole;
	take_label(engine, e);
	time_read(engine);
	out->files_read++;
	out->bytes_read += bytes;
	out->rereads += e->was_read;
	e->was_read = true;
	out->stages[REFRAIN_STAGE_READ].items++;
	out->stages[REFRAIN_STAGE_READ].bytes += bytes;
	meter_file(engine->meter, memory_cost(bytes), engine->reader.full);
	entry_state(engine, e, ENTRY_ENCODED);
	entry_settle(engine, e);
}

void reader_read(struct engine *engine, struct read_op *r)
{
	r->ring = engine->reader.ring;
	reader_queue(engine, r, begin_read);
}

/* There is more of it. -ENOBUFS: no room now, to be read later. */
static int grow(struct engine *engine, struct read_op *r)
{
	struct buffer *more = memory_get(&engine->memory, r->buffer->bytes * 2);

	r->entry->size_hint = r->buffer->bytes * 2;
	if (!more)
		return -ENOBUFS;
	memcpy(more->data, r->buffer->data, r->got);
	memory_put(&engine->memory, r->buffer);
	r->buffer = more;
	return 0;
}

/* 1: all is there. 0: it goes on. -errno. */
static int got_some(struct engine *engine, struct read_op *r, size_t n)
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
	return r->got == r->buffer->bytes ? grow(engine, r) : 0;
}

static void on_read(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;
	int rc;

	turn_lock(&engine->turn);
	rc = engine->closing ? -ECANCELED : res;
	if (rc >= 0)
		rc = got_some(engine, r, (size_t)res);
	if (rc == 0)
		reader_read(engine, r);
	else if (rc < 0)
		read_failed(engine, r, rc);
	else
		read_whole(engine, r);
	turn_unlock(&engine->turn);
}

/* Keep the first descriptors of shards that there are. */
static void share_fd(struct engine *engine, struct read_op *r)
{
	struct reader *reader = &engine->reader;
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
	struct statx st;

	/* Not fstat(): ThreadSanitizer follows descriptors in that, and does
	 * not see that the ring opens and closes them. */
	if (fd < 0 || !r->unsized ||
		statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &st) <
			0 ||
		!S_ISREG(st.stx_mode))
		return 0;
	return st.stx_size;
}

/* A buffer of that size, and one byte more, if there is one; else grow() will
 * have to see to it. */
static void take_size(struct engine *engine, struct read_op *r, size_t bytes)
{
	uint64_t cost = memory_cost(bytes + 1);
	struct buffer *b;

	r->want = bytes;
	r->entry->size_hint = bytes + 1;
	if (cost == memory_cost(r->buffer->bytes))
		return;
	b = memory_get(&engine->memory, bytes + 1);
	if (!b)
		return;
	memory_put(&engine->memory, r->buffer);
	r->buffer = b;
}

static void on_open(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;
	uint64_t bytes = size_of_open(r, res);

	turn_lock(&engine->turn);
	if (res >= 0)
		r->fd = res;
	if (res < 0 || engine->closing) {
		read_failed(engine, r, res < 0 ? res : -ECANCELED);
	} else {
		share_fd(engine, r);
		if (bytes)
			take_size(engine, r, bytes);
		reader_read(engine, r);
	}
	turn_unlock(&engine->turn);
}

void reader_done(struct engine *engine, struct read_op *r)
{
	read_whole(engine, r);
}

void reader_cancel(struct engine *engine, struct read_op *r)
{
	read_failed(engine, r, -ECANCELED);
}

static void on_close(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;

	(void)res; /* was only read */
	turn_lock(&engine->turn);
	release_op(engine, r);
	turn_unlock(&engine->turn);
}

void reader_open(struct engine *engine, struct read_op *r)
{
	r->ring = engine->reader.ring;
	r->dir_fd = dataset_dir(engine->dataset);
	reader_queue(engine, r, begin_open);
}
