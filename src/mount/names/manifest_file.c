/* SPDX-License-Identifier: MIT */
/*
 * Saves the manifest as a file and loads it, so that a mount has all names at
 * its start without asking the origin. doc/formats.md has the format. A file is
 * written under another name and then renamed. To load it, the whole file is
 * read, and its checksum and the bounds of each record are checked. The file is
 * not mapped, because a page that a bad disk cannot read would kill the daemon.
 */
#include "mount/names/names_trail_impl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/owned.h"
#include "common/base/write.h"

#define FILE_MAGIC "refrmani"
/* Version 2 added tags. Version 3 added the numbers of the nodes. This program
 * writes version 3. */
#define VERSION_PLAIN 1u
#define VERSION_TAGS 2u
#define VERSION_NODES 3u
#define FILE_TMP MANIFEST_FILE ".new"
/* Flags of a record. Before version 3, only FLAG_LISTED is used. */
#define FLAG_LISTED 1u
#define FLAG_TAG 2u	/* the tag follows */
#define FLAG_SLOT 4u	/* the slot in the directory follows */
#define FLAG_RETIRED 8u /* the node has no name; `parent` is a node number */
#define FLAG_INODE 16u	/* the inode number of a link follows */

/* The header of the file; little endian. */
struct file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t dataset_hi, dataset_lo;
	uint64_t records;
	uint64_t body_bytes; /* size of all records */
	uint64_t body_hash;  /* XXH3-64 of the records, seed: version */
	/* The fields from here on exist only in version 3 */
	uint64_t session_hi, session_lo;
	/* Trail offset at which the file was saved; see names_trail.c. */
	uint64_t trail;
	uint64_t zero;
	/* XXH3-64 of the fields above, seed: version */
	uint64_t header_hash;
};

#define OLD_HEADER_BYTES 64u

/* A record. After it follow the tag (8 bytes, always in version 2), the slot (4
 * bytes), the inode number (8 bytes), the name and the target. The first record
 * is the root. */
struct file_record {
	uint64_t size_bytes;
	uint64_t mtime_ns;
	/* Index of the record of the parent; that of the root is 0 */
	uint32_t parent;
	uint32_t uid, gid;
	uint16_t mode;
	uint8_t kind;
	uint8_t flags;
	uint16_t name_bytes, target_bytes;
	uint32_t node; /* 0 before version 3 */
};

_Static_assert(sizeof(struct file_header) == 96, "no holes");
_Static_assert(sizeof(struct file_record) == 40, "no holes");

/* -- Writing ------------------------------------------------------------- */

/* The records of the file, in memory. */
struct body {
	struct array data;
	uint64_t records;
	/* Slot that the next name has if no empty slots precede it */
	uint32_t next_slot;
	uint64_t trail; /* changes before this trail offset are included */
};

static int file_append(struct body *b, const void *data, size_t n)
{
	void *to = array_grow(&b->data, n);

	if (!to)
		return -ENOMEM;
	memcpy(to, data, n);
	return 0;
}

static uint8_t record_flags(const struct body *b, const struct node *n)
{
	unsigned flags = 0;

	if (n->kind == KIND_DIR && n->dir.listed)
		flags |= FLAG_LISTED;
	if (n->version.tag != 0)
		flags |= FLAG_TAG;
	if (node_retired(n))
		flags |= FLAG_RETIRED;
	else if (n->slot != b->next_slot)
		flags |= FLAG_SLOT;
	if (n->kind == KIND_LINK)
		flags |= FLAG_INODE;
	return (uint8_t)flags;
}

