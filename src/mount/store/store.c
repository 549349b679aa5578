/* SPDX-License-Identifier: MIT */
/*
 * The store: opening and closing, look-ups, admission, publication, and the
 * deletion of entries whose version no longer exists. Owns struct store.
 * Entered by any thread; the only locks are those that entry_table.c and tier.c
 * take.
 */
#include "mount/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/format/entry.h"
#include "mount/store/store_impl.h"
#include "mount/store/tier_identity_impl.h"

static int store_find_group(const char *name, gid_t *gid, struct error *err)
{
	char buf[4096];
	struct group group, *found = NULL;
	int rc;

	*gid = (gid_t)-1;
	if (!name)
		return 0;
	rc = getgrnam_r(name, &group, buf, sizeof(buf), &found);
	if (!found)
		return error_set(err, rc ? -rc : -EINVAL,
			"unknown group '%s'; 'getent group' lists all groups",
			name);
	*gid = found->gr_gid;
	return 0;
}

/* Check that the directory is not given twice. Without this check, the second
 * lock would fail, and the message would blame another mount. */
static int check_same_dir(
	const struct store *s, const char *dir, struct error *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return 0; /* tier_open() will report the error */
	for (size_t i = 0; i < s->ntiers; i++)
		if (s->tiers[i].dev == st.st_dev &&
			s->tiers[i].ino == st.st_ino)
			return error_set(err, -EINVAL,
				"cache directories '%s' and '%s' are the same; "
				"give each once",
				s->tiers[i].dir, dir);
	return 0;
}

static int store_open_tiers(
	struct store *s, const struct store_config *config, struct error *err)
{
	gid_t group;
	int rc = store_find_group(config->group, &group, err);

	if (rc == 0 && (!config->ntiers || config->ntiers > STORE_TIERS_MAX))
		rc = error_set(err, -EINVAL,
			"%zu cache directories; give 1 to %d", config->ntiers,
			STORE_TIERS_MAX);
	for (size_t i = 0; rc == 0 && i < config->ntiers; i++) {
		rc = check_same_dir(s, config->tiers[i].dir, err);
		if (rc == 0)
			rc = tier_open(&s->tiers[i], &config->tiers[i],
				config->dataset, group, err);
		s->ntiers += rc == 0;
	}
	return rc;
}

static int start_scanner(struct store *s)
{
	sigset_t all, saved;
	int rc;

	/* Block all signals in the new thread: the daemon's signal thread takes
	 * them. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &saved);
	rc = pthread_create(&s->scanner, NULL, store_scan, s);
	(void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
	return -rc;
}

static void free_store(struct store *s, bool undo)
{
	for (size_t i = 0; i < s->ntiers; i++)
		/* A tier that failed to open is always undone. */
		tier_close(
			&s->tiers[i], undo || !identity_exists(s->tiers[i].fd));
	entries_free(s->entries);
	/* No thread waits any more */
	(void)pthread_cond_destroy(&s->ready_cond);
	(void)pthread_mutex_destroy(&s->ready_lock); /* no thread uses it */
	MAGIC_END(s);
	free(s);
}

static struct store *new_store(
	const struct store_config *config, struct counters *counters)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	MAGIC_BEGIN(s, store);
	s->counters = counters;
	s->events = config->events;
	s->verify = config->verify;
	s->write_out = config->write_out;
	s->file_mode = config->group ? 0640 : 0600;
	lock_init(&s->ready_lock, RANK_READY);
	(void)pthread_cond_init(&s->ready_cond, NULL); /* cannot fail */
	s->entries = entries_new();
	if (!s->entries) {
		free_store(s, true);
		return NULL;
	}
	return s;
}

int store_open(struct store **out, const struct store_config *config,
	struct counters *counters, struct error *err)
{
	struct store *s = new_store(config, counters);
	bool undo = true;
	int rc;

