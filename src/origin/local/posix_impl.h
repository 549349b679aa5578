/* SPDX-License-Identifier: MIT */
/* Shared by the files of the posix origin; private to them. */
#ifndef LOCAL_POSIX_IMPL_H
#define LOCAL_POSIX_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/base/magic.h"
#include "common/base/thread_pool.h"
#include "common/base/uring.h"
#include "origin/local/late_answers.h"
#include "origin/origin.h"

struct stat;
struct statx;

/* The identity of a source, by which it is recognised when it comes back. */
struct posix_root {
	dev_t dev;
	ino_t ino;
	long fs_type; /* from statfs() */
};

struct posix {
	struct origin base;
	uint32_t magic;
	char *dir;   /* set once: absolute */
	int root_fd; /* set once, O_PATH; posix_root.c may replace its target */
	struct uring *ring;	    /* reads */
	struct thread_pool *closer; /* lock: its jobs close files */
	/* its jobs are stats, lists and checks of the root */
	struct thread_pool *pool;
	struct late *late;
	struct timers *timers; /* reads that wait to begin */
	bool direct;	       /* set once: try direct I/O at all */
	/* relaxed, a hint: how many files in a row refused direct I/O */
	_Atomic unsigned refused;
	pthread_mutex_t lock;	/* rank: above the ring's, pools', timers' */
	struct posix_root root; /* lock: identity of root_fd */
	unsigned root_turn;	/* lock: how often the root was replaced */
	bool absent;		/* lock: the root has never been seen */
	struct list waiting;	/* lock: reads that wait for a buffer */
	struct list spare;	/* lock: unused buffers, newest first */
	unsigned buffers;	/* lock: number of all buffers */
	unsigned spares;	/* lock: length of `spare` */
};

/* Returns -errno, with the reason in err. Call posix_root_close() even then. */
int posix_root_open(struct posix *p, const char *dir, struct error *err);
/* Like posix_root_open(), without accessing the directory: posix_judge() opens
 * it. */
int posix_root_open_later(struct posix *p, const char *dir, struct error *err);
void posix_root_close(struct posix *p);

/* Is the source on a file system that asks a server or a process for its data?
 * True if it has never been seen. */
bool posix_root_is_far(const struct posix *p);

/* How often the source came back; pass it to posix_judge(). */
unsigned posix_root_turn(struct posix *p);

/* The device that the source is on. */
dev_t posix_root_dev(struct posix *p);

/* Check an answer or failure that was obtained since `turn`. Returns `code` if
 * the source was there all the time, else -EIO: a source that went away has not
 * deleted its files, and one that came back must be asked again. Blocks. */
int posix_judge(struct posix *p, unsigned turn, int code);

struct origin_file *posix_file_new(struct origin *o, const char *path);
void posix_file_free(struct origin *o, struct origin_file *f);
void posix_read(struct posix *p, struct origin_read *r);
void posix_abandon(struct origin *o, struct origin_read *r);
/* Handle a stat or a list. */
void posix_look(struct posix *p, struct origin_request *q);

/* Unmap the spare buffers. No read may be in progress. */
void posix_free_buffers(struct posix *p);

#endif
