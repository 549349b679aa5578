/* SPDX-License-Identifier: MIT */
/*
 * The commands of a mount with --analysis: `mask` makes the cache look smaller,
 * `content` replaces images by tiny ones, `rates` counts what is read. The
 * kernel's pages of an item are dropped after it was read to its end, so that
 * the next epoch reads it again from the daemon. Entered by the workers of the
 * session and by threads of control connections.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/mount_impl.h"

/* Shorter times without a READ are not counted as idle: a trainer may read only
 * once a step. */
#define IDLE_NS NS_PER_S

/* A trainer that is its own limit does not notice this delay. It blocks a
 * thread of the session, which is acceptable only during an analysis. */
#define LATE_NS NS_PER_MS

/* Entries of a table; files that share one are rarely read at the same moment.
 */
#define FILES_BEGUN (1U << 20)

enum content {
	CONTENT_REAL,
	CONTENT_TINY, /* JPEGs are a tiny image, padded with zeros */
	CONTENT_LATE, /* the same, LATE_NS later */
};

struct analysis {
	pthread_mutex_t lock; /* guards `stopped`; held by pages_passed() */
	bool stopped;	      /* `pages` may be gone */
	struct counters *counters; /* set once */
	struct store *store;	   /* set once */
	struct cache *cache;	   /* these two by analysis_begin() */
	struct pages *pages;
	struct fs_watch watch;	/* set once */
	struct cache_mask mask; /* atomic */
	/* Relaxed, these three: nothing else depends on them. */
	atomic_int content; /* enum content */
	_Atomic uint64_t read_bytes;
	_Atomic uint64_t tiny_reads; /* of a file's first byte */
	_Atomic uint64_t last_read_ns;
	/* The content that a file's first READ got, by a hash of the file:
	 * later ones get the same, so that no image is half tiny. */
	atomic_uchar begun[FILES_BEGUN];
};

