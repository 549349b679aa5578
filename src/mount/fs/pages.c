/* SPDX-License-Identifier: MIT */
/*
 * Limits the pages that the kernel keeps of items that are in no tier. Such
 * pages are useless before the next epoch, and take memory from other pages.
 * Items that were served to their end are queued here. When the queue exceeds
 * the limit, the pages of the oldest items are dropped. Dropping may block, so
 * a separate thread drops pages, never a handler. The thread waits a moment
 * before it drops the pages of an item: a reader that was just answered may not
 * have run yet, and would have to request its pages again.
 *
 * Pages are dropped through the mount, as any program could do it, because the
 * kernel then skips pages that are mapped or locked by a reader. A notification
 * to the kernel would wait for such pages, unkillable and with the descriptor
 * of the session open: after a kill -9 the reader would wait for the daemon,
 * and the daemon for the reader. For the same reason the thread has its own
 * table of descriptors, without that of the session. But opening a file can
 * wait for the daemon, too, if the kernel's name of it has expired. A daemon
 * that waits for itself cannot end, so for a mount that outlives its daemon
 * another process opens the file (common/base/notifier.h). If there is none,
 * the pages stay until the kernel needs their memory.
 *
 * The thread also calls the keeper, which finds out which of the pages that
 * stay were read.
 */
#include "mount/fs/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/list.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/notifier.h"

_Static_assert(MANIFEST_PATH_MAX <= NOTIFIER_PATH_MAX, "it fits");

/* Pages stay at least for KEEP_NS, unless the queue exceeds the limit by
 * KEEP_BYTES. */
#define KEEP_NS (100 * NS_PER_MS)
#define KEEP_BYTES ((uint64_t)64 << 20)

/* Pages of large files stay longer: the kernel reads up to 2 MiB ahead in such
 * files, and even a slow reader must have the time to read so far. */
#define KEEP_PART_NS NS_PER_S

/* The thread may drop an item later than necessary by this time, because waking
 * up once for several items costs less than waking up for each. */
#define PAUSE_NS (50 * NS_PER_MS)

/* In an analysis, pages that are read in one epoch must be gone when they are
 * read in the next epoch, which may begin at once for some items. If the pages
 * of 1/n of the dataset stay, the analysis fails to see the reads of 1/2n^2 of
 * the items. */
#define KEEP_SHARE 25
/* The kernel does not drop pages that are being read, so the thread tries up to
 * this many times. If they stayed, the next reader would not request the end of
 * the item, and the analysis would not see this item. */
#define TRIES_MAX 50

#ifndef SYS_cachestat
/* the number is the same for all architectures */
#define SYS_cachestat 451
#endif
#define KEEP_LEAST ((uint64_t)1 << 20)

#define FOREVER_NS (UINT64_MAX / 2)

/* The time between two checks of the keeper whether the pages that stay were
 * read. The kernel remembers reads for much longer. */
#define LOOK_NS (20 * NS_PER_MS)

struct passed {
	struct list link;
	struct cache_item item;
	uint64_t since_ns, keep_ns;
	/* If the queue exceeds the limit by this, keep_ns does not count. 0:
	 * use pages.keep_bytes instead. */
	uint64_t crowd_bytes;
	unsigned tries;
};

struct pages {
	uint32_t magic;
	struct pages_config config; /* set once */
	pthread_t thread;	    /* set once */
	/* Only the thread uses this. If the queue exceeds the limit by more,
	 * KEEP_NS does not count */
	uint64_t keep_bytes;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	struct list queue; /* list of struct passed, oldest first */
	uint64_t bytes;	   /* size of the queued items */
	/* The thread is woken when the queue has this size */
	uint64_t wanted_at;
	/* Numbers of looks of the keeper that callers have requested, and that
	 * are done */
	uint64_t wanted, done;
	/* Before the next look, call check() of the keeper */
	bool changed;
	uint64_t kept_bytes; /* bytes() of the keeper after the last look */
	bool stopping;
	/* like `quit`, for a thread that waits for the agent without the lock
	 */
	atomic_bool quitting;
};

static bool is_over(const struct pages *p)
{
	return p->bytes > p->config.max_bytes;
}

static struct passed *pages_oldest(const struct pages *p)
{
	return LIST_FIRST(&p->queue, struct passed, link);
}

/* Returns the queue size above which the oldest item may be dropped before its
 * time. */
static uint64_t crowded_at(const struct pages *p, const struct passed *i)
{
	return p->config.max_bytes +
		(i->crowd_bytes > 0 ? i->crowd_bytes : p->keep_bytes);
}

static bool may_drop(const struct pages *p)
{
	const struct passed *i = pages_oldest(p);

	return (p->bytes > crowded_at(p, i) && i->tries == 0) ||
		clock_now_ns() >= i->since_ns + i->keep_ns;
}

