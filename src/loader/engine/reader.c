/* SPDX-License-Identifier: MIT */
/*
 * Reads a file: open, read to the end, close. Each of these is an operation of
 * common/base/uring.h. Shards and raw files stay open. reader_next.c chooses
 * the next file. Called by the ring's threads, which take the turn's lock.
 *
 * Only regular files are read, because a FIFO or a terminal may never answer,
 * and a device may never end. So a file is opened with O_NOCTTY and O_NONBLOCK,
 * and then its type is checked. Without O_NONBLOCK, opening a FIFO could hang.
 *
 *	free -> opening -> reading -> closing -> free
 *	          |           |  (shard: no opening, no closing)
 *	          +-----------+--> failed: read again, or damage_fail()
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "loader/engine/reader_files_impl.h"

#define TRIES_MAX 2
/* The maximum number of bytes in one operation. */
#define READ_MAX ((size_t)1 << 30)

static void on_open(struct uring_op *op, int res);
static void on_read(struct uring_op *op, int res);
static void on_close(struct uring_op *op, int res);
static void run_over(struct reader *reader, struct read_op *r);

struct buffer *reader_buffer(struct reader *reader, size_t bytes)
{
	/* All examples of this size must get this memory, or none: otherwise it
	 * would depend on the time whether an example is damaged. */
	if (!budget_alone(reader->parts->budget, memory_cost(bytes)))
		return NULL;
	return memory_get(reader->parts->memory, bytes);
}

/* -- Operations, which begin after the lock was released ------------------- */

void reader_queue(struct reader *reader, struct read_op *r,
	void (*begin)(struct read_op *r))
{
	r->begin = begin;
	r->next = NULL;
	*reader->queued_end = r;
	reader->queued_end = &r->next;
}

struct read_op *reader_take(struct reader *reader)
{
	struct read_op *first = reader->queued;

	ASSERT_TURN(reader->parts->turn);
	reader->beginning += first != NULL;
	reader->queued = NULL;
	reader->queued_end = &reader->queued;
	return first;
}

/* Get the next operation before this one begins, because an operation that has
 * begun may end and be reused at any time. */
bool reader_begin(struct reader *reader, struct read_op *first)
{
	for (struct read_op *r = first, *next; r; r = next) {
		next = r->next;
		r->begin(r);
	}
	return --reader->beginning == 0;
}

static void begin_close(struct read_op *r)
{
	r->op.done = on_close;
	uring_close(r->ring, &r->op, r->fd_closing);
}

static void begin_read(struct read_op *r)
{
	size_t at = r->base + r->got, room = r->buffer->bytes - at;

	if (!r->whole)
		room = r->want - r->got;
	r->op.done = on_read;
	uring_read(r->ring, &r->op, r->fd, r->buffer->data + at,
		room < READ_MAX ? room : READ_MAX, r->offset + r->got);
}

static void begin_open(struct read_op *r)
{
	r->op.done = on_open;
	uring_open(r->ring, &r->op, r->dir_fd, r->file,
		r->waits ? O_RDONLY | O_NOCTTY : READER_OPEN_FLAGS);
}

/* -- The end of a read ----------------------------------------------------- */

static void release_op(struct reader *reader, struct read_op *r)
{
	r->busy = false;
	r->original = NULL;
	r->next = reader->free;
	reader->free = r;
	reader->busy--;
}

/* Finish the original, and close the file unless the descriptor is that of a
 * shard. */
static struct original *end_read(struct reader *reader, struct read_op *r)
{
	struct original *o = r->original;
	int fd = r->fd;
	uint64_t ns = meter_now_ns(reader->parts->meter) - r->started_ns;

	meter_stats(reader->parts->meter)->stages[REFRAIN_STAGE_READ].busy_ns +=
		ns;
	r->original = NULL;
	budget_end_read(reader->parts->budget);
	r->fd = -1;
	if (fd < 0 || r->shared_fd) {
		release_op(reader, r);
	} else {
		r->fd_closing = fd;
		reader_queue(reader, r, begin_close);
	}
	return o;
}