/* A grey JPEG of 64 x 64 pixels: crops of larger images still fit in it. */
static const uint8_t tiny_jpeg[] = {
	/* clang-format off */
	0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46, 0x49, 0x46,
	0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00,
	0xff, 0xdb, 0x00, 0x43, 0x00, 0x10, 0x0b, 0x0c, 0x0e, 0x0c,
	0x0a, 0x10, 0x0e, 0x0d, 0x0e, 0x12, 0x11, 0x10, 0x13, 0x18,
	0x28, 0x1a, 0x18, 0x16, 0x16, 0x18, 0x31, 0x23, 0x25, 0x1d,
	0x28, 0x3a, 0x33, 0x3d, 0x3c, 0x39, 0x33, 0x38, 0x37, 0x40,
	0x48, 0x5c, 0x4e, 0x40, 0x44, 0x57, 0x45, 0x37, 0x38, 0x50,
	0x6d, 0x51, 0x57, 0x5f, 0x62, 0x67, 0x68, 0x67, 0x3e, 0x4d,
	0x71, 0x79, 0x70, 0x64, 0x78, 0x5c, 0x65, 0x67, 0x63, 0xff,
	0xdb, 0x00, 0x43, 0x01, 0x11, 0x12, 0x12, 0x18, 0x15, 0x18,
	0x2f, 0x1a, 0x1a, 0x2f, 0x63, 0x42, 0x38, 0x42, 0x63, 0x63,
	0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63,
	0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63,
	0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63,
	0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63,
	0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0x63, 0xff, 0xc0,
	0x00, 0x11, 0x08, 0x00, 0x40, 0x00, 0x40, 0x03, 0x01, 0x22,
	0x00, 0x02, 0x11, 0x01, 0x03, 0x11, 0x01, 0xff, 0xc4, 0x00,
	0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
	0xc4, 0x00, 0x14, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0xff, 0xc4, 0x00, 0x14, 0x01, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0xff, 0xc4, 0x00, 0x14, 0x11, 0x01, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xda, 0x00, 0x0c, 0x03,
	0x01, 0x00, 0x02, 0x11, 0x03, 0x11, 0x00, 0x3f, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0xff, 0xd9,
	/* clang-format on */
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

/* Does the tier have the file's beginning, and is it a JPEG? */
static bool is_cached_jpeg(
	const struct analysis *a, const struct cache_item *item)
{
	static const uint8_t magic[] = {0xff, 0xd8, 0xff};
	struct store_scratch *s = store_scratch_new();
	struct cache_item first = *item;
	const void *data;
	bool jpeg = false;

	cache_item_at(a->cache, 0, &first);
	if (s && first.size > sizeof(tiny_jpeg) &&
		store_read(a->store, s, cache_key(a->cache, &first), first.size,
			0, sizeof(magic), &data) == (ssize_t)sizeof(magic))
		jpeg = memcmp(data, magic, sizeof(magic)) == 0;
	store_scratch_free(s);
	return jpeg;
}

static void put_tiny(uint64_t off, size_t len, void *buf)
{
	size_t n = 0;

	if (off < sizeof(tiny_jpeg)) {
		n = sizeof(tiny_jpeg) - (size_t)off;
		n = n < len ? n : len;
		memcpy(buf, tiny_jpeg + off, n);
	}
	memset((char *)buf + n, 0, len - n);
}

static void drop_pages(struct analysis *a, const struct cache_item *item)
{
	LOCK_SCOPE(&a->lock);

	if (!a->stopped)
		pages_passed(a->pages, item);
}

static enum content content_of(
	struct analysis *a, const struct cache_item *item, uint64_t off)
{
	atomic_uchar *begun = &a->begun[item->digest.lo % FILES_BEGUN];

	if (off == 0)
		atomic_store_explicit(begun,
			(unsigned char)atomic_load_explicit(
				&a->content, memory_order_relaxed),
			memory_order_relaxed);
	return atomic_load_explicit(begun, memory_order_relaxed);
}

static bool analysis_read(void *arg, const struct cache_item *item,
	uint64_t off, size_t len, void *buf)
{
	static const struct timespec late = {.tv_nsec = LATE_NS};
	struct analysis *a = arg;
	enum content content = content_of(a, item, off);

	note_idle(a);
	if (off == 0)
		COUNT(a->counters, first_reads);
	(void)atomic_fetch_add_explicit(
		&a->read_bytes, len, memory_order_relaxed);
	/*
	 * A hit reaches the kernel at once; for a miss, the cache reports it.
	 */
	if (off + len >= item->base + item->size &&
		cache_resident(a->cache, item))
		drop_pages(a, item);
	if (content == CONTENT_REAL || !is_cached_jpeg(a, item))
		return false;
	put_tiny(off, len, buf);
	if (off > 0)
		return true;
	if (content == CONTENT_LATE)
		(void)nanosleep(&late, NULL);
	COUNT(a->counters, hits);
	(void)atomic_fetch_add_explicit(
		&a->tiny_reads, 1, memory_order_relaxed);
	return true;
}

/* -- Commands -------------------------------------------------------------- */

bool analysis_refuses(const struct analysis *a, struct ctl_conn *conn)
{
	if (!a)
		return false;
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
	(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
}

void command_content(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct analysis *a = analysis_of(arg, conn);
	const json_t *value = json_object_get(request, "content");
	const char *text =
		json_is_string(value) ? json_string_value(value) : "";
	int content;

	if (!a)
		return;
	if (strcmp(text, "real") == 0) {
		content = CONTENT_REAL;
	} else if (strcmp(text, "tiny") == 0) {
		content = CONTENT_TINY;
	} else if (strcmp(text, "tiny-late") == 0) {
		content = CONTENT_LATE;
	} else {
		(void)ctl_fail(conn,
			"\"content\" must be \"real\", \"tiny\" or "
			"\"tiny-late\"");
		return;
	}
	atomic_store_explicit(&a->content, content, memory_order_relaxed);
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

	(void)request; /* no arguments */
	if (!a)
		return;
	cache_status(a->cache, &s); /* counts the time of what is parked */
	(void)ctl_send(conn,
		json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:I, s:I, s:I}",
			"ok", 1, "time_us",
			(json_int_t)(clock_now_ns() / NS_PER_US), "cpu_us",
			(json_int_t)cpu_us(), "first_reads",
			RATE(a->counters, first_reads), "bytes",
			RATE(a, read_bytes), "hits", RATE(a->counters, hits),
			"misses", RATE(a->counters, misses), "tiny",
			RATE(a, tiny_reads), "starved_us",
			RATE(a->counters, starved_us), "parked_us",
			RATE(a->counters, parked_us), "idle_us",
			RATE(a->counters, idle_us)));
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

	if (!a)
		return error_set(err, -ENOMEM, "cannot analyse: %m");
	(void)pthread_mutex_init(&a->lock, NULL); /* cannot fail on Linux */
	a->counters = counters;
	a->store = store;
	a->watch = (struct fs_watch){.read = analysis_read, .arg = a};
	atomic_init(&a->mask.limit, CACHE_MASK_NONE);
	*out = a;
	return 0;
}

void analysis_begin(
	struct analysis *a, struct cache *cache, struct pages *pages)
{
	a->cache = cache;
	a->pages = pages;
}

void analysis_stop(struct analysis *a)
{
	LOCK_SCOPE(&a->lock);

	a->stopped = true;
}

void analysis_free(struct analysis *a)
{
	if (!a)
		return;
	(void)pthread_mutex_destroy(&a->lock); /* nobody is left */
	free(a);
}