/* Compute keep_bytes again, because the dataset may have grown. */
static void set_keep_bytes(struct pages *p)
{
	struct manifest_totals totals;
	uint64_t share;

	manifest_totals(p->config.manifest, &totals);
	share = totals.bytes / KEEP_SHARE;
	p->keep_bytes = KEEP_BYTES;
	if (p->config.each_epoch && share < KEEP_BYTES)
		p->keep_bytes = share > KEEP_LEAST ? share : KEEP_LEAST;
}

/* Wait for a change. Returns false at until_ns, or if a caller waits for a
 * look. */
static bool pages_wait(struct pages *p, uint64_t until_ns)
{
	return !p->stopping && p->wanted == p->done &&
		cond_wait_until(&p->cond, &p->lock, until_ns);
}

/* Wait until it is time to drop pages or to look whether pages were read, or
 * until the thread must end. */
static void wait_for_pages(struct pages *p)
{
	uint64_t now_ns = clock_now_ns(), until_ns;
	uint64_t look_ns = p->kept_bytes > 0 ? now_ns + LOOK_NS : FOREVER_NS;

	p->wanted_at = p->config.max_bytes;
	while (!is_over(p) && pages_wait(p, look_ns))
		;
	if (!is_over(p))
		return;
	p->wanted_at = crowded_at(p, pages_oldest(p));
	until_ns =
		pages_oldest(p)->since_ns + pages_oldest(p)->keep_ns + PAUSE_NS;
	while (!may_drop(p) &&
		pages_wait(p, until_ns < look_ns ? until_ns : look_ns))
		;
	/* Lower the value, so that the thread does not wake up again soon */
	p->keep_bytes -= p->keep_bytes / 4;
}

/* Does the kernel have pages of the item? Returns false if that is unknown. */
static bool has_pages(int fd, const struct passed *i)
{
	uint64_t range[2] = {i->item.base, i->item.size};
	/* number of pages in the cache, then of pages in other states */
	uint64_t pages[5] = {0};

	return syscall(SYS_cachestat, fd, range, pages, 0) == 0 && pages[0] > 0;
}

/* Have the agent's process drop the pages. */
static void forget_elsewhere(
	const struct pages *p, const struct passed *i, const char *path)
{
	struct notifier_drop d = {i->item.base, i->item.size, ""};
	struct agent_message m = {&d, 0, -1};
	size_t len = strlen(path) + 1;
	CLEANUP_FD int root =
		open(p->config.mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || len > sizeof(d.path))
		return; /* the mount was detached */
	memcpy(d.path, path, len);
	m.size = offsetof(struct notifier_drop, path) + len;
	m.fd = root;
	if (agent_do(p->config.agent, &m, 1, &p->quitting) == 0)
		COUNT_ADD(p->config.counters, pages_dropped, i->item.size);
}

/* Returns false if some pages are left. */
static bool forget_here(
	const struct pages *p, const struct passed *i, const char *path)
{
	CLEANUP_FREE char *name = NULL;
	CLEANUP_FD int fd = -1;

	if (asprintf(&name, "%s/%s", p->config.mountpoint, path) < 0)
		return true;
	fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 ||
		posix_fadvise(fd, (off_t)i->item.base, (off_t)i->item.size,
			POSIX_FADV_DONTNEED) != 0)
		return true;
	if (p->config.each_epoch && has_pages(fd, i))
		return false;
	COUNT_ADD(p->config.counters, pages_dropped, i->item.size);
	return true;
}

/* Drop the pages of an item. A file that is gone or cannot be opened has none.
 * Returns false if some pages are left. */
static bool pages_forget(const struct pages *p, const struct passed *i)
{
	char path[MANIFEST_PATH_MAX];

	if (manifest_path(p->config.manifest, (node_id)i->item.cookie, path,
		    sizeof(path)) < 0)
		return true;
	if (!p->config.agent)
		return forget_here(p, i, path);
	forget_elsewhere(p, i, path);
	return true;
}

static void append_passed(struct pages *p, struct passed *i)
{
	ASSERT_HELD(&p->lock);
	i->since_ns = clock_now_ns();
	list_add_tail(&p->queue, &i->link);
	p->bytes += i->item.size;
}

/* Do the pages of this item stay? */
static bool pages_keep(const struct pages *p, const struct passed *i)
{
	const struct pages_keeper *k = p->config.keeper;

	return k && k->add(k->kept, &i->item, i->since_ns);
}

/* Drop the oldest item. Releases the lock in the meantime. */
static void drop_oldest(struct pages *p)
{
	struct passed *i = pages_oldest(p);
	bool again;

	ASSERT_HELD(&p->lock);
	list_del(&i->link);
	p->bytes -= i->item.size;
	pthread_mutex_unlock(&p->lock);
	again = !pages_keep(p, i) && !pages_forget(p, i) &&
		++i->tries < TRIES_MAX;
	if (!again)
		free(i);
	pthread_mutex_lock(&p->lock);
	if (again)
		append_passed(p, i);
}

/* Queue an item whose pages are to be dropped at once. If memory is short, its
 * pages stay. */
