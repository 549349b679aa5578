/* SPDX-License-Identifier: MIT */
/* The storage of the manifest: numbered nodes in segments, names in blocks, and
 * one hash table that finds a node by its directory and name. All functions
 * need the manifest's lock, for writing if they change something. */
#include "mount/names/node_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/format/key.h"
#include "common/base/lock.h"

static bool segment_make(struct manifest *m, node_id id)
{
	uint32_t seg = id / NODES_PER_SEGMENT;
	struct node *s;

	if (seg >= SEGMENTS_MAX)
		return false;
	if (m->segment[seg])
		return true;
	s = calloc(NODES_PER_SEGMENT, sizeof(struct node));
	if (!s)
		return false;
	atomic_store_explicit(&m->segment[seg], s, memory_order_release);
	return true;
}

node_id manifest_node_new(struct manifest *m)
{
	node_id id = m->free_list;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (id != 0)
		m->free_list = manifest_node_at(m, id)->parent;
	else if (segment_make(m, m->end))
		id = m->end++;
	else
		return 0;
	memset(manifest_node_at(m, id), 0, sizeof(struct node));
	return id;
}

node_id manifest_node_take(struct manifest *m, node_id id)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!segment_make(m, id))
		return 0;
	if (id >= m->end)
		m->end = id + 1;
	memset(manifest_node_at(m, id), 0, sizeof(struct node));
	return id;
}

/* Build the list of free nodes. Numbers in segments that do not exist stay
 * unused. */
void manifest_nodes_taken(struct manifest *m)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	m->free_list = 0;
	for (node_id id = m->end - 1; id > NODE_ROOT; id--) {
		if (!m->segment[id / NODES_PER_SEGMENT] ||
			manifest_node_at(m, id)->kind != 0)
			continue;
		manifest_node_at(m, id)->parent = m->free_list;
		m->free_list = id;
	}
}

void manifest_node_free(struct manifest *m, node_id id)
{
	struct node *n = manifest_node_at(m, id);

	if (n->kind == KIND_DIR && n->dir.has_many)
		free(n->dir.many);
	else if (n->kind == KIND_LINK)
		free(n->link);
	n->kind = 0;
	n->parent = m->free_list;
	m->free_list = id;
}

/* Store a name. The memory of names is not freed before the manifest. A new
 * version of a file uses the string of the old version, so only names that
 * vanish waste memory. */
int manifest_name_new(struct manifest *m, const char *name, uint32_t *at)
{
	uint32_t len = (uint32_t)strlen(name) + 1;
	uint32_t in_block = m->names_end & (NAMES_BLOCK_BYTES - 1);
	uint32_t block = m->names_end >> NAMES_BLOCK_BITS;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (NAMES_BLOCK_BYTES - in_block <= len) {
		block++;
		in_block = 0;
	}
	if (block == NAMES_BLOCKS_MAX)
		return -ENOMEM;
	if (!m->names[block])
		m->names[block] = malloc(NAMES_BLOCK_BYTES);
	if (!m->names[block])
		return -ENOMEM;
	memcpy(m->names[block] + in_block, name, len);
	*at = block << NAMES_BLOCK_BITS | in_block;
	m->names_end = *at + len;
	return 0;
}

static int owner_add(struct manifest *m, const struct owner *o)
{
	if (m->nowners == OWNERS_MAX)
		return -EOVERFLOW;
	if (ARRAY_ROOM(m->owners, m->nowners, &m->owners_cap) < 0)
		return -ENOMEM;
	m->owners[m->nowners++] = *o;
	return 0;
}

/* There are few owners, so a linear search is fast enough. */
int manifest_set_attr(
	struct manifest *m, struct node *n, const struct file_attr *attr)
{
	struct owner o = {attr->uid, attr->gid, attr->mode & 07777};
	uint32_t i = 0;
	int rc;

	ASSERT_HELD_TO_WRITE(&m->lock);
	while (i < m->nowners && memcmp(&m->owners[i], &o, sizeof(o)) != 0)
		i++;
	if (i == m->nowners) {
		rc = owner_add(m, &o);
		if (rc < 0)
			return rc;
	}
	n->owner = (uint16_t)i;
	return 0;
}

uint32_t manifest_name_hash(node_id parent, const char *name)
{
	return (uint32_t)hash64(name, strlen(name), parent);
}

node_id manifest_table_find(
	const struct manifest *m, node_id parent, const char *name)
{
	uint32_t hash = manifest_name_hash(parent, name);

	TABLE_FOREACH(id, &m->table, hash) {
		const struct node *n = manifest_node_at(m, id);

		if (n->hash == hash && n->parent == parent &&
			strcmp(manifest_name(m, n), name) == 0)
			return id;
	}
	return 0;
}

static uint32_t node_hash(const void *manifest, uint32_t id)
{
	return manifest_node_at(manifest, id)->hash;
}

int manifest_table_add(struct manifest *m, node_id id)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	return table_add(&m->table, id, node_hash, m);
}

int manifest_table_add_all(struct manifest *m, const node_id *ids, uint32_t n)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	return table_add_all(&m->table, ids, n, node_hash, m);
}

void manifest_table_del(struct manifest *m, node_id id)
{
	ASSERT_HELD_TO_WRITE(&m->lock);
	table_remove(&m->table, id, node_hash, m);
}

/* Compute the inode number of a directory from its path, so that it does not
 * depend on the version. The path is built again, because struct directory has
 * no space for its digest. It fits, because it fitted when the directory was
 * added. */
static uint64_t inode_of_dir(const struct manifest *m, node_id id)
{
	struct file_version none = {0};
	char path[MANIFEST_PATH_MAX];

	if (id == NODE_ROOT)
		return 1;
	(void)manifest_path_locked(m, id, path, sizeof(path));
	return key_inode(m->dataset, key_digest(path), none);
}

static uint64_t inode_of(
	const struct manifest *m, node_id id, const struct node *n)
{
	if (n->kind == KIND_DIR)
		return inode_of_dir(m, id);
	if (n->kind == KIND_LINK)
		return n->link->ino;
	return key_inode(m->dataset, n->digest, n->version);
}

void manifest_info(const struct manifest *m, node_id id, struct node_info *info)
{
	const struct node *n = manifest_node_at(m, id);
	const struct owner *o = manifest_owner(m, n);

	*info = (struct node_info){
		.id = id,
		.ino = inode_of(m, id, n),
		.attr =
			{
				.version = n->version,
				.kind = n->kind,
				.mode = o->mode,
				.uid = o->uid,
				.gid = o->gid,
			},
		.listed = n->kind == KIND_DIR && n->dir.listed,
		.retired = node_retired(n),
		.checked_s = n->checked_s,
	};
	if (n->kind == KIND_FILE)
		info->digest = n->digest;
}

int manifest_path_locked(
	const struct manifest *m, node_id id, char *path, size_t size)
{
	const struct node *n = manifest_node(m, id);
	size_t at = size;

	if (!n || size == 0)
		return -ENAMETOOLONG;
	path[--at] = '\0';
	while (n && id != NODE_ROOT) {
		const char *name = manifest_name(m, n);
		size_t len = strlen(name);

		if (len + 1 > at)
			return -ENAMETOOLONG;
		if (path[at] != '\0')
			path[--at] = '/';
		at -= len;
		memcpy(path + at, name, len);
		id = n->parent;
		n = manifest_node(m, id);
	}
	memmove(path, path + at, size - at);
	return (int)(size - at - 1);
}