static int append_node(
	const struct manifest *m, struct body *b, node_id id, uint32_t parent)
{
	const struct node *n = manifest_node_at(m, id);
	const struct owner *o = manifest_owner(m, n);
	const char *name = manifest_name(m, n);
	const char *target = n->kind == KIND_LINK ? n->link->target : "";
	size_t name_bytes = strlen(name);
	size_t target_bytes = strlen(target);
	uint64_t tag = htole64(n->version.tag);
	uint32_t slot = htole32(n->slot);
	uint64_t ino = htole64(n->kind == KIND_LINK ? n->link->ino : 0);
	struct file_record r = {
		.size_bytes = htole64(n->version.size_bytes),
		.mtime_ns = htole64((uint64_t)n->version.mtime_ns),
		.parent = htole32(parent),
		.uid = htole32(o->uid),
		.gid = htole32(o->gid),
		.mode = htole16((uint16_t)o->mode),
		.kind = n->kind,
		.flags = record_flags(b, n),
		.name_bytes = htole16((uint16_t)name_bytes),
		.target_bytes = htole16((uint16_t)target_bytes),
		.node = htole32(id),
	};
	int rc = file_append(b, &r, sizeof(r));

	if (rc == 0 && (r.flags & FLAG_TAG))
		rc = file_append(b, &tag, sizeof(tag));
	if (rc == 0 && (r.flags & FLAG_SLOT))
		rc = file_append(b, &slot, sizeof(slot));
	if (rc == 0 && (r.flags & FLAG_INODE))
		rc = file_append(b, &ino, sizeof(ino));
	if (rc == 0)
		rc = file_append(b, name, name_bytes);
	if (rc == 0)
		rc = file_append(b, target, target_bytes);
	b->records++;
	b->next_slot = n->slot + 1;
	return rc;
}

/* Encode all named nodes, breadth first, so that the record of a directory
 * comes before those of its names. */
static int encode_names(const struct manifest *m, struct body *b)
{
	uint64_t nodes =
		m->totals.files + m->totals.directories + m->totals.links + 1;
	CLEANUP_FREE node_id *queue = malloc(nodes * sizeof(*queue));
	uint64_t n = 1;
	int rc;

	if (!queue)
		return -ENOMEM;
	queue[0] = NODE_ROOT;
	rc = append_node(m, b, NODE_ROOT, 0);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		const struct node *d = manifest_node_at(m, queue[i]);

		if (d->kind != KIND_DIR)
			continue;
		b->next_slot = 0;
		for (uint32_t k = 0; rc == 0 && k < d->dir.n; k++) {
			node_id child = directory_names(&d->dir)[k];

			if (child == 0)
				continue;
			queue[n++] = child;
			rc = append_node(m, b, child, (uint32_t)i);
		}
	}
	return rc;
}

/* Encode a retired node, after the directory that contained it. The recursion
 * is as deep as the path of the node. */
static int encode_retired(const struct manifest *m, struct body *b,
	unsigned char *done, node_id id)
{
	const struct node *n = manifest_node_at(m, id);
	int rc;

	if (!node_retired(n) || (done[id / 8] & 1u << id % 8))
		return 0;
	done[id / 8] |= (unsigned char)(1u << id % 8);
	rc = encode_retired(m, b, done, n->parent);
	return rc < 0 ? rc : append_node(m, b, id, n->parent);
}

/* Encode all retired nodes. Only a process that continues this session needs
 * them. */
static int encode_all_retired(const struct manifest *m, struct body *b)
{
	CLEANUP_FREE unsigned char *done = calloc(1, m->end / 8 + 1);
	int rc = done ? 0 : -ENOMEM;

	for (node_id id = NODE_ROOT + 1; rc == 0 && id < m->end; id++)
		if (manifest_node(m, id))
			rc = encode_retired(m, b, done, id);
	return rc;
}

static int encode(const struct manifest *m, struct body *b)
{
	int rc = encode_names(m, b);

	if (rc < 0 || !m->trail)
		return rc;
	b->trail = m->trail->next;
	return encode_all_retired(m, b);
}

static void file_fill_header(
	const struct manifest *m, const struct body *b, struct file_header *h)
{
	*h = (struct file_header){
		.version = htole32(VERSION_NODES),
		.header_bytes = htole32(sizeof(*h)),
		.dataset_hi = htole64(m->dataset.hi),
		.dataset_lo = htole64(m->dataset.lo),
		.records = htole64(b->records),
		.body_bytes = htole64(array_bytes(&b->data)),
		.body_hash = htole64(hash64(array_data(&b->data),
			array_bytes(&b->data), VERSION_NODES)),
		.session_hi = htole64(m->session.hi),
		.session_lo = htole64(m->session.lo),
		.trail = htole64(b->trail),
	};
	memcpy(h->magic, FILE_MAGIC, sizeof(h->magic));
	h->header_hash = htole64(hash64(
		h, offsetof(struct file_header, header_hash), VERSION_NODES));
}

