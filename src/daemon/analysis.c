/* SPDX-License-Identifier: MIT */
/*
 * The commands of a mount with --analysis: `mask` makes the cache look smaller,
 * `content` replaces images by others, `rates` counts what is read. The
 * kernel keeps pages of items that hit, as in other mounts, and what is read of
 * them is seen later; those of others are dropped after they were read to their
 * end, so that the next epoch reads them again from the daemon. Entered by the
 * workers of the session, by threads of control connections, and by that of the
 * pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/mount_impl.h"
#include "stand_in/stand_in.h"

/* Shorter times without a READ are not counted as idle: a trainer may read only
 * once a step. */
#define IDLE_NS NS_PER_S

/* The longest delay of a tiny image. It blocks a thread of the session, which
 * is acceptable only during an analysis. */
#define LATE_MAX_US 1000000

/* Larger files are read by parts, each of which is to be seen. */
#define STAYS_MAX ((uint64_t)4 << 20)

/* Entries of a table; files that share one are rarely read at the same moment.
 */
#define FILES_BEGUN (1U << 20)

enum content {
	CONTENT_REAL,
	CONTENT_TINY,	  /* JPEGs are a tiny image, padded with zeros */
	CONTENT_LATE,	  /* the same, later */
	CONTENT_STAND_IN, /* of one file: a cached image of like size */
};

struct analysis {
	pthread_mutex_t lock;	   /* guards the making of `stand_ins` */
	struct counters *counters; /* set once */
	struct store *store;	   /* set once */
	struct cache *cache;	   /* these two by analysis_begin() */
	struct pages *pages;
	struct manifest *manifest;
	pthread_key_t scratch;	     /* set once; struct store_scratch */
	struct fs_watch watch;	     /* set once */
	struct cache_mask mask;	     /* atomic */
	struct stand_ins *stand_ins; /* set before `standing` */
	/* Cached images are answered in place of others. Release, acquire. */
	atomic_bool standing;
	/* Relaxed, these: nothing else depends on them. */
	atomic_int content; /* enum content */
	atomic_uint late_us;
	struct readers readers;
	_Atomic uint64_t read_bytes;
	_Atomic uint64_t tiny_reads; /* of a file's first byte; and */
	_Atomic uint64_t stand_in_reads;
	_Atomic uint64_t kept_reads; /* of files whose pages had stayed */
	_Atomic uint64_t last_read_ns;
	atomic_bool drops;   /* no pages stay */
	atomic_bool refused; /* a loader wanted to read past the mount */
	/* The content that a file's first READ got, by a hash of the file:
	 * later ones get the same, so that no image is half tiny. */
	atomic_uchar begun[FILES_BEGUN];
};

/* -- READs ----------------------------------------------------------------- */

static void note_idle(struct analysis *a)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t last_ns = atomic_exchange_explicit(
		&a->last_read_ns, now_ns, memory_order_relaxed);

	if (last_ns > 0 && now_ns > last_ns + IDLE_NS)
		COUNT_ADD(a->counters, idle_us, (now_ns - last_ns) / NS_PER_US);
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

/* The item that a file begins with, and its key. */
static struct hash128 first_item(const struct analysis *a,
	const struct cache_item *item, struct cache_item *first)
{
	*first = *item;
	cache_item_at(a->cache, 0, first);
	return cache_key(a->cache, first);
}

/* Is the file an image by its name? */
static bool has_image_name(struct analysis *a, uint64_t cookie)
{
	char path[MANIFEST_PATH_MAX];

	return manifest_path(
		       a->manifest, (node_id)cookie, path, sizeof(path)) >= 0 &&
		stand_in_is_image(path);
}

/* If the tier has the file, its first bytes tell; if others stand in for it,
 * its name does. */
static bool reads_as_jpeg(struct analysis *a, const struct cache_item *item)
{
	static const uint8_t magic[] = {0xff, 0xd8, 0xff};
	struct store_scratch *s = scratch_of(a);
	struct cache_item first;
	struct hash128 key = first_item(a, item, &first);
	const void *data;

	if (first.size <= STAND_IN_TINY_BYTES || !s)
		return false;
	if (store_read(a->store, s, key, first.size, 0, sizeof(magic), &data) ==
		(ssize_t)sizeof(magic))
		return memcmp(data, magic, sizeof(magic)) == 0;
	return atomic_load_explicit(&a->standing, memory_order_acquire) &&
		has_image_name(a, item->cookie);
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
	key = first_item(a, item, &first);
	return (limit == CACHE_MASK_NONE || key.hi < limit) &&
		!store_has(a->store, key, first.size) &&
		has_image_name(a, item->cookie);
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
		if (store_read(a->store, s, in.key, in.size_bytes, off, n,
			    &data) != (ssize_t)n)
			return false;
		memcpy(buf, data, n);
	}
	memset((char *)buf + n, 0, len - n);
	return true;
}

