/* SPDX-License-Identifier: MIT */
/*
 * The posix origin's reads. A read waits for its version to be settled, for its
 * file to be open and for a buffer, reads until it has its range, looks at the
 * file's version *after* that, and answers. The steps run on threads of the
 * ring; starts and abandons come from any thread.
 *
 * A file, under the origin's lock:
 *
 *   closed --first read--> opening --descriptor--> open
 *     ^  ^----- error -------'                      |
 *     '-- version differs, or no O_DIRECT after all-'
 *
 * The descriptor has its own count, so that reads that still use one that was
 * given up go on undisturbed. A read belongs to the origin, not to the request:
 * a request that is abandoned is answered and forgotten, and the read ends
 * when the kernel says so, with its buffer.
 */
#include "origin/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* Direct reads are widened to this; no file system is known to want more. */
#define ALIGN_BYTES ((size_t)4096)
#define BUFFER_BYTES (ORIGIN_READ_MAX_BYTES + 2 * ALIGN_BYTES)
/* Reads in progress at most, hung and abandoned ones included. */
#define BUFFERS_MAX 512
/* Unused buffers that are kept. */
#define SPARES_MAX 32
/* How often one step is done over when the kernel says EAGAIN and the like. */
#define AGAIN_MAX 16

/*
 * No read begins while the version that it wants is younger than this. write(2)
 * sets the mtime *before* it copies the bytes: a version that was seen while a
 * write was under way is current, before the read and after it, although its
 * bytes are still changing. Once the mtime is old, the write that set it is
 * over, and any other gives the file another mtime before it changes a byte.
 *
 * What this cannot see: a single write that lasts longer than this; stores
 * through a shared mapping (their mtime is that of the first to each page since
 * it was last written back); size and mtime put back exactly after a change;
 * and a server whose clock differs from ours by more than this.
 */
#define SETTLE_NS ((int64_t)(100 * NS_PER_MS))

struct buffer {
	struct list node; /* origin lock: spare */
	char *bytes;	  /* mapped, BUFFER_BYTES */
};

struct descriptor {
	unsigned refs; /* origin lock */
	int fd;	       /* this and the rest set once */
	unsigned turn; /* of the root that it was opened beneath, or earlier */
	bool direct;
	struct pool_job close_job;
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
	struct buffer *buf;
	unsigned again, rounds;
	bool fresh; /* the descriptor was opened for this read */
	bool eof;
	int status; /* for the judge */
	struct uring_op op;
	struct pool_job job, note;
	struct statx stx;
};

static void start(struct posix_read *pr);

/* -- Descriptors and files ----------------------------------------------- */

static void close_now(struct pool_job *job)
{
	struct descriptor *d = CONTAINER_OF(job, struct descriptor, close_job);

	/* What we fetched is cached by the tiers, not here (a hint). */
	if (!d->direct)
		(void)posix_fadvise(d->fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(d->fd); /* read only: nothing was lost */
	free(d);
}

/* Lock held. Closing can take a while on network storage. */
static void descriptor_put(struct posix *p, struct descriptor *d)
{
	if (!d || --d->refs > 0)
		return;
	d->close_job.run = close_now;
	pool_submit(p->pool, &d->close_job);
}

/* Lock held. */
static void file_put(struct origin_file *f)
{
	if (--f->refs > 0)
		return;
	descriptor_put(f->p, f->open);
	free(f);
}

/* Lock held: the next read is to open the file anew. */
static void file_forget(struct origin_file *f, struct descriptor *d)
{
	if (f->state != FILE_OPEN || f->open != d)
		return;
	f->state = FILE_CLOSED;
	f->open = NULL;
	descriptor_put(f->p, d);
}

struct origin_file *posix_file_new(struct origin *o, const char *path)
{
	size_t size = strlen(path) + 1;
	struct origin_file *f = calloc(1, sizeof(*f) + size);

	if (!f)
		return NULL;
	f->p = (struct posix *)(void *)o;
	f->refs = 1;
	f->bad = beneath_check(path);
	list_init(&f->waiting);
	memcpy(f->path, path, size);
	return f;
}

void posix_file_free(struct origin *o, struct origin_file *f)
{
	struct posix *p = (struct posix *)(void *)o;
	LOCK_SCOPE(&p->lock);

	file_put(f);
}

/* -- Buffers --------------------------------------------------------------- */

static void buffer_free(struct buffer *b)
{
	if (!b)
		return;
	if (b->bytes)
		(void)munmap(b->bytes, BUFFER_BYTES); /* ours: cannot fail */
	free(b);
}

/* Mapped: aligned, and no page is used before a read needs it. */
static struct buffer *buffer_new(void)
{
	struct buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->bytes = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->bytes == MAP_FAILED) {
		free(b);
		return NULL;
	}
	return b;
}

