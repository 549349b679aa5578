/* SPDX-License-Identifier: MIT */
/*
 * Entries of a mount's tiers, opened without asking the mount: content and
 * trailer in one read, verified as the mount verifies them. Whatever is wrong,
 * the file is then read through the mount, which puts it right. Entered under
 * the loader's lock, and by the ring's threads, which take it; hashing is done
 * without it.
 *
 *	tier opening -> reading -> verified -> reader_done()
 *	   |  ^  |         |
 *	   +--+  |         +-> closing -+
 *	 (next)  +---------------------+-> reader_open(): through the mount
 */
#include <errno.h>
#include <fcntl.h>

#include "engine/engine_impl.h"
#include "mount_help/mount_help.h"

static struct read_op *of(struct uring_op *op)
{
	return CONTAINER_OF(op, struct read_op, op);
}

/* One byte more than the file has, so that its end is seen. */
static size_t file_room(uint64_t item_bytes)
{
	return store_entry_bytes(item_bytes) + 1;
}

size_t direct_bytes(const struct engine *engine, const struct entry *e)
{
	const struct help_key *key =
		e->example.whole ? help_key(engine->help, e->index) : NULL;

	return key ? file_room(key->bytes) : 0;
}

/* Lock taken. */
static void go_through_mount(struct engine *engine, struct read_op *r)
{
	r->direct = false;
	r->fd = -1;
	help_note_read(engine->help, 0);
	if (engine->closing)
		reader_cancel(engine, r);
	else
		reader_open(engine, r);
}

static void begin_bad_close(struct read_op *r);
static void begin_entry_open(struct read_op *r);
static void begin_entry_read(struct read_op *r);

static void on_bad_closed(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;

	(void)res; /* was only read */
	turn_lock(&engine->turn);
	go_through_mount(engine, r);
	turn_unlock(&engine->turn);
}

static void on_entry_read(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;
	/* Nobody else touches the operation's buffer and key meanwhile. */
	int rc = res < 0 ? res
			 : store_entry_check(r->buffer->data, (size_t)res,
				   r->key, r->want);

	turn_lock(&engine->turn);
	if (engine->closing) {
		reader_cancel(engine, r);
	} else if (rc == 0) {
		r->got = r->want;
		meter_stats(engine->meter)->direct_hits++;
		help_note_read(engine->help, r->want);
		reader_done(engine, r);
	} else {
		reader_queue(engine, r, begin_bad_close);
	}
	turn_unlock(&engine->turn);
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
	uring_open(r->ring, &r->op, r->dir_fd, r->path, O_RDONLY | O_NOFOLLOW);
}

static void begin_entry_read(struct read_op *r)
{
	r->op.done = on_entry_read;
	uring_read(
		r->ring, &r->op, r->fd, r->buffer->data, file_room(r->want), 0);
}

static void open_entry(struct engine *engine, struct read_op *r)
{
	r->ring = help_ring(engine->help);
	r->dir_fd = help_tier(engine->help, r->tier);
	reader_queue(engine, r, begin_entry_open);
}

static void on_entry_open(struct uring_op *op, int res)
{
	struct read_op *r = of(op);
	struct engine *engine = r->engine;

	turn_lock(&engine->turn);
	if (res >= 0)
		r->fd = res;
	if (engine->closing) {
		reader_cancel(engine, r);
	} else if (res >= 0) {
		reader_queue(engine, r, begin_entry_read);
	} else if (res == -ENOENT && help_tier(engine->help, ++r->tier) >= 0) {
		open_entry(engine, r);
	} else {
		go_through_mount(engine, r);
	}
	turn_unlock(&engine->turn);
}

bool direct_start(struct engine *engine, struct read_op *r)
{
	const struct help_key *key = r->entry->example.whole
		? help_key(engine->help, r->entry->index)
		: NULL;

	if (!key || r->buffer->bytes < file_room(key->bytes))
		return false;
	r->direct = true;
	r->tier = 0;
	r->key = key->key;
	r->want = key->bytes;
	(void)store_entry_path(r->path, key->key, key->bytes);
	open_entry(engine, r);
	return true;
}