static enum content content_of(
	struct analysis *a, const struct cache_item *item, uint64_t off)
{
	atomic_uchar *begun = &a->begun[item->digest.lo % FILES_BEGUN];
	enum content content;

	if (off > 0)
		return atomic_load_explicit(begun, memory_order_relaxed);
	content = atomic_load_explicit(&a->content, memory_order_relaxed);
	if (content == CONTENT_REAL && needs_stand_in(a, item))
		content = CONTENT_STAND_IN;
	atomic_store_explicit(
		begun, (unsigned char)content, memory_order_relaxed);
	return content;
}

static void be_late(struct analysis *a)
{
	uint64_t ns = NS_PER_US *
		atomic_load_explicit(&a->late_us, memory_order_relaxed);
	struct timespec late = {.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S)};

	(void)nanosleep(&late, NULL);
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
		COUNT(a->counters, first_reads);
		readers_note(&a->readers, thread);
		pages_asked(a->pages, item);
	}
	(void)atomic_fetch_add_explicit(
		&a->read_bytes, len, memory_order_relaxed);
	answered = answer_otherwise(a, item, content, off, len, buf);
	/*
	 * A hit reaches the kernel at once; for a miss, the cache reports it.
	 * The readers of a large file may come back for other parts of it, and
	 * what they read of it is counted by its bytes.
	 */
	pages_part(a->pages, item, off, len);
	if (off + len >= item->base + item->size &&
		(answered || cache_resident(a->cache, item)))
		pages_passed(a->pages, item);
	if (!answered || off > 0)
		return answered;
	COUNT(a->counters, hits);
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
		cache_resident(a->cache, item);
}

