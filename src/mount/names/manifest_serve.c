/* SPDX-License-Identifier: MIT */
/*
 * Handles a file that changed at the source before any of its bytes was read.
 * Its node can get the new version, because no reader can have seen a mixture
 * of two versions. The size must be the same, because the kernel may have told
 * readers the size.
 *
 * UNREAD --- bytes go to a reader ---> READ (the version stays)
 *   |  ^
 *   |  '-- done --.
 *   '--> CHANGING-'
 */
#include "mount/names/names_trail_impl.h"

#include <errno.h>

#include "common/format/key.h"
#include "common/base/lock.h"

/* Read the version of a node without a lock: each member that can change is
 * read atomically. */
static struct file_version version_of(const struct node *n)
{
	return (struct file_version){
		.size_bytes = n->version.size_bytes,
		.mtime_ns =
			__atomic_load_n(&n->version.mtime_ns, __ATOMIC_RELAXED),
		.tag = __atomic_load_n(&n->version.tag, __ATOMIC_RELAXED),
	};
}

bool manifest_identity(const struct manifest *m, node_id id,
	struct hash128 *digest, struct file_version *version)
{
	const struct node *n = manifest_node(m, id);

	if (!n || n->kind != KIND_FILE)
		return false;
	*digest = n->digest;
	*version = version_of(n);
	return true;
}

bool manifest_serve(const struct manifest *m, node_id id,
	const struct file_version *version)
{
	struct node *n = manifest_node(m, id);
	uint8_t state = NODE_UNREAD;

	if (!n || n->kind != KIND_FILE)
		return false;
	/* Acquire pairs with the release in follow_locked(). */
	if (atomic_load_explicit(&n->reading, memory_order_acquire) !=
			NODE_READ &&
		!atomic_compare_exchange_strong(
			&n->reading, &state, NODE_READ) &&
		state != NODE_READ)
		return false;
	return version_equal(version_of(n), *version);
}

/* Change the version of a node that is NODE_CHANGING. */
static void set_version(struct node *n, const struct file_version *version)
{
	__atomic_store_n(
		&n->version.mtime_ns, version->mtime_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&n->version.tag, version->tag, __ATOMIC_RELAXED);
}

static bool can_follow(const struct node *n, const struct file_attr *attr)
{
	return n && n->kind == KIND_FILE && !node_retired(n) &&
		attr->kind == KIND_FILE &&
		n->version.size_bytes == attr->version.size_bytes &&
		!version_equal(n->version, attr->version);
}

static int follow_locked(struct manifest *m, node_id dir, const char *name,
	const struct file_attr *attr, manifest_event_fn *fn, void *arg)
{
	/* Find the node by its name again, because its number may belong to
	 * another node now. */
	node_id id = manifest_table_find(m, dir, name);
	struct manifest_event ev = {.change = MANIFEST_FOLLOWED, .id = id};
	struct node *n = manifest_node(m, id);
	uint8_t state = NODE_UNREAD;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!can_follow(n, attr) ||
		!atomic_compare_exchange_strong(
			&n->reading, &state, NODE_CHANGING))
		return -ESTALE;
	manifest_info(m, id, &ev.old);
	ev.dir = n->parent;
	ev.name = name;
	set_version(n, &attr->version);
	trail_note(m, TRAIL_FOLLOW, id);
	atomic_store_explicit(&n->reading, NODE_UNREAD, memory_order_release);
	fn(arg, &ev);
	return 0;
}

int manifest_follow(struct manifest *m, node_id dir, const char *name,
	const struct file_attr *attr, manifest_event_fn *fn, void *arg)
{
	int rc;

	pthread_rwlock_wrlock(&m->lock);
	rc = follow_locked(m, dir, name, attr, fn, arg);
	manifest_unlock_changed(m);
	return rc;
}