void reader_say_large(const struct reader *reader, struct error *err)
{
	(void)error_set(err, -E2BIG,
		"it has more than %" PRIu64 " bytes, the limit for an encoded "
		"image with a max_pixels of %" PRIu64,
		reader->parts->s->encoded_max, reader->parts->c->max_pixels);
}

static bool may_pass(int rc)
{
	return rc == -EIO || rc == -ETIMEDOUT || rc == -EAGAIN ||
		rc == -EINTR || rc == -ESTALE;
}

/* Did a read fail because descriptors have run out? Then allow no more reads at
 * a time than are running now. */
static bool lack_descriptors(struct reader *reader, int rc)
{
	if ((rc != -EMFILE && rc != -ENFILE) || !reader->busy)
		return false;
	reader->allowed = reader->busy;
	return true;
}

static void say_failure(const struct reader *reader, const struct read_op *r,
	int rc, struct error *why)
{
	if (rc == -EBADMSG)
		(void)error_set(why, rc, "the file ends within this example");
	else if (rc == -ENXIO)
		(void)error_set(why, rc, "it is not a regular file");
	else if (rc == -E2BIG)
		reader_say_large(reader, why);
	else
		(void)error_set(why, rc, "%m");
	parts_say(reader, r, why);
}

/* Handle a failed read. The caller holds the lock. */
static void read_failed(struct reader *reader, struct read_op *r, int rc)
{
	struct buffer *buffer = r->buffer;
	struct original *o;
	struct error why;

	ASSERT_TURN(reader->parts->turn);
	if (rc == -ENOENT && parts_may_lack(reader, r->part) &&
		!outcome_closing(reader->parts->outcome)) {
		run_over(reader, r);
		return;
	}
	if (!outcome_closing(reader->parts->outcome))
		say_failure(reader, r, rc, &why);
	o = end_read(reader, r);
	memory_put(reader->parts->memory, buffer);
	if (outcome_closing(reader->parts->outcome))
		return;
	if (rc == -ENOBUFS || lack_descriptors(reader, rc) ||
		(may_pass(rc) && o->tries++ < TRIES_MAX)) {
		original_state(reader->parts->pool, o, ORIGINAL_ABSENT);
		original_list(reader->parts->pool, o,
			o->planned ? ON_URGENT : ON_AHEAD);
		return;
	}
	damage_fail(reader->parts, o, rc, "read", why.msg);
}

/* Get the label of a record from its first bytes. */
static void take_label(struct reader *reader, struct original *o)
{
	uint64_t label = 0;

	if (!o->example.label_in_record)
		return;
	for (uint32_t i = 0; i < reader->parts->c->label_bytes; i++)
		label |= (uint64_t)o->encoded->data[i] << (8 * i);
	o->label = (int64_t)label;
	o->skip = reader->parts->c->label_bytes;
	o->encoded_bytes -= o->skip;
}

/* Replace a buffer that is much too large, if possible. Sizes are guessed for
 * the first reads. */
static struct buffer *fit(struct reader *reader, struct buffer *b, size_t bytes)
{
	struct buffer *less;

	if (memory_cost(bytes) * 8 > memory_cost(b->bytes) * 5)
		return b;
	less = memory_get(reader->parts->memory, bytes);
	if (!less)
		return b;
	memcpy(less->data, b->data, bytes);
	memory_put(reader->parts->memory, b);
	return less;
}

/* Time a read of a burst. When no more reads are waiting, a long burst is still
 * timed until only a quarter of the allowed reads are running. */
static void time_read(struct reader *r)
{
	uint32_t reading = budget_reading(r->parts->budget), timed;
	uint64_t ns;

	if (!r->full && !(r->burst.since && reading > r->allowed / 4)) {
		r->burst = (struct auto_burst){0};
		return;
	}
	timed = auto_burst_read(&r->burst, meter_now_ns(r->parts->meter), &ns);
	meter_timed(r->parts->meter, timed, ns);
}

