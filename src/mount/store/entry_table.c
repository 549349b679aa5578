/* SPDX-License-Identifier: MIT */
/*
 * The entries: 64 shards, each an open-addressed table with linear
 * probing and deletion by shifting back, 24 bytes a slot. Keys are uniform, so
 * their bits serve as the hash: the low word picks the shard, the high word the
 * slot. The first byte of the high word is left out. It names the sub-directory
 * of the entry, and a start reads these one after the other; with it, all
 * entries read so far would lie in one part of the table, in long runs. It is
 * not a common/base/table.h, which would need one more access to memory for
 * each key.
 */
#include "mount/store/entry_table_impl.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

#define ENTRY_SHARDS 64
#define ENTRY_FIRST_SLOTS 64

struct entry_slot {
	struct hash128 key;
	uint64_t meta; /* bits 0-2 state, 3 kept, 4 doomed, 8-15 tier, 16-63
			  content bytes */
};

#define META_STATE UINT64_C(7)
#define META_KEPT UINT64_C(8)
#define META_DOOMED UINT64_C(16)
#define META_TIER UINT64_C(0xff00)

/* Aligned to a cache line, so that the locks of neighbours do not share one. */
struct entry_shard {
	_Alignas(64) pthread_mutex_t lock;
	struct entry_slot *slots; /* lock */
	size_t nslots;		  /* lock */
	size_t used;		  /* lock */
	bool scanning;		  /* lock: directories are being read */
};

struct entries {
	struct entry_shard shards[ENTRY_SHARDS];
};

static enum entry_state slot_state(const struct entry_slot *slot)
{
	return (enum entry_state)(slot->meta & META_STATE);
}

static void slot_set(struct entry_slot *slot, enum entry_state state)
{
	slot->meta = (slot->meta & ~META_STATE) | (uint64_t)state;
}

static struct entry_ref slot_ref(const struct entry_slot *slot)
{
	return (struct entry_ref){
		.key = slot->key,
		.item_bytes = slot->meta >> 16,
		.tier = (size_t)(slot->meta >> 8 & 0xff),
	};
}

struct entries *entries_new(void)
{
	struct entries *x =
		aligned_alloc(_Alignof(struct entries), sizeof(struct entries));

	if (!x)
		return NULL;
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		lock_init(&sh->lock, RANK_ENTRIES);
		sh->slots = NULL;
		sh->nslots = sh->used = 0;
		sh->scanning = true;
	}
	return x;
}

void entries_free(struct entries *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		(void)pthread_mutex_destroy(&x->shards[i].lock); /* unused */
		free(x->shards[i].slots);
	}
	free(x);
}

static struct entry_shard *entries_shard_of(
	struct entries *x, struct hash128 key)
{
	return &x->shards[key.lo % ENTRY_SHARDS];
}

/* Any table size will do: the key is scaled to it. */
static size_t slot_home(const struct entry_shard *sh, struct hash128 key)
{
	return (size_t)((unsigned __int128)(key.hi << 8) * sh->nslots >> 64);
}

/* The slot of the key, or the free one where it would go. */
static struct entry_slot *slot_probe(
	const struct entry_shard *sh, struct hash128 key)
{
	size_t i = slot_home(sh, key);

	while (slot_state(&sh->slots[i]) != ENTRY_ABSENT &&
		(sh->slots[i].key.hi != key.hi ||
			sh->slots[i].key.lo != key.lo))
		i = i + 1 == sh->nslots ? 0 : i + 1;
	return &sh->slots[i];
}

static struct entry_slot *slot_find(
	const struct entry_shard *sh, struct hash128 key)
{
	struct entry_slot *slot;

	if (!sh->nslots)
		return NULL;
	slot = slot_probe(sh, key);
	return slot_state(slot) == ENTRY_ABSENT ? NULL : slot;
}

/* Grow by half when 4/5 full: 30 to 45 bytes an entry. */
static int shard_grow(struct entry_shard *sh)
{
	struct entry_shard grown = *sh;

	if (sh->nslots && (sh->used + 1) * 5 <= sh->nslots * 4)
		return 0;
	grown.nslots =
		sh->nslots ? sh->nslots + sh->nslots / 2 : ENTRY_FIRST_SLOTS;
	grown.slots = calloc(grown.nslots, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < sh->nslots; i++) {
		const struct entry_slot *old = &sh->slots[i];

		if (slot_state(old) != ENTRY_ABSENT)
			*slot_probe(&grown, old->key) = *old;
	}
	free(sh->slots);
	sh->slots = grown.slots;
	sh->nslots = grown.nslots;
	return 0;
}

static int shard_insert(struct entry_shard *sh, const struct entry_ref *ref,
	enum entry_state state)
{
	struct entry_slot *slot;
	int rc = shard_grow(sh);

	if (rc)
		return rc;
	slot = slot_probe(sh, ref->key);
	slot->key = ref->key;
	slot->meta = ref->item_bytes << 16 | (uint64_t)ref->tier << 8 |
		META_KEPT | (uint64_t)state;
	sh->used++;
	return 1;
}

