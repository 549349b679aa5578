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

/* Direct reads are widened to this alignment; no file system is known to need
 * more. */
#define ALIGN_BYTES ((size_t)4096)
#define BUFFER_BYTES (ORIGIN_READ_MAX_BYTES + 2 * ALIGN_BYTES)
/* How often one step is repeated on EAGAIN and the like. */
#define AGAIN_MAX 16

struct read_buffer {
	struct list node; /* origin lock: spare */
	char *bytes;	  /* mapped, BUFFER_BYTES */
};

struct descriptor {
	unsigned refs; /* origin lock */
	int fd;	       /* this and the rest set once */
	unsigned turn; /* turn of the root beneath which it was opened, or
			  earlier */
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
	bool buffered;		 /* origin lock: refused direct I/O */
	unsigned again;		 /* of the opening */
	int bad;		 /* set once: -errno for a path that escapes */
	char path[];
};

struct posix_read {
	struct posix *p;
	unsigned refs;		     /* origin lock: the steps, a note */
	struct origin_read *r;	     /* origin lock: NULL once answered */
	struct origin_read *dropped; /* set by abandon for its note */
	struct timer settle;	     /* set under the origin lock */
	struct list node; /* origin lock: waits for open or a buffer */
	struct origin_file *f;
	struct file_version want;
	uint64_t off, start; /* asked; where the widened range begins */
	size_t len, got;     /* asked; read from `start` on */
	unsigned turn;	     /* of the root, when the read came */
	struct descriptor *d;
	struct read_buffer *buf;
	unsigned again, rounds;
	bool fresh; /* the descriptor was opened for this read */
	bool eof;
	int status; /* for the judge */
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
 * Returns true when the file is open and the read has its descriptor. Else the
 * read waits, and posix_file calls posix_read_begin() or posix_read_fail() for
 * it unless it is abandoned.
 */
bool posix_file_get(struct posix_read *pr);

/* Lock held. Take a waiting read out of the list. If no other read waits for
 * the opening, returns the opening: cancel it without the lock; the read keeps
 * it. */
struct uring_op *posix_file_unwait(struct posix_read *pr);

/* Do not use direct I/O at the next opening of the file. */
void posix_file_refuses_direct(struct origin_file *f);

/* The file was read with direct I/O. */
void posix_file_takes_direct(struct origin_file *f);

/* Lock held. */
void posix_file_put(struct origin_file *f);
void posix_descriptor_put(struct posix *p, struct descriptor *d);

/* Lock held: make the next read open the file anew. */
void posix_file_forget(struct origin_file *f, struct descriptor *d);

/* -- posix_buffer.c -------------------------------------------------------- */

/*
 * Get a buffer for the read. Returns 0, -ENOMEM, or -EINPROGRESS if it has to
 * wait for another read's.
 */
int posix_buffer_get(struct posix_read *pr);

/* Lock held. Returns a read that waited and has the buffer now, or NULL. */
struct posix_read *posix_buffer_put(struct posix *p, struct read_buffer *b);

/* -- posix_read.c ---------------------------------------------------------- */

/* The read has its descriptor: begin. */
void posix_read_begin(struct posix_read *pr);

/* Answer with an error, later. */
void posix_read_fail(struct posix_read *pr, int status);

#endif