static void read_whole(struct reader *reader, struct read_op *r)
{
	struct refrain_stats *out = meter_stats(reader->parts->meter);
	struct buffer *buffer = r->buffer;
	size_t bytes = r->end;
	struct read_count count;
	struct original *o;

	parts_count(reader, r, &count);
	o = end_read(reader, r);
	if (outcome_closing(reader->parts->outcome)) {
		memory_put(reader->parts->memory, buffer);
		return;
	}
	o->encoded = fit(reader, buffer, bytes);
	o->encoded_bytes = count.image_bytes;
	o->size_hint = bytes + o->example.whole;
	take_label(reader, o);
	time_read(reader);
	out->files_read += count.files;
	out->bytes_read += count.bytes;
	out->rereads += o->was_read ? count.files : 0;
	o->was_read = true;
	out->stages[REFRAIN_STAGE_READ].items++;
	out->stages[REFRAIN_STAGE_READ].bytes += count.bytes;
	meter_file(reader->parts->meter, memory_cost(bytes), reader->full);
	original_state(reader->parts->pool, o, ORIGINAL_ENCODED);
	original_settle(reader->parts->pool, o);
}

/* Read the open file from the present position on. */
static void reader_read(struct reader *reader, struct read_op *r)
{
	r->ring = reader->ring;
	reader_queue(reader, r, begin_read);
}

static void begin_run(
	struct reader *reader, struct read_op *r, const struct part_run *run)
{
	const struct original *o = r->original;
	size_t room;

	r->file_dir = run->dir;
	r->file = run->file;
	r->part = run->part;
	r->bits = run->bits;
	r->got = 0;
	r->want = parts_expected(reader, o, run);
	r->whole = o->example.whole;
	r->offset = r->whole ? 0 : run->offset;
	r->unsized = r->waits = false;
	if (parts_direct(reader, o, run->part, &room) &&
		parts_room(reader, r, room)) {
		direct_start(reader, r);
		return;
	}
	help_note_read(reader->parts->help, 0);
	r->unsized = reader->local && r->whole && !r->want &&
		!parts_hint(reader, o, run->part);
	if (!o->example.whole && o->example.shard < reader->shards_max &&
		r->fd < 0) {
		r->fd = reader->shard_fds[o->example.shard];
		r->shared_fd = r->fd >= 0;
	}
	if (r->fd >= 0)
		reader_read(reader, r);
	else
		reader_open(reader, r);
}

static void on_run_closed(struct uring_op *op, int res);

static void begin_run_close(struct read_op *r)
{
	r->op.done = on_run_closed;
	uring_close(r->ring, &r->op, r->fd_closing);
}

/* Begin to read the next run of parts. Runs in a shard are in the same file,
 * which stays open. */
static void begin_next_run(struct reader *reader, struct read_op *r)
{
	struct part_run run;

	if (r->whole && r->fd >= 0) {
		r->fd_closing = r->fd;
		r->fd = -1;
		reader_queue(reader, r, begin_run_close);
		return;
	}
	/* This returns true, as the caller checked */
	(void)parts_run(reader, r->original, r->done, &run);
	begin_run(reader, r, &run);
}

static void on_run_closed(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;

	(void)res; /* nothing was written, so nothing can be lost */
	turn_lock(reader->parts->turn);
	if (outcome_closing(reader->parts->outcome))
		read_failed(reader, r, -ECANCELED);
	else
		begin_next_run(reader, r);
	turn_unlock(reader->parts->turn);
}

/* Handle the end of a run of parts. Not called while the loader closes. */
static void run_over(struct reader *reader, struct read_op *r)
{
	struct part_run run = {.bits = r->bits};

	r->done = parts_after(reader, r->done, &run);
	if (parts_run(reader, r->original, r->done, &run))
		begin_next_run(reader, r);
	else
		read_whole(reader, r);
}

/* Returns the bytes for a buffer twice as large, but no more than a file may
 * have, or than fit. */
static size_t twice(const struct reader *reader, const struct read_op *r)
{
	uint64_t most = reader->parts->s->encoded_max;
	size_t bytes = r->buffer->bytes * 2;
	size_t fits = memory_largest(budget_alone_bytes(reader->parts->budget));

	if (bytes - r->base > most)
		bytes = r->base + (size_t)most + 1;
	if (bytes > fits && fits > r->buffer->bytes)
		bytes = fits;
	return bytes;
}

