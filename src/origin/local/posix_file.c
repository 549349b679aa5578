/* SPDX-License-Identifier: MIT */
/*
 * The files of the posix origin: opened by their first read, closed when no
 * read uses them. Openings end on threads of the ring. Closings are jobs of the
 * pool, because they can take a while on network storage.
 *
 * A file, under the origin's lock:
 *
 *   closed --first read--> opening --descriptor--> open
 *     ^  ^----- error -------'                      |
 *     |-- version differs, or direct I/O refused ---|
 *     '-- the source went away and came back -------'
 *
 * A descriptor has its own reference count, so reads that still use an old
 * descriptor of the file are not disturbed.
 */
#include "origin/local/posix_read_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

static void close_now(struct thread_job *job)
{
	struct descriptor *d = CONTAINER_OF(job, struct descriptor, close_job);

	/* The tiers cache the bytes, so the kernel need not cache them as well.
	 * This is a hint. */
	if (!d->direct)
		(void)posix_fadvise(d->fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(d->fd); /* cannot lose data: the file was only read */
	free(d);
}

static void posix_file_on_close(struct uring_op *op, int res)
{
	(void)res; /* cannot lose data: the file was only read */
	free(CONTAINER_OF(op, struct descriptor, close_op));
}

/* Requires the lock. Drop a reference. The ring closes a local file, mostly on
 * the thread that has just read it. The pool closes others, because that can
 * take a while on network storage. */
void posix_descriptor_put(struct posix *p, struct descriptor *d)
{
	ASSERT_HELD(&p->lock);
	if (!d || --d->refs > 0)
		return;
	if (p->ring_closes && d->direct && !d->far) {
		d->close_op.done = posix_file_on_close;
		uring_close(p->ring, &d->close_op, d->fd);
		return;
	}
	thread_job_init(&d->close_job, close_now);
	thread_pool_submit(p->closer, &d->close_job);
}

void posix_file_put(struct origin_file *f)
{
	ASSERT_HELD(&f->p->lock);
	if (--f->refs > 0)
		return;
	posix_descriptor_put(f->p, f->open);
	free(f);
}

/* Requires the lock. Have the next read open the file again. */
void posix_file_forget(struct origin_file *f, struct descriptor *d)
{
	ASSERT_HELD(&f->p->lock);
	if (f->state != FILE_OPEN || f->open != d)
		return;
	f->state = FILE_CLOSED;
	f->open = NULL;
	posix_descriptor_put(f->p, d);
}

struct origin_file *posix_file_new(struct origin *o, const char *path)
{
	size_t size = strlen(path) + 1;
	struct origin_file *f = calloc(1, sizeof(*f) + size);

	if (!f)
		return NULL;
	f->p = OBJECT(posix, o);
	f->refs = 1;
	f->bad = beneath_check(path);
	list_init(&f->waiting);
	memcpy(f->path, path, size);
	return f;
}

void posix_file_free(struct origin *o, struct origin_file *f)
{
	struct posix *p = OBJECT(posix, o);
	LOCK_SCOPE(&p->lock);

	posix_file_put(f);
}

/*
 * -- Direct I/O -----------------------------------------------------------
 *
 * Each file is opened for direct I/O, so that its pages do not push others out
 * of memory. If the kernel says that the file does not support direct I/O at
 * our alignment, it is read through the page cache. Older kernels and some file
 * systems do not say this, but fail reads with EINVAL: in this case the file is
 * opened again without direct I/O. After a number of such files in a row,
 * direct I/O is not tried any more.
 */

/* Linux has this since 6.1. Older headers lack the constant and the two
 * members. */
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x00002000U
#endif
#define DIO_ALIGN_OFFSET 0x98

/* After this many files in a row have refused direct I/O, it is not tried any
 * more. */
#define REFUSED_MAX 8

static bool try_direct(struct posix *p)
{
	return p->direct &&
		atomic_load_explicit(&p->refused, memory_order_relaxed) <
		REFUSED_MAX;
}

/* Properties of an open file that are needed before it is read, as far as the
 * kernel knows them without blocking. */
struct posix_facts {
	bool direct; /* direct I/O works for the file */
	bool far;    /* on another file system than the root */
};

static struct posix_facts posix_file_look(struct posix *p, int fd)
{
	struct posix_facts l = {.direct = true, .far = true};
	struct statx stx = {0};
	uint32_t align[2]; /* alignment of memory and of offsets; 0: no direct
			      I/O */

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_DIOALIGN,
		    &stx))
		return l;
	l.far = makedev(stx.stx_dev_major, stx.stx_dev_minor) !=
		posix_root_dev(p);
	if (!(stx.stx_mask & STATX_DIOALIGN))
		return l;
	memcpy(align, (const char *)&stx + DIO_ALIGN_OFFSET, sizeof(align));
	l.direct = align[0] > 0 && align[0] <= ALIGN_BYTES && align[1] > 0 &&
		align[1] <= ALIGN_BYTES && ALIGN_BYTES % align[1] == 0;
	return l;
}

/* Turn off direct I/O for the descriptor. Returns true if that worked. */
static bool stop_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	/* If fcntl() fails, reads of the file fail with EINVAL, which is
	 * handled there. */
	return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

