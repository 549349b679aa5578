/* SPDX-License-Identifier: MIT */
/*
 * The manifest as a file, so that a mount starts with all names and asks the
 * origin for none: doc/formats.md has the format. A file is written under
 * another name and renamed. It is read as a whole, and its checksum and the
 * bounds of each record are checked. It is not mapped, as a page that a bad
 * disk cannot read would kill the daemon.
 */
#include "manifest/node_impl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/owned.h"
#include "base/write.h"

#define FILE_MAGIC "refrmani"
/* Version 2 has tags; a manifest without tags is written as version 1. */
#define VERSION_PLAIN 1u
#define VERSION_TAGS 2u
#define FILE_TMP MANIFEST_FILE ".new"
#define FLAG_LISTED 1u

/* On disk; little endian. */
struct file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t dataset_hi, dataset_lo;
	uint64_t records;
	uint64_t body_bytes;  /* of the records */
	uint64_t body_hash;   /* XXH3-64 of the records, seed: version */
	uint64_t header_hash; /* XXH3-64 of the fields before, likewise */
};

/*
 * Followed by the tag (8 bytes, in version 2 only), the name and the target.
 * The first record is the root.
 */
struct file_record {
	uint64_t size_bytes;
	uint64_t mtime_ns;
	uint32_t parent; /* a record before this one; the root's is itself */
	uint32_t uid, gid;
	uint16_t mode;
	uint8_t kind;
	uint8_t flags;
	uint16_t name_bytes, target_bytes;
	uint32_t zero;
};

_Static_assert(sizeof(struct file_header) == 64, "no holes");
_Static_assert(sizeof(struct file_record) == 40, "no holes");

/* -- Writing ------------------------------------------------------------- */

/* A growing copy of the records. */
struct body {
	struct array data;
	uint64_t records;
	uint32_t version; /* of the file */
};

static int file_append(struct body *b, const void *data, size_t n)
{
	void *to = array_grow(&b->data, n);

	if (!to)
		return -ENOMEM;
	memcpy(to, data, n);
	return 0;
}

static int append_node(const struct manifest *m, struct body *b,
	const struct node *n, uint32_t parent)
{
	const struct owner *o = manifest_owner(m, n);
	const char *name = manifest_name(m, n);
	const char *target = n->kind == KIND_LINK ? n->link->target : "";
	size_t name_bytes = strlen(name);
	size_t target_bytes = strlen(target);
	uint64_t tag = htole64(n->version.tag);
	struct file_record r = {
		.size_bytes = htole64(n->version.size_bytes),
		.mtime_ns = htole64((uint64_t)n->version.mtime_ns),
		.parent = htole32(parent),
		.uid = htole32(o->uid),
		.gid = htole32(o->gid),
		.mode = htole16((uint16_t)o->mode),
		.kind = n->kind,
		.flags = n->kind == KIND_DIR && n->dir.listed ? FLAG_LISTED : 0,
		.name_bytes = htole16((uint16_t)name_bytes),
		.target_bytes = htole16((uint16_t)target_bytes),
	};
	int rc = file_append(b, &r, sizeof(r));

	if (rc == 0 && b->version == VERSION_TAGS)
		rc = file_append(b, &tag, sizeof(tag));
	if (rc == 0)
		rc = file_append(b, name, name_bytes);
	if (rc == 0)
		rc = file_append(b, target, target_bytes);
	b->records++;
	return rc;
}

/* Breadth first, so that a parent's record comes before its children's. */
static int encode(const struct manifest *m, struct body *b)
{
	uint64_t nodes =
		m->totals.files + m->totals.directories + m->totals.links + 1;
	CLEANUP_FREE node_id *queue = malloc(nodes * sizeof(*queue));
	uint64_t n = 1;
	int rc;

	if (!queue)
		return -ENOMEM;
	b->version = m->tagged ? VERSION_TAGS : VERSION_PLAIN;
	queue[0] = NODE_ROOT;
	rc = append_node(m, b, manifest_slot(m, NODE_ROOT), 0);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		const struct node *d = manifest_slot(m, queue[i]);

		if (d->kind != KIND_DIR)
			continue;
		for (uint32_t k = 0; rc == 0 && k < d->dir.n; k++) {
			node_id child = directory_names(&d->dir)[k];

			if (child == 0)
				continue;
			queue[n++] = child;
			rc = append_node(
				m, b, manifest_slot(m, child), (uint32_t)i);
		}
	}
	return rc;
}

