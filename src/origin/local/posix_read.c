/* SPDX-License-Identifier: MIT */
/*
 * The posix origin's reads. A read waits until its version has settled, its
 * file is open and a buffer is free. Then it reads its range, checks the file's
 * version *after* that, and answers. The steps run on threads of the ring;
 * starts and abandons come from any thread.
 *
 *   settling --old enough--> opening --> buffer --> reading --> looking
 *      |                       ^  ^-- another version, once --'   |
 *      '-- is old enough ------'                                  v
 *    abandoned: answered at once; the steps go on              answered
 *
 * A read belongs to the origin, not to the request. If the request is
 * abandoned, it is answered at once. Its read ends, and frees its buffer, when
 * the kernel has completed it.
 */
#include "origin/local/posix_read_impl.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

/*
 * No read begins while the version that it wants is younger than this. write(2)
 * sets the mtime *before* it copies the bytes. So a version that was seen
 * during a write is current before the read and after it, although its bytes
 * are still changing. Once the mtime is older than this, the write that set it
 * is over, and any other write gives the file another mtime before it changes a
 * byte.
 *
 * This cannot detect a single write that lasts longer than SETTLE_NS; stores
 * through a shared mapping (their mtime is that of the first store to each page
 * since the page was last written back); a change after which size and mtime
 * are restored exactly; or a server whose clock differs from ours by more than
 * SETTLE_NS.
 */
#define SETTLE_NS ((int64_t)(100 * NS_PER_MS))

static void posix_read_start(struct posix_read *pr);

/* -- Answers --------------------------------------------------------------- */

static void posix_read_read_more(struct posix_read *pr);

static void posix_read_put(struct posix_read *pr)
{
	struct posix *p = pr->p;
	struct posix_read *next = NULL;

	pthread_mutex_lock(&p->lock);
	if (--pr->refs > 0) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	next = posix_buffer_put(p, pr->buf);
	posix_descriptor_put(p, pr->d);
	posix_file_put(pr->f);
	pthread_mutex_unlock(&p->lock);
	free(pr);
	if (next)
		posix_read_read_more(next);
}

/* Returns the number of requested bytes that are in the buffer. */
static size_t have_bytes(const struct posix_read *pr)
{
	uint64_t end = pr->start + pr->got;

	if (end <= pr->off)
		return 0;
	return end - pr->off < pr->len ? (size_t)(end - pr->off) : pr->len;
}

/* Answer with an error, or with the requested bytes, which must all be in the
 * buffer. */
static void posix_read_answer(struct posix_read *pr, int status)
{
	struct origin_read *r;

	pthread_mutex_lock(&pr->p->lock);
	r = pr->r;
	pr->r = NULL;
	if (r) {
		r->req.priv = NULL;
		r->lost_bytes = status < 0 ? have_bytes(pr) : 0;
	}
	pthread_mutex_unlock(&pr->p->lock);
	if (r && status == 0)
		r->data(r, pr->off, pr->buf->bytes + (pr->off - pr->start),
			pr->len);
	if (r)
		origin_answer(&r->req, status);
	posix_read_put(pr);
}

static void run_judge(struct thread_job *job)
{
	struct posix_read *pr = CONTAINER_OF(job, struct posix_read, job);

	posix_read_answer(pr, posix_judge(pr->p, pr->turn, pr->status));
}

/* Answer with an error. If the error says that the file is gone, first check
 * that the source is not gone, which can block. */
void posix_read_fail(struct posix_read *pr, int status)
{
	bool gone = status == -ENOENT || status == -ENOTDIR ||
		status == -ELOOP || status == -ESTALE;

	pr->status = gone ? -ESTALE : status;
	thread_job_init(&pr->job, run_judge);
	thread_pool_submit(pr->p->pool, &pr->job);
}

/* -- The steps ------------------------------------------------------------- */

static bool abandoned(struct posix_read *pr)
{
	LOCK_SCOPE(&pr->p->lock);

	return !pr->r;
}

/* Drop the descriptor, and start the read again with a new one. */
static void reopen(struct posix_read *pr)
{
	pthread_mutex_lock(&pr->p->lock);
	posix_file_forget(pr->f, pr->d);
	posix_descriptor_put(pr->p, pr->d);
	pr->d = NULL;
	pthread_mutex_unlock(&pr->p->lock);
	posix_read_start(pr);
}

/* Handle a descriptor whose version is not the requested one. */
static void mismatch(struct posix_read *pr)
{
	if (!pr->fresh && ++pr->rounds <= 2)
		/* the descriptor was opened before the file was replaced */
		reopen(pr);
	else {
		pthread_mutex_lock(&pr->p->lock);
		posix_file_forget(pr->f, pr->d);
		pthread_mutex_unlock(&pr->p->lock);
		posix_read_fail(pr, -ESTALE);
	}
}

static void on_statx(struct uring_op *op, int res)
{
	struct posix_read *pr = CONTAINER_OF(op, struct posix_read, op);
	struct file_version now = {
		.size_bytes = pr->stx.stx_size,
		.mtime_ns = clock_file_ns(
			pr->stx.stx_mtime.tv_sec, pr->stx.stx_mtime.tv_nsec),
	};

	if (posix_again(&pr->again, res))
		uring_statx(pr->p->ring, &pr->op, pr->d->fd, &pr->stx);
	else if (res == -ESTALE)
		mismatch(pr);
	else if (res < 0)
		posix_read_fail(pr, res);
	else if (!S_ISREG(pr->stx.stx_mode) || !version_equal(now, pr->want))
		mismatch(pr);
	else if (pr->eof)
		posix_read_fail(pr, -EIO);
	else
		posix_read_answer(pr, 0);
}

