/* SPDX-License-Identifier: MIT */
/*
 * Counts the references that the kernel holds to nodes. A retired node is freed
 * with its last reference; manifest_change.c draws the life of a node. Any
 * thread.
 */
#include "mount/names/names_trail_impl.h"

#include "common/base/lock.h"

void manifest_drop(struct manifest *m, node_id id)
{
	node_id parent = manifest_node_at(m, id)->parent;

	ASSERT_HELD_TO_WRITE(&m->lock);
	manifest_node_free(m, id);
	manifest_node_at(m, parent)->dir.kids--;
}

void manifest_reap(struct manifest *m, node_id id)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	while (id != NODE_ROOT) {
		struct node *n = manifest_node_at(m, id);
		node_id parent = n->parent;

		if (!node_retired(n) || atomic_load(&n->refs) > 0)
			return;
		if (n->kind == KIND_DIR && n->dir.kids > 0)
			return;
		trail_note(m, TRAIL_FREE, id);
		manifest_drop(m, id);
		id = parent;
	}
}

void manifest_node_ref(struct node *n)
{
	uint32_t had = atomic_load(&n->refs);

	while (had != NODE_HELD &&
		!atomic_compare_exchange_weak(&n->refs, &had, had + 1))
		;
}

/* Drop n references. Returns true if the last one was dropped. */
static bool node_unref(struct node *node, uint64_t n)
{
	uint32_t had = atomic_load(&node->refs), left;

	do {
		if (had == NODE_HELD)
			return false;
		left = n < had ? had - (uint32_t)n : 0;
	} while (!atomic_compare_exchange_weak(&node->refs, &had, left));
	return left == 0;
}

bool manifest_ref(struct manifest *m, node_id id)
{
	struct node *node;

	pthread_rwlock_rdlock(&m->lock);
	node = manifest_node(m, id);
	if (node)
		manifest_node_ref(node);
	pthread_rwlock_unlock(&m->lock);
	return node != NULL;
}

void manifest_unref(struct manifest *m, node_id id, uint64_t n)
{
	struct node *node;
	bool last = false;

	pthread_rwlock_rdlock(&m->lock);
	node = manifest_node(m, id);
	if (node && id != NODE_ROOT)
		last = node_unref(node, n) && node_retired(node);
	pthread_rwlock_unlock(&m->lock);
	if (!last)
		return;
	pthread_rwlock_wrlock(&m->lock);
	if (manifest_node(m, id))
		manifest_reap(m, id);
	manifest_unlock_changed(m);
}
