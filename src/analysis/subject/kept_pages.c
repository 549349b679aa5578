/* SPDX-License-Identifier: MIT */
/* Has the kernel keep pages, and finds out when they are read. An item is a
 * whole file here, so a read after the file was closed begins to read the item
 * again. */
#include "analysis/subject/kept_pages_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/feature.h"
#include "common/base/lock.h"

/* A read belongs to the same reading of a file as the read before it, unless
 * more time than AGAIN_NS, or reads of 1/AGAIN_SHARE of all kept files, lie
 * between the two. */
#define AGAIN_NS (100 * NS_PER_MS)
#define AGAIN_SHARE 25

/* Like AGAIN_NS, for a file that was not closed in between: its reader may be
 * slow, or keep the file open from one epoch to the next. */
#define HELD_NS NS_PER_S

/* Kept pages take at most this fraction of the machine's memory: a quarter. */
#define MEMORY_SHARE 4

#define EVENTS (IN_ACCESS | IN_CLOSE_NOWRITE)

struct kept_file {
	struct cache_item item;
	/* time of the last read, and its number among all reads */
	uint64_t last_ns, last_read;
	bool closed; /* the file was closed after the last read */
};

struct kept {
	struct kept_config config; /* set once */
	uint64_t max_bytes;	   /* set once */
	int fd;			   /* used by the thread; -1: no inotify */
	node_id *dir; /* used by the thread; directory of each watch; 0: none */
	size_t ndirs;
	/* guards the members below, which only the thread writes */
	pthread_mutex_t lock;
	struct kept_file **file; /* indexed by node; NULL: not kept */
	size_t nfiles;
	size_t files;	/* number of kept files */
	uint64_t bytes; /* bytes of the files that are kept */
	uint64_t reads; /* number of reads so far */
};

struct kept *kept_new(const struct kept_config *config)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->config = *config;
	k->max_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		(uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;
	k->fd = -1;
	lock_init(&k->lock, RANK_KEPT);
	return k;
}

void kept_open(struct kept *k)
{
	if (feature_enabled("inotify"))
		k->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void kept_close(struct kept *k)
{
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nfiles; i++)
		free(k->file[i]);
	free(k->file);
	free(k->dir);
	(void)pthread_mutex_destroy(&k->lock); /* no thread uses it any more */
	free(k);
}

/* -- Keeping ------------------------------------------------------------- */

/* Watch the directory of a file. Repeated calls do no harm. */
static bool kept_watch_dir(struct kept *k, node_id id)
{
	node_id dir = manifest_parent(k->config.manifest, id);
	char path[MANIFEST_PATH_MAX];
	CLEANUP_FREE char *name = NULL;
	int wd;

	if (manifest_path(k->config.manifest, dir, path, sizeof(path)) < 0 ||
		asprintf(&name, "%s/%s", k->config.mountpoint, path) < 0)
		return false;
	wd = inotify_add_watch(k->fd, name, EVENTS | IN_ONLYDIR);
	if (wd < 0 || ARRAY_ROOM_ZEROED(k->dir, (size_t)wd, &k->ndirs) < 0)
		return false;
	k->dir[wd] = dir;
	return true;
}

/* Find a kept file. The caller holds the lock, or is the thread. */
static struct kept_file *kept_find(const struct kept *k, uint64_t id)
{
	return id < k->nfiles ? k->file[id] : NULL;
}

static void note_read(struct kept_file *f, uint64_t now_ns)
{
	f->last_ns = now_ns;
	f->closed = false;
}

bool kept_add(struct kept *k, const struct cache_item *item, uint64_t since_ns)
{
	uint64_t id = item->cookie;
	struct kept_file *f;

	if (k->fd < 0 || !k->config.stays(k->config.arg, item) ||
		k->bytes + item->size > k->max_bytes)
		return false;
	if (kept_find(k, id))
		return true;
	if (!kept_watch_dir(k, (node_id)id))
		return false;
	f = calloc(1, sizeof(*f));
	if (!f)
		return false;
	*f = (struct kept_file){
		.item = *item, .last_ns = since_ns, .closed = true};
	LOCK_SCOPE(&k->lock);
	if (ARRAY_ROOM_ZEROED(k->file, id, &k->nfiles) < 0) {
		free(f);
		return false;
	}
	f->last_read = k->reads;
	k->file[id] = f;
	k->files++;
	k->bytes += item->size;
	return true;
}

uint64_t kept_bytes(const struct kept *k)
{
	return k->bytes;
}

void kept_check(struct kept *k, pages_drop_fn *drop, void *arg)
{
	for (size_t i = 0; i < k->nfiles; i++) {
		CLEANUP_FREE struct kept_file *f = NULL;

		if (!k->file[i] ||
			k->config.stays(k->config.arg, &k->file[i]->item))
			continue;
		pthread_mutex_lock(&k->lock);
		f = k->file[i];
		k->file[i] = NULL;
		k->files--;
		k->bytes -= f->item.size;
		pthread_mutex_unlock(&k->lock);
		drop(arg, &f->item);
	}
}

/* -- Seeing -------------------------------------------------------------- */

/* Requires the lock. Does this read begin to read the file again? */
static bool is_new(
	const struct kept *k, const struct kept_file *f, uint64_t now_ns)
{
	ASSERT_HELD(&k->lock);
	if (now_ns >= f->last_ns + HELD_NS)
		return true;
	return f->closed &&
		(now_ns >= f->last_ns + AGAIN_NS ||
			k->reads - f->last_read > k->files / AGAIN_SHARE);
}

void kept_asked(struct kept *k, const struct cache_item *item)
{
	struct kept_file *f;
	LOCK_SCOPE(&k->lock);

	f = kept_find(k, item->cookie);
	if (!f)
		return;
	f->last_read = ++k->reads;
	note_read(f, clock_now_ns());
}

bool kept_has(struct kept *k, const struct cache_item *item)
{
	LOCK_SCOPE(&k->lock);

	return kept_find(k, item->cookie) != NULL;
}

/* Handle a read. Returns true, and sets *item, if the file is being read again.
 */
static bool kept_was_read(struct kept *k, const struct inotify_event *e,
	uint64_t now_ns, struct cache_item *item)
{
	struct node_info info;
	struct kept_file *f;
	bool again;

	if (e->wd < 0 || (size_t)e->wd >= k->ndirs || e->len == 0 ||
		(e->mask & IN_ISDIR) ||
		manifest_lookup(k->config.manifest, k->dir[e->wd], e->name,
			false, &info) < 0)
		return false;
	LOCK_SCOPE(&k->lock);
	f = kept_find(k, info.id);
	if (!f)
		return false;
	if (e->mask & IN_CLOSE_NOWRITE) {
		f->closed = true;
		return false;
	}
	again = is_new(k, f, now_ns);
	if (again)
		f->last_read = ++k->reads;
	note_read(f, now_ns);
	*item = f->item;
	return again;
}

void kept_look(struct kept *k)
{
	_Alignas(struct inotify_event) char buf[16384];
	uint64_t now_ns = clock_now_ns();
	struct cache_item item;
	ssize_t n;

	while (k->fd >= 0 && (n = read(k->fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e =
				(const void *)(buf + at);

			if (kept_was_read(k, e, now_ns, &item))
				k->config.seen(k->config.arg, &item);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}