static int write_file(
	int dirfd, const struct file_header *h, const struct body *b)
{
	CLEANUP_FD int fd = -1;
	int rc;

	(void)unlinkat(dirfd, FILE_TMP, 0); /* left by a save that was killed */
	fd = openat(dirfd, FILE_TMP,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, h, sizeof(*h));
	if (rc == 0)
		rc = write_all(fd, array_data(&b->data), array_bytes(&b->data));
	/* The bytes must be on disk before the file gets its name. */
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (rc == 0 && renameat(dirfd, FILE_TMP, dirfd, MANIFEST_FILE) < 0)
		rc = -errno;
	if (rc < 0)
		/* If this fails, the next save deletes the file */
		(void)unlinkat(dirfd, FILE_TMP, 0);
	return rc;
}

int manifest_save(struct manifest *m, int dirfd)
{
	struct body b = {.records = 0};
	struct file_header h;
	int rc;
	/* Two saves at a time would write to the same file, and the older state
	 * could be renamed last. */
	LOCK_SCOPE(&m->save_lock);

	if (m->trail) {
		pthread_rwlock_wrlock(&m->lock);
		trail_restart(m);
		pthread_rwlock_unlock(&m->lock);
	}
	pthread_rwlock_rdlock(&m->lock);
	rc = encode(m, &b);
	pthread_rwlock_unlock(&m->lock);
	if (rc == 0) {
		file_fill_header(m, &b, &h);
		rc = write_file(dirfd, &h, &b);
	}
	if (rc == 0 && m->trail)
		trail_saved(m, b.trail, array_bytes(&b.data));
	array_release(&b.data);
	return rc;
}

/* -- Reading ------------------------------------------------------------- */

struct file_reader {
	struct manifest *m;
	const unsigned char *at, *end;
	node_id *ids; /* the node of each record read so far */
	uint64_t n, records;
	uint32_t version; /* version of the file */
	/* This session has written the file: keep node numbers and slots */
	bool same;
	/* Slot of the next name of `parent` if no empty slots precede it */
	uint32_t parent, next_slot;
};

/* The contents of a record. Its name and target are in buffers of the
 * caller. */
struct taken {
	struct file_entry entry;
	uint32_t parent, node, slot;
	uint64_t ino; /* 0: compute it from the version */
	uint8_t flags;
};

/* Copy a string of the file to a buffer. Returns false if the string does not
 * fit or contains a NUL. */
static bool take_text(struct file_reader *r, size_t n, char *buf, size_t size)
{
	if (n >= size || (size_t)(r->end - r->at) < n)
		return false;
	memcpy(buf, r->at, n);
	buf[n] = '\0';
	r->at += n;
	return strlen(buf) == n;
}

static int take_root(
	struct file_reader *r, const struct file_entry *e, bool listed)
{
	struct node *n = manifest_node_at(r->m, NODE_ROOT);

	if (e->attr.kind != KIND_DIR || e->name[0] != '\0')
		return -EBADMSG;
	n->version = e->attr.version;
	n->dir.listed = listed;
	r->ids[r->n++] = NODE_ROOT;
	return manifest_set_attr(r->m, n, &e->attr);
}

/* Put a name into its old slot, or into the next one. The names of a directory
 * follow one another, and each name occurs once. */
static int take_restored(
	struct file_reader *r, const struct taken *t, node_id *id)
{
	struct node_slot at = {r->same ? t->node : 0, 0, true};

	if (r->parent != t->parent)
		r->next_slot = 0;
	r->parent = t->parent;
	at.slot = r->same && t->flags & FLAG_SLOT ? t->slot : r->next_slot;
	r->next_slot = at.slot + 1;
	return manifest_restore(r->m, r->ids[t->parent], &t->entry, &at, id);
}

