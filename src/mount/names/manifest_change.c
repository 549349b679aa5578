/* SPDX-License-Identifier: MIT */
/*
 * Changes the manifest: puts, replaces and removes names. The life of a node:
 *
 *   put ----> CURRENT --- a new version, or removed ---> RETIRED
 *   (named, in the table and its directory)              (no name)
 *                                                           |
 *                       the kernel holds no reference and   |
 *                       no node has it as parent            v
 *                                                         FREE
 */
#include "mount/names/names_trail_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/format/key.h"
#include "common/base/lock.h"

static void totals_add(struct manifest *m, const struct node *n, int sign)
{
	uint64_t one = (uint64_t)(int64_t)sign;

	switch ((enum file_kind)n->kind) {
	case KIND_FILE:
		m->totals.files += one;
		m->totals.bytes += one * n->version.size_bytes;
		break;
	case KIND_DIR:
		m->totals.directories += one;
		break;
	case KIND_LINK:
		m->totals.links += one;
		break;
	}
}

static void change_report(struct manifest *m, enum manifest_change change,
	node_id dir, const char *name, node_id id, node_id old,
	manifest_event_fn *fn, void *arg)
{
	const struct directory *d = &manifest_node_at(m, dir)->dir;
	struct manifest_event ev = {
		.change = change, .dir = dir, .name = name, .id = id};

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!fn)
		return;
	ev.seen = d->listed || d->negative;
	if (old != 0)
		manifest_info(m, old, &ev.old);
	fn(arg, &ev);
}

void manifest_unname(struct manifest *m, node_id id)
{
	struct node *n = manifest_node_at(m, id);

	ASSERT_HELD_TO_WRITE(&m->lock);
	manifest_table_del(m, id);
	directory_empty(&manifest_node_at(m, n->parent)->dir, n->slot);
	totals_add(m, n, -1);
	n->slot = NODE_RETIRED;
	if (n->kind == KIND_DIR)
		n->dir.listed = false;
}

/* Retire a node and all nodes below it, deepest first. MANIFEST_PATH_MAX limits
 * the depth of the recursion. */
static void retire(struct manifest *m, node_id id, enum manifest_change change,
	node_id now, manifest_event_fn *fn, void *arg)
{
	struct node *n = manifest_node_at(m, id);
	node_id parent = n->parent;
	const char *name = manifest_name(m, n);

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (n->kind == KIND_DIR) {
		for (uint32_t i = 0; i < n->dir.n; i++) {
			node_id child = directory_names(&n->dir)[i];

			if (child != 0)
				retire(m, child, MANIFEST_REMOVED, 0, fn, arg);
		}
	}
	manifest_unname(m, id);
	trail_note(m, TRAIL_RETIRE, id);
	change_report(m, change, parent, name, now, id, fn, arg);
	manifest_reap(m, id);
}

/* Set the fields that depend on the kind of the node: a file's digest, a link's
 * target. */
static int fill_kind(struct manifest *m, struct node *n, struct hash128 digest,
	const struct file_entry *e)
{
	const char *target = e->target ? e->target : "";

	if (e->attr.kind == KIND_FILE)
		n->digest = digest;
	if (e->attr.kind != KIND_LINK)
		return 0;
	n->link = malloc(sizeof(*n->link) + strlen(target) + 1);
	if (!n->link)
		return -ENOMEM;
	n->link->ino = key_inode(m->dataset, digest, n->version);
	strcpy(n->link->target, target);
	return 0;
}

/* Set the identity of the node, and compute the digest of its path. */
static int fill_identity(struct manifest *m, struct node *n, node_id parent,
	const struct file_entry *e, struct hash128 *digest)
{
	char path[MANIFEST_PATH_MAX];
	int len = manifest_path_locked(m, parent, path, sizeof(path));
	size_t name = strlen(e->name);

	if (len < 0 || (size_t)len + name + 2 > sizeof(path))
		return -ENAMETOOLONG;
	if (len > 0)
		path[len++] = '/';
	memcpy(path + len, e->name, name + 1);
	*digest = key_digest(path);
	n->version = e->attr.version;
	n->parent = parent;
	n->hash = manifest_name_hash(parent, e->name);
	return 0;
}

/* Create a complete node that other threads cannot find yet. `name` is the
 * stored name of the node that it replaces, or 0. `id` is the number to use, or
 * 0 for any number. */
static int change_build(struct manifest *m, node_id parent,
	const struct file_entry *e, uint32_t name, node_id id, node_id *out)
{
	struct hash128 digest;
	struct node *n;
	int rc;

	id = id != 0 ? manifest_node_take(m, id) : manifest_node_new(m);
	if (id == 0)
		return -ENOMEM;
	n = manifest_node_at(m, id);
	n->name = name;
	rc = name ? 0 : manifest_name_new(m, e->name, &n->name);
	if (rc == 0)
		rc = fill_identity(m, n, parent, e, &digest);
	if (rc == 0)
		rc = manifest_set_attr(m, n, &e->attr);
	if (rc == 0)
		rc = fill_kind(m, n, digest, e);
	if (rc < 0) {
		manifest_node_free(m, id);
		return rc;
	}
	n->kind = (uint8_t)e->attr.kind;
	*out = id;
	return 0;
}

