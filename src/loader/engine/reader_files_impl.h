/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the reader: reader.c reads one file, direct_read.c
 * reads an entry of a mount's tier instead, reader_next.c chooses the next
 * read, and reader_life.c starts and stops the reader. The turn's lock guards
 * everything.
 */
#ifndef ENGINE_READER_FILES_IMPL_H
#define ENGINE_READER_FILES_IMPL_H

#include "loader/engine/auto.h"
#include "common/base/uring.h"
#include "loader/engine/reader_impl.h"
#include "common/format/entry.h"

/* A run of parts, which are read together. */
struct part_run {
	int dir; /* descriptor of the directory of `file` */
	const char *file;
	uint64_t offset, bytes; /* the bytes of a whole file are only a hint */
	uint32_t part, bits;	/* number of one part; bits of all parts */
};

struct read_count {
	uint32_t files;
	uint64_t bytes;
	size_t image_bytes;
};

/* An operation that reads one example. */
struct read_op {
	struct uring_op op;
	struct reader *reader;
	/* In the list of free operations, or in that of queued ones */
	struct read_op *next;
	/* begin() is called with this operation after the lock was released. It
	 * uses `ring`. */
	void (*begin)(struct read_op *r);
	struct uring *ring;
	int dir_fd, fd_closing;
	/* NULL: the operation only closes its file */
	struct original *original;
	struct buffer *buffer;
	bool busy;
	int fd;
	/* The run of parts that is being read; see reader_parts.c */
	int file_dir;
	const char *file;
	uint32_t part; /* number of one part of the run */
	uint32_t bits; /* bits of the parts of the run */
	/* bits of the parts of earlier runs; of an array the number of these */
	uint32_t done;
	uint32_t files; /* number of files in earlier runs */
	size_t base;	/* offset of the run in the buffer */
	size_t end;	/* offset of the end of the previous run */
	bool whole;	/* set at the start: an example is a whole file */
	/* Set at the start: the size of the file is not known */
	bool unsized;
	bool waits; /* file was opened without O_NONBLOCK */
	/* The descriptor is that of a shard, and stays open */
	bool shared_fd;
	/* The entry of a tier that this operation tries first. */
	unsigned tier;
	struct hash128 key;
	char path[ENTRY_PATH_MAX];
	uint64_t offset; /* offset of the run in its file */
	size_t got, want;
	uint64_t started_ns;
};

/* Returns the bytes to read for an entry: one byte more than its file has, so
 * that the read shows the end of the file. */
static inline size_t entry_room(uint64_t item_bytes)
{
	return entry_bytes(item_bytes) + 1;
}

static inline struct read_op *read_op_of(struct uring_op *op)
{
	return CONTAINER_OF(op, struct read_op, op);
}

struct reader {
	const struct engine_parts *parts; /* set once */
	struct uring *ring;
	struct read_op *ops, *free;
	/* The operations that begin at the end of the turn */
	struct read_op *queued, **queued_end;
	/* The number of threads that are starting reads. Sequentially
	 * consistent; together with outcome_closing_now() it ensures that no
	 * read begins after closing. */
	_Atomic uint32_t beginning;
	bool local;	/* set once: the file system is local */
	uint32_t depth; /* set once: number of `ops` */
	/* The number of ops that may be busy: less than depth if descriptors
	 * have run out. */
	uint32_t allowed;
	uint32_t busy; /* number of busy ops */
	/* All allowed ops are busy, and more reads are waiting */
	bool full;
	/* The reads since `full` was set; see time_read() */
	struct auto_burst burst;
	/* Only if s->measures: a burst of reads ahead is running */
	bool bursting;
	int *shard_fds; /* -1: the shard is not open */
	uint32_t shards_max;
};

/* -- reader.c -- */

/* Flags for opening a file whose type is not known. */
#define READER_OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)
/*
 * Check that a file that was opened with READER_OPEN_FLAGS is regular, and
 * clear O_NONBLOCK. *bytes is set to its size if it is `local`, else to 0.
 * Returns 0, -EISDIR, -ENXIO for any other type, or another -errno. Called
 * without the lock.
 */
int reader_check_file(int fd, bool local, uint64_t *bytes);
/* Set the message for an example that is larger than settings.encoded_max. */
void reader_say_large(const struct reader *reader, struct error *err);

/* Get a buffer, or NULL if there is no memory for it now. */
struct buffer *reader_buffer(struct reader *reader, size_t bytes);

/* Queue an operation. begin() is called after the lock was released. */
void reader_queue(struct reader *reader, struct read_op *r,
	void (*begin)(struct read_op *r));
/*
 * direct_read.c ends with one of these calls: reader_open() if the file itself
 * must be read, reader_done() if the content (`got` bytes) is in the buffer,
 * reader_cancel() if closing has begun.
 */
void reader_open(struct reader *reader, struct read_op *r);
void reader_done(struct reader *reader, struct read_op *r);
void reader_cancel(struct reader *reader, struct read_op *r);

/* Begin to read the first run of an example. */
void reader_start_first(struct reader *reader, struct read_op *r);

/* -- reader_parts.c -- */

/* Get the run that follows the parts `done`. Returns false if there is no
 * more. */
bool parts_run(const struct reader *reader, const struct original *o,
	uint32_t done, struct part_run *out);
/* Returns `done` after this run: with its parts, or for an array, whose runs
 * have numbers, the next number. */
uint32_t parts_after(
	const struct reader *reader, uint32_t done, const struct part_run *run);
/* Returns the expected size of the file of a part plus 1, or 0 if it is
 * unknown. */
size_t parts_hint(
	const struct reader *reader, const struct original *o, uint32_t part);
/* Returns the expected bytes of a run, or 0 if they are unknown. */
size_t parts_expected(const struct reader *reader, const struct original *o,
	const struct part_run *run);
/* Returns the bytes of memory to read all parts into, or 0 if they are unknown.
 * With `direct`, parts that have entries in a mount's tiers are read there. */
size_t parts_bytes(
	const struct reader *reader, const struct original *o, bool direct);
/* Store the size of the open file. */
void parts_note_size(struct reader *reader, struct read_op *r, size_t bytes);
/* Is it known before the read that a part is too large? */
bool parts_too_large(const struct reader *reader, const struct original *o);
/* Make room for `bytes` bytes of the run. Returns false if there is no
 * memory. */
bool parts_room(struct reader *reader, struct read_op *r, size_t bytes);
/* Does the example lack a member that is not optional? If so, err is set. */
bool parts_lack(const struct reader *reader, const struct original *o,
	struct error *err);
/* Add the name of the member that is being read to a message. */
void parts_say(const struct reader *reader, const struct read_op *r,
	struct error *err);
/* May examples lack this part? */
bool parts_may_lack(const struct reader *reader, uint32_t part);
/* Returns the key of the entry that is tried first for a part, or NULL. */
const struct help_key *parts_key(
	const struct reader *reader, const struct original *o, uint32_t part);
/* Returns the size of the part in its entry, or 0. Sets *room to the bytes of
 * memory that reading the entry needs. */
size_t parts_direct(const struct reader *reader, const struct original *o,
	uint32_t part, size_t *room);
/* Begin to read an original, which has no parts yet. */
void parts_begin(struct reader *reader, struct original *o);
/* Store the places of the parts of the run. */
void parts_take(struct reader *reader, struct read_op *r);
/* Count the files and bytes that were read for an original. */
void parts_count(const struct reader *reader, const struct read_op *r,
	struct read_count *out);

/* -- direct_read.c -- */

/* Start to read the entry of the part. The buffer must have room for it. */
void direct_start(struct reader *reader, struct read_op *r);

#endif