static int take_node(struct file_reader *r, const struct taken *t)
{
	node_id id;
	int rc;

	if (t->parent >= r->n)
		return -EBADMSG;
	rc = take_restored(r, t, &id);
	if (rc < 0)
		return rc == -ENOMEM ? rc : -EBADMSG;
	if (t->entry.attr.kind == KIND_LINK && t->ino != 0)
		manifest_node_at(r->m, id)->link->ino = t->ino;
	if (t->entry.attr.kind == KIND_DIR)
		manifest_node_at(r->m, id)->dir.listed = t->flags & FLAG_LISTED;
	r->ids[r->n++] = id;
	return 0;
}

static int take_retired(struct file_reader *r, const struct taken *t)
{
	int rc = 0;

	if (r->same)
		rc = manifest_restore_retired(
			r->m, t->parent, &t->entry, t->node);
	if (r->same && rc == 0 && t->entry.attr.kind == KIND_LINK)
		manifest_node_at(r->m, t->node)->link->ino = t->ino;
	/* 0, because no record has this node as its parent */
	r->ids[r->n++] = 0;
	return rc;
}

static bool take_bytes(struct file_reader *r, void *to, size_t n)
{
	if ((size_t)(r->end - r->at) < n)
		return false;
	memcpy(to, r->at, n);
	r->at += n;
	return true;
}

/* Read the fixed fields of a record, and the fields whose flags are set.
 * Returns false at the end of the file. */
static bool take_fields(struct file_reader *r, struct file_record *rec,
	struct taken *t, uint64_t *tag)
{
	if (!take_bytes(r, rec, sizeof(*rec)))
		return false;
	t->flags = rec->flags;
	if (r->version == VERSION_PLAIN)
		t->flags &= FLAG_LISTED;
	if (r->version == VERSION_TAGS)
		t->flags = (t->flags & FLAG_LISTED) | FLAG_TAG;
	return (!(t->flags & FLAG_TAG) || take_bytes(r, tag, sizeof(*tag))) &&
		(!(t->flags & FLAG_SLOT) ||
			take_bytes(r, &t->slot, sizeof(t->slot))) &&
		(!(t->flags & FLAG_INODE) ||
			take_bytes(r, &t->ino, sizeof(t->ino)));
}

static int file_take_record(struct file_reader *r)
{
	char name[NAME_MAX + 1], target[PATH_MAX];
	struct taken t = {.entry = {.name = name, .target = target}};
	struct file_record rec;
	uint64_t tag = 0;

	if (!take_fields(r, &rec, &t, &tag) ||
		!take_text(r, le16toh(rec.name_bytes), name, sizeof(name)) ||
		!take_text(
			r, le16toh(rec.target_bytes), target, sizeof(target)))
		return -EBADMSG;
	t.entry.attr = (struct file_attr){
		.version.size_bytes = le64toh(rec.size_bytes),
		.version.mtime_ns = (int64_t)le64toh(rec.mtime_ns),
		.version.tag = le64toh(tag),
		.kind = rec.kind,
		.mode = le16toh(rec.mode) & 07777,
		.uid = le32toh(rec.uid),
		.gid = le32toh(rec.gid),
	};
	if (rec.kind < KIND_FILE || rec.kind > KIND_LINK ||
		t.entry.attr.version.size_bytes > INT64_MAX)
		return -EBADMSG;
	t.parent = le32toh(rec.parent);
	t.node = le32toh(rec.node);
	t.slot = le32toh(t.slot);
	t.ino = le64toh(t.ino);
	if (r->n == 0)
		return take_root(r, &t.entry, t.flags & FLAG_LISTED);
	return t.flags & FLAG_RETIRED ? take_retired(r, &t) : take_node(r, &t);
}

/* Copy and check the header. Returns its size in the file, or -EBADMSG. */
static int take_file_header(
	const unsigned char *bytes, size_t size, struct file_header *h)
{
	size_t n = OLD_HEADER_BYTES;
	uint32_t version;
	uint64_t hash;

	if (size < n)
		return -EBADMSG;
	*h = (struct file_header){.records = 0};
	memcpy(h, bytes, n);
	version = le32toh(h->version);
	if (version == VERSION_NODES)
		n = sizeof(*h);
	if (memcmp(h->magic, FILE_MAGIC, sizeof(h->magic)) != 0 ||
		version < VERSION_PLAIN || version > VERSION_NODES ||
		le32toh(h->header_bytes) != n || size < n)
		return -EBADMSG;
	memcpy(&hash, bytes + n - sizeof(hash), sizeof(hash));
	if (le64toh(hash) != hash64(bytes, n - sizeof(hash), version))
		return -EBADMSG;
	if (version == VERSION_NODES)
		memcpy(h, bytes, n);
	else
		h->session_hi = h->session_lo = 0;
	h->header_hash = hash;
	return (int)n;
}