static void drop_next(void *arg, const struct cache_item *item)
{
	struct passed *i = calloc(1, sizeof(*i));
	struct pages *p = OBJECT(pages, arg);

	if (!i)
		return;
	i->item = *item;
	LOCK_SCOPE(&p->lock);
	list_add(&p->queue, &i->link);
	p->bytes += item->size;
}

/* Let the keeper look for reads, and drop the items that it names. Releases the
 * lock in the meantime. */
static void pages_look(struct pages *p)
{
	const struct pages_keeper *k = p->config.keeper;
	uint64_t wanted = p->wanted;
	bool changed = p->changed;

	ASSERT_HELD(&p->lock);
	p->changed = false;
	pthread_mutex_unlock(&p->lock);
	if (k)
		k->look(k->kept);
	if (k && changed)
		k->check(k->kept, drop_next, p);
	pthread_mutex_lock(&p->lock);
	while (!p->stopping && is_over(p) && may_drop(p))
		drop_oldest(p);
	p->done = wanted;
	p->kept_bytes = k ? k->bytes(k->kept) : 0;
	pthread_cond_broadcast(&p->cond);
}

static void *pages_main(void *arg)
{
	struct pages *p = OBJECT(pages, arg);
	const struct pages_keeper *k = p->config.keeper;

	/*
	 * If the thread opens files, give it an empty table of descriptors of
	 * its own. Otherwise it could keep a pipe or socket open, while another
	 * process waits for its end. If the system does not allow this, the
	 * thread shares the table.
	 */
	if (!p->config.agent)
		(void)close_range(0, ~0U, CLOSE_RANGE_UNSHARE);
	if (k)
		k->open(k->kept);
	for (;;) {
		set_keep_bytes(p);
		LOCK_SCOPE(&p->lock);
		wait_for_pages(p);
		if (p->stopping)
			break;
		pages_look(p);
	}
	if (k)
		k->close(k->kept);
	return NULL;
}

static void add_passed(struct pages *p, const struct cache_item *item,
	uint64_t keep_ns, uint64_t crowd_bytes)
{
	struct passed *i = malloc(sizeof(*i));

	if (!i)
		/* Without memory to note the item, its pages stay until the
		 * kernel reclaims them */
		return;
	*i = (struct passed){
		.item = *item, .keep_ns = keep_ns, .crowd_bytes = crowd_bytes};
	LOCK_SCOPE(&p->lock);
	append_passed(p, i);
	if (p->bytes > p->wanted_at && p->bytes - item->size <= p->wanted_at)
		pthread_cond_broadcast(&p->cond);
}

static bool goes_by_parts(const struct pages *p, const struct cache_item *item)
{
	return p->config.whole_max_bytes > 0 &&
		item->version.size_bytes > p->config.whole_max_bytes;
}

void pages_passed(struct pages *p, const struct cache_item *item)
{
	const struct pages_keeper *k = p->config.keeper;

	/* Do not queue an item that the keeper has: the keeper decides when to
	 * drop it. */
	if (!goes_by_parts(p, item) && !(k && k->has(k->kept, item)))
		add_passed(p, item, KEEP_NS, 0);
}

void pages_part(struct pages *p, const struct cache_item *item, uint64_t off,
	uint64_t len)
{
	struct cache_item part = *item;

	part.base = off;
	part.size = len;
	if (goes_by_parts(p, item))
		add_passed(p, &part, KEEP_PART_NS, KEEP_BYTES);
}

static uint64_t wait_for_look(struct pages *p, bool changed)
{
	uint64_t mine;
	LOCK_SCOPE(&p->lock);

	mine = ++p->wanted;
	p->changed |= changed;
	pthread_cond_broadcast(&p->cond);
	while (!p->stopping && p->done < mine)
		pthread_cond_wait(&p->cond, &p->lock);
	return p->kept_bytes;
}

uint64_t pages_settle(struct pages *p)
{
	return wait_for_look(p, false);
}

void pages_changed(struct pages *p)
{
	(void)wait_for_look(p, true);
}

int pages_new(struct pages **out, const struct pages_config *config,
	struct error *err)
{
	struct pages *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "cannot bound pages: %m");
	MAGIC_BEGIN(p, pages);
	p->config = *config;
	lock_init(&p->lock, RANK_PAGES);
	cond_init(&p->cond);
	list_init(&p->queue);
	rc = -pthread_create(&p->thread, NULL, pages_main, p);
	if (rc < 0) {
		free(p);
		return error_set(err, rc, "cannot start a thread: %m");
	}
	*out = p;
	return 0;
}

void pages_stop(struct pages *p)
{
	if (!p)
		return;
	atomic_store(&p->quitting, true);
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	LIST_FOREACH_SAFE(l, next, &p->queue)
		free(CONTAINER_OF(l, struct passed, link));
	(void)pthread_cond_destroy(&p->cond); /* no thread waits any more */
	(void)pthread_mutex_destroy(&p->lock);
	MAGIC_END(p);
	free(p);
}
