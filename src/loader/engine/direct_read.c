/* SPDX-License-Identifier: MIT */
/*
 * Reads entries in a mount's tiers without a request to the mount: content and
 * trailer in one read, verified as the mount verifies them. After any error the
 * file is read through the mount instead, which repairs the entry. Called with
 * the turn's lock held, and by the ring's threads, which take the lock, but not
 * to hash.
 *
 *	tier opening -> reading -> verified -> reader_done()
 *	   |  ^  |         |
 *	   +--+  |         +-> closing -+
 *	 (next)  +---------------------+-> reader_open(): through the mount
 */
#include <errno.h>
#include <fcntl.h>

#include "loader/engine/reader_files_impl.h"

/* Read the file through the mount instead. The caller holds the lock. */
static void go_through_mount(struct reader *reader, struct read_op *r)
{
	ASSERT_TURN(reader->parts->turn);
	r->fd = -1;
	help_note_read(reader->parts->help, 0);
	if (outcome_closing(reader->parts->outcome))
		reader_cancel(reader, r);
	else
		reader_open(reader, r);
}

static void begin_bad_close(struct read_op *r);
static void begin_entry_open(struct read_op *r);
static void begin_entry_read(struct read_op *r);

static void on_bad_closed(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;

	(void)res; /* nothing was written, so nothing can be lost */
	turn_lock(reader->parts->turn);
	go_through_mount(reader, r);
	turn_unlock(reader->parts->turn);
}

static void on_entry_read(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;
	/* No lock is needed, because no other thread uses the buffer and the
	 * key of this operation now. */
	int rc = res < 0 ? res
			 : entry_check(r->buffer->data + r->base, (size_t)res,
				   r->key, r->want);

	turn_lock(reader->parts->turn);
	if (outcome_closing(reader->parts->outcome)) {
		reader_cancel(reader, r);
	} else if (rc == 0) {
		r->got = r->want;
		meter_stats(reader->parts->meter)->direct_hits++;
		help_note_read(reader->parts->help, r->want);
		reader_done(reader, r);
	} else {
		reader_queue(reader, r, begin_bad_close);
	}
	turn_unlock(reader->parts->turn);
}

static void on_entry_open(struct uring_op *op, int res);

static void begin_bad_close(struct read_op *r)
{
	r->op.done = on_bad_closed;
	uring_close(r->ring, &r->op, r->fd);
}

static void begin_entry_open(struct read_op *r)
{
	r->op.done = on_entry_open;
	uring_open(r->ring, &r->op, r->dir_fd, r->path,
		READER_OPEN_FLAGS | O_NOFOLLOW);
}

static void begin_entry_read(struct read_op *r)
{
	r->op.done = on_entry_read;
	uring_read(r->ring, &r->op, r->fd, r->buffer->data + r->base,
		entry_room(r->want), 0);
}

static void open_entry(struct reader *reader, struct read_op *r)
{
	r->ring = help_ring(reader->parts->help);
	r->dir_fd = help_tier(reader->parts->help, r->tier);
	reader_queue(reader, r, begin_entry_open);
}

static void on_entry_open(struct uring_op *op, int res)
{
	struct read_op *r = read_op_of(op);
	struct reader *reader = r->reader;
	uint64_t bytes;
	bool usable = res >= 0 && reader_check_file(res, true, &bytes) == 0;

	turn_lock(reader->parts->turn);
	if (res >= 0)
		r->fd = res;
	if (outcome_closing(reader->parts->outcome)) {
		reader_cancel(reader, r);
	} else if (res >= 0) {
		reader_queue(
			reader, r, usable ? begin_entry_read : begin_bad_close);
	} else if (res == -ENOENT &&
		help_tier(reader->parts->help, ++r->tier) >= 0) {
		open_entry(reader, r);
	} else {
		go_through_mount(reader, r);
	}
	turn_unlock(reader->parts->turn);
}

void direct_start(struct reader *reader, struct read_op *r)
{
	const struct help_key *key = parts_key(reader, r->original, r->part);

	r->tier = 0;
	r->key = key->key;
	r->want = key->bytes;
	(void)entry_path(r->path, key->key, key->bytes);
	open_entry(reader, r);
}