	if (!s)
		return error_set(err, -ENOMEM, "cannot open the cache: %m");
	rc = store_open_tiers(s, config, err);
	for (size_t i = 0; rc == 0 && i < s->ntiers; i++) {
		/* The directory belongs to the tier now and may contain
		 * entries, so it must stay */
		undo = false;
		rc = tier_make(&s->tiers[i], config->dataset, err);
		if (rc == 0 && s->tiers[i].lost_identity)
			store_report(s, i, EVENT_TIER_IDENTITY, NULL);
	}
	if (rc == 0) {
		rc = start_scanner(s);
		if (rc)
			error_set(err, rc, "cannot start a thread: %m");
	}
	if (rc) {
		free_store(s, undo);
		return rc;
	}
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	atomic_store_explicit(&s->stop, true, memory_order_relaxed);
	/* Cannot fail: the thread is joined only here */
	(void)pthread_join(s->scanner, NULL);
	free_store(s, false);
}

bool store_ready(struct store *s)
{
	return atomic_load_explicit(&s->ready, memory_order_acquire);
}

void store_wait_ready(struct store *s)
{
	LOCK_SCOPE(&s->ready_lock);
	while (!store_ready(s))
		(void)pthread_cond_wait(&s->ready_cond, &s->ready_lock);
}

static void charge_ref(void *arg, const struct entry_ref *ref)
{
	struct store *s = OBJECT(store, arg);

	tier_charge(&s->tiers[ref->tier], ref->item_bytes);
}

int store_adopt(
	struct store *s, const struct entry_ref *ref, struct entry_ref *now)
{
	return entries_adopt(s->entries, ref, charge_ref, s, now);
}

/* Before the store is ready, look for an entry in the tiers and adopt it. */
static bool store_locate(struct store *s, struct hash128 key,
	uint64_t item_bytes, struct entry_ref *ref)
{
	char path[ENTRY_PATH_MAX];
	struct entry_ref now;
	struct stat st;

	(void)entry_path(path, key, item_bytes);
	for (size_t i = 0; i < s->ntiers; i++) {
		*ref = (struct entry_ref){key, item_bytes, i};
		if (fstatat(s->tiers[i].fd, path, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode))
			continue;
		if (store_adopt(s, ref, &now) == 0)
			return entries_find(s->entries, key, ref) ==
				ENTRY_RESIDENT;
		/* If memory is short, the entry is found again on the next
		 * read */
		return true;
	}
	return false;
}

bool store_find(struct store *s, struct hash128 key, uint64_t item_bytes,
	struct entry_ref *ref)
{
	/* Read `ready` before the look-up. If it is set, the table was complete
	 * before the look-up, so an entry that is not in the table does not
	 * exist. */
	bool ready = store_ready(s);
	enum entry_state state = entries_find(s->entries, key, ref);

	if (state == ENTRY_RESIDENT)
		return ref->item_bytes == item_bytes;
	return !ready && state == ENTRY_ABSENT &&
		store_locate(s, key, item_bytes, ref);
}

bool store_has(struct store *s, struct hash128 key, uint64_t item_bytes)
{
	struct entry_ref ref;

	return store_find(s, key, item_bytes, &ref);
}

void store_report(
	struct store *s, size_t tier, enum event_kind kind, const char *path)
{
	struct event e = {
		.kind = kind, .path = path, .dir = s->tiers[tier].dir};

	event_report(s->events, &e);
}

/* Report that a tier has changed its state, for example that it has become
 * full. */
static void store_report_turn(
	struct store *s, size_t tier, enum event_kind kind)
{
	struct event e = {
		.kind = kind, .dir = s->tiers[tier].dir, .turn = true};

	event_report(s->events, &e);
}

void store_failed(struct store *s, size_t tier, enum event_kind kind,
	const char *path, int status)
{
	struct event e = {.kind = kind,
		.path = path,
		.dir = s->tiers[tier].dir,
		.status = status};

	COUNT(s->counters, tier_errors);
	tier_count_error(&s->tiers[tier]);
	event_report(s->events, &e);
}

/* Report a failed write. Until a write succeeds, few writes go to the tier. */
static void store_write_failed(
	struct store *s, size_t tier, const char *path, int status)
{
	struct tier *t = &s->tiers[tier];
	struct event e = {.kind = EVENT_TIER_FAILED,
		.path = path,
		.dir = t->dir,
		.status = status};

	COUNT(s->counters, tier_errors);
	tier_count_error(t);
	if (status != -ENOMEM)
		e.turn = tier_failed(t);
	if (tier_was_deleted(t))
		e.kind = EVENT_TIER_GONE;
	event_report(s->events, &e);
}