/*
 * Enlarge the buffer, because the file is longer than the buffer. `size` is the
 * size of the file, or less if that is unknown. Returns 0, -errno, or -ENOBUFS
 * if there is no memory now, so that the file must be read later.
 */
static int grow(struct reader *reader, struct read_op *r, uint64_t size)
{
	uint64_t most = reader->parts->s->encoded_max;
	size_t bytes;

	if (r->got > most || size > most)
		return -E2BIG;
	if (size >= r->got) {
		bytes = (size_t)size + 1;
		r->want = (size_t)size;
		parts_note_size(reader, r, r->want);
	} else {
		bytes = twice(reader, r) - r->base;
		r->original->size_hint = r->base + bytes;
	}
	return parts_room(reader, r, bytes) ? 0 : -ENOBUFS;
}

/* Does this read fill the buffer? Then the reader must know the size of the
 * file before it can go on. */
static bool fills(const struct read_op *r, int res)
{
	return r->whole && res > 0 &&
		r->base + r->got + (size_t)res == r->buffer->bytes;
}

/* Handle n more bytes. `size` is the size of the file if the buffer is full.
 * Returns 1 if the run of parts is complete, 0 if more must be read, or
 * -errno. */
static int got_some(
	struct reader *reader, struct read_op *r, size_t n, uint64_t size)
{
	r->got += n;
	if (!r->whole) {
		if (r->got == r->want)
			return 1;
		return n ? 0 : -EBADMSG;
	}
	/* The file has ended if a read returns 0 bytes, or if it has its
	 * expected size although the buffer has room for more. */
	if (n == 0 ||
		(r->got == r->want && r->base + r->got < r->buffer->bytes))
		return 1;
	return r->base + r->got == r->buffer->bytes ? grow(reader, r, size) : 0;
}

/* Returns the flags for statx(). Do not ask a file server for type and size:
 * the type of a file never changes, and the size hardly ever. */
static int stat_flags(bool local)
{
	return AT_EMPTY_PATH | (local ? 0 : AT_STATX_DONT_SYNC);
}

/* Returns the size of an open file, or 0 if it is unknown. Does not need the
 * lock. */
static uint64_t size_of_file(const struct reader *reader, int fd)
{
	struct statx st;

	if (statx(fd, "", stat_flags(reader->local), STATX_SIZE, &st) < 0 ||
		!(st.stx_mask & STATX_SIZE))
		return 0;
	return st.stx_size;
}

static void run_read(struct reader *reader, struct read_op *r)
{
	parts_take(reader, r);
	run_over(reader, r);
}

static void on_read(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;
	uint64_t size = fills(r, res) ? size_of_file(reader, r->fd) : 0;
	int rc;

	turn_lock(reader->parts->turn);
	rc = outcome_closing(reader->parts->outcome) ? -ECANCELED : res;
	if (rc >= 0)
		rc = got_some(reader, r, (size_t)res, size);
	if (rc == 0)
		reader_read(reader, r);
	else if (rc < 0)
		read_failed(reader, r, rc);
	else
		run_read(reader, r);
	turn_unlock(reader->parts->turn);
}

/* Keep the descriptor of a shard open. At most shards_max shards stay open. */
static void share_fd(struct reader *reader, struct read_op *r)
{
	const struct example *ex = &r->original->example;

	if (ex->whole || ex->shard >= reader->shards_max ||
		reader->shard_fds[ex->shard] >= 0)
		return;
	reader->shard_fds[ex->shard] = r->fd;
	r->shared_fd = true;
}

int reader_check_file(int fd, bool local, uint64_t *bytes)
{
	int flags = stat_flags(local);
	struct statx st;

	/* fstat() is not used, because ThreadSanitizer tracks descriptors there
	 * and does not see that the ring opens and closes them. */
	if (statx(fd, "", flags, STATX_TYPE | (local ? STATX_SIZE : 0), &st) <
		0)
		return -errno;
	if (S_ISDIR(st.stx_mode))
		return -EISDIR;
	if (!S_ISREG(st.stx_mode))
		return -ENXIO;
	/* With O_NONBLOCK, the ring's reads could fail instead of waiting. */
	if (fcntl(fd, F_SETFL, O_RDONLY) < 0)
		return -errno;
	*bytes = local ? st.stx_size : 0;
	return 0;
}