static void file_fill_header(
	const struct manifest *m, const struct body *b, struct file_header *h)
{
	*h = (struct file_header){
		.version = htole32(b->version),
		.header_bytes = htole32(sizeof(*h)),
		.dataset_hi = htole64(m->dataset.hi),
		.dataset_lo = htole64(m->dataset.lo),
		.records = htole64(b->records),
		.body_bytes = htole64(array_bytes(&b->data)),
		.body_hash = htole64(hash64(array_data(&b->data),
			array_bytes(&b->data), b->version)),
	};
	memcpy(h->magic, FILE_MAGIC, sizeof(h->magic));
	h->header_hash = htole64(hash64(
		h, offsetof(struct file_header, header_hash), b->version));
}

static int write_file(
	int dirfd, const struct file_header *h, const struct body *b)
{
	CLEANUP_FD int fd = -1;
	int rc;

	(void)unlinkat(dirfd, FILE_TMP, 0); /* of a save that was killed */
	fd = openat(dirfd, FILE_TMP,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, h, sizeof(*h));
	if (rc == 0)
		rc = write_all(fd, array_data(&b->data), array_bytes(&b->data));
	/* The bytes must be on disk before the name is. */
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (rc == 0 && renameat(dirfd, FILE_TMP, dirfd, MANIFEST_FILE) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(dirfd, FILE_TMP, 0); /* the next one cuts it */
	return rc;
}

int manifest_save(struct manifest *m, int dirfd)
{
	struct body b = {.records = 0};
	struct file_header h;
	int rc;
	/* One save at a time: two would write to one file, and the older could
	 * come last. */
	LOCK_SCOPE(&m->save_lock);

	pthread_rwlock_rdlock(&m->lock);
	rc = encode(m, &b);
	pthread_rwlock_unlock(&m->lock);
	if (rc == 0) {
		file_fill_header(m, &b, &h);
		rc = write_file(dirfd, &h, &b);
	}
	array_release(&b.data);
	return rc;
}

/* -- Reading ------------------------------------------------------------- */

struct file_reader {
	struct manifest *m;
	const unsigned char *at, *end;
	node_id *ids; /* of the records so far */
	uint64_t n, records;
	uint32_t version; /* of the file */
};

/* A string of the file into a buffer; false if it holds a NUL. */
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
	struct node *n = manifest_slot(r->m, NODE_ROOT);

	if (e->attr.kind != KIND_DIR || e->name[0] != '\0')
		return -EBADMSG;
	n->version = e->attr.version;
	n->dir.listed = listed;
	r->ids[r->n++] = NODE_ROOT;
	return manifest_set_attr(r->m, n, &e->attr);
}

static int take_node(struct file_reader *r, const struct file_entry *e,
	uint32_t parent, bool listed)
{
	node_id id;
	int rc;

	if (parent >= r->n)
		return -EBADMSG;
	rc = manifest_put_locked(
		r->m, r->ids[parent], e, 0, false, &id, NULL, NULL);
	if (rc < 0)
		return rc == -ENOMEM ? rc : -EBADMSG;
	if (e->attr.kind == KIND_DIR)
		manifest_slot(r->m, id)->dir.listed = listed;
	r->ids[r->n++] = id;
	return 0;
}

/* The fixed fields of a record, its tag included. */
static bool take_fields(
	struct file_reader *r, struct file_record *rec, uint64_t *tag)
{
	size_t tag_bytes = r->version == VERSION_TAGS ? sizeof(*tag) : 0;

	*tag = 0;
	if ((size_t)(r->end - r->at) < sizeof(*rec) + tag_bytes)
		return false;
	memcpy(rec, r->at, sizeof(*rec));
	memcpy(tag, r->at + sizeof(*rec), tag_bytes);
	r->at += sizeof(*rec) + tag_bytes;
	return true;
}

