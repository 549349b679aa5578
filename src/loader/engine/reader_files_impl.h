/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the reader: reader.c reads one file, direct_read.c
 * reads an entry of a mount's tier instead, reader_next.c chooses the next
 * read, and reader_life.c starts and stops the reader. Everything is guarded by
 * the turn's lock.
 */
#ifndef ENGINE_READER_FILES_IMPL_H
#define ENGINE_READER_FILES_IMPL_H

#include "loader/engine/auto.h"
#include "common/base/uring.h"
#include "loader/engine/reader_impl.h"
#include "common/format/entry.h"

/* Parts that are read at once. */
struct part_run {
	const char *file;
	uint64_t offset, bytes; /* bytes of a whole file: only a hint */
	uint32_t part, bits;	/* one of the parts, and all of them */
};

struct read_count {
	uint32_t files;
	uint64_t bytes;
	size_t image_bytes;
};

/* A file that is being read. */
struct read_op {
	struct uring_op op;
	struct reader *reader;
	/* In the list of free operations, or of queued ones */
	struct read_op *next;
	/* begin() is called with this operation when the lock has been
	 * released; it uses `ring`. */
	void (*begin)(struct read_op *r);
	struct uring *ring;
	int dir_fd, fd_closing;
	/* NULL: the operation only closes its file */
	struct original *original;
	struct buffer *buffer;
	bool busy;
	int fd;
	/* The run of parts that is being read: see reader_parts.c */
	const char *file;
	uint32_t part;	/* one of them */
	uint32_t bits;	/* all of them */
	uint32_t done;	/* the parts of runs before */
	uint32_t files; /* the number of these */
	size_t base;	/* where the run begins in the buffer */
	size_t end;	/* where the run before ends */
	bool whole;	/* set when it starts: the example is a whole file */
	/* Set when it starts: the file's size must be asked for */
	bool unsized;
	bool waits;	/* the file is opened without O_NONBLOCK */
	bool shared_fd; /* the descriptor is that of a shard and stays open */
	/* The tier entry that this operation tries first. */
	unsigned tier;
	struct hash128 key;
	char path[ENTRY_PATH_MAX];
	uint64_t offset; /* of the run in its file */
	size_t got, want;
	uint64_t started_ns;
};

/* One byte more than an entry's file, so that its end is seen. */
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
	/* Operations that begin at the end of the turn */
	struct read_op *queued, **queued_end;
	/* The number of threads that are beginning reads. Sequentially
	 * consistent; pairs with outcome_closing_now(). */
	_Atomic uint32_t beginning;
	bool local;	/* set once: the files are on a local file system */
	uint32_t depth; /* set once: the number of ops */
	/* Ops that may be busy: fewer than depth when descriptors are short. */
	uint32_t allowed;
	uint32_t busy; /* number of busy ops */
	bool full;     /* all allowed ops are busy, and more reads wait */
	/* Reads since `full` was set; see time_read() */
	struct auto_burst burst;
	bool bursting;	/* if s->measures: a burst of reads ahead is running */
	int *shard_fds; /* -1: not open */
	uint32_t shards_max;
};

/* -- reader.c -- */

/* Flags to open a file that may be of any type. */
#define READER_OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)
/*
 * Check that a file opened with READER_OPEN_FLAGS is regular, and clear
 * O_NONBLOCK. *bytes is its size if it is `local`, else 0. Returns 0, -EISDIR,
 * -ENXIO if it has another type, or -errno. Called without the lock.
 */
int reader_check_file(int fd, bool local, uint64_t *bytes);
/* Set the message for an example that is larger than settings.encoded_max. */
void reader_say_large(const struct reader *reader, struct error *err);

/* Queue work that begins when the lock has been released. */
void reader_queue(struct reader *reader, struct read_op *r,
	void (*begin)(struct read_op *r));
/*
 * direct_read.c ends with one of these: reader_open() to read the file itself
 * after all, reader_done() if the content is in the buffer (`got` bytes),
 * reader_cancel() if closing has begun.
 */
void reader_open(struct reader *reader, struct read_op *r);
void reader_done(struct reader *reader, struct read_op *r);
void reader_cancel(struct reader *reader, struct read_op *r);

/* Begin to read the first run of an example. */
void reader_start_first(struct reader *reader, struct read_op *r);

/* -- reader_parts.c -- */

/* Get the run after the parts `done`. Returns false if there are no more. */
bool parts_run(const struct reader *reader, const struct original *o,
	uint32_t done, struct part_run *out);
/* The expected size of the file of a part plus 1; 0: unknown. */
size_t parts_hint(
	const struct reader *reader, const struct original *o, uint32_t part);
/* The memory for all parts of an example with several; 0: unknown. */
size_t parts_bytes(const struct reader *reader, const struct original *o);
/* Is it certain before the read that a part is too large? */
bool parts_too_large(const struct reader *reader, const struct original *o);
/* Make room for so many bytes of the run, if possible. */
bool parts_room(struct reader *reader, struct read_op *r, size_t bytes);
/* Does the example lack a member that it must have? Sets err then. */
bool parts_lack(const struct reader *reader, const struct original *o,
	struct error *err);
/* Add the name of the member that is being read to a message. */
void parts_say(const struct reader *reader, const struct read_op *r,
	struct error *err);
/* May examples lack this part? */
bool parts_may_lack(const struct reader *reader, uint32_t part);
/* The key of the tier's entry to try first for a part, or NULL. */
const struct help_key *parts_key(
	const struct reader *reader, const struct original *o, uint32_t part);
/* The size of the part in that entry, or 0. *room is the memory to read the
 * entry. */
size_t parts_direct(const struct reader *reader, const struct original *o,
	uint32_t part, size_t *room);
/* A read of the original begins: it has no parts yet. */
void parts_begin(struct reader *reader, struct original *o);
/* Note where the parts of the run lie. */
void parts_take(struct reader *reader, struct read_op *r);
/* Get what was read of an original. */
void parts_count(const struct reader *reader, const struct read_op *r,
	struct read_count *out);

/* -- direct_read.c -- */

/* Start to read the entry of the part, for which the buffer has room. */
void direct_start(struct reader *reader, struct read_op *r);

#endif
