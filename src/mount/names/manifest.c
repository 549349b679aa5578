/* SPDX-License-Identifier: MIT */
/*
 * Queries of the manifest: look-ups, paths, listings, totals. manifest_change.c
 * has the changes, node.c the storage.
 */
#include "mount/names/names_trail_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/lock.h"
#include "common/base/names_memory.h"
#include "common/format/key.h"

static int make_root(struct manifest *m)
{
	const struct file_attr attr = {.mode = 0755};
	node_id id = manifest_node_new(m);
	struct node *n;

	if (id != NODE_ROOT)
		return -ENOMEM;
	n = manifest_node_at(m, id);
	n->kind = KIND_DIR;
	n->parent = NODE_ROOT;
	/* never 0, because the kernel does not count references to the root */
	n->refs = 1;
	if (manifest_name_new(m, "", &n->name) < 0)
		return -ENOMEM;
	return manifest_set_attr(m, n, &attr);
}

int manifest_new(struct manifest **out, const char *dataset)
{
	struct manifest *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->segment = calloc(SEGMENTS_MAX, sizeof(*m->segment));
	m->names = calloc(NAMES_BLOCKS_MAX, sizeof(*m->names));
	m->end = NODE_ROOT;
	m->dataset = key_digest(dataset);
	m->bytes_max = names_memory_bytes();
	lock_init(&m->save_lock, RANK_SAVE);
	lock_init_rw(&m->lock, RANK_MANIFEST);
	if (!m->segment || !m->names) {
		manifest_free(m);
		return -ENOMEM;
	}
	/* Segment 0 exists from the start, and number 0 is not used, so the
	 * root gets number 1. */
	pthread_rwlock_wrlock(&m->lock);
	rc = make_root(m);
	pthread_rwlock_unlock(&m->lock);
	if (rc < 0) {
		manifest_free(m);
		return -ENOMEM;
	}
	*out = m;
	return 0;
}

void manifest_free(struct manifest *m)
{
	if (!m)
		return;
	for (node_id id = NODE_ROOT; m->segment && id < m->end; id++)
		if (manifest_node(m, id))
			manifest_node_free(m, id);
	for (uint32_t i = 0; m->segment && i <= m->end / NODES_PER_SEGMENT; i++)
		free(m->segment[i]);
	for (uint32_t i = 0; m->names && i < NAMES_BLOCKS_MAX; i++)
		free(m->names[i]);
	(void)pthread_rwlock_destroy(&m->lock); /* no thread uses it any more */
	(void)pthread_mutex_destroy(&m->save_lock);
	trail_free(m->trail);
	free(m->segment);
	table_release(&m->table);
	free(m->names);
	free(m->owners);
	free(m);
}

struct hash128 manifest_dataset(const struct manifest *m)
{
	return m->dataset;
}

int manifest_get(struct manifest *m, node_id id, struct node_info *info)
{
	int rc = -ESTALE;

	pthread_rwlock_rdlock(&m->lock);
	if (manifest_node(m, id)) {
		manifest_info(m, id, info);
		rc = 0;
	}
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

static int lookup_locked(struct manifest *m, node_id dir, const char *name,
	struct node_info *info)
{
	struct node *d = manifest_node(m, dir);
	node_id id;

	if (!d || node_retired(d))
		return -ESTALE;
	if (d->kind != KIND_DIR)
		return -ENOTDIR;
	id = manifest_table_find(m, dir, name);
	if (id == 0)
		return -ENOENT;
	manifest_info(m, id, info);
	return 0;
}

int manifest_lookup(struct manifest *m, node_id dir, const char *name, bool ref,
	struct node_info *info)
{
	int rc;

	pthread_rwlock_rdlock(&m->lock);
	rc = lookup_locked(m, dir, name, info);
	if (rc == 0 && ref)
		manifest_node_ref(manifest_node_at(m, info->id));
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

int manifest_resolve(
	struct manifest *m, const char *path, struct node_info *info)
{
	char name[256];
	int rc = manifest_get(m, NODE_ROOT, info);

	while (rc == 0 && *path) {
		size_t n = strcspn(path, "/");

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n;
		path += strspn(path, "/");
		if (n == 0 || strcmp(name, ".") == 0)
			continue;
		rc = manifest_lookup(m, info->id, name, false, info);
	}
	return rc;
}

int manifest_path(struct manifest *m, node_id id, char *path, size_t size)
{
	int rc;

	pthread_rwlock_rdlock(&m->lock);
	rc = manifest_path_locked(m, id, path, size);
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

int manifest_target(struct manifest *m, node_id id, char *target, size_t size)
{
	const struct node *n;
	int rc = -EINVAL;

	pthread_rwlock_rdlock(&m->lock);
	n = manifest_node(m, id);
	if (!n) {
		rc = -ESTALE;
	} else if (n->kind == KIND_LINK) {
		rc = snprintf(target, size, "%s", n->link->target);
		if (rc < 0 || (size_t)rc >= size)
			rc = -ENAMETOOLONG;
	}
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

node_id manifest_parent(struct manifest *m, node_id id)
{
	const struct node *n;
	node_id parent = 0;

	pthread_rwlock_rdlock(&m->lock);
	n = manifest_node(m, id);
	if (n)
		parent = n->parent;
	pthread_rwlock_unlock(&m->lock);
	return parent;
}

static void readdir_locked(struct manifest *m, const struct directory *dir,
	uint64_t pos, bool ref, manifest_name_fn *fn, void *arg)
{
	struct node_info info;

	for (uint64_t i = pos; i < dir->n; i++) {
		node_id id = directory_names(dir)[i];

		if (id == 0)
			continue;
		manifest_info(m, id, &info);
		if (!fn(arg, manifest_name(m, manifest_node_at(m, id)), &info,
			    i + 1))
			return;
		if (ref)
			manifest_node_ref(manifest_node_at(m, id));
	}
}

int manifest_readdir(struct manifest *m, node_id dir, uint64_t pos, bool ref,
	manifest_name_fn *fn, void *arg)
{
	struct node *d;
	int rc = 0;

	pthread_rwlock_rdlock(&m->lock);
	d = manifest_node(m, dir);
	if (!d)
		rc = -ESTALE;
	else if (d->kind != KIND_DIR)
		rc = -ENOTDIR;
	else
		readdir_locked(m, &d->dir, pos, ref, fn, arg);
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

node_id manifest_end(struct manifest *m)
{
	node_id end;

	pthread_rwlock_rdlock(&m->lock);
	end = m->end;
	pthread_rwlock_unlock(&m->lock);
	return end;
}

bool manifest_is_under(struct manifest *m, node_id id, node_id top)
{
	const struct node *n;
	bool under = false;

	pthread_rwlock_rdlock(&m->lock);
	n = manifest_node(m, id);
	if (n && !node_retired(n)) {
		while (id != top && id != NODE_ROOT)
			id = manifest_node_at(m, id)->parent;
		under = id == top;
	}
	pthread_rwlock_unlock(&m->lock);
	return under;
}

void manifest_totals(struct manifest *m, struct manifest_totals *totals)
{
	pthread_rwlock_rdlock(&m->lock);
	*totals = m->totals;
	pthread_rwlock_unlock(&m->lock);
}
