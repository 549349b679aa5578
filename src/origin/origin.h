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
#include "base/list.h"
#include "base/timer.h"

struct origin;
struct origin_file; /* a lazily opened file; see origin_file_new() */

/* No read request is longer; callers split. */
#define ORIGIN_READ_MAX_BYTES ((size_t)1 << 20)

/*
 * A ranged read. The caller owns the request and keeps it until done() runs.
 * The origin reads into memory of its own, so that a read that hangs can be
 * abandoned: `data` is lent for the length of the callback.
 *
 * status: `len` (> 0; never short), or
 *   -ESTALE  the file is not (any more) of version `want`, or is gone; every
 *            byte that is delivered was checked to be of that version *after*
 *            it was read, so that readers never see a mixture;
 *   -EIO, -ETIMEDOUT, ... otherwise.
 */
struct origin_read {
	struct origin_file *file; /* set by the caller, from the same origin */
	struct file_version want; /* set by the caller */
	uint64_t off;		  /* set by the caller */
	size_t len;	   /* set by the caller; 1..ORIGIN_READ_MAX_BYTES,
			      inside want.size_bytes */
	size_t lost_bytes; /* set by the origin with an error: what had come by
			      then, where it knows; see origin_retry_bytes */
	void (*done)(struct origin_read *r, int status, const void *data);
	void *priv; /* for the origin that has it in hand */
};

/*
 * Look at one name. status 0 with attr (and target for a link), else -errno;
 * -ENOENT only if the origin was reached and said so. attr and target are
 * lent for the length of the callback. Other kinds than files, directories
 * and links are -ENOENT.
 */
struct origin_stat {
	const char *path; /* kept by the caller until done() */
	void (*done)(struct origin_stat *s, int status,
		const struct file_attr *attr, const char *target);
	void *priv;
};

/*
 * List one directory: batch() for each some entries (lent for the length of
 * the call, any order, no "." and ".."), one at a time, then done(). On an
 * error some batches may have been delivered. A retry starts over: restart()
 * tells the caller to forget the batches so far.
 */
struct origin_list {
	const char *path; /* kept by the caller until done() */
	void (*batch)(struct origin_list *l, const struct file_entry *entries,
		size_t n);
	void (*restart)(struct origin_list *l);
	void (*done)(struct origin_list *l, int status);
	void *priv;
};

struct origin_ops {
	const char *name;
	/* All are required. */
	struct origin_file *(*file_new)(struct origin *o, const char *path);
	void (*file_free)(struct origin *o, struct origin_file *f);
	void (*read)(struct origin *o, struct origin_read *r);
	void (*stat)(struct origin *o, struct origin_stat *s);
	void (*list)(struct origin *o, struct origin_list *l);
	/* Give up on a read; see origin_read_abandon(). */
	void (*abandon)(struct origin *o, struct origin_read *r);
	bool (*free)(struct origin *o); /* see origin_free() */
};

/* Each origin embeds this as its first member. */
struct origin {
	const struct origin_ops *ops;
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
	o->ops->read(o, r);
}

static inline void origin_stat(struct origin *o, struct origin_stat *s)
{
	o->ops->stat(o, s);
}

static inline void origin_list(struct origin *o, struct origin_list *l)
{
	o->ops->list(o, l);
}

/*
 * Give up on a read that was started. done() is called with -ECANCELED, soon,
 * unless it has been called or is being called with something else; either
 * way exactly once, and never from inside this call. What the read holds inside
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
 * Takes ownership of `inner` on success. -ESTALE, -ENOENT, -EACCES, -EPERM,
 * -ENOTDIR, -ELOOP, -ENAMETOOLONG and -EINVAL (a name that cannot be beneath
 * the source) are answers, not failures. A listing that delivers entries gets
 * more time.
 */
struct retry_config {
	uint64_t attempt_ns; /* give up an attempt after this; 0: 30 s */
	uint64_t total_ns;   /* give up the request after this; 0: 120 s */
	uint64_t pause_ns;   /* the first pause, it doubles; 0: 100 ms */
	unsigned attempts;   /* tries that fail, at most; 0: 6 */
};
int origin_retry_new(struct origin **out, struct origin *inner,
	const struct retry_config *config, struct timers *timers,
	struct counters *counters, struct error *err);

/*
 * Faults, for tests and drills. Takes ownership of `inner` on success. spec
 * is a comma-separated list: delay=TIME (each request takes that much
 * longer), error=P (share of reads that fail with -EIO, 0 to 1), short=P
 * (share of reads answered -EIO after half of their bytes came),
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
