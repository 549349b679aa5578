/* SPDX-License-Identifier: MIT */
/*
 * A mount with --analysis as its readers see it; see analysis_impl.h. The
 * kernel keeps pages of items that hit, as in other mounts, and what is read of
 * them is seen later; those of others are dropped after they were read to their
 * end, so that the next epoch reads them again from the daemon. Entered by the
 * workers of the session, by threads of control connections, and by that of the
 * pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "mount/daemon/analysis.h"
#include "mount/daemon/analysis_impl.h"

/* Shorter times without a READ are not counted as idle: a trainer may read only
 * once a step. */
#define IDLE_NS NS_PER_S

/* Larger files are read by parts, each of which is to be seen. */
#define STAYS_MAX ((uint64_t)4 << 20)

/* -- READs ----------------------------------------------------------------- */

static void note_idle(struct analysis *a)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t last_ns = atomic_exchange_explicit(
		&a->last_read_ns, now_ns, memory_order_relaxed);

	if (last_ns > 0 && now_ns > last_ns + IDLE_NS)
		COUNT_ADD(a->parts->counters, idle_us,
			(now_ns - last_ns) / NS_PER_US);
}

/* One a thread; NULL for want of memory. */
static struct store_scratch *scratch_of(struct analysis *a)
{
	struct store_scratch *s = pthread_getspecific(a->scratch);

	if (!s) {
		s = store_scratch_new();
		if (pthread_setspecific(a->scratch, s) != 0) {
			store_scratch_free(s);
			return NULL;
		}
	}
	return s;
}

static void free_scratch(void *s)
{
	store_scratch_free(s);
}

struct hash128 analysis_item(const struct analysis *a,
	const struct cache_item *item, struct cache_item *first)
{
	*first = *item;
	cache_item_at(a->parts->cache, 0, first);
	return cache_key(a->parts->cache, first);
}

bool analysis_has_image_name(struct analysis *a, uint64_t cookie)
{
	char path[MANIFEST_PATH_MAX];

	return manifest_path(a->parts->manifest, (node_id)cookie, path,
		       sizeof(path)) >= 0 &&
		stand_in_is_image(path);
}

/* If the tier has the file, its first bytes tell; if others stand in for it,
 * its name does. */
static bool reads_as_jpeg(struct analysis *a, const struct cache_item *item)
{
	static const uint8_t magic[] = {0xff, 0xd8, 0xff};
	struct store_scratch *s = scratch_of(a);
	struct cache_item first;
	struct hash128 key = analysis_item(a, item, &first);
	const void *data;

	if (first.size <= STAND_IN_TINY_BYTES || !s)
		return false;
	if (store_read(a->parts->store, s, key, first.size, 0, sizeof(magic),
		    &data) == (ssize_t)sizeof(magic))
		return memcmp(data, magic, sizeof(magic)) == 0;
	return atomic_load_explicit(&a->standing, memory_order_acquire) &&
		analysis_has_image_name(a, item->cookie);
}

/* Would a larger cache have it, by the mask, where this one does not? */
static bool needs_stand_in(struct analysis *a, const struct cache_item *item)
{
	uint64_t limit =
		atomic_load_explicit(&a->mask.limit, memory_order_relaxed);
	struct cache_item first;
	struct hash128 key;

	if (!atomic_load_explicit(&a->standing, memory_order_acquire))
		return false;
	key = analysis_item(a, item, &first);
	return (limit == CACHE_MASK_NONE || key.hi < limit) &&
		!store_has(a->parts->store, key, first.size) &&
		analysis_has_image_name(a, item->cookie);
}

/* The same image for all of a file's READs; the smallest get a tiny one. */
static bool put_stand_in(struct analysis *a, const struct cache_item *item,
	uint64_t off, size_t len, void *buf)
{
	struct store_scratch *s = scratch_of(a);
	struct stand_in in;
	const void *data;
	size_t n = 0;

	if (!s)
		return false;
	if (!stand_ins_find(a->stand_ins, item->version.size_bytes,
		    item->digest.lo, &in)) {
		stand_in_tiny(off, len, buf);
		return item->version.size_bytes > STAND_IN_TINY_BYTES;
	}
	if (off < in.size_bytes) {
		n = in.size_bytes - off < len ? (size_t)(in.size_bytes - off)
					      : len;
		if (store_read(a->parts->store, s, in.key, in.size_bytes, off,
			    n, &data) != (ssize_t)n)
			return false;
		memcpy(buf, data, n);
	}
	memset((char *)buf + n, 0, len - n);
	return true;
}

static void be_late(struct analysis *a)
{
	uint64_t ns = NS_PER_US *
		atomic_load_explicit(&a->late_us, memory_order_relaxed);
	struct timespec late = {.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S)};

	(void)nanosleep(&late, NULL);
}

static enum content content_of(
	struct analysis *a, const struct cache_item *item, uint64_t off)
{
	atomic_uchar *begun = &a->begun[item->digest.lo % FILES_BEGUN];
	enum content content;

	if (off > 0)
		return atomic_load_explicit(begun, memory_order_relaxed);
	content = atomic_load_explicit(&a->content, memory_order_relaxed);
	if (content == CONTENT_REAL_LATE) {
		be_late(a);
		content = CONTENT_REAL;
	}
	if (content == CONTENT_REAL && needs_stand_in(a, item))
		content = CONTENT_STAND_IN;
	atomic_store_explicit(
		begun, (unsigned char)content, memory_order_relaxed);
	return content;
}