/*
 * A buffer for the read: 0, or -ENOMEM, or -EINPROGRESS when it has to wait
 * for another's.
 */
static int buffer_get(struct posix_read *pr)
{
	struct posix *p = pr->p;
	LOCK_SCOPE(&p->lock);

	if (!list_empty(&p->spare)) {
		pr->buf = CONTAINER_OF(p->spare.next, struct buffer, node);
		list_del(&pr->buf->node);
		p->spares--;
		return 0;
	}
	if (p->buffers == BUFFERS_MAX) {
		list_add_tail(&p->waiting, &pr->node);
		return -EINPROGRESS;
	}
	pr->buf = buffer_new();
	if (!pr->buf)
		return -ENOMEM;
	p->buffers++;
	return 0;
}

/* Lock held. Returns a read that waited and has the buffer now, or NULL. */
static struct posix_read *buffer_put(struct posix *p, struct buffer *b)
{
	struct posix_read *next;

	if (!b)
		return NULL;
	if (!list_empty(&p->waiting)) {
		next = CONTAINER_OF(p->waiting.next, struct posix_read, node);
		list_del(&next->node);
		next->buf = b;
		return next;
	}
	if (p->spares < SPARES_MAX) {
		p->spares++;
		list_add_tail(&p->spare, &b->node);
		return NULL;
	}
	p->buffers--;
	buffer_free(b);
	return NULL;
}

void posix_free_buffers(struct posix *p)
{
	LIST_FOREACH_SAFE(pos, tmp, &p->spare)
		buffer_free(CONTAINER_OF(pos, struct buffer, node));
}

/* -- Answers --------------------------------------------------------------- */

static void read_more(struct posix_read *pr);

static void put(struct posix_read *pr)
{
	struct posix *p = pr->p;
	struct posix_read *next = NULL;

	pthread_mutex_lock(&p->lock);
	if (--pr->refs > 0) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	next = buffer_put(p, pr->buf);
	descriptor_put(p, pr->d);
	file_put(pr->f);
	pthread_mutex_unlock(&p->lock);
	free(pr);
	if (next)
		read_more(next);
}

static void answer(struct posix_read *pr, int status, const void *data)
{
	struct origin_read *r;

	pthread_mutex_lock(&pr->p->lock);
	r = pr->r;
	pr->r = NULL;
	if (r)
		r->priv = NULL;
	pthread_mutex_unlock(&pr->p->lock);
	if (r)
		r->done(r, status, data);
	put(pr);
}

static void run_judge(struct pool_job *job)
{
	struct posix_read *pr = CONTAINER_OF(job, struct posix_read, job);

	answer(pr, posix_judge(pr->p, pr->turn, pr->status), NULL);
}

/*
 * Answer with an error. One that says that the file is gone is believed only
 * if the source is there, and looking at that can block.
 */
static void fail(struct posix_read *pr, int status)
{
	bool gone = status == -ENOENT || status == -ENOTDIR ||
		status == -ELOOP || status == -ESTALE;

	pr->status = gone ? -ESTALE : status;
	pr->job.run = run_judge;
	pool_submit(pr->p->pool, &pr->job);
}

/* -- The steps ------------------------------------------------------------- */

static bool try_again(unsigned *again, int res)
{
	return (res == -EAGAIN || res == -EINTR) && ++*again <= AGAIN_MAX;
}

static bool abandoned(struct posix_read *pr)
{
	LOCK_SCOPE(&pr->p->lock);

	return !pr->r;
}

/* Give up the descriptor, and begin anew with another. */
static void reopen(struct posix_read *pr)
{
	pthread_mutex_lock(&pr->p->lock);
	file_forget(pr->f, pr->d);
	descriptor_put(pr->p, pr->d);
	pr->d = NULL;
	pthread_mutex_unlock(&pr->p->lock);
	start(pr);
}

/* The descriptor shows another version than was asked for. */
static void mismatch(struct posix_read *pr)
{
	if (!pr->fresh && ++pr->rounds <= 2)
		reopen(pr); /* it is of before the file was replaced */
	else {
		pthread_mutex_lock(&pr->p->lock);
		file_forget(pr->f, pr->d);
		pthread_mutex_unlock(&pr->p->lock);
		fail(pr, -ESTALE);
	}
}

static void on_statx(struct uring_op *op, int res)
{
	struct posix_read *pr = CONTAINER_OF(op, struct posix_read, op);
	struct file_version now = {
		.size_bytes = pr->stx.stx_size,
		.mtime_ns = pr->stx.stx_mtime.tv_sec * (int64_t)NS_PER_S +
			pr->stx.stx_mtime.tv_nsec,
	};

	if (try_again(&pr->again, res))
		uring_statx(pr->p->ring, &pr->op, pr->d->fd, &pr->stx);
	else if (res == -ESTALE)
		mismatch(pr);
	else if (res < 0)
		fail(pr, res);
	else if (!S_ISREG(pr->stx.stx_mode) || !version_equal(now, pr->want))
		mismatch(pr);
	else if (pr->eof)
		fail(pr, -EIO);
	else
		answer(pr, (int)pr->len,
			pr->buf->bytes + (pr->off - pr->start));
}

