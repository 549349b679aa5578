/* SPDX-License-Identifier: MIT */
/*
 * An origin: the source of a dataset's names and bytes. It is a table of
 * operations, all asynchronous, so that no caller waits. Origins stack: a layer
 * (retry, fault) is an origin that passes requests to another one, its inner
 * origin.
 *
 * Callbacks run on threads of the origin or of a layer's timers. Each request
 * calls done() exactly once. A start function never makes a callback itself, so
 * it may be called with locks held. Callbacks may start further requests; they
 * must not block. An origin may also be able to read at once what is in memory,
 * see origin_read_now().
 *
 * Paths are relative to the source, without a slash at the beginning or end; ""
 * is the source itself. An origin never writes to its source.
 */
#ifndef ORIGIN_ORIGIN_H
#define ORIGIN_ORIGIN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/list.h"
#include "common/base/timer.h"

struct origin;
/* a file that its first read opens; see origin_file_new() */
struct origin_file;

/* Every origin accepts reads of this length. Its traits may allow longer ones.
 */
#define ORIGIN_READ_MAX_BYTES ((size_t)1 << 20)

enum origin_op { ORIGIN_READ, ORIGIN_STAT, ORIGIN_LIST };

/* The first member of all requests. The caller owns a request, which must exist
 * until done() runs. An origin makes the callbacks of one request one after
 * another, with done() last and exactly once. */
struct origin_request {
	/* set by the function that starts the request, such as origin_read() */
	enum origin_op op;
	/* status is 0 if the request was answered in full; otherwise -errno. */
	void (*done)(struct origin_request *q, int status);
	void *priv; /* for the origin that handles the request */
};

/*
 * A ranged read. data() is called with bytes when they arrive: in order,
 * without gaps, from `off` on; there may be a single call with all bytes. The
 * bytes are valid during the call. done() follows soon after the last of them.
 *
 * Every byte passed to data() is of version `want`: the origin has checked that
 * after reading it (posix), or from the headers of the answer (http). So bytes
 * that came before an error are valid, and need not be requested again.
 *
 * The status of done():
 *
 *   0        all bytes were passed to data();
 *   -ESTALE  the file is not, or no longer, of version `want`, or is gone;
 *   -ECANCELED  after origin_read_abandon();
 *   -EIO, -ETIMEDOUT, ... otherwise.
 *
 * Bytes go through the origin's memory and never straight into the caller's. So
 * a read that hangs in the kernel can be abandoned and repeated, although the
 * kernel may still write to its memory.
 */
struct origin_read {
	struct origin_request req;
	/* set by the caller; created by the same origin */
	struct origin_file *file;
	struct file_version want; /* set by the caller */
	uint64_t off;		  /* set by the caller */
	/* Set by the caller: at least 1, inside want.size_bytes, and no more
	 * than ORIGIN_READ_MAX_BYTES or the trait request_bytes. */
	size_t len;
	/* Set by the origin on an error: bytes that were received but not
	 * passed to data(), if their number is known; see origin_retry_bytes.
	 */
	size_t lost_bytes;
	void (*data)(struct origin_read *r, uint64_t off, const void *bytes,
		size_t len); /* `off` is the offset in the file */
};

/* Get the attributes of one name. The status of done() is 0 with attr set (and
 * target for a link), or -errno. -ENOENT means that the origin was reached and
 * does not have the name. Files that are not regular files, directories or
 * links also give -ENOENT. */
struct origin_stat {
	struct origin_request req;
	const char *path; /* valid until done() */
	/* Set by the caller: the version that the file had, or zeros if it is
	 * not known. */
	struct file_version known;
	/* Set by the origin; valid during done(). */
	const struct file_attr *attr;
	const char *target;
};

/* List one directory. batch() gets some entries at a time (valid during the
 * call, in any order, without "." and ".."), then done() is called. An error
 * may follow some batches. If the listing is repeated, restart() tells the
 * caller to drop all batches so far. */
