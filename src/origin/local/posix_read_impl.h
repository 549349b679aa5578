/* SPDX-License-Identifier: MIT */
/* The structs and functions of the posix origin's reads, files and buffers.
 * posix_file.c draws the states of a file, posix_read.c the steps of a read. */
#ifndef LOCAL_POSIX_READ_IMPL_H
#define LOCAL_POSIX_READ_IMPL_H

#include <errno.h>
#include <sys/stat.h>

#include "origin/local/posix_impl.h"

/* Offset and length of a direct read are extended to multiples of this. All
 * known file systems accept this alignment. */
#define ALIGN_BYTES ((size_t)4096)
#define BUFFER_BYTES (ORIGIN_READ_MAX_BYTES + 2 * ALIGN_BYTES)
/* How often a step is repeated if it ends with EAGAIN or a similar error. */
#define AGAIN_MAX 16

struct read_buffer {
	struct list node; /* in `spare`; guarded by the origin's lock */
	char *bytes;	  /* a mapping of BUFFER_BYTES */
};

struct descriptor {
	unsigned refs; /* guarded by the origin's lock */
	int fd;	       /* set once, as all members below are */
	/* posix_root_turn() when it was opened, or an earlier value */
	unsigned turn;
	bool direct;
	bool far; /* on another file system than the root */
	struct thread_job close_job;
	struct uring_op close_op;
};

struct origin_file {
	struct posix *p;
	/* 1 for each of the handle, the reads and the opening; guarded by the
	 * origin's lock */
	unsigned refs;
	/* guarded by the origin's lock */
	enum { FILE_CLOSED, FILE_OPENING, FILE_OPEN } state;
	/* valid while FILE_OPEN; guarded by the origin's lock */
	struct descriptor *open;
	/* reads that wait while FILE_OPENING; guarded by the origin's lock */
	struct list waiting;
	struct uring_op op; /* used by the opening */
	bool direct;	    /* used by the opening: direct I/O is tried */
	unsigned turn; /* used by the opening: posix_root_turn() at its start */
	/* the file has refused direct I/O; guarded by the origin's lock */
	bool buffered;
	unsigned again; /* used by the opening: number of repetitions */
	int bad; /* set once: -errno if the path leads out of the source */
	char path[];
};

struct posix_read {
	struct posix *p;
	/* 1 for the steps, 1 for a note; guarded by the origin's lock */
	unsigned refs;
	/* the request; NULL once answered. Guarded by the origin's lock */
	struct origin_read *r;
	/* a request that was abandoned, and that the note will answer */
	struct origin_read *dropped;
	/* fires when the version has settled; set under the origin's lock */
	struct timer settle;
	/* in a list of reads that wait for the opening or a buffer; guarded by
	 * the origin's lock */
	struct list node;
	struct origin_file *f;
	struct file_version want;
	/* off: requested offset; start: offset of the extended range */
	uint64_t off, start;
	/* len: requested length; got: number of bytes read from `start` on */
	size_t len, got;
	unsigned turn; /* posix_root_turn() when the request came */
	struct descriptor *d;
	struct read_buffer *buf;
	unsigned again, rounds;
	bool fresh; /* the descriptor was opened for this read */
	bool eof;
	int status; /* argument of posix_judge() */
	struct uring_op op;
	struct thread_job job, note;
	struct statx stx;
};

static inline bool posix_again(unsigned *again, int res)
{
	return (res == -EAGAIN || res == -EINTR) && ++*again <= AGAIN_MAX;
}

/* -- posix_file.c ---------------------------------------------------------- */

/* If the file is open, gives the read its descriptor and returns true.
 * Otherwise the read waits, and posix_file.c calls posix_read_begin() or
 * posix_read_fail() for it, unless the read is abandoned. */
bool posix_file_get(struct posix_read *pr);

/* Requires the lock. Take a waiting read out of the list. If no other read
 * waits for the opening, returns the operation of the opening. The caller
 * cancels this operation without the lock; the read keeps it alive. */
struct uring_op *posix_file_unwait(struct posix_read *pr);

/* Note that the file has refused direct I/O: its next opening does without. */
void posix_file_refuses_direct(struct origin_file *f);

/* Note that direct I/O has worked for the file. */
void posix_file_takes_direct(struct origin_file *f);

/* Requires the lock. Drop a reference. */
void posix_file_put(struct origin_file *f);
void posix_descriptor_put(struct posix *p, struct descriptor *d);

/* Requires the lock. Have the next read open the file again. */
void posix_file_forget(struct origin_file *f, struct descriptor *d);

/* -- posix_buffer.c -------------------------------------------------------- */

/*
 * Get a buffer for the read. Returns 0, -ENOMEM, or -EINPROGRESS if the read
 * has to wait for the buffer of another one.
 */
int posix_buffer_get(struct posix_read *pr);

/* Requires the lock. Return a buffer. If a read waited for one, it gets this
 * buffer, and is returned; otherwise NULL. */
struct posix_read *posix_buffer_put(struct posix *p, struct read_buffer *b);

/* -- posix_read.c ---------------------------------------------------------- */

/* Start to read. The read has its descriptor. */
void posix_read_begin(struct posix_read *pr);

/* Returns the time to wait until a version has settled: at most 100 ms, and 0
 * for a version far in the future, for which waiting would not help. */
int64_t posix_unsettled_ns(int64_t mtime_ns);

/* Answer with an error, on another thread. */
void posix_read_fail(struct posix_read *pr, int status);

#endif
