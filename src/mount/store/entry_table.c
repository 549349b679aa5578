/* SPDX-License-Identifier: MIT */
/*
 * The entries: 64 shards, each an open-addressed table with linear probing and
 * deletion by shifting back, with 24 bytes in a cell. Keys are uniformly
 * distributed, so their bits serve as the hash: the low word selects the shard,
 * the high word the cell.
 *
 * The first byte of the high word does not select the cell. It names the
 * sub-directory of the entry, and a mount reads these one after another when it
 * starts. If the byte counted, all entries read so far would be in one part of
 * the table, in long runs.
 *
 * common/base/table.h is not used, because it needs one more access to memory
 * for each key.
 */
#include "mount/store/entry_table_impl.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

#define ENTRY_SHARDS 64
#define ENTRY_FIRST_CELLS 64

struct entry_cell {
	struct hash128 key;
	/* Bits 0-2 state, 3 marked, 4 doomed (to be dropped after publication),
	 * 8-15 tier, 16-63 content bytes */
	uint64_t meta;
};

#define META_STATE UINT64_C(7)
#define META_MARKED UINT64_C(8)
#define META_DOOMED UINT64_C(16)
#define META_TIER UINT64_C(0xff00)

/* Aligned to a cache line, so that the locks of two shards are not in the same
 * line. */
struct entry_shard {
	_Alignas(64) pthread_mutex_t lock;
	/* guarded by `lock`, as all members below are */
	struct entry_cell *cells;
	size_t ncells; /* number of cells */
	size_t used;   /* number of cells that are not ABSENT */
	bool scanning; /* the directories are being read */
};

struct entries {
	struct entry_shard shards[ENTRY_SHARDS];
};

static enum entry_state cell_state(const struct entry_cell *cell)
{
	return (enum entry_state)(cell->meta & META_STATE);
}

static void cell_set(struct entry_cell *cell, enum entry_state state)
{
	cell->meta = (cell->meta & ~META_STATE) | (uint64_t)state;
}

static struct entry_ref cell_ref(const struct entry_cell *cell)
{
	return (struct entry_ref){
		.key = cell->key,
		.item_bytes = cell->meta >> 16,
		.tier = (size_t)(cell->meta >> 8 & 0xff),
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
		sh->cells = NULL;
		sh->ncells = sh->used = 0;
		sh->scanning = true;
	}
	return x;
}

void entries_free(struct entries *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		/* No thread uses it */
		(void)pthread_mutex_destroy(&x->shards[i].lock);
		free(x->shards[i].cells);
	}
	free(x);
}

static struct entry_shard *entries_shard_of(
	struct entries *x, struct hash128 key)
{
	return &x->shards[key.lo % ENTRY_SHARDS];
}

/* Returns the index at which the search for a key begins. The table may have
 * any size, because the key is scaled to it. */
static size_t cell_home(const struct entry_shard *sh, struct hash128 key)
{
	return (size_t)((unsigned __int128)(key.hi << 8) * sh->ncells >> 64);
}

/* Returns the cell of the key, or the free cell where the key would be
 * added. */
static struct entry_cell *cell_probe(
	const struct entry_shard *sh, struct hash128 key)
{
	size_t i = cell_home(sh, key);

	while (cell_state(&sh->cells[i]) != ENTRY_ABSENT &&
		(sh->cells[i].key.hi != key.hi ||
			sh->cells[i].key.lo != key.lo))
		i = i + 1 == sh->ncells ? 0 : i + 1;
	return &sh->cells[i];
}

static struct entry_cell *cell_find(
	const struct entry_shard *sh, struct hash128 key)
{
	struct entry_cell *cell;

	if (!sh->ncells)
		return NULL;
	cell = cell_probe(sh, key);
	return cell_state(cell) == ENTRY_ABSENT ? NULL : cell;
}

/* Grow the table by a half when 4/5 of its cells are used. An entry then takes
 * 30 to 45 bytes. */
static int shard_grow(struct entry_shard *sh)
{
	struct entry_shard grown = *sh;

	if (sh->ncells && (sh->used + 1) * 5 <= sh->ncells * 4)
		return 0;
	grown.ncells =
		sh->ncells ? sh->ncells + sh->ncells / 2 : ENTRY_FIRST_CELLS;
	grown.cells = calloc(grown.ncells, sizeof(*grown.cells));
	if (!grown.cells)
		return -ENOMEM;
	for (size_t i = 0; i < sh->ncells; i++) {
		const struct entry_cell *old = &sh->cells[i];

		if (cell_state(old) != ENTRY_ABSENT)
			*cell_probe(&grown, old->key) = *old;
	}
	free(sh->cells);
	sh->cells = grown.cells;
	sh->ncells = grown.ncells;
	return 0;
}

static int shard_insert(struct entry_shard *sh, const struct entry_ref *ref,
	enum entry_state state)
{
	struct entry_cell *cell;
	int rc = shard_grow(sh);

	if (rc)
		return rc;
	cell = cell_probe(sh, ref->key);
	cell->key = ref->key;
	cell->meta = ref->item_bytes << 16 | (uint64_t)ref->tier << 8 |
		META_MARKED | (uint64_t)state;
	sh->used++;
	return 1;
}