struct origin_list {
	struct origin_request req;
	const char *path; /* valid until done() */
	/* Set by the caller, only for an origin that can list recursively: list
	 * all files below the path. Their names are relative to the path and
	 * contain slashes. A directory is listed only if the origin has a mark
	 * for it. */
	bool deep;
	void (*batch)(struct origin_list *l, const struct file_entry *entries,
		size_t n);
	void (*restart)(struct origin_list *l);
};

/* Convert a request to its kind, for origins that have checked `op`. */
static inline struct origin_read *origin_read_of(struct origin_request *q)
{
	return CONTAINER_OF(q, struct origin_read, req);
}

static inline struct origin_stat *origin_stat_of(struct origin_request *q)
{
	return CONTAINER_OF(q, struct origin_stat, req);
}

static inline struct origin_list *origin_list_of(struct origin_request *q)
{
	return CONTAINER_OF(q, struct origin_list, req);
}

/* The properties of an origin, for its callers. Its constructor sets them; a
 * layer has the traits of its inner origin. */
struct origin_traits {
	/* The best length of a read: long enough to reach the origin's full
	 * rate, and so short that other readers wait little. */
	size_t request_bytes;
	/* The number of reads in flight above which the rate no longer rises.
	 */
	unsigned depth;
	/* The number of reads in flight at which the search for the best number
	 * begins; 0: the caller's default. */
	unsigned depth_first;
	/* The default size of the items of large files. */
	uint64_t chunk_bytes;
	/* Items that are being read may use 1 / memory_share of the memory; 0:
	 * all of it. */
	unsigned memory_share;
	/* A request costs as much time as many bytes do. So if an item will be
	 * kept, all of it is requested, in requests of request_bytes. */
	bool asks_whole;
	/* One listing can return everything below its path. */
	bool lists_recursively;
};

struct origin_ops {
	/* All operations but explain() and read_now() are required. */
	struct origin_file *(*file_new)(struct origin *o, const char *path);
	void (*file_free)(struct origin *o, struct origin_file *f);
	/* Start a request; `op` gives its kind. */
	void (*start)(struct origin *o, struct origin_request *q);
	/* Give up a read; see origin_read_abandon(). */
	void (*abandon)(struct origin *o, struct origin_read *r);
	bool (*free)(struct origin *o); /* see origin_free() */
	/* See origin_read_now(). If this is NULL, every read may have to
	 * wait. */
	int (*read_now)(
		struct origin *o, const struct origin_read *r, void *bytes);
	/* See origin_explain(). If this is NULL, the status explains enough. */
	bool (*explain)(struct origin *o, int status, struct error *why);
};

/* Each origin embeds this as its first member. All members are private. */
struct origin {
	const struct origin_ops *ops;
	struct origin_traits traits; /* set once */
};

/* Initialise an origin; called by constructors. */
static inline void origin_init(struct origin *o, const struct origin_ops *ops,
	const struct origin_traits *traits)
{
	o->ops = ops;
	o->traits = *traits;
}

static inline const struct origin_traits *origin_traits(const struct origin *o)
{
	return &o->traits;
}

/* Start a request whose `op` is set; called by layers. */
static inline void origin_start(struct origin *o, struct origin_request *q)
{
	o->ops->start(o, q);
}

/* Answer a request. An origin calls this exactly once for each request. */
static inline void origin_answer(struct origin_request *q, int status)
{
	q->done(q, status);
}

/* Create a handle for reading one file. This does no I/O: the first read opens
 * the file, and all reads use the same descriptor. Returns NULL if memory is
 * short. */
static inline struct origin_file *origin_file_new(
	struct origin *o, const char *path)
{
	return o->ops->file_new(o, path);
}

/* Free the handle. Reads that are still in flight must have been abandoned. */
static inline void origin_file_free(struct origin *o, struct origin_file *f)
{
	o->ops->file_free(o, f);
}

static inline void origin_read(struct origin *o, struct origin_read *r)
{
	r->req.op = ORIGIN_READ;
	origin_start(o, &r->req);
}

/*
 * Read at once, on this thread, if that waits for no device, server or process.
 * `bytes` gets the range of `r`, of which only the members are used that the
 * caller sets. Returns 0 if all bytes are of version r->want. Otherwise returns
 * -EAGAIN: this says nothing about the file, `bytes` may have changed, and the
 * caller calls origin_read().
 */
