/* SPDX-License-Identifier: MIT */
/* READs of a mount with --analysis: answers them from the file or from another
 * image, and counts them. Also has the rules for pages that the kernel may
 * keep. Used by the workers of the session, and by the thread of the pages. */
#include "analysis/subject/subject_impl.h"

#include <string.h>

#include "common/base/clock.h"

/* A shorter time without a READ does not count as idle, because a trainer may
 * read only once in a step. */
#define IDLE_NS NS_PER_S

/* -- READs ----------------------------------------------------------------- */

static void note_idle(struct subject *s)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t last_ns = atomic_exchange_explicit(
		&s->last_read_ns, now_ns, memory_order_relaxed);

	if (last_ns > 0 && now_ns > last_ns + IDLE_NS)
		COUNT_ADD(s->parts->counters, idle_us,
			(now_ns - last_ns) / NS_PER_US);
}

/* Returns the scratch memory of the calling thread; NULL if memory is short. */
static struct store_scratch *scratch_of(struct subject *s)
{
	struct store_scratch *scratch = pthread_getspecific(s->scratch);

	if (!scratch) {
		scratch = store_scratch_new();
		if (pthread_setspecific(s->scratch, scratch) != 0) {
			store_scratch_free(scratch);
			return NULL;
		}
	}
	return scratch;
}

struct hash128 subject_item(const struct subject *s,
	const struct cache_item *item, struct cache_item *first)
{
	*first = *item;
	cache_item_at(s->parts->cache, 0, first);
	return cache_key(s->parts->cache, first);
}

bool subject_has_image_name(struct subject *s, uint64_t cookie)
{
	char path[MANIFEST_PATH_MAX];

	return manifest_path(s->parts->manifest, (node_id)cookie, path,
		       sizeof(path)) >= 0 &&
		stand_in_is_image(path);
}

/* Is the item a JPEG? If a tier has the item, its first bytes show this; if
 * another image stands in for it, its name does. */
static bool reads_as_jpeg(struct subject *s, const struct cache_item *item)
{
	static const uint8_t magic[] = {0xff, 0xd8, 0xff};
	struct store_scratch *scratch = scratch_of(s);
	struct cache_item first;
	struct hash128 key = subject_item(s, item, &first);
	const void *data;

	if (first.size <= STAND_IN_TINY_BYTES || !scratch)
		return false;
	if (store_read(s->parts->store, scratch, key, first.size, 0,
		    sizeof(magic), &data) == (ssize_t)sizeof(magic))
		return memcmp(data, magic, sizeof(magic)) == 0;
	return atomic_load_explicit(&s->standing, memory_order_acquire) &&
		subject_has_image_name(s, item->cookie);
}

/* Does the mask allow this item to hit, although no tier has it? */
static bool needs_stand_in(struct subject *s, const struct cache_item *item)
{
	uint64_t limit =
		atomic_load_explicit(&s->mask.limit, memory_order_relaxed);
	struct cache_item first;
	struct hash128 key;

	if (!atomic_load_explicit(&s->standing, memory_order_acquire))
		return false;
	key = subject_item(s, item, &first);
	return (limit == CACHE_MASK_NONE || key.hi < limit) &&
		!store_has(s->parts->store, key, first.size) &&
		subject_has_image_name(s, item->cookie);
}

/* Answer from an image that stands in, the same one for all READs of a file.
 * The smallest files get a tiny image. */
static bool put_stand_in(struct subject *s, const struct cache_item *item,
	uint64_t off, size_t len, void *buf)
{
	struct store_scratch *scratch = scratch_of(s);
	struct stand_in in;
	const void *data;
	size_t n = 0;

	if (!scratch)
		return false;
	if (!stand_ins_find(s->stand_ins, item->version.size_bytes,
		    item->digest.lo, &in)) {
		stand_in_tiny(off, len, buf);
		return item->version.size_bytes > STAND_IN_TINY_BYTES;
	}
	if (off < in.size_bytes) {
		n = in.size_bytes - off < len ? (size_t)(in.size_bytes - off)
					      : len;
		if (store_read(s->parts->store, scratch, in.key, in.size_bytes,
			    off, n, &data) != (ssize_t)n)
			return false;
		memcpy(buf, data, n);
	}
	memset((char *)buf + n, 0, len - n);
	return true;
}