static void analysis_seen(void *arg, const struct cache_item *item)
{
	struct analysis *a = arg;

	note_idle(a);
	COUNT(a->counters, first_reads);
	COUNT(a->counters, hits);
	COUNT_ADD(a->counters, hit_bytes, item->size);
	(void)atomic_fetch_add_explicit(
		&a->kept_reads, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(
		&a->read_bytes, item->size, memory_order_relaxed);
}

void analysis_watch_pages(struct analysis *a, struct pages_config *pages)
{
	pages->whole_max_bytes = STAYS_MAX;
	pages->stays = analysis_stays;
	pages->seen = analysis_seen;
	pages->arg = a;
}

/* -- Commands -------------------------------------------------------------- */

bool analysis_refuses(struct analysis *a, struct ctl_conn *conn)
{
	if (!a)
		return false;
	atomic_store_explicit(&a->refused, true, memory_order_relaxed);
	(void)ctl_fail(conn,
		"this mount is being analysed, so nothing may be read or "
		"planned past it; read the files through it");
	return true;
}

/* NULL: the mount is an ordinary one, and the peer got an error. */
static struct analysis *analysis_of(void *arg, struct ctl_conn *conn)
{
	if (!arg)
		(void)ctl_fail(conn,
			"this mount cannot be analysed; mount it with "
			"--analysis, or use refrain analyze");
	return arg;
}

void command_mask(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct analysis *a = analysis_of(arg, conn);
	const json_t *value = json_object_get(request, "x");
	const json_t *keep = json_object_get(request, "keep");
	double x = json_number_value(value);
	uint64_t limit = CACHE_MASK_NONE;

	if (!a)
		return;
	if (!json_is_number(value) || !(x >= 0 && x <= 1)) {
		(void)ctl_fail(conn, "\"x\" must be a number from 0 to 1");
		return;
	}
	/* 2^64 times x; the largest double below 1 stays below the end. */
	if (x < 1)
		limit = (uint64_t)(x * 18446744073709551616.0);
	atomic_store_explicit(&a->mask.limit, limit, memory_order_relaxed);
	if (json_is_boolean(keep))
		atomic_store_explicit(
			&a->drops, !json_is_true(keep), memory_order_relaxed);
	pages_changed(a->pages);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

/* All cached images that are one item. */
static void add_stand_ins(struct analysis *a, struct stand_ins *s)
{
	struct node_info info;

	for (node_id id = NODE_ROOT; id < manifest_end(a->manifest); id++) {
		struct cache_item item;
		struct hash128 key;

		if (manifest_get(a->manifest, id, &info) < 0 || info.retired ||
			info.attr.kind != KIND_FILE ||
			info.attr.version.size_bytes == 0)
			continue;
		item = (struct cache_item){.digest = info.digest,
			.version = info.attr.version,
			.cookie = id};
		key = first_item(a, &item, &item);
		if (item.size == info.attr.version.size_bytes &&
			store_has(a->store, key, item.size) &&
			has_image_name(a, id))
			stand_ins_add(s, key, item.size);
	}
	stand_ins_sort(s);
}

/* The table is made once: entries are never evicted. */
static bool make_stand_ins(struct analysis *a)
{
	LOCK_SCOPE(&a->lock);

	if (!a->stand_ins) {
		struct stand_ins *s = stand_ins_new();

		if (!s)
			return false;
		add_stand_ins(a, s);
		if (stand_ins_count(s) == 0) {
			stand_ins_free(s);
			return false;
		}
		a->stand_ins = s;
	}
	return true;
}

static void tell_stand_ins(struct analysis *a, struct ctl_conn *conn)
{
	if (!make_stand_ins(a)) {
		(void)ctl_fail(conn,
			"no JPEG file is cached that could stand in for "
			"others");
		return;
	}
	atomic_store_explicit(&a->content, CONTENT_REAL, memory_order_relaxed);
	atomic_store_explicit(&a->standing, true, memory_order_release);
	(void)ctl_send(conn,
		json_pack("{s:b, s:I}", "ok", 1, "images",
			(json_int_t)stand_ins_count(a->stand_ins)));
}

void command_content(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct analysis *a = analysis_of(arg, conn);
	const json_t *value = json_object_get(request, "content");
	const char *text =
		json_is_string(value) ? json_string_value(value) : "";
	json_int_t late_us =
		json_integer_value(json_object_get(request, "delay_us"));
	int content;

	if (!a)
		return;
	if (strcmp(text, "stand-in") == 0) {
		tell_stand_ins(a, conn);
		return;
	}
	if (strcmp(text, "real") == 0) {
		content = CONTENT_REAL;
		atomic_store_explicit(
			&a->standing, false, memory_order_relaxed);
	} else if (strcmp(text, "tiny") == 0) {
		content = CONTENT_TINY;
	} else if (strcmp(text, "tiny-late") == 0 && late_us > 0 &&
		late_us <= LATE_MAX_US) {
		content = CONTENT_LATE;
		atomic_store_explicit(
			&a->late_us, (unsigned)late_us, memory_order_relaxed);
	} else {
		(void)ctl_fail(conn,
			"\"content\" must be \"real\", \"stand-in\", "
			"\"tiny\" or \"tiny-late\", this with \"delay_us\" "
			"from 1 to 1000000");
		return;
	}
	atomic_store_explicit(&a->content, content, memory_order_relaxed);
	pages_changed(a->pages);
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

/* A counter as JSON has it. */
#define RATE(of, name)                                                         \
	((json_int_t)atomic_load_explicit(&(of)->name, memory_order_relaxed))

/* Processor time of this daemon. */
static uint64_t cpu_us(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / NS_PER_US;
}

void command_rates(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct analysis *a = analysis_of(arg, conn);
	struct cache_status s;
	uint64_t kept;

	(void)request; /* no arguments */
	if (!a)
		return;
	kept = pages_settle(a->pages);
	cache_status(a->cache, &s); /* counts the time of what is parked */
	(void)ctl_send(conn,
		json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
			"ok", 1, "time_us",
			(json_int_t)(clock_now_ns() / NS_PER_US), "cpu_us",
			(json_int_t)cpu_us(), "first_reads",
			RATE(a->counters, first_reads), "bytes",
			RATE(a, read_bytes), "hits", RATE(a->counters, hits),
			"misses", RATE(a->counters, misses), "tiny",
			RATE(a, tiny_reads), "stand_ins",
			RATE(a, stand_in_reads), "kept", RATE(a, kept_reads),
			"kept_bytes", (json_int_t)kept, "starved_us",
			RATE(a->counters, starved_us), "parked_us",
			RATE(a->counters, parked_us), "idle_us",
			RATE(a->counters, idle_us), "readers",
			(json_int_t)readers_count(&a->readers), "refused",
			(int)atomic_load_explicit(
				&a->refused, memory_order_relaxed)));
}

/* -- Life ------------------------------------------------------------------ */

const struct cache_mask *analysis_mask(const struct analysis *a)
{
	return &a->mask;
}

const struct fs_watch *analysis_watch(const struct analysis *a)
{
	return &a->watch;
}

int analysis_new(struct analysis **out, struct counters *counters,
	struct store *store, struct error *err)
{
	struct analysis *a = calloc(1, sizeof(*a));

	if (!a || pthread_key_create(&a->scratch, free_scratch) != 0) {
		free(a);
		return error_set(err, -ENOMEM, "cannot analyse: %m");
	}
	(void)pthread_mutex_init(&a->lock, NULL); /* cannot fail on Linux */
	a->counters = counters;
	a->store = store;
	a->watch = (struct fs_watch){.read = analysis_read, .arg = a};
	atomic_init(&a->mask.limit, CACHE_MASK_NONE);
	*out = a;
	return 0;
}

void analysis_begin(struct analysis *a, struct manifest *manifest,
	struct cache *cache, struct pages *pages)
{
	a->manifest = manifest;
	a->cache = cache;
	a->pages = pages;
}

void analysis_free(struct analysis *a)
{
	if (!a)
		return;
	(void)pthread_mutex_destroy(&a->lock); /* nobody is left */
	(void)pthread_key_delete(a->scratch);
	stand_ins_free(a->stand_ins);
	free(a);
}