/* Add a node. `at` has its number and slot; NULL: any number and slot. */
static int change_add(struct manifest *m, node_id dir,
	const struct file_entry *e, uint32_t name, const struct node_slot *at,
	node_id *out)
{
	node_id id;
	int rc = change_build(m, dir, e, name, at ? at->id : 0, &id);
	bool later = at && at->later;
	struct node *n;

	if (rc < 0)
		return rc;
	n = manifest_node_at(m, id);
	rc = later ? 0 : manifest_table_add(m, id);
	if (rc == 0) {
		struct directory *d = &manifest_node_at(m, dir)->dir;

		if (at)
			rc = directory_put(d, id, n->slot = at->slot);
		else
			rc = directory_add(d, id, &n->slot);
		if (rc < 0 && !later)
			manifest_table_del(m, id);
	}
	if (rc < 0) {
		manifest_node_free(m, id);
		return rc;
	}
	totals_add(m, manifest_node_at(m, id), 1);
	*out = id;
	return 0;
}

/* Does the origin's entry have the same identity as this node? */
static bool same_node(const struct node *n, const struct file_entry *e)
{
	if (n->kind != e->attr.kind)
		return false;
	if (n->kind == KIND_LINK)
		return strcmp(n->link->target, e->target ? e->target : "") == 0;
	return n->kind == KIND_DIR ||
		version_equal(n->version, e->attr.version);
}

static bool same_attr(const struct manifest *m, const struct node *n,
	const struct file_attr *a)
{
	const struct owner *o = manifest_owner(m, n);

	return o->mode == (a->mode & 07777) && o->uid == a->uid &&
		o->gid == a->gid && version_equal(n->version, a->version);
}

static int put_existing(struct manifest *m, node_id *id,
	const struct file_entry *e, manifest_event_fn *fn, void *arg)
{
	struct node *n = manifest_node_at(m, *id);
	node_id dir = n->parent;
	node_id old = *id;
	uint32_t slot;
	int rc;

	if (same_node(n, e)) {
		if (same_attr(m, n, &e->attr))
			return 0;
		change_report(
			m, MANIFEST_ATTR, dir, e->name, old, old, fn, arg);
		/* Only a directory or a link changes its version here; a new
		 * version of a file gets a new node. */
		n->version = e->attr.version;
		rc = manifest_set_attr(m, n, &e->attr);
		trail_note(m, TRAIL_ATTR, old);
		return rc;
	}
	/* Add the new node first, so that the name stays if this fails. */
	rc = change_add(m, dir, e, n->name, NULL, id);
	if (rc < 0)
		return rc;
	slot = n->slot;
	retire(m, old, MANIFEST_REPLACED, *id, fn, arg);
	n = manifest_node_at(m, *id);
	directory_move(&manifest_node_at(m, dir)->dir, n->slot, slot);
	n->slot = slot;
	trail_note(m, TRAIL_ADD, *id);
	return 0;
}

static bool name_is_valid(const char *name)
{
	size_t len = strnlen(name, NAME_MAX + 1);

	return len > 0 && len <= NAME_MAX && !strchr(name, '/') &&
		strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Estimated memory of a node, with its element in the table and its slot. */
#define NODE_MEMORY_BYTES 104u

static bool is_full(const struct manifest *m)
{
	const struct manifest_totals *t = &m->totals;
	uint64_t names = t->files + t->directories + t->links;

	return names * NODE_MEMORY_BYTES + m->names_end >= m->bytes_max;
}

/* Like manifest_put() or, with keep_dir, like manifest_put_beside(). The lock
 * is held for writing. */
static int put_locked(struct manifest *m, node_id dir,
	const struct file_entry *e, uint64_t now_s, bool keep_dir, node_id *id,
	manifest_event_fn *fn, void *arg)
{
	struct node *d = manifest_node(m, dir);
	struct node *n;
	int rc;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!name_is_valid(e->name))
		return -EINVAL;
	if (!d || d->kind != KIND_DIR || node_retired(d))
		return -ESTALE;
	*id = manifest_table_find(m, dir, e->name);
	if (*id != 0 && keep_dir && manifest_node_at(m, *id)->kind == KIND_DIR)
		return -EISDIR;
	if (*id != 0) {
		rc = put_existing(m, id, e, fn, arg);
	} else if (is_full(m)) {
		return -E2BIG;
	} else {
		rc = change_add(m, dir, e, 0, NULL, id);
		if (rc == 0)
			trail_note(m, TRAIL_ADD, *id);
		if (rc == 0)
			change_report(m, MANIFEST_ADDED, dir, e->name, *id, 0,
				fn, arg);
	}
	if (rc < 0)
		return rc;
	n = manifest_node_at(m, *id);
	n->stamp = m->stamp;
	n->checked_s = (uint32_t)now_s;
	return 0;
}

