/* SPDX-License-Identifier: MIT */
/*
 * Shared by the posix origin's reads, files and buffers; private to them.
 * posix_file.c has the states of a file, posix_read.c the steps of a read.
 */
#ifndef LOCAL_POSIX_READ_IMPL_H
#define LOCAL_POSIX_READ_IMPL_H

#include <errno.h>
#include <sys/stat.h>

#include "origin/local/posix_impl.h"

/* Direct reads are widened to this alignment. No known file system needs more.
 */
#define ALIGN_BYTES ((size_t)4096)
#define BUFFER_BYTES (ORIGIN_READ_MAX_BYTES + 2 * ALIGN_BYTES)
/* How often a step is repeated after EAGAIN and similar errors. */
#define AGAIN_MAX 16

struct read_buffer {
	struct list node; /* origin lock: in `spare` */
	char *bytes;	  /* mapped, BUFFER_BYTES */
};

struct descriptor {
	unsigned refs; /* origin lock */
	int fd;	       /* this and the next members are set once */
	/* turn of the root beneath which it was opened, or an earlier turn */
	unsigned turn;
	bool direct;
	bool far; /* on another file system than the root */
	struct thread_job close_job;
};

struct origin_file {
	struct posix *p;
	unsigned refs; /* origin lock: the handle, each read, the opening */
	enum { FILE_CLOSED, FILE_OPENING, FILE_OPEN } state; /* origin lock */
	struct descriptor *open; /* origin lock: while FILE_OPEN */
	struct list waiting;	 /* origin lock: reads, while FILE_OPENING */
	struct uring_op op;	 /* of the opening */
	bool direct;		 /* of the opening */
	unsigned turn;		 /* of the opening */
	bool buffered;		 /* origin lock: direct I/O was refused */
	unsigned again;		 /* of the opening */
	int bad; /* set once: -errno for a path that leads out of the source */
	char path[];
};

struct posix_read {
	struct posix *p;
	unsigned refs; /* origin lock: one for the steps, one for a note */
	struct origin_read *r; /* origin lock: NULL once answered */
	/* abandoned request, which the note will answer */
	struct origin_read *dropped;
	struct timer settle; /* set under the origin lock */
	/* origin lock: in a list that waits for the opening or a buffer */
	struct list node;
	struct origin_file *f;
	struct file_version want;
	uint64_t off, start; /* off: requested; start: of the widened range */
	size_t len, got; /* len: requested; got: bytes read from `start` on */
	unsigned turn;	 /* turn of the root when the read came */
	struct descriptor *d;
	struct read_buffer *buf;
	unsigned again, rounds;
	bool fresh; /* the descriptor was opened for this read */
	bool eof;
	int status; /* set for posix_judge() */
	struct uring_op op;
	struct thread_job job, note;
	struct statx stx;
};

static inline bool posix_again(unsigned *again, int res)
{
	return (res == -EAGAIN || res == -EINTR) && ++*again <= AGAIN_MAX;
}

/* -- posix_file.c ---------------------------------------------------------- */

/*
 * Returns true if the file is open, and gives the read its descriptor.
 * Otherwise the read waits, and posix_file.c calls posix_read_begin() or
 * posix_read_fail() for it, unless the read is abandoned.
 */
bool posix_file_get(struct posix_read *pr);

/* Requires the lock. Take a waiting read out of the list. If no other read
 * waits for the opening, returns its operation. The caller cancels that without
 * the lock; the read keeps it alive. */
struct uring_op *posix_file_unwait(struct posix_read *pr);

/* Do not use direct I/O at the next opening of the file. */
void posix_file_refuses_direct(struct origin_file *f);

/* The file was read with direct I/O: it works there. */
void posix_file_takes_direct(struct origin_file *f);

/* Requires the lock. Drop a reference. */
void posix_file_put(struct origin_file *f);
void posix_descriptor_put(struct posix *p, struct descriptor *d);

/* Requires the lock. Make the next read open the file again. */
void posix_file_forget(struct origin_file *f, struct descriptor *d);

/* -- posix_buffer.c -------------------------------------------------------- */

/*
 * Get a buffer for the read. Returns 0, -ENOMEM, or -EINPROGRESS if the read
 * has to wait for the buffer of another one.
 */
int posix_buffer_get(struct posix_read *pr);

/* Requires the lock. Returns a read that waited and now has the buffer, or
 * NULL. */
struct posix_read *posix_buffer_put(struct posix *p, struct read_buffer *b);

/* -- posix_read.c ---------------------------------------------------------- */

/* Start reading. The read has its descriptor. */
void posix_read_begin(struct posix_read *pr);

/* Answer with an error on another thread. */
void posix_read_fail(struct posix_read *pr, int status);

#endif