static bool have_all(const struct posix_read *pr)
{
	return pr->start + pr->got >= pr->off + pr->len;
}

/*
 * Account for `n` bytes. Short reads are continued, where O_DIRECT is aligned;
 * no progress is the end of the file.
 */
static void got_bytes(struct posix_read *pr, size_t n)
{
	size_t before = pr->got;

	pr->got += n;
	if (!have_all(pr)) {
		if (pr->d->direct)
			pr->got &= ~(ALIGN_BYTES - 1);
		pr->eof = pr->got == before;
	}
	if (!have_all(pr) && !pr->eof) {
		read_more(pr);
		return;
	}
	pr->op.done = on_statx;
	uring_statx(pr->p->ring, &pr->op, pr->d->fd, &pr->stx);
}

static void on_read(struct uring_op *op, int res)
{
	struct posix_read *pr = CONTAINER_OF(op, struct posix_read, op);

	if (res >= 0)
		got_bytes(pr, (size_t)res);
	else if (try_again(&pr->again, res))
		read_more(pr);
	else if (res == -EINVAL && pr->d->direct) {
		atomic_store_explicit(
			&pr->p->direct, false, memory_order_relaxed);
		reopen(pr);
	} else if (res == -ESTALE)
		mismatch(pr);
	else
		fail(pr, res == -EISDIR ? -ESTALE : res);
}

/* The descriptor and the buffer are there. */
static void read_more(struct posix_read *pr)
{
	uint64_t end = pr->off + pr->len;

	if (abandoned(pr)) {
		put(pr);
		return;
	}
	if (pr->d->direct)
		end = (end + ALIGN_BYTES - 1) & ~(uint64_t)(ALIGN_BYTES - 1);
	pr->op.done = on_read;
	uring_read(pr->p->ring, &pr->op, pr->d->fd, pr->buf->bytes + pr->got,
		(size_t)(end - pr->start) - pr->got, pr->start + pr->got);
}

/* The descriptor is there. */
static void begin(struct posix_read *pr)
{
	int rc = 0;

	pr->got = 0;
	pr->eof = false;
	pr->start = pr->off;
	if (pr->d->direct)
		pr->start &= ~(uint64_t)(ALIGN_BYTES - 1);
	if (!pr->buf)
		rc = buffer_get(pr);
	if (rc == 0)
		read_more(pr);
	else if (rc != -EINPROGRESS)
		fail(pr, rc);
}

static void open_now(struct origin_file *f)
{
	int flags = O_RDONLY | O_NOCTTY;

	f->turn = posix_root_turn(f->p);
	f->direct = atomic_load_explicit(&f->p->direct, memory_order_relaxed);
	if (f->direct)
		flags |= O_DIRECT;
	uring_open(f->p->ring, &f->op, f->p->root_fd, f->path, flags);
}

static struct descriptor *descriptor_new(struct origin_file *f, int fd)
{
	struct descriptor *d = calloc(1, sizeof(*d));

	if (!d) {
		(void)close(fd); /* nothing was read */
		return NULL;
	}
	d->fd = fd;
	d->turn = f->turn;
	d->direct = f->direct;
	d->refs = 1;
	return d;
}

/* The end of opening: all who waited go on, with `d` or the error. */
static void opened(struct origin_file *f, struct descriptor *d, int rc)
{
	struct posix *p = f->p;
	struct list ready;

	list_init(&ready);
	pthread_mutex_lock(&p->lock);
	f->state = d ? FILE_OPEN : FILE_CLOSED;
	f->open = d;
	while (!list_empty(&f->waiting)) {
		struct posix_read *pr =
			CONTAINER_OF(f->waiting.next, struct posix_read, node);

		list_del(&pr->node);
		pr->fresh = true;
		pr->d = d;
		if (d)
			d->refs++;
		/* Nobody else looks at a read that waits for nothing. */
		list_add_tail(&ready, &pr->op.node);
	}
	file_put(f);
	pthread_mutex_unlock(&p->lock);
	while (!list_empty(&ready)) {
		struct posix_read *pr =
			CONTAINER_OF(ready.next, struct posix_read, op.node);

		list_del(&pr->op.node);
		if (d)
			begin(pr);
		else
			fail(pr, rc);
	}
}