int manifest_restore(struct manifest *m, node_id dir,
	const struct file_entry *e, const struct node_slot *at, node_id *id)
{
	struct node *d = manifest_node(m, dir);

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!name_is_valid(e->name) || !d || d->kind != KIND_DIR ||
		node_retired(d) || (at->id != 0 && manifest_node(m, at->id)))
		return -EBADMSG;
	if (at->id == 0 && is_full(m))
		return -E2BIG;
	return change_add(m, dir, e, 0, at, id);
}

int manifest_restore_retired(
	struct manifest *m, node_id dir, const struct file_entry *e, node_id id)
{
	struct node *d = manifest_node(m, dir);
	int rc;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!name_is_valid(e->name) || !d || d->kind != KIND_DIR ||
		manifest_node(m, id) || d->dir.kids == DIRECTORY_MOST)
		return -EBADMSG;
	rc = change_build(m, dir, e, 0, id, &id);
	if (rc < 0)
		return rc;
	manifest_node_at(m, id)->slot = NODE_RETIRED;
	d->dir.kids++;
	return 0;
}

int manifest_put(struct manifest *m, node_id dir,
	const struct file_entry *entry, uint64_t now_s, bool ref,
	struct node_info *info, manifest_event_fn *fn, void *arg)
{
	node_id id = 0;
	int rc;

	pthread_rwlock_wrlock(&m->lock);
	rc = put_locked(m, dir, entry, now_s, false, &id, fn, arg);
	if (rc == 0 && ref)
		manifest_node_ref(manifest_node_at(m, id));
	if (rc == 0 && info)
		manifest_info(m, id, info);
	manifest_unlock_changed(m);
	return rc;
}

int manifest_put_beside(struct manifest *m, node_id dir,
	const struct file_entry *file, uint64_t now_s, manifest_event_fn *fn,
	void *arg)
{
	node_id id = 0;
	int rc;

	pthread_rwlock_wrlock(&m->lock);
	rc = put_locked(m, dir, file, now_s, true, &id, fn, arg);
	manifest_unlock_changed(m);
	return rc;
}

void manifest_negative(struct manifest *m, node_id dir)
{
	struct node *n;

	pthread_rwlock_wrlock(&m->lock);
	n = manifest_node(m, dir);
	if (n && n->kind == KIND_DIR)
		n->dir.negative = true;
	pthread_rwlock_unlock(&m->lock);
}

void manifest_checked(struct manifest *m, node_id id, uint64_t now_s)
{
	struct node *n;

	pthread_rwlock_wrlock(&m->lock);
	n = manifest_node(m, id);
	if (n)
		n->checked_s = (uint32_t)now_s;
	pthread_rwlock_unlock(&m->lock);
}

void manifest_put_root(struct manifest *m, const struct file_attr *attr)
{
	struct node *n;

	pthread_rwlock_wrlock(&m->lock);
	n = manifest_node_at(m, NODE_ROOT);
	/* If memory is short, the root keeps its old mode. Other nodes do the
	 * same. */
	(void)manifest_set_attr(m, n, attr);
	n->version = attr->version;
	trail_note(m, TRAIL_ATTR, NODE_ROOT);
	manifest_unlock_changed(m);
}

int manifest_remove(struct manifest *m, node_id dir, const char *name,
	manifest_event_fn *fn, void *arg)
{
	node_id id;

	pthread_rwlock_wrlock(&m->lock);
	id = manifest_table_find(m, dir, name);
	if (id != 0)
		retire(m, id, MANIFEST_REMOVED, 0, fn, arg);
	manifest_unlock_changed(m);
	return 0;
}

uint32_t manifest_list_begin(struct manifest *m)
{
	uint32_t stamp;

	pthread_rwlock_wrlock(&m->lock);
	stamp = ++m->stamp;
	pthread_rwlock_unlock(&m->lock);
	return stamp;
}

int manifest_list_end(struct manifest *m, node_id dir, uint32_t stamp,
	manifest_event_fn *fn, void *arg)
{
	struct node *d;
	int rc = 0;

	pthread_rwlock_wrlock(&m->lock);
	d = manifest_node(m, dir);
	if (!d || d->kind != KIND_DIR || node_retired(d)) {
		rc = -ESTALE;
	} else {
		for (uint32_t i = 0; i < d->dir.n; i++) {
			node_id id = directory_names(&d->dir)[i];

			/* The comparison uses the sign of a difference, so it
			 * is right even after `stamp` has wrapped around. */
			if (id != 0 &&
				(int32_t)(manifest_node_at(m, id)->stamp -
					stamp) < 0)
				retire(m, id, MANIFEST_REMOVED, 0, fn, arg);
		}
		d->dir.listed = true;
		trail_note(m, TRAIL_LISTED, dir);
	}
	manifest_unlock_changed(m);
	return rc;
}
