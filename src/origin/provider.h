/* SPDX-License-Identifier: MIT */
/*
 * A provider: a place beside the origin that may have bytes of an item. A fill
 * asks its providers in order, and the origin for the rest. Providers that
 * accept writes get the bytes that only the origin had, unit by unit as they
 * come.
 *
 * All is asynchronous. Start functions do not block and do not call back
 * themselves. A provider makes the callbacks of one request one after another,
 * with done() last and exactly once, on its own threads with no lock held.
 */
#ifndef ORIGIN_PROVIDER_H
#define ORIGIN_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/hash.h"

/* The maximum number of providers besides the origin. */
#define PROVIDERS_MAX 4u

struct provider;

/* An item: a whole file or a chunk of one. */
struct provider_item {
	struct hash128 key;	     /* names the item and its version */
	const char *path;	     /* of the file; until done() */
	struct file_version version; /* of the file */
	uint64_t base, size;	     /* the item in its file */
};

/*
 * Bytes [off, off + len) of an item. data() is called with bytes as they come:
 * whole pages (4 KiB; the item's last may be short) of this version, verified,
 * in any order, each page once. They are lent for the call, and `off` counts
 * from the item's start. Bytes that came before done() are kept, whatever the
 * status. status: 0: all bytes came; -ENOENT: the provider does not have the
 * rest; -ESTALE: it has another version; -ECANCELED: the read was abandoned;
 * any other -errno: the read failed. The cache asks the next provider for
 * missing bytes.
 */
struct provider_read {
	struct provider_item item;
	uint64_t off; /* in the item; of a page */
	size_t len;   /* no longer than the trait request_bytes */
	/* A reader waits for it. Set by the caller at any time; relaxed. */
	_Atomic bool urgent;
	void (*data)(struct provider_read *r, uint64_t off, const void *bytes,
		size_t len);
	void (*done)(struct provider_read *r, int status);
	void *priv; /* the provider's */
};

/* One unit of an item for a provider to keep. The data are lent until done().
 * status: 0: the provider keeps the unit; -ENOSPC: it has no room for the unit;
 * any other -errno: the push failed. */
struct provider_push {
	struct provider_item item;
	uint64_t off; /* in the item: a multiple of unit_bytes */
	size_t len;   /* unit_bytes, or less at the end of the item */
	const void *data;
	void (*done)(struct provider_push *p, int status);
	void *priv; /* the provider's */
};

struct provider_ops {
	void (*read)(struct provider *s, struct provider_read *r);
	/* Give up on a read: done() comes soon, unless it has come or is being
	 * called. It is never called from inside abandon(). data() may call
	 * abandon(). */
	void (*abandon)(struct provider *s, struct provider_read *r);
	/* NULL if the provider accepts no writes. done() is called within about
	 * a second. */
	void (*push)(struct provider *s, struct provider_push *p);
	/*
	 * May be NULL. Called once after a read that was not answered in full,
	 * when nothing more of the item is on its way from the origin and all
	 * pushes of it are done; and again after later such reads. The caller
	 * holds locks; ended() does not call back.
	 */
	void (*ended)(struct provider *s, const struct provider_item *item);
};

struct provider_traits {
	size_t request_bytes;	/* the longest read; at least a unit */
	size_t unit_bytes;	/* pushed at a time, whole pages; 0: items.
				   Chunks are fetched in whole units */
	unsigned depth;		/* reads at a time, at least 1 */
	uint64_t patience_ns;	/* a read that takes longer is given up */
	uint64_t pending_bytes; /* pushed at a time; more is dropped */
};

/* Each provider embeds this as its first member. */
struct provider {
	const struct provider_ops *ops;
	struct provider_traits traits; /* set once */
	/* If set, the tiers keep only items that the provider refused with
	 * -ENOSPC when they were pushed. Any thread, relaxed. */
	_Atomic bool instead_of_tiers;
};

/* Does the provider keep items in place of the tiers? */
static inline bool provider_instead(const struct provider *s)
{
	return s->ops->push &&
		atomic_load_explicit(
			&s->instead_of_tiers, memory_order_relaxed);
}

#endif
