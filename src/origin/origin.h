/* SPDX-License-Identifier: MIT */
/*
 * An origin: where a dataset's names and bytes come from. A table of
 * operations, all asynchronous, so that nobody who asks ever waits. Origins
 * stack: a decorator (retry, fault) is an origin that forwards to another.
 *
 * Callbacks run on threads of the origin (or of a decorator's timers), each
 * request's exactly once, never before the call that started it could return
 * to a caller holding locks: a start function never calls back itself.
 * Callbacks may start further requests; they must not block.
 *
 * Paths are relative to the source, without leading or trailing slash; "" is
 * the source itself. An origin never writes to its source.
 */
#ifndef ORIGIN_ORIGIN_H
#define ORIGIN_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/counters.h"
#include "base/err.h"
#include "base/events.h"
#include "base/list.h"
#include "base/timer.h"

struct origin;
struct origin_file; /* a lazily opened file; see origin_file_new() */

/* Any origin takes reads of this length; see also its traits. */
#define ORIGIN_READ_MAX_BYTES ((size_t)1 << 20)

enum origin_op { ORIGIN_READ, ORIGIN_STAT, ORIGIN_LIST };

/*
 * What all requests begin with. The caller owns a request and keeps it until
 * done() runs. What an origin calls for one request it calls one after another,
 * done() last and exactly once.
 */
struct origin_request {
	enum origin_op op; /* set by origin_read() and so on */
	/* 0: all that was asked for came; else -errno. */
	void (*done)(struct origin_request *q, int status);
	void *priv; /* for the origin that has it in hand */
};

/*
 * A ranged read. data() is called with bytes as they come: in order, without
 * gaps, from `off` on; it may be called once with all of them. The bytes are
 * lent for the call. Soon after the last of them comes done().
 *
 * Every byte that data() gets is of version `want`: the origin has checked
 * that after it read the byte (posix), or by what the answer says of itself
 * before its first byte (http). So what came before an error is good, and
 * nobody needs to ask for it again. status:
 *   -ESTALE  the file is not (any more) of version `want`, or is gone;
 *   -ECANCELED  by origin_read_abandon();
 *   -EIO, -ETIMEDOUT, ... otherwise.
 *
 * Bytes go through memory of the origin and never straight into that of the
 * caller: a read that hangs in the kernel can be abandoned and asked again,
 * and may still write to its memory then.
 */
struct origin_read {
	struct origin_request req;
	struct origin_file *file; /* set by the caller, from the same origin */
	struct file_version want; /* set by the caller */
	uint64_t off;		  /* set by the caller */
	/* Set by the caller: at least 1, inside want.size_bytes, and no more
	 * than ORIGIN_READ_MAX_BYTES or the trait request_bytes. */
	size_t len;
	/* Set by the origin with an error: bytes that came and were not given
	 * to data(), where it knows; see origin_retry_bytes. */
	size_t lost_bytes;
	void (*data)(struct origin_read *r, uint64_t off, const void *bytes,
		size_t len); /* `off` is in the file */
};

/*
 * Look at one name. status 0 with attr (and target for a link), else -errno;
 * -ENOENT only if the origin was reached and said so. Other kinds than files,
 * directories and links are -ENOENT.
 */
struct origin_stat {
	struct origin_request req;
	const char *path; /* kept by the caller until done() */
	/* Set by the origin, lent for done(). */
	const struct file_attr *attr;
	const char *target;
};

/*
 * List one directory: batch() for each some entries (lent for the length of
 * the call, any order, no "." and ".."), then done(). On an error some batches
 * may have been delivered. A retry starts over: restart() tells the caller to
 * forget the batches so far.
 */
struct origin_list {
	struct origin_request req;
	const char *path; /* kept by the caller until done() */
	/*
	 * Set by the caller, for origins that list recursively: all files
	 * below the path, whose names are relative to it and contain slashes;
	 * no directories are named.
	 */
	bool deep;
	void (*batch)(struct origin_list *l, const struct file_entry *entries,
		size_t n);
	void (*restart)(struct origin_list *l);
};

/* The request of a kind, for origins: `op` has been looked at. */
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

/*
 * What an origin is like, for those who ask it. Set by its constructor; a
 * decorator has the traits of what it wraps.
 */
struct origin_traits {
	/*
	 * The best length of a read: long enough for the origin's rate, short
	 * enough that a reader of something else waits little behind it.
	 */
	size_t request_bytes;
	/* More reads in flight do not make it faster. */
	unsigned depth;
	/* The default size of the items of large files. */
	uint64_t chunk_bytes;
	/* A listing can be of everything below its path at once. */
	bool lists_recursively;
};

struct origin_ops {
	const char *name;
	/* All are required. */
	struct origin_file *(*file_new)(struct origin *o, const char *path);
	void (*file_free)(struct origin *o, struct origin_file *f);
	/* Begin a request; its `op` says which of the three it is. */
	void (*start)(struct origin *o, struct origin_request *q);
	/* Give up on a read; see origin_read_abandon(). */
	void (*abandon)(struct origin *o, struct origin_read *r);
	bool (*free)(struct origin *o); /* see origin_free() */
};

/* Each origin embeds this as its first member. */
struct origin {
	const struct origin_ops *ops;
	struct origin_traits traits; /* set once */
};

