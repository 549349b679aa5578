/* SPDX-License-Identifier: MIT */
/*
 * A provider: a place beside the origin that may have bytes of an item. A fill
 * asks its providers in order, and then the origin for the rest. Providers that
 * accept writes get the bytes that only the origin had, each unit as soon as it
 * is complete.
 *
 * All functions are asynchronous. Start functions do not block, and make no
 * callbacks themselves. A provider makes the callbacks of one request one after
 * another, with done() last and exactly once, on its own threads with no lock
 * held.
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
	struct hash128 key;	     /* key of the item and its version */
	const char *path;	     /* path of the file; valid until done() */
	struct file_version version; /* version of the file */
	uint64_t base, size;	     /* range of the item in its file */
};

/*
 * A request for bytes [off, off + len) of an item. data() is called with bytes
 * when they arrive: whole pages (4 KiB; the item's last page may be shorter) of
 * this version, verified, in any order, each page once. The bytes are valid
 * during the call, and `off` counts from the item's start. Bytes that came
 * before done() are valid, whatever the status. The status of done(): 0: all
 * bytes came; -ENOENT: the provider does not have the rest; -ESTALE: it has
 * another version; -ECANCELED: the read was abandoned; any other -errno: the
 * read failed. The cache asks the next provider for missing bytes.
 */
struct provider_read {
	struct provider_item item;
	uint64_t off; /* offset in the item; a multiple of the page size */
	size_t len;   /* at most the trait request_bytes */
	/* A reader waits for the bytes. Set by the caller at any time; relaxed.
	 */
	_Atomic bool urgent;
	void (*data)(struct provider_read *r, uint64_t off, const void *bytes,
		size_t len);
	void (*done)(struct provider_read *r, int status);
	void *priv; /* for use by the provider */
};

/* One unit of an item for a provider to keep. The data are valid until done().
 * status: 0: the provider keeps the unit; -ENOSPC: it has no room for the unit;
 * any other -errno: the push failed. */
struct provider_push {
	struct provider_item item;
	uint64_t off; /* offset in the item: a multiple of unit_bytes */
	size_t len;   /* unit_bytes, or less at the end of the item */
	const void *data;
	void (*done)(struct provider_push *p, int status);
	void *priv; /* for use by the provider */
};

struct provider_ops {
	void (*read)(struct provider *s, struct provider_read *r);
	/* Give up a read: done() is called soon, unless it has been called or
	 * is being called. abandon() itself never calls done(). data() may call
	 * abandon(). */
	void (*abandon)(struct provider *s, struct provider_read *r);
	/* NULL if the provider accepts no writes. done() is called within about
	 * a second. */
	void (*push)(struct provider *s, struct provider_push *p);
	/* May be NULL. Called once after a read that was not answered in full,
	 * when the origin sends nothing more of the item and all pushes of the
	 * item have ended; and again after later such reads. The caller holds
	 * locks, so ended() must not make callbacks. */
	void (*ended)(struct provider *s, const struct provider_item *item);
};

struct provider_traits {
	size_t request_bytes; /* maximum length of a read; at least a unit */
	/* length of a push, in whole pages; 0: whole items. Chunks are fetched
	 * in whole units */
	size_t unit_bytes;
	unsigned depth; /* maximum number of reads in flight, at least 1 */
	/* a read that takes longer than this is abandoned */
	uint64_t patience_ns;
	/* limit for bytes that are being pushed; further pushes are dropped */
	uint64_t pending_bytes;
};

/* Each provider embeds this as its first member. */
struct provider {
	const struct provider_ops *ops;
	struct provider_traits traits; /* set once */
	/* If true, a tier keeps an item only if the provider refused it with
	 * -ENOSPC when it was pushed. Any thread, relaxed. */
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