/* Note that an item did not fit. Report it once, until the tier has space
 * again. */
static void note_full(struct store *s, size_t tier)
{
	if (tier_note_full(&s->tiers[tier]))
		store_report_turn(s, tier, EVENT_TIER_FULL);
}

static void note_room(struct store *s, size_t tier)
{
	if (tier_note_room(&s->tiers[tier]))
		store_report_turn(s, tier, EVENT_TIER_ROOM);
}

/* Reserve in the first tier that has enough space and is not in the bit mask
 * `without`. */
static bool reserve_in(struct store *s, uint64_t item_bytes, unsigned without,
	bool (*reserve)(struct tier *t, uint64_t charge_bytes),
	struct reservation *r)
{
	for (size_t i = 0; i < s->ntiers; i++) {
		uint64_t charge = tier_charge_of(&s->tiers[i], item_bytes);

		if (without >> i & 1 || !reserve(&s->tiers[i], charge))
			continue;
		*r = (struct reservation){i, charge};
		return true;
	}
	return false;
}

int store_reserve(struct store *s, uint64_t item_bytes, struct reservation *r)
{
	*r = (struct reservation){0};
	if (!store_ready(s))
		return -EAGAIN;
	if (item_bytes == 0 || item_bytes > ENTRY_ITEM_MAX_BYTES)
		return -ENOSPC;
	if (reserve_in(s, item_bytes, 0, tier_reserve_well, r) ||
		reserve_in(s, item_bytes, 0, tier_reserve, r)) {
		/* The item did not fit in any earlier tier. */
		for (size_t i = 0; i < r->tier; i++)
			note_full(s, i);
		return 0;
	}
	for (size_t i = 0; i < s->ntiers; i++)
		note_full(s, i);
	return -ENOSPC;
}

bool store_room_comes(struct store *s, uint64_t item_bytes)
{
	bool grows = false;

	if (!store_ready(s))
		return false;
	for (size_t i = 0; i < s->ntiers; i++) {
		struct tier *t = &s->tiers[i];
		uint64_t charge = tier_charge_of(t, item_bytes);

		if (tier_fits(t, charge))
			return false;
		grows = grows || tier_grows(t, charge);
	}
	return grows;
}

void store_unreserve(struct store *s, struct reservation *r)
{
	if (r->charged_bytes)
		tier_unreserve(&s->tiers[r->tier], r->charged_bytes);
	r->charged_bytes = 0;
}

/* Handle the failure `rc` of the reservation's tier: reserve in another tier.
 * Returns false if no other tier can take the item. `failed` is a bit mask of
 * the tiers that have failed. */
static bool next_tier(struct store *s, struct entry_ref *ref, int rc,
	unsigned *failed, struct reservation *r)
{
	char path[ENTRY_PATH_MAX];

	store_write_failed(
		s, r->tier, entry_path(path, ref->key, ref->item_bytes), rc);
	if (rc == -ENOMEM)
		return false;
	*failed |= 1U << r->tier;
	store_unreserve(s, r);
	if (!reserve_in(s, ref->item_bytes, *failed, tier_reserve_well, r))
		return false;
	ref->tier = r->tier;
	entries_move(s->entries, ref->key, r->tier);
	return true;
}

/* Write the entry to the first tier whose write succeeds. This thread owns the
 * cell of the entry. */
static int write_somewhere(struct store *s, struct reservation *r,
	struct entry_ref *ref, const void *data)
{
	unsigned failed = 0;
	int rc;

	do
		rc = store_write_entry(s, ref, data);
	while (rc < 0 && next_tier(s, ref, rc, &failed, r));
	return rc;
}

int store_publish(struct store *s, struct reservation *r, struct hash128 key,
	const void *data, uint64_t item_bytes)
{
	struct entry_ref ref = {key, item_bytes, r->tier};
	int rc;

	assert(r->charged_bytes ==
		tier_charge_of(&s->tiers[r->tier], item_bytes));
	rc = entries_claim(s->entries, &ref);
	if (rc <= 0) {
		store_unreserve(s, r);
		return rc < 0 ? rc : -EEXIST;
	}
	rc = write_somewhere(s, r, &ref, data);
	if (rc < 0) {
		entries_forget(s->entries, key);
		store_unreserve(s, r);
		return rc;
	}
	if (tier_commit(&s->tiers[r->tier], item_bytes))
		store_report_turn(s, r->tier, EVENT_TIER_BACK);
	r->charged_bytes = 0;
	if (!entries_publish(s->entries, key) &&
		store_remove(s, &ref, REMOVE_ANY, NULL))
		COUNT(s->counters, invalidated);
	return 0;
}