/*
 * A handle for reading one file. No I/O: the file is opened by its first read
 * and its descriptor shared by all. NULL for want of memory.
 */
static inline struct origin_file *origin_file_new(
	struct origin *o, const char *path)
{
	return o->ops->file_new(o, path);
}

/* Give the handle back; reads still in flight must have been abandoned. */
static inline void origin_file_free(struct origin *o, struct origin_file *f)
{
	o->ops->file_free(o, f);
}

static inline void origin_read(struct origin *o, struct origin_read *r)
{
	r->req.op = ORIGIN_READ;
	o->ops->start(o, &r->req);
}

static inline void origin_stat(struct origin *o, struct origin_stat *s)
{
	s->req.op = ORIGIN_STAT;
	o->ops->start(o, &s->req);
}

static inline void origin_list(struct origin *o, struct origin_list *l)
{
	l->req.op = ORIGIN_LIST;
	o->ops->start(o, &l->req);
}

/*
 * Give up on a read that was started. done() is called with -ECANCELED, soon,
 * unless it has been called or is being called with something else; either
 * way exactly once, and never from inside this call, which data() may make.
 * Until then data() may still be called.
 * What the read holds inside
 * the origin (memory that the kernel may still write to) is released whenever
 * the kernel answers.
 */
static inline void origin_read_abandon(struct origin *o, struct origin_read *r)
{
	o->ops->abandon(o, r);
}

/*
 * Free an origin (a decorator frees what it wraps). No request may be in
 * flight but abandoned ones; waits at most a second for the kernel to give
 * up on those. False: it did not, and what they need stays for good; so must
 * the timers and counters that the origin was given.
 */
static inline bool origin_free(struct origin *o)
{
	return !o || o->ops->free(o);
}

/* -- The origins ------------------------------------------------------- */

/*
 * A directory of any mounted file system, read with io_uring (plain threads
 * where that is forbidden), O_DIRECT where the file system can. -errno, with
 * what to do in err: -ENOENT, -ENOTDIR, -EACCES.
 */
int origin_posix_new(struct origin **out, const char *dir, struct error *err);

/*
 * The same for a directory that hangs whoever looks at it: it is not looked at
 * here, but by each request, and taken for the source when it first answers.
 * Every answer before is -EIO. `dir` is absolute, without links.
 */
int origin_posix_new_later(
	struct origin **out, const char *dir, struct error *err);

/*
 * Deterministic bytes from names. spec: "files=N,size=SIZE[,seed=S][,dirs=D]".
 * The tree: D directories (default: one for each 1,000 files begun) d0000,
 * d0001, ... with ceil(N / D) files each (the last may have fewer) f000000.bin,
 * f000001.bin, ... numbered through all directories. Numbers have as many
 * digits as the greatest needs, but at least 4 and 6. All were modified at
 * 2001-09-09 01:46:40 UTC, can only be read, and are this user's.
 */
int origin_synthetic_new(
	struct origin **out, const char *spec, struct error *err);

/*
 * The bytes of a synthetic file: a pure function of (seed, path, offset), in
 * 8-byte words, whatever ranges are asked for.
 */
void origin_synthetic_fill(
	uint64_t seed, const char *path, uint64_t off, size_t len, void *buf);

/*
 * Repeat failed requests with jittered exponential backoff, give up attempts
 * that are not answered in time, and report -EIO (or -ETIMEDOUT) at the end.
 * A read goes on where the last attempt stopped, and bytes give it a new time
 * limit and new attempts, within total_ns. Takes ownership of `inner` on
 * success. -ESTALE, -ENOENT, -EACCES, -EPERM, -ENOTDIR, -ELOOP, -ENAMETOOLONG
 * and -EINVAL (a name that cannot be beneath the source) are answers, not
 * failures. A listing that delivers entries gets more time.
 */
struct retry_config {
	uint64_t attempt_ns; /* give up an attempt after this; 0: 30 s */
	uint64_t total_ns;   /* give up the request after this; 0: 120 s */
	uint64_t pause_ns;   /* the first pause, it doubles; 0: 100 ms */
	unsigned attempts;   /* tries that fail, at most; 0: 6 */
	const struct event_sink *events; /* may be NULL */
};
int origin_retry_new(struct origin **out, struct origin *inner,
	const struct retry_config *config, struct timers *timers,
	struct counters *counters, struct error *err);

/*
 * Faults, for tests and drills. Takes ownership of `inner` on success. spec
 * is a comma-separated list: delay=TIME (each request takes that much
 * longer), error=P (share of reads that fail with -EIO, 0 to 1), short=P
 * (share of reads answered -EIO after half of their bytes came), pieces=SIZE
 * (bytes are delivered in pieces no longer than that),
 * stall=P (share of reads that are never answered until the spec changes),
 * rate=BYTES (a second, for all reads together), meta=1 (faults hit stats and
 * lists too), match=TEXT (only paths that contain TEXT), seed=S. "" is none.
 */
int origin_fault_new(struct origin **out, struct origin *inner,
	const char *spec, struct timers *timers, struct error *err);

/*
 * Change the faults of a running fault origin; requests that were stalled go
 * on under the new ones. Any thread.
 */
int origin_fault_set(struct origin *fault, const char *spec, struct error *err);

#endif