/* True: the READ was answered from another image. */
static bool answer_otherwise(struct analysis *a, const struct cache_item *item,
	enum content content, uint64_t off, size_t len, void *buf)
{
	if (content == CONTENT_REAL)
		return false;
	if (content == CONTENT_STAND_IN)
		return needs_stand_in(a, item) &&
			put_stand_in(a, item, off, len, buf);
	if (!reads_as_jpeg(a, item))
		return false;
	stand_in_tiny(off, len, buf);
	if (content == CONTENT_LATE && off == 0)
		be_late(a);
	return true;
}

static bool analysis_read(void *arg, const struct cache_item *item,
	uint64_t off, size_t len, void *buf, pid_t thread)
{
	struct analysis *a = arg;
	enum content content = content_of(a, item, off);
	bool answered;

	note_idle(a);
	if (off == 0) {
		COUNT(a->parts->counters, first_reads);
		readers_note(&a->readers, thread);
		kept_asked(a->kept, item);
	}
	(void)atomic_fetch_add_explicit(
		&a->read_bytes, len, memory_order_relaxed);
	answered = answer_otherwise(a, item, content, off, len, buf);
	/*
	 * A hit reaches the kernel at once; for a miss, the cache reports it.
	 * The readers of a large file may come back for other parts of it, and
	 * what they read of it is counted by its bytes.
	 */
	pages_part(a->parts->pages, item, off, len);
	if (off + len >= item->base + item->size &&
		(answered || cache_resident(a->parts->cache, item)))
		pages_passed(a->parts->pages, item);
	if (!answered || off > 0)
		return answered;
	COUNT(a->parts->counters, hits);
	(void)atomic_fetch_add_explicit(content == CONTENT_STAND_IN
			? &a->stand_in_reads
			: &a->tiny_reads,
		1, memory_order_relaxed);
	return true;
}

/* -- Pages ----------------------------------------------------------------- */

/* A whole file that this cache answered as it is. */
static bool analysis_stays(void *arg, const struct cache_item *item)
{
	struct analysis *a = arg;

	return item->size == item->version.size_bytes &&
		item->size <= STAYS_MAX &&
		!atomic_load_explicit(&a->drops, memory_order_relaxed) &&
		atomic_load(&a->content) == CONTENT_REAL &&
		atomic_load(&a->begun[item->digest.lo % FILES_BEGUN]) ==
		CONTENT_REAL &&
		cache_resident(a->parts->cache, item);
}

static void analysis_seen(void *arg, const struct cache_item *item)
{
	struct analysis *a = arg;

	note_idle(a);
	COUNT(a->parts->counters, first_reads);
	COUNT(a->parts->counters, hits);
	COUNT_ADD(a->parts->counters, hit_bytes, item->size);
	(void)atomic_fetch_add_explicit(
		&a->kept_reads, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(
		&a->read_bytes, item->size, memory_order_relaxed);
}

/* -- Life ------------------------------------------------------------------ */

static void analysis_refused(void *arg)
{
	struct analysis *a = arg;

	atomic_store_explicit(&a->refused, true, memory_order_relaxed);
}

static int analysis_begin(
	void *arg, const struct mount_parts *parts, struct error *err)
{
	struct analysis *a = arg;
	const struct kept_config kept = {.manifest = parts->manifest,
		.mountpoint = parts->mountpoint,
		.stays = analysis_stays,
		.seen = analysis_seen,
		.arg = a};

	a->parts = parts;
	a->kept = kept_new(&kept);
	a->keeper = (struct pages_keeper){.open = kept_open,
		.close = kept_close,
		.add = kept_add,
		.look = kept_look,
		.check = kept_check,
		.bytes = kept_bytes,
		.has = kept_has,
		.kept = a->kept};
	return a->kept ? 0 : error_set(err, -ENOMEM, "cannot mount: %m");
}

/* The tables that the mount gets. */
static void fill_hooks(struct analysis *a)
{
	const struct ctl_command commands[] = {{"mask", command_mask, a},
		{"content", command_content, a}, {"rates", command_rates, a},
		{NULL, NULL, NULL}};

	memcpy(a->commands, commands, sizeof(commands));
	atomic_init(&a->mask.limit, CACHE_MASK_NONE);
	a->watch = (struct fs_watch){.read = analysis_read, .arg = a};
	a->hooks = (struct mount_hooks){.begin = analysis_begin,
		.refused = analysis_refused,
		.commands = a->commands,
		.mask = &a->mask,
		.watch = &a->watch,
		.keeper = &a->keeper,
		.whole_max_bytes = STAYS_MAX,
		.arg = a};
}

static struct analysis *analysis_new(void)
{
	struct analysis *a = calloc(1, sizeof(*a));

	if (!a || pthread_key_create(&a->scratch, free_scratch) != 0) {
		free(a);
		return NULL;
	}
	lock_init(&a->lock, RANK_ANALYSIS);
	fill_hooks(a);
	return a;
}

static void analysis_free(struct analysis *a)
{
	(void)pthread_mutex_destroy(&a->lock); /* nobody is left */
	(void)pthread_key_delete(a->scratch);
	stand_ins_free(a->stand_ins);
	kept_free(a->kept);
	free(a);
}

int analysis_run(const struct mount_options *options, struct error *err)
{
	struct mount_options o = *options;
	struct analysis *a = analysis_new();
	int rc;

	if (!a)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	o.hooks = &a->hooks;
	rc = daemon_run(&o, err);
	analysis_free(a);
	return rc;
}