/* Check that the name still belongs to the file that may be deleted. Returns 0
 * or -errno. */
static int store_check_name(const struct tier *t, const char *path,
	enum removal removal, const struct stat *seen)
{
	struct stat st;

	if (removal == REMOVE_ANY)
		return 0;
	if (fstatat(t->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (removal == REMOVE_LOST || st.st_ino != seen->st_ino ||
		st.st_dev != seen->st_dev)
		return -EEXIST;
	return 0;
}

bool store_remove(struct store *s, const struct entry_ref *ref,
	enum removal removal, const struct stat *seen)
{
	struct tier *t = &s->tiers[ref->tier];
	char path[ENTRY_PATH_MAX];
	int rc;

	(void)entry_path(path, ref->key, ref->item_bytes);
	rc = store_check_name(t, path, removal, seen);
	if (rc == 0 && unlinkat(t->fd, path, 0) < 0)
		rc = -errno;
	if (rc && rc != -ENOENT) {
		if (rc != -EEXIST)
			store_failed(s, ref->tier, EVENT_TIER_DELETE_FAILED,
				path, rc);
		entries_restore(s->entries, ref->key);
		return false;
	}
	tier_uncharge(t, ref->item_bytes);
	note_room(s, ref->tier);
	entries_forget(s->entries, ref->key);
	return true;
}

bool store_discard(struct store *s, struct hash128 key, uint64_t item_bytes)
{
	struct entry_ref ref;

	/* Add the entry to the table if it is on disk. */
	(void)store_has(s, key, item_bytes);
	return entries_drop(s->entries, key, &ref) &&
		store_remove(s, &ref, REMOVE_ANY, NULL);
}

bool store_exchange(struct store *s, struct hash128 key, uint64_t old_bytes,
	uint64_t item_bytes, struct reservation *r)
{
	struct entry_ref ref;
	struct tier *t;

	*r = (struct reservation){0};
	if (!store_ready(s) || !store_has(s, key, old_bytes) ||
		!entries_drop(s->entries, key, &ref))
		return false;
	t = &s->tiers[ref.tier];
	if (!tier_may_exchange(t, old_bytes, item_bytes)) {
		entries_restore(s->entries, key);
		return false;
	}
	if (!store_remove(s, &ref, REMOVE_ANY, NULL))
		return false;
	(void)store_reserve(s, item_bytes,
		r); /* without a reservation, no tier gets the item */
	return true;
}

void store_invalidate(struct store *s, struct hash128 key, uint64_t item_bytes)
{
	if (store_discard(s, key, item_bytes))
		COUNT(s->counters, invalidated);
}

void store_unmark_all(struct store *s)
{
	store_wait_ready(s);
	entries_unmark_all(s->entries);
}

void store_mark(struct store *s, struct hash128 key)
{
	entries_mark(s->entries, key);
}

uint64_t store_sweep(struct store *s)
{
	struct entry_ref refs[256];
	uint64_t removed = 0;
	size_t n;

	do {
		n = entries_drop_unmarked(
			s->entries, refs, sizeof(refs) / sizeof(refs[0]));
		for (size_t i = 0; i < n; i++)
			removed += store_remove(s, &refs[i], REMOVE_ANY, NULL);
	} while (n);
	COUNT_ADD(s->counters, invalidated, removed);
	return removed;
}

int store_tier_fd(const struct store *s, size_t tier)
{
	return s->tiers[tier].fd;
}

size_t store_tiers(const struct store *s)
{
	return s->ntiers;
}

bool store_in_memory(const struct store *s, size_t tier)
{
	return s->tiers[tier].in_memory;
}

int store_resize(struct store *s, size_t tier, uint64_t capacity_bytes)
{
	return tier_resize(&s->tiers[tier], capacity_bytes);
}

void store_tier_status(struct store *s, size_t tier, struct tier_status *status)
{
	tier_status(&s->tiers[tier], status);
}