static void be_late(struct subject *s)
{
	uint64_t ns = NS_PER_US *
		atomic_load_explicit(&s->late_us, memory_order_relaxed);
	struct timespec late = {.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S)};

	(void)nanosleep(&late, NULL);
}

static enum content content_of(
	struct subject *s, const struct cache_item *item, uint64_t off)
{
	atomic_uchar *begun = &s->begun[item->digest.lo % FILES_BEGUN];
	enum content content;

	if (off > 0)
		return atomic_load_explicit(begun, memory_order_relaxed);
	content = atomic_load_explicit(&s->content, memory_order_relaxed);
	if (content == CONTENT_REAL_LATE) {
		be_late(s);
		content = CONTENT_REAL;
	}
	if (content == CONTENT_REAL && needs_stand_in(s, item))
		content = CONTENT_STAND_IN;
	atomic_store_explicit(
		begun, (unsigned char)content, memory_order_relaxed);
	return content;
}

/* Answer a READ from another image. Returns true if it was answered. */
static bool answer_otherwise(struct subject *s, const struct cache_item *item,
	enum content content, uint64_t off, size_t len, void *buf)
{
	if (content == CONTENT_REAL)
		return false;
	if (content == CONTENT_STAND_IN)
		return needs_stand_in(s, item) &&
			put_stand_in(s, item, off, len, buf);
	if (!reads_as_jpeg(s, item))
		return false;
	stand_in_tiny(off, len, buf);
	if (content == CONTENT_LATE && off == 0)
		be_late(s);
	return true;
}

bool subject_read(void *arg, const struct cache_item *item, uint64_t off,
	size_t len, void *buf, pid_t thread)
{
	struct subject *s = OBJECT(subject, arg);
	enum content content = content_of(s, item, off);
	bool answered;

	note_idle(s);
	if (off == 0) {
		COUNT(s->parts->counters, first_reads);
		readers_note(&s->readers, thread);
		kept_asked(s->kept, item);
	}
	(void)atomic_fetch_add_explicit(
		&s->read_bytes, len, memory_order_relaxed);
	answered = answer_otherwise(s, item, content, off, len, buf);
	/* Report this read to the pages. The bytes of a hit are in the kernel
	 * at once; those of a miss are reported by the cache. The readers of a
	 * large file may come back for other parts of it, so the file is
	 * counted by its bytes. */
	pages_part(s->parts->pages, item, off, len);
	if (off + len >= item->base + item->size &&
		(answered || cache_resident(s->parts->cache, item)))
		pages_passed(s->parts->pages, item);
	if (!answered || off > 0)
		return answered;
	COUNT(s->parts->counters, hits);
	(void)atomic_fetch_add_explicit(content == CONTENT_STAND_IN
			? &s->stand_in_reads
			: &s->tiny_reads,
		1, memory_order_relaxed);
	return true;
}

/* -- Pages ----------------------------------------------------------------- */

bool subject_stays(void *arg, const struct cache_item *item)
{
	struct subject *s = OBJECT(subject, arg);

	return item->size == item->version.size_bytes &&
		item->size <= SUBJECT_STAYS_MAX &&
		!atomic_load_explicit(&s->drops, memory_order_relaxed) &&
		atomic_load(&s->content) == CONTENT_REAL &&
		atomic_load(&s->begun[item->digest.lo % FILES_BEGUN]) ==
		CONTENT_REAL &&
		cache_resident(s->parts->cache, item);
}

void subject_seen(void *arg, const struct cache_item *item)
{
	struct subject *s = OBJECT(subject, arg);

	note_idle(s);
	COUNT(s->parts->counters, first_reads);
	COUNT(s->parts->counters, hits);
	COUNT_ADD(s->parts->counters, hit_bytes, item->size);
	(void)atomic_fetch_add_explicit(
		&s->kept_reads, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(
		&s->read_bytes, item->size, memory_order_relaxed);
}