static bool have_all(const struct posix_read *pr)
{
	return pr->start + pr->got >= pr->off + pr->len;
}

/* Add `n` bytes that were read. A short read continues at an offset that is
 * aligned for O_DIRECT; a read of 0 bytes means the end of the file. */
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
		posix_read_read_more(pr);
		return;
	}
	pr->op.done = on_statx;
	/* A ring would pass this call to a thread of the kernel. */
	if (pr->p->local && !pr->d->far)
		on_statx(&pr->op, uring_statx_now(pr->d->fd, &pr->stx));
	else
		uring_statx(pr->p->ring, &pr->op, pr->d->fd, &pr->stx);
}

static void posix_read_on_read(struct uring_op *op, int res)
{
	struct posix_read *pr = CONTAINER_OF(op, struct posix_read, op);

	if (res >= 0 && pr->d->direct)
		posix_file_takes_direct(pr->f);
	if (res >= 0)
		got_bytes(pr, (size_t)res);
	else if (posix_again(&pr->again, res))
		posix_read_read_more(pr);
	else if (res == -EINVAL && pr->d->direct) {
		posix_file_refuses_direct(pr->f);
		reopen(pr);
	} else if (res == -ESTALE)
		mismatch(pr);
	else
		posix_read_fail(pr, res == -EISDIR ? -ESTALE : res);
}

/* Start to read the next bytes of the file. The read has its descriptor and
 * buffer. */
static void posix_read_read_more(struct posix_read *pr)
{
	uint64_t end = pr->off + pr->len;

	if (abandoned(pr)) {
		posix_read_put(pr);
		return;
	}
	if (pr->d->direct)
		end = (end + ALIGN_BYTES - 1) & ~(uint64_t)(ALIGN_BYTES - 1);
	pr->op.done = posix_read_on_read;
	pr->op.blocking = pr->d->far;
	uring_read(pr->p->ring, &pr->op, pr->d->fd, pr->buf->bytes + pr->got,
		(size_t)(end - pr->start) - pr->got, pr->start + pr->got);
}

/* Start to read. The read has its descriptor. */
void posix_read_begin(struct posix_read *pr)
{
	int rc = 0;

	pr->got = 0;
	pr->eof = false;
	pr->start = pr->off;
	if (pr->d->direct)
		pr->start &= ~(uint64_t)(ALIGN_BYTES - 1);
	if (!pr->buf)
		rc = posix_buffer_get(pr);
	if (rc == 0)
		posix_read_read_more(pr);
	else if (rc != -EINPROGRESS)
		posix_read_fail(pr, rc);
}

static void posix_read_start(struct posix_read *pr)
{
	if (pr->f->bad)
		posix_read_fail(pr, pr->f->bad);
	else if (posix_file_get(pr))
		posix_read_begin(pr);
}

static void on_settled(struct timer *t)
{
	posix_read_start(CONTAINER_OF(t, struct posix_read, settle));
}

int64_t posix_unsettled_ns(int64_t mtime_ns)
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

void posix_read(struct posix *p, struct origin_read *r)
{
	struct posix_read *pr = calloc(1, sizeof(*pr));
	int64_t wait_ns = posix_unsettled_ns(r->want.mtime_ns);

	if (!pr) {
		late_answer(p->late, &r->req);
		return;
	}
	pr->p = p;
	pr->refs = 1;
	pr->r = r;
	pr->f = r->file;
	pr->want = r->want;
	pr->off = r->off;
	pr->len = r->len;
	timer_init(&pr->settle, on_settled);
	list_init(&pr->node);
	pthread_mutex_lock(&p->lock);
	r->req.priv = pr;
	pr->turn = p->root_turn;
	pr->f->refs++;
	if (wait_ns > 0)
		timer_set(p->timers, &pr->settle,
			clock_now_ns() + (uint64_t)wait_ns);
	pthread_mutex_unlock(&p->lock);
	if (wait_ns <= 0)
		posix_read_start(pr);
}

/* -- Giving up ------------------------------------------------------------- */

static void posix_read_run_note(struct thread_job *job)
{
	struct posix_read *pr = CONTAINER_OF(job, struct posix_read, note);

	origin_answer(&pr->dropped->req, -ECANCELED);
	posix_read_put(pr);
}

/* Requires the lock. Detach the request from its read. Sets *waited if the read
 * has no operation in flight, so that no further step follows. Returns an
 * operation that the caller has to cancel without the lock, or NULL. */
static struct uring_op *detach(struct posix_read *pr, bool *waited)
{
	ASSERT_HELD(&pr->p->lock);
	pr->dropped = pr->r;
	pr->r->req.priv = NULL;
	pr->r = NULL;
	pr->refs++;
	*waited = true;
	if (timer_cancel(pr->p->timers, &pr->settle))
		return NULL;
	if (!list_empty(&pr->node))
		return posix_file_unwait(pr);
	*waited = false;
	return &pr->op;
}

void posix_abandon(struct origin *o, struct origin_read *r)
{
	struct posix *p = OBJECT(posix, o);
	struct posix_read *pr;
	struct uring_op *op;
	bool waited;

	if (late_has(p->late, &r->req))
		return;
	pthread_mutex_lock(&p->lock);
	pr = r->req.priv;
	if (!pr) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	op = detach(pr, &waited);
	pthread_mutex_unlock(&p->lock);
	if (op)
		uring_cancel(p->ring, op);
	if (waited)
		posix_read_put(pr);
	thread_job_init(&pr->note, posix_read_run_note);
	late_run(p->late, &pr->note);
}