/* Free a slot and move back the entries displaced past it. */
static void shard_remove(struct entry_shard *sh, struct entry_slot *slot)
{
	size_t hole = (size_t)(slot - sh->slots);
	size_t i = hole;

	for (;;) {
		size_t home;

		i = i + 1 == sh->nslots ? 0 : i + 1;
		if (slot_state(&sh->slots[i]) == ENTRY_ABSENT)
			break;
		home = slot_home(sh, sh->slots[i].key);
		/* The entry may move if its home is not within (hole, i]. */
		if (hole < i ? (home > hole && home <= i)
			     : (home > hole || home <= i))
			continue;
		sh->slots[hole] = sh->slots[i];
		hole = i;
	}
	sh->slots[hole].meta = ENTRY_ABSENT;
	sh->used--;
}

enum entry_state entries_find(
	struct entries *x, struct hash128 key, struct entry_ref *ref)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	const struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	if (!slot)
		return ENTRY_ABSENT;
	*ref = slot_ref(slot);
	return slot_state(slot);
}

int entries_adopt(struct entries *x, const struct entry_ref *ref,
	entries_charge_fn *charge, void *arg, struct entry_ref *now)
{
	struct entry_shard *sh = entries_shard_of(x, ref->key);
	const struct entry_slot *slot;
	int rc;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, ref->key);
	if (slot) {
		*now = slot_ref(slot);
		return 0;
	}
	/* The directories have been read, so every entry on disk has a slot. */
	if (!sh->scanning) {
		*now = *ref;
		return 0;
	}
	rc = shard_insert(sh, ref, ENTRY_RESIDENT);
	if (rc > 0)
		charge(arg, ref);
	return rc;
}

int entries_claim(struct entries *x, const struct entry_ref *ref)
{
	struct entry_shard *sh = entries_shard_of(x, ref->key);

	LOCK_SCOPE(&sh->lock);
	if (slot_find(sh, ref->key))
		return 0;
	return shard_insert(sh, ref, ENTRY_LINKING);
}

void entries_move(struct entries *x, struct hash128 key, size_t tier)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	assert(slot && slot_state(slot) == ENTRY_LINKING);
	slot->meta = (slot->meta & ~META_TIER) | (uint64_t)tier << 8;
}

bool entries_publish(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;
	bool doomed;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	assert(slot && slot_state(slot) == ENTRY_LINKING);
	doomed = slot->meta & META_DOOMED;
	slot->meta = (slot->meta & ~META_DOOMED) | META_KEPT;
	slot_set(slot, doomed ? ENTRY_DROPPING : ENTRY_RESIDENT);
	return !doomed;
}

bool entries_drop(struct entries *x, struct hash128 key, struct entry_ref *ref)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	if (slot && slot_state(slot) == ENTRY_LINKING)
		slot->meta |= META_DOOMED;
	if (!slot || slot_state(slot) != ENTRY_RESIDENT)
		return false;
	slot_set(slot, ENTRY_DROPPING);
	*ref = slot_ref(slot);
	return true;
}

void entries_restore(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	assert(slot && slot_state(slot) == ENTRY_DROPPING);
	slot_set(slot, ENTRY_RESIDENT);
	slot->meta |= META_KEPT; /* otherwise a sweep would retry it for ever */
}

void entries_forget(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	assert(slot && slot_state(slot) != ENTRY_RESIDENT);
	if (sh->scanning)
		slot_set(slot, ENTRY_GONE);
	else
		shard_remove(sh, slot);
}

/*
 * A removal moves a later entry into the slot, so look at the slot again. An
 * entry that wraps round to the end has been seen already and is not GONE.
 */
static void shard_purge(struct entry_shard *sh)
{
	for (size_t i = 0; i < sh->nslots;) {
		if (slot_state(&sh->slots[i]) == ENTRY_GONE)
			shard_remove(sh, &sh->slots[i]);
		else
			i++;
	}
}

void entries_scanned(struct entries *x)
{
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		sh->scanning = false;
		shard_purge(sh);
	}
}

void entries_unkeep_all(struct entries *x)
{
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->nslots; k++)
			sh->slots[k].meta &= ~META_KEPT;
	}
}

void entries_keep(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_slot *slot;

	LOCK_SCOPE(&sh->lock);
	slot = slot_find(sh, key);
	if (slot)
		slot->meta |= META_KEPT;
}

void entries_keep_sizes(struct entries *x, uint64_t one, uint64_t other)
{
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->nslots; k++) {
			struct entry_slot *slot = &sh->slots[k];
			uint64_t bytes = slot_ref(slot).item_bytes;

			if (slot_state(slot) != ENTRY_ABSENT &&
				(bytes == one || bytes == other))
				slot->meta |= META_KEPT;
		}
	}
}

size_t entries_drop_unkept(
	struct entries *x, struct entry_ref *refs, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < ENTRY_SHARDS && n < max; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->nslots && n < max; k++) {
			struct entry_slot *slot = &sh->slots[k];

			if (slot_state(slot) != ENTRY_RESIDENT ||
				slot->meta & META_KEPT)
				continue;
			slot_set(slot, ENTRY_DROPPING);
			refs[n++] = slot_ref(slot);
		}
	}
	return n;
}