/* Cancelled for want of readers, but there is one by now. */
static bool wanted_after_all(struct origin_file *f, int res)
{
	LOCK_SCOPE(&f->p->lock);

	if ((res != -ECANCELED && res != -EINTR) || list_empty(&f->waiting))
		return false;
	atomic_store_explicit(&f->op.cancelled, false, memory_order_relaxed);
	return true;
}

static void on_open(struct uring_op *op, int res)
{
	struct origin_file *f = CONTAINER_OF(op, struct origin_file, op);
	struct descriptor *d = NULL;

	if (res == -EINVAL && f->direct) {
		atomic_store_explicit(
			&f->p->direct, false, memory_order_relaxed);
		open_now(f);
		return;
	}
	if (try_again(&f->again, res) || wanted_after_all(f, res)) {
		open_now(f);
		return;
	}
	if (res >= 0) {
		d = descriptor_new(f, res);
		res = -ENOMEM;
	}
	opened(f, d, res);
}

/* True when the file is open and the read has its descriptor. */
static bool want_descriptor(struct posix_read *pr, bool *open_it)
{
	struct origin_file *f = pr->f;
	LOCK_SCOPE(&pr->p->lock);

	*open_it = false;
	/* None of a source that went away and came back. */
	if (f->state == FILE_OPEN && f->open->turn != pr->p->root_turn)
		file_forget(f, f->open);
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
		memset(&f->op, 0, sizeof(f->op));
		f->op.done = on_open;
		*open_it = true;
	}
	return false;
}

static void start(struct posix_read *pr)
{
	struct origin_file *f = pr->f; /* pr may be abandoned from here on */
	bool open_it;

	if (f->bad)
		fail(pr, f->bad);
	else if (want_descriptor(pr, &open_it))
		begin(pr);
	else if (open_it)
		open_now(f);
}

static void on_settled(struct timer *t)
{
	start(CONTAINER_OF(t, struct posix_read, settle));
}

/*
 * How long to wait for a version to be settled: at most SETTLE_NS, and not at
 * all for one of a far future, where waiting would show nothing.
 */
static int64_t unsettled_ns(int64_t mtime_ns)
{
	struct timespec ts;
	int64_t age_ns;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	if (__builtin_sub_overflow(ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec,
		    mtime_ns, &age_ns))
		return 0;
	if (age_ns >= SETTLE_NS || age_ns <= -SETTLE_NS)
		return 0;
	return age_ns > 0 ? SETTLE_NS - age_ns : SETTLE_NS;
}

void posix_read(struct origin *o, struct origin_read *r)
{
	struct posix *p = (struct posix *)(void *)o;
	struct posix_read *pr = calloc(1, sizeof(*pr));
	int64_t wait_ns = unsettled_ns(r->want.mtime_ns);
	int rc = 0;

	if (!pr) {
		late_read(p->late, r);
		return;
	}
	pr->p = p;
	pr->refs = 1;
	pr->r = r;
	pr->f = r->file;
	pr->want = r->want;
	pr->off = r->off;
	pr->len = r->len;
	pr->settle.fire = on_settled;
	list_init(&pr->node);
	pthread_mutex_lock(&p->lock);
	r->priv = pr;
	pr->turn = p->root_turn;
	pr->f->refs++;
	if (wait_ns > 0)
		rc = timer_set(p->timers, &pr->settle,
			clock_now_ns() + (uint64_t)wait_ns);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		fail(pr, rc);
	else if (wait_ns <= 0)
		start(pr);
}

/* -- Giving up ------------------------------------------------------------- */

static void run_note(struct pool_job *job)
{
	struct posix_read *pr = CONTAINER_OF(job, struct posix_read, note);

	pr->dropped->done(pr->dropped, -ECANCELED, NULL);
	put(pr);
}

/*
 * Lock held. Detach the request from its read; true if the read only waited,
 * so that its steps end here.
 */
static bool detach(struct posix_read *pr)
{
	struct origin_file *f = pr->f;

	pr->dropped = pr->r;
	pr->r->priv = NULL;
	pr->r = NULL;
	pr->refs++;
	if (timer_cancel(f->p->timers, &pr->settle))
		return true;
	if (list_empty(&pr->node))
		return false;
	list_del(&pr->node);
	if (f->state == FILE_OPENING && list_empty(&f->waiting))
		uring_cancel(f->p->ring, &f->op);
	return true;
}

void posix_abandon(struct origin *o, struct origin_read *r)
{
	struct posix *p = (struct posix *)(void *)o;
	struct posix_read *pr;
	bool waited;

	if (late_has_read(p->late, r))
		return;
	pthread_mutex_lock(&p->lock);
	pr = r->priv;
	if (!pr) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	waited = detach(pr);
	pr->note.run = run_note;
	if (!waited)
		uring_cancel(p->ring, &pr->op);
	pthread_mutex_unlock(&p->lock);
	if (waited)
		put(pr);
	late_run(p->late, &pr->note);
}