static int file_take_record(struct file_reader *r)
{
	char name[NAME_MAX + 1], target[PATH_MAX];
	struct file_entry e = {.name = name, .target = target};
	struct file_record rec;
	uint64_t tag;
	bool listed;

	if (!take_fields(r, &rec, &tag) ||
		!take_text(r, le16toh(rec.name_bytes), name, sizeof(name)) ||
		!take_text(
			r, le16toh(rec.target_bytes), target, sizeof(target)))
		return -EBADMSG;
	e.attr = (struct file_attr){
		.version.size_bytes = le64toh(rec.size_bytes),
		.version.mtime_ns = (int64_t)le64toh(rec.mtime_ns),
		.version.tag = le64toh(tag),
		.kind = rec.kind,
		.mode = le16toh(rec.mode) & 07777,
		.uid = le32toh(rec.uid),
		.gid = le32toh(rec.gid),
	};
	if (rec.kind < KIND_FILE || rec.kind > KIND_LINK ||
		e.attr.version.size_bytes > INT64_MAX)
		return -EBADMSG;
	listed = rec.flags & FLAG_LISTED;
	return r->n == 0 ? take_root(r, &e, listed)
			 : take_node(r, &e, le32toh(rec.parent), listed);
}

static int file_check_header(const struct manifest *m,
	const unsigned char *bytes, size_t size, struct file_header *h)
{
	const size_t before_hash = offsetof(struct file_header, header_hash);
	uint32_t version;

	if (size < sizeof(*h))
		return -EBADMSG;
	memcpy(h, bytes, sizeof(*h));
	version = le32toh(h->version);
	if (memcmp(h->magic, FILE_MAGIC, sizeof(h->magic)) != 0 ||
		(version != VERSION_PLAIN && version != VERSION_TAGS) ||
		le32toh(h->header_bytes) != sizeof(*h) ||
		le64toh(h->header_hash) !=
			hash64(bytes, before_hash, version) ||
		le64toh(h->dataset_hi) != m->dataset.hi ||
		le64toh(h->dataset_lo) != m->dataset.lo ||
		le64toh(h->body_bytes) != size - sizeof(*h) ||
		le64toh(h->records) >
			(size - sizeof(*h)) / sizeof(struct file_record) ||
		le64toh(h->records) > UINT32_MAX)
		return -EBADMSG;
	if (le64toh(h->body_hash) !=
		hash64(bytes + sizeof(*h), size - sizeof(*h), version))
		return -EBADMSG;
	return 0;
}

static int decode(struct manifest *m, const unsigned char *bytes, size_t size)
{
	struct file_reader r = {.m = m, .end = bytes + size};
	struct file_header h;
	int rc = file_check_header(m, bytes, size, &h);

	if (rc < 0)
		return rc;
	r.at = bytes + sizeof(h);
	r.records = le64toh(h.records);
	r.version = le32toh(h.version);
	r.ids = malloc((size_t)r.records * sizeof(*r.ids) + 1);
	if (!r.ids)
		return -ENOMEM;
	pthread_rwlock_wrlock(&m->lock);
	while (rc == 0 && r.n < r.records)
		rc = file_take_record(&r);
	pthread_rwlock_unlock(&m->lock);
	free(r.ids);
	if (rc == 0 && (r.at != r.end || r.records == 0))
		rc = -EBADMSG;
	return rc;
}

/* Read a file of a known size; the caller frees it. A shorter one is damaged.
 */
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

	(void)unlinkat(dirfd, FILE_TMP, 0); /* of a save that was killed */
	if (fd < 0)
		return why == ENOENT ? -ENOENT : -EBADMSG;
	/* The file must be ours, as its modes and sizes are trusted. */
	rc = owned_file(dirfd, fd);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) < 0 || st.st_size == 0)
		return -EBADMSG;
	rc = read_file(fd, (size_t)st.st_size, &bytes);
	return rc ? rc : decode(m, bytes, (size_t)st.st_size);
}