/* Free a cell, and move back the entries behind it that are there only because
 * the cell was taken. */
static void shard_remove(struct entry_shard *sh, struct entry_cell *cell)
{
	size_t hole = (size_t)(cell - sh->cells);
	size_t i = hole;

	for (;;) {
		size_t home;

		i = i + 1 == sh->ncells ? 0 : i + 1;
		if (cell_state(&sh->cells[i]) == ENTRY_ABSENT)
			break;
		home = cell_home(sh, sh->cells[i].key);
		/* An entry whose home is within (hole, i] must not move. */
		if (hole < i ? (home > hole && home <= i)
			     : (home > hole || home <= i))
			continue;
		sh->cells[hole] = sh->cells[i];
		hole = i;
	}
	sh->cells[hole].meta = ENTRY_ABSENT;
	sh->used--;
}

enum entry_state entries_find(
	struct entries *x, struct hash128 key, struct entry_ref *ref)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	const struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	if (!cell)
		return ENTRY_ABSENT;
	*ref = cell_ref(cell);
	return cell_state(cell);
}

int entries_adopt(struct entries *x, const struct entry_ref *ref,
	entries_charge_fn *charge, void *arg, struct entry_ref *now)
{
	struct entry_shard *sh = entries_shard_of(x, ref->key);
	const struct entry_cell *cell;
	int rc;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, ref->key);
	if (cell) {
		*now = cell_ref(cell);
		return 0;
	}
	/* All directories have been read, so a name that has no cell has been
	 * deleted. */
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
	if (cell_find(sh, ref->key))
		return 0;
	return shard_insert(sh, ref, ENTRY_LINKING);
}

void entries_move(struct entries *x, struct hash128 key, size_t tier)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	assert(cell && cell_state(cell) == ENTRY_LINKING);
	cell->meta = (cell->meta & ~META_TIER) | (uint64_t)tier << 8;
}

bool entries_publish(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;
	bool doomed;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	assert(cell && cell_state(cell) == ENTRY_LINKING);
	doomed = cell->meta & META_DOOMED;
	cell->meta = (cell->meta & ~META_DOOMED) | META_MARKED;
	cell_set(cell, doomed ? ENTRY_DROPPING : ENTRY_RESIDENT);
	return !doomed;
}

bool entries_drop(struct entries *x, struct hash128 key, struct entry_ref *ref)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	if (cell && cell_state(cell) == ENTRY_LINKING)
		cell->meta |= META_DOOMED;
	if (!cell || cell_state(cell) != ENTRY_RESIDENT)
		return false;
	cell_set(cell, ENTRY_DROPPING);
	*ref = cell_ref(cell);
	return true;
}

void entries_restore(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	assert(cell && cell_state(cell) == ENTRY_DROPPING);
	cell_set(cell, ENTRY_RESIDENT);
	/* Without a mark, the next sweep would try to delete the entry again,
	 * without end */
	cell->meta |= META_MARKED;
}

void entries_forget(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	assert(cell && cell_state(cell) != ENTRY_RESIDENT);
	if (sh->scanning)
		cell_set(cell, ENTRY_GONE);
	else
		shard_remove(sh, cell);
}

/* Remove GONE cells. A removal moves a later entry into the cell, so the same
 * cell is checked again. An entry that moves from the beginning of the table to
 * its end has been checked already, and is not GONE. */
static void shard_purge(struct entry_shard *sh)
{
	for (size_t i = 0; i < sh->ncells;) {
		if (cell_state(&sh->cells[i]) == ENTRY_GONE)
			shard_remove(sh, &sh->cells[i]);
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

void entries_unmark_all(struct entries *x)
{
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->ncells; k++)
			sh->cells[k].meta &= ~META_MARKED;
	}
}

void entries_mark(struct entries *x, struct hash128 key)
{
	struct entry_shard *sh = entries_shard_of(x, key);
	struct entry_cell *cell;

	LOCK_SCOPE(&sh->lock);
	cell = cell_find(sh, key);
	if (cell)
		cell->meta |= META_MARKED;
}

void entries_mark_sizes(struct entries *x, uint64_t one, uint64_t other)
{
	for (size_t i = 0; i < ENTRY_SHARDS; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->ncells; k++) {
			struct entry_cell *cell = &sh->cells[k];
			uint64_t bytes = cell_ref(cell).item_bytes;

			if (cell_state(cell) != ENTRY_ABSENT &&
				(bytes == one || bytes == other))
				cell->meta |= META_MARKED;
		}
	}
}

size_t entries_drop_unmarked(
	struct entries *x, struct entry_ref *refs, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < ENTRY_SHARDS && n < max; i++) {
		struct entry_shard *sh = &x->shards[i];

		LOCK_SCOPE(&sh->lock);
		for (size_t k = 0; k < sh->ncells && n < max; k++) {
			struct entry_cell *cell = &sh->cells[k];

			if (cell_state(cell) != ENTRY_RESIDENT ||
				cell->meta & META_MARKED)
				continue;
			cell_set(cell, ENTRY_DROPPING);
			refs[n++] = cell_ref(cell);
		}
	}
	return n;
}