static inline int origin_read_now(
	struct origin *o, const struct origin_read *r, void *bytes)
{
	return o->ops->read_now ? o->ops->read_now(o, r, bytes) : -EAGAIN;
}

static inline void origin_stat(struct origin *o, struct origin_stat *s)
{
	s->req.op = ORIGIN_STAT;
	origin_start(o, &s->req);
}

static inline void origin_list(struct origin *o, struct origin_list *l)
{
	l->req.op = ORIGIN_LIST;
	origin_start(o, &l->req);
}

/*
 * Give up a read that was started. Soon after, done() is called with
 * -ECANCELED, unless it has been called or is being called with another status.
 * It is called exactly once in either case, and never during this call, which
 * data() may make. Until then data() may still be called. Memory of the read
 * inside the origin, to which the kernel may still write, is released when the
 * kernel answers.
 */
static inline void origin_read_abandon(struct origin *o, struct origin_read *r)
{
	o->ops->abandon(o, r);
}

/* Set `why` to the reason of the last failure and what to do about it. This is
 * for a status that was chosen for the caller's decisions, so that the text of
 * strerror() would mislead a person. Returns false if the origin knows no
 * better reason. Does not block. */
static inline bool origin_explain(
	struct origin *o, int status, struct error *why)
{
	return o->ops->explain && o->ops->explain(o, status, why);
}

/* Free an origin; a layer also frees its inner origin. Only abandoned requests
 * may be in flight. Waits at most a second until the kernel has finished these.
 * Returns false if it has not: the memory of the requests is then never freed,
 * and the timers and counters of the origin must stay, too. */
static inline bool origin_free(struct origin *o)
{
	return !o || o->ops->free(o);
}

/* -- The origins ------------------------------------------------------- */

/* Create an origin for a directory of any mounted file system. It is read with
 * io_uring, or with threads where io_uring is forbidden, and with O_DIRECT
 * where the file system supports it. Returns 0, or -errno with advice in err:
 * -ENOENT, -ENOTDIR, -EACCES. */
int origin_posix_new(struct origin **out, const char *dir, struct error *err);

/* Like origin_posix_new(), for a directory on which every access hangs. This
 * call does not access the directory, but each request does. When the directory
 * first answers, it becomes the source; before that, every answer is -EIO.
 * `dir` is absolute and contains no links. */
int origin_posix_new_later(
	struct origin **out, const char *dir, struct error *err);

/*
 * Create an origin of computed files. spec:
 * "files=N,size=SIZE[,seed=S][,dirs=D]". There are D directories d0000, d0001,
 * ... (default: one for each 1,000 files, rounded up), with ceil(N / D) files
 * each, of which the last directory may have fewer. The files f000000.bin,
 * f000001.bin, ... are numbered through all directories. Numbers have as many
 * digits as the greatest needs, but at least 4 for directories and 6 for files.
 * All were modified at 2001-09-09 01:46:40 UTC, are read-only, and belong to
 * this user.
 */
int origin_synthetic_new(
	struct origin **out, const char *spec, struct error *err);

/* Compute bytes of a synthetic file. They are a pure function of (seed, path,
 * offset) in 8-byte words, so they do not depend on the ranges that are read.
 */
void origin_synthetic_fill(
	uint64_t seed, const char *path, uint64_t off, size_t len, void *buf);

/*
 * Repeat failed requests with jittered exponential backoff. Give up attempts
 * that are not answered in time, and in the end report -EIO (or -ETIMEDOUT). A
 * read continues where the last attempt stopped; while it makes progress, it
 * gets a new time limit and new attempts, within total_ns. A listing that
 * delivers entries gets more time. Owns `inner` on success. The following are
 * answers and not failures: -ESTALE, -ENOENT, -EACCES, -EPERM, -ENOTDIR,
 * -ELOOP, -EMLINK (directories without end), -EFBIG (an index that is too
 * long), -E2BIG (more names than names_memory_bytes() has room for),
 * -EPROTONOSUPPORT (an index without sizes or without end), -ENAMETOOLONG and
 * -EINVAL (a name that cannot be beneath the source).
 */
