/* SPDX-License-Identifier: MIT */
/* The structs and functions of the files of the posix origin. */
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

/* The identity of a source. It shows whether the directory at the path is the
 * same source as before. */
struct posix_root {
	dev_t dev;
	ino_t ino;
	long fs_type; /* from statfs() */
};

struct posix {
	struct origin base;
	uint32_t magic;
	char *dir; /* absolute path; set once */
	/* set once, O_PATH; posix_root.c may make the number stand for another
	 * directory */
	int root_fd;
	struct uring *ring; /* runs reads */
	/* its jobs close files; guarded by the lock */
	struct thread_pool *closer;
	/* the ring closes local files; guarded by the lock */
	bool ring_closes;
	/* its jobs are stats, lists and checks of the root */
	struct thread_pool *pool;
	struct late *late;
	struct timers *timers; /* for reads that wait before they begin */
	bool direct;	       /* direct I/O may be tried; set once */
	bool local;	       /* posix_root_is_local(); set once */
	bool in_memory;	       /* posix_root_is_in_memory(); set once */
	/* how many files in a row refused direct I/O; a hint, relaxed */
	_Atomic unsigned refused;
	/* taken before the locks of ring, pools and timers */
	pthread_mutex_t lock;
	struct posix_root root; /* guarded by lock: the identity of root_fd */
	/* guarded by lock: how often the root was replaced */
	unsigned root_turn;
	bool absent;	     /* guarded by lock: the root has never answered */
	struct list waiting; /* guarded by lock: reads that wait for a buffer */
	struct list spare;   /* guarded by lock: unused buffers, newest first */
	unsigned buffers;    /* guarded by lock: number of all buffers */
	unsigned spares;     /* guarded by lock: length of `spare` */
};

/* Open the root. Returns 0, or -errno with the reason in err. Call
 * posix_root_close() even after a failure. */
int posix_root_open(struct posix *p, const char *dir, struct error *err);
/* Like posix_root_open(), but does not access the directory; posix_judge()
 * opens it later. */
int posix_root_open_later(struct posix *p, const char *dir, struct error *err);
void posix_root_close(struct posix *p);

/* Is the source on a file system that asks a server or a process for its data?
 * Returns true if the source has never answered. */
bool posix_root_is_far(const struct posix *p);

/* Is the source on a file system of which it is known that attributes of an
 * open file, and its closing, wait for nobody? A cluster file system is not,
 * nor one that stands on others, which may be those of a server. */
bool posix_root_is_local(const struct posix *p);

/* Is the source on a file system in memory, which never waits? */
bool posix_root_is_in_memory(const struct posix *p);

/* Returns how often the source came back. Pass this to posix_judge(). */
unsigned posix_root_turn(struct posix *p);

/* Returns the device of the source. */
dev_t posix_root_dev(struct posix *p);

/* Check an answer or failure that was obtained since `turn`. Returns `code` if
 * the source was there all the time. Otherwise returns -EIO: if a source went
 * away, this does not mean that its files were deleted, and one that came back
 * must be asked again. Blocks. */
int posix_judge(struct posix *p, unsigned turn, int code);

struct origin_file *posix_file_new(struct origin *o, const char *path);
void posix_file_free(struct origin *o, struct origin_file *f);
void posix_read(struct posix *p, struct origin_read *r);
void posix_abandon(struct origin *o, struct origin_read *r);
int posix_read_now(struct origin *o, const struct origin_read *r, void *bytes);
/* Handle a stat or a list. */
void posix_look(struct posix *p, struct origin_request *q);

/* Unmap the spare buffers. No read may be in progress. */
void posix_free_buffers(struct posix *p);

#endif