void posix_file_refuses_direct(struct origin_file *f)
{
	LOCK_SCOPE(&f->p->lock);

	f->buffered = true;
	atomic_fetch_add_explicit(&f->p->refused, 1, memory_order_relaxed);
}

void posix_file_takes_direct(struct origin_file *f)
{
	if (atomic_load_explicit(&f->p->refused, memory_order_relaxed) > 0)
		atomic_store_explicit(&f->p->refused, 0, memory_order_relaxed);
}

/* -- Opening ----------------------------------------------------------- */

static bool wants_direct(struct origin_file *f)
{
	LOCK_SCOPE(&f->p->lock);

	return !f->buffered && try_direct(f->p);
}

static void open_now(struct origin_file *f)
{
	int flags = O_RDONLY | O_NOCTTY | O_NOFOLLOW;

	f->turn = posix_root_turn(f->p);
	f->direct = wants_direct(f);
	if (f->direct)
		flags |= O_DIRECT;
	uring_open(f->p->ring, &f->op, f->p->root_fd, f->path, flags);
}

static struct descriptor *descriptor_new(struct origin_file *f, int fd)
{
	struct descriptor *d = calloc(1, sizeof(*d));
	struct posix_facts l;

	if (!d) {
		/* cannot lose data: nothing was read or written */
		(void)close(fd);
		return NULL;
	}
	d->fd = fd;
	d->turn = f->turn;
	l = posix_file_look(f->p, fd);
	d->far = l.far;
	d->direct = f->direct && (l.direct || !stop_direct(fd));
	d->refs = 1;
	return d;
}

/* Requires the lock. Must the file be opened again, because the opening was
 * cancelled? An opening is cancelled when no read waits for it. But another
 * read may have come since, or the cancel was meant for an earlier opening. */
static bool wanted_after_all(struct origin_file *f, int res)
{
	ASSERT_HELD(&f->p->lock);
	if ((res != -ECANCELED && res != -EINTR) || list_empty(&f->waiting))
		return false;
	atomic_store_explicit(&f->op.cancelled, false, memory_order_relaxed);
	return true;
}

/* Handle the end of opening: all waiting reads continue with `d` or the error.
 */
static void opened(struct origin_file *f, struct descriptor *d, int rc)
{
	struct posix *p = f->p;
	struct list ready;

	list_init(&ready);
	pthread_mutex_lock(&p->lock);
	if (wanted_after_all(f, rc)) {
		pthread_mutex_unlock(&p->lock);
		open_now(f);
		return;
	}
	f->state = d ? FILE_OPEN : FILE_CLOSED;
	f->open = d;
	while (!list_empty(&f->waiting)) {
		struct posix_read *pr =
			LIST_FIRST(&f->waiting, struct posix_read, node);

		list_del(&pr->node);
		pr->fresh = true;
		pr->d = d;
		if (d)
			d->refs++;
		/* Use the list node of the read's operation, which is free: the
		 * read has no operation in flight. */
		list_add_tail(&ready, &pr->op.node);
	}
	posix_file_put(f);
	pthread_mutex_unlock(&p->lock);
	while (!list_empty(&ready)) {
		struct posix_read *pr =
			LIST_FIRST(&ready, struct posix_read, op.node);

		list_del(&pr->op.node);
		if (d)
			posix_read_begin(pr);
		else
			posix_read_fail(pr, rc);
	}
}

static void posix_file_on_open(struct uring_op *op, int res)
{
	struct origin_file *f = CONTAINER_OF(op, struct origin_file, op);
	struct descriptor *d = NULL;

	if (res == -EINVAL && f->direct) {
		posix_file_refuses_direct(f);
		open_now(f);
		return;
	}
	if (posix_again(&f->again, res)) {
		open_now(f);
		return;
	}
	if (res >= 0) {
		d = descriptor_new(f, res);
		res = -ENOMEM;
	}
	opened(f, d, res);
}

/* If the file is open, gives the read its descriptor and returns true. */
static bool want_descriptor(struct posix_read *pr, bool *open_it)
{
	struct origin_file *f = pr->f;
	LOCK_SCOPE(&pr->p->lock);

	*open_it = false;
	/* The descriptor may be from before the source went away and came back:
	 * do not use it. */
	if (f->state == FILE_OPEN && f->open->turn != pr->p->root_turn)
		posix_file_forget(f, f->open);
	if (f->state == FILE_OPEN) {
		pr->fresh = false;
		pr->d = f->open;
		pr->d->refs++;
		return true;
	}
	list_add_tail(&f->waiting, &pr->node);
	if (f->state == FILE_CLOSED) {
		f->state = FILE_OPENING;
		f->refs++;
		f->again = 0;
		atomic_store_explicit(
			&f->op.cancelled, false, memory_order_relaxed);
		f->op.done = posix_file_on_open;
		*open_it = true;
	}
	return false;
}

bool posix_file_get(struct posix_read *pr)
{
	/* use only f from here on, because pr may be abandoned */
	struct origin_file *f = pr->f;
	bool open_it;

	if (want_descriptor(pr, &open_it))
		return true;
	if (open_it)
		open_now(f);
	return false;
}

struct uring_op *posix_file_unwait(struct posix_read *pr)
{
	struct origin_file *f = pr->f;

	ASSERT_HELD(&f->p->lock);
	list_del(&pr->node);
	return f->state == FILE_OPENING && list_empty(&f->waiting) ? &f->op
								   : NULL;
}