/*
 * Check an open file and get its size; 0: unknown. A scan of a folder does not
 * get sizes, because that would cost as much as opening the files. But the size
 * of an open local file costs nothing. Without the size, another read would be
 * needed to find the end, and data in a buffer of the wrong size would have to
 * be copied.
 */
static int check_open(
	const struct reader *reader, const struct read_op *r, uint64_t *bytes)
{
	const struct settings *s = reader->parts->s;
	int rc = reader_check_file(r->fd, reader->local, bytes);

	/* Ranges are read in random order, so what follows them is not needed.
	 * It is only advice, so a failure does no harm. */
	if (settings_tokens(s) || settings_array(s))
		(void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_RANDOM);

	/* Use only the operation, because the loader may have ended and freed
	 * the original. */
	if (!r->whole)
		*bytes = 0;
	if (rc == 0 && *bytes > reader->parts->s->encoded_max)
		return -E2BIG;
	if (!r->unsized)
		*bytes = 0;
	return rc;
}

/* Get a buffer for this size and one more byte. Returns 0, or -ENOBUFS if there
 * is no memory now, so that the file must be read later. */
static int take_size(struct reader *reader, struct read_op *r, size_t bytes)
{
	bool one_part = dataset_parts(reader->parts->dataset) == 1;

	r->want = bytes;
	parts_note_size(reader, r, bytes);
	if (r->base)
		return parts_room(reader, r, bytes + 1) ? 0 : -ENOBUFS;
	if (one_part ? memory_cost(bytes + 1) == memory_cost(r->buffer->bytes)
		     : bytes < r->buffer->bytes)
		return 0;
	/* The buffer has no data yet, so its memory may be used. */
	memory_put(reader->parts->memory, r->buffer);
	r->buffer = reader_buffer(reader, bytes + 1);
	return r->buffer ? 0 : -ENOBUFS;
}

/* Must the file be opened again with a flag that makes the call wait? -EAGAIN
 * means that another process, such as a file server, has a lease on the file
 * and must release it first. */
static bool must_wait(struct read_op *r, int res)
{
	if (res != -EAGAIN || r->waits)
		return false;
	r->waits = true;
	return true;
}

static void on_open(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;
	uint64_t bytes = 0;
	int rc = res;

	if (res >= 0) {
		r->fd = res;
		rc = check_open(reader, r, &bytes);
	}
	turn_lock(reader->parts->turn);
	if (outcome_closing(reader->parts->outcome)) {
		read_failed(reader, r, -ECANCELED);
	} else if (must_wait(r, rc)) {
		reader_queue(reader, r, begin_open);
	} else if (rc < 0) {
		read_failed(reader, r, rc);
	} else {
		share_fd(reader, r);
		rc = bytes ? take_size(reader, r, bytes) : 0;
		if (rc == 0)
			reader_read(reader, r);
		else
			read_failed(reader, r, rc);
	}
	turn_unlock(reader->parts->turn);
}

void reader_done(struct reader *reader, struct read_op *r)
{
	run_read(reader, r);
}

void reader_cancel(struct reader *reader, struct read_op *r)
{
	read_failed(reader, r, -ECANCELED);
}

static void on_close(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;

	(void)res; /* nothing was written, so nothing can be lost */
	turn_lock(reader->parts->turn);
	release_op(reader, r);
	turn_unlock(reader->parts->turn);
}

void reader_open(struct reader *reader, struct read_op *r)
{
	r->ring = reader->ring;
	r->dir_fd = r->file_dir;
	reader_queue(reader, r, begin_open);
}

void reader_start_first(struct reader *reader, struct read_op *r)
{
	struct part_run run;

	/* This returns true: the first run always exists */
	(void)parts_run(reader, r->original, 0, &run);
	begin_run(reader, r, &run);
}
