/* SPDX-License-Identifier: MIT */
/*
 * A source: a place beside the origin that may have bytes of an item. A fill
 * asks its sources in order, and the origin for the rest. Sources that accept
 * writes get the bytes that only the origin had, unit by unit as they come.
 *
 * All is asynchronous. Start functions do not block and do not call back
 * themselves. A source makes the callbacks of one request one after another,
 * with done() last and exactly once, on its own threads with no lock held.
 */
#ifndef ORIGIN_SOURCE_H
#define ORIGIN_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/hash.h"

/* The maximum number of sources besides the origin. */
#define SOURCES_MAX 4u

struct source;

/* An item: a whole file or a chunk of one. */
struct source_item {
	struct hash128 key;	     /* names the item and its version */
	const char *path;	     /* of the file; until done() */
	struct file_version version; /* of the file */
	uint64_t base, size;	     /* the item in its file */
};

/*
 * Bytes [off, off + len) of an item. data() is called with bytes as they come:
 * whole pages (4 KiB; the item's last may be short) of this version, verified,
 * in any order and each once; they are lent for the call, and `off` is in the
 * item. What came before done() is kept whatever its status. status: 0: all of
 * them came; -ENOENT: the source does not have the rest; -ESTALE: it has
 * another version; -ECANCELED: by abandon(); any other -errno: it failed. The
 * cache asks the next source for missing bytes.
 */
struct source_read {
	struct source_item item;
	uint64_t off; /* in the item; of a page */
	size_t len;   /* no longer than the trait request_bytes */
	/* A reader waits for it. Set by the caller at any time; relaxed. */
	_Atomic bool urgent;
	void (*data)(struct source_read *r, uint64_t off, const void *bytes,
		size_t len);
	void (*done)(struct source_read *r, int status);
	void *priv; /* the source's */
};

/*
 * One unit of an item for a source to keep. The data are lent until done().
 * status: 0: it keeps it; -ENOSPC: it has no room for it; any other -errno: it
 * failed.
 */
struct source_push {
	struct source_item item;
	uint64_t off; /* in the item: a multiple of unit_bytes */
	size_t len;   /* unit_bytes, or less at the end of the item */
	const void *data;
	void (*done)(struct source_push *p, int status);
	void *priv; /* the source's */
};

struct source_ops {
	void (*read)(struct source *s, struct source_read *r);
	/* Give up on a read: done() comes soon, unless it has come or is being
	 * called; never from inside this call, which data() may make. */
	void (*abandon)(struct source *s, struct source_read *r);
	/* NULL if the source accepts no writes. done() is called within about a
	 * second. */
	void (*push)(struct source *s, struct source_push *p);
	/*
	 * May be NULL. After a read that was not answered in full: now nothing
	 * more of the item is on its way from the origin, and all pushes of it
	 * are done. Called once, and again after later such reads. Locks of the
	 * caller are held; it does not call back.
	 */
	void (*ended)(struct source *s, const struct source_item *item);
};

struct source_traits {
	size_t request_bytes;	/* the longest read; at least a unit */
	size_t unit_bytes;	/* pushed at a time, whole pages; 0: items.
				   Chunks are fetched in whole units */
	unsigned depth;		/* reads at a time, at least 1 */
	uint64_t patience_ns;	/* a read that takes longer is given up */
	uint64_t pending_bytes; /* pushed at a time; more is dropped */
};

/* Each source embeds this as its first member. */
struct source {
	const struct source_ops *ops;
	struct source_traits traits; /* set once */
	/*
	 * The tiers keep no item that the source keeps: only those that it
	 * refused with -ENOSPC when they were pushed. Any thread, relaxed.
	 */
	_Atomic bool instead_of_tiers;
};

/* Does the source keep items in place of the tiers? */
static inline bool source_instead(const struct source *s)
{
	return s->ops->push &&
		atomic_load_explicit(
			&s->instead_of_tiers, memory_order_relaxed);
}

#endif