struct retry_config {
	/* an attempt is given up after this time; 0: 30 s */
	uint64_t attempt_ns;
	uint64_t total_ns; /* a request is given up after this time; 0: 120 s */
	/* length of the first pause, which then doubles; 0: 100 ms */
	uint64_t pause_ns;
	unsigned attempts; /* maximum number of failed attempts; 0: 6 */
	const struct event_sink *events; /* may be NULL */
};
int origin_retry_new(struct origin **out, struct origin *inner,
	const struct retry_config *config, struct timers *timers,
	struct counters *counters, struct error *err);

/* Does the source answer? Times are those of clock_now_ns(). */
struct origin_health {
	/* Time at which the last request that was answered without an error had
	 * begun; 0: none. Names and listings do not count while reads fail. */
	uint64_t answered_ns;
	/* time for which the source has sent nothing while requests waited */
	uint64_t silent_ns;
	unsigned waiting; /* number of requests without an answer */
};
void origin_retry_health(struct origin *retry, struct origin_health *health);

/*
 * Take names from an index (`refrain index`) and bytes from `inner`, which is
 * never asked for a listing. Owns `inner` on success. The root's version has a
 * tag that is computed from the text of the index. load() reads the index, on a
 * thread that may block; it returns the text, which the origin frees, or -errno
 * with err set. fits() says whether `inner` has a file of this size: it returns
 * 1, 0, or -errno with err set, and waits at most until `until_ns`. known()
 * returns the attributes of a name that is already known. failed() gets the
 * reason why a listing had no index.
 */
struct origin_named_config {
	int (*load)(void *arg, char **text, size_t *bytes, struct error *err);
	int (*fits)(void *arg, const char *path, uint64_t size_bytes,
		uint64_t until_ns, struct error *err);
	bool (*known)(void *arg, const char *path, struct file_attr *attr);
	void (*failed)(void *arg, const struct error *why);
	void *arg;
	uint64_t tag_seed; /* changes the tag of the root */
};
int origin_named_new(struct origin **out, struct origin *inner,
	const struct origin_named_config *config, struct error *err);

/* Load the index, parse all of it, look for a few of its files, and check that
 * `inner` has at least one of them. The next listing uses the result. Blocks.
 * Returns 0, or -errno with err set. */
int origin_named_check(struct origin *named, struct error *err);

/*
 * Show a level of each progressive JPEG, as format/jpeg_levels.h defines it,
 * and other files whole. Owns `inner` on success. The text is an index with
 * levels, and is needed only during the call; a file that has another version
 * than in the index is shown whole. The root has a file recode.json of this
 * origin. Returns 0, or -errno with err set: -EBADMSG for an index that is
 * damaged or has no levels.
 */
struct origin_levels_config {
	const char *text;
	size_t bytes;
	unsigned drop_bits; /* 1 to JPEG_DROP_BITS_MAX */
	uint64_t root_tag;  /* tag for the root's version; 0: that of inner */
	struct counters *counters; /* must outlive the origin */
};
int origin_levels_new(struct origin **out, struct origin *inner,
	const struct origin_levels_config *config, struct error *err);

/*
 * Inject faults, for tests and drills. Owns `inner` on success. `spec` is a
 * list with commas; "" injects no faults.
 *
 * delay=TIME delays each request. error=P has this share (0 to 1) of reads fail
 * with -EIO. short=P answers this share of reads with -EIO after half of their
 * bytes. pieces=SIZE limits the length of the pieces delivered. stall=P leaves
 * this share of reads without an answer until the spec changes. rate=BYTES
 * limits the bytes of all reads together, per second. meta=1 applies the faults
 * to stats and lists, too. match=TEXT applies them only to paths that contain
 * TEXT. seed=S seeds the choice.
 */
int origin_fault_new(struct origin **out, struct origin *inner,
	const char *spec, struct timers *timers, struct error *err);

/* Change the faults of a running fault origin. Stalled requests continue under
 * the new faults. Any thread. */
int origin_fault_set(struct origin *fault, const char *spec, struct error *err);

#endif
