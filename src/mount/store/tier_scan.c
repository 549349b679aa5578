/* SPDX-License-Identifier: MIT */
/*
 * The background thread of a store. It empties tmp/, reads the names in every
 * directory of the tiers, adds and charges the entries, and opens admission. It
 * calls stat() for no file, and deletes only second copies of entries. After
 * that it watches tiers that have grants or keep space free. A few helper
 * threads read with it, because a single thread would read the directories of a
 * disk one block at a time and use only one processor.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/store_impl.h"

/* Threads that read directories, besides the background thread. */
#define SCAN_HELPERS 3
/* Time between two looks at a tier that is watched. */
#define WATCH_MS 20

static bool stopping(struct store *s)
{
	return atomic_load_explicit(&s->stop, memory_order_relaxed);
}

static void empty_tmp(struct store *s, struct tier *t)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(t->fd, TMP_DIR_NAME);
	const struct dirent *e;

	while (dir && !stopping(s) && (e = readdir(dir)))
		if (!name_is_dots(e->d_name))
			/* If this fails, a later start deletes the file */
			(void)unlinkat(dirfd(dir), e->d_name, 0);
}

/* Add the entry of one name. If another tier has the entry, too, delete the
 * file of this one. Returns 0 or -ENOMEM. */
static int scan_take_name(struct store *s, size_t tier, unsigned int sub,
	int dir_fd, const struct dirent *e)
{
	struct entry_ref ref = {.tier = tier}, now;
	int rc;

	if ((e->d_type != DT_REG && e->d_type != DT_UNKNOWN) ||
		!entry_parse_name(e->d_name, sub, &ref.key, &ref.item_bytes))
		return 0;
	rc = store_adopt(s, &ref, &now);
	if (rc == 0 && now.tier != tier)
		/* If this fails, the next start deletes the copy */
		(void)unlinkat(dir_fd, e->d_name, 0);
	return rc < 0 ? rc : 0;
}

static int scan_subdir(struct store *s, size_t tier, unsigned int sub)
{
	char name[3];
	CLEANUP_DIR DIR *dir = NULL;
	const struct dirent *e;
	int rc = 0;

	(void)snprintf(name, sizeof(name), "%02x", sub & 0xff);
	dir = tier_open_subdir(s->tiers[tier].fd, name);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (errno = 0; rc == 0 && (e = readdir(dir)); errno = 0)
		rc = scan_take_name(s, tier, sub, dirfd(dir), e);
	return rc ? rc : -errno;
}

/* The scan of one tier, which several threads share. */
struct tier_scan {
	uint32_t magic;
	struct store *s;	   /* set once */
	size_t tier;		   /* set once */
	_Atomic unsigned int next; /* relaxed: the next sub-directory to read */
};

static void *scan_subdirs(void *arg)
{
	struct tier_scan *scan = OBJECT(tier_scan, arg);
	struct store *s = scan->s;
	int rc;

	while (!stopping(s)) {
		unsigned int sub = atomic_fetch_add_explicit(
			&scan->next, 1, memory_order_relaxed);

		if (sub >= TIER_SUBDIRS)
			break;
		rc = scan_subdir(s, scan->tier, sub);
		if (rc == 0)
			continue;
		store_failed(s, scan->tier, EVENT_TIER_SCAN_FAILED, NULL, rc);
		tier_close_admission(&s->tiers[scan->tier]);
	}
	return NULL;
}

/* Read one tier. Tiers are read in order, so the copy of an entry in the faster
 * tier stays. */
static void scan_tier(struct store *s, size_t tier)
{
	struct tier_scan scan = {
		.magic = MAGIC_tier_scan, .s = s, .tier = tier};
	pthread_t helpers[SCAN_HELPERS];
	unsigned int n = 0;

	/* Start up to SCAN_HELPERS threads; fewer do no harm. They inherit this
	 * thread's signal mask, which blocks all signals. */
	while (n < SCAN_HELPERS &&
		pthread_create(&helpers[n], NULL, scan_subdirs, &scan) == 0)
		n++;
	(void)scan_subdirs(&scan);
	while (n > 0)
		/* Cannot fail: each helper is joined once */
		(void)pthread_join(helpers[--n], NULL);
}

/* Watch tiers that have grants, or that keep space free, until the store is
 * closed. */
static void watch_tiers(struct store *s)
{
	const struct timespec wait = {.tv_nsec = WATCH_MS * NS_PER_MS};
	bool any = false;

	for (size_t i = 0; i < s->ntiers; i++)
		any = any || tier_is_watched(&s->tiers[i]);
	while (any && !stopping(s)) {
		for (size_t i = 0; i < s->ntiers; i++)
			if (tier_is_watched(&s->tiers[i]))
				tier_watch(&s->tiers[i]);
		(void)nanosleep(&wait, NULL); /* an early return is harmless */
	}
}

static void scan_all(struct store *s)
{
	for (size_t i = 0; i < s->ntiers; i++) {
		empty_tmp(s, &s->tiers[i]);
		scan_tier(s, i);
		if (stopping(s))
			return;
	}
	entries_scanned(s->entries);
	LOCK_SCOPE(&s->ready_lock);
	atomic_store_explicit(&s->ready, true, memory_order_release);
	(void)pthread_cond_broadcast(&s->ready_cond);
}

void *store_scan(void *arg)
{
	struct store *s = OBJECT(store, arg);

	scan_all(s);
	if (store_ready(s))
		watch_tiers(s);
	for (size_t i = 0; i < s->ntiers; i++)
		/* All entries are counted. A directory that this start created
		 * has none before the store is ready. */
		tier_root_end(
			&s->tiers[i], store_ready(s) || s->tiers[i].made_dir);
	return NULL;
}