static int file_check_header(const struct manifest *m,
	const unsigned char *bytes, size_t size, struct file_header *h)
{
	int n = take_file_header(bytes, size, h);
	size_t body = size - (size_t)n;

	if (n < 0 || le64toh(h->dataset_hi) != m->dataset.hi ||
		le64toh(h->dataset_lo) != m->dataset.lo ||
		le64toh(h->body_bytes) != body ||
		le64toh(h->records) > body / sizeof(struct file_record) ||
		le64toh(h->records) > UINT32_MAX ||
		le64toh(h->body_hash) !=
			hash64(bytes + n, body, le32toh(h->version)))
		return -EBADMSG;
	return n;
}

static bool same_session(const struct manifest *m, const struct file_header *h)
{
	return (m->session.hi | m->session.lo) != 0 &&
		le64toh(h->session_hi) == m->session.hi &&
		le64toh(h->session_lo) == m->session.lo;
}

/* Add all nodes that take_restored() has created to the table. The first record
 * is the root, which has no name. */
static int add_to_table(struct file_reader *r)
{
	uint32_t names = 0;

	for (uint64_t i = 1; i < r->n; i++)
		if (r->ids[i] != 0)
			r->ids[names++] = r->ids[i];
	return manifest_table_add_all(r->m, r->ids, names);
}

static int decode(struct manifest *m, const unsigned char *bytes, size_t size)
{
	struct file_reader r = {.m = m, .end = bytes + size};
	struct file_header h;
	int rc = file_check_header(m, bytes, size, &h);

	if (rc < 0)
		return rc;
	r.at = bytes + rc;
	rc = 0;
	r.records = le64toh(h.records);
	r.version = le32toh(h.version);
	r.same = same_session(m, &h);
	m->base_hash = le64toh(h.header_hash);
	m->base_same = r.same;
	m->base_trail = r.same ? le64toh(h.trail) : 0;
	r.ids = malloc((size_t)r.records * sizeof(*r.ids) + 1);
	if (!r.ids)
		return -ENOMEM;
	pthread_rwlock_wrlock(&m->lock);
	while (rc == 0 && r.n < r.records)
		rc = file_take_record(&r);
	if (rc == 0)
		rc = add_to_table(&r);
	if (rc == 0)
		manifest_nodes_taken(m);
	pthread_rwlock_unlock(&m->lock);
	free(r.ids);
	if (rc == 0 && (r.at != r.end || r.records == 0))
		rc = -EBADMSG;
	return rc;
}

/* Read a file whose size is known; the caller frees the bytes. Returns -EBADMSG
 * if the file is shorter. */
static int read_file(int fd, size_t size, unsigned char **out)
{
	CLEANUP_FREE unsigned char *bytes = malloc(size);

	if (!bytes)
		return -ENOMEM;
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		done += (size_t)n;
	}
	*out = steal_ptr(&bytes);
	return 0;
}

int manifest_load(struct manifest *m, int dirfd)
{
	CLEANUP_FD int fd = openat(dirfd, MANIFEST_FILE,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CLEANUP_FREE unsigned char *bytes = NULL;
	struct stat st;
	int rc, why = errno;

	(void)unlinkat(dirfd, FILE_TMP, 0); /* left by a save that was killed */
	if (fd < 0)
		return why == ENOENT ? -ENOENT : -EBADMSG;
	/* The file must belong to this user, because the mount trusts its modes
	 * and sizes. */
	rc = owned_file(dirfd, fd);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) < 0 || st.st_size == 0)
		return -EBADMSG;
	rc = read_file(fd, (size_t)st.st_size, &bytes);
	return rc ? rc : decode(m, bytes, (size_t)st.st_size);
}
