/* SPDX-License-Identifier: MIT */
/*
 * The trail: all changes of the manifest since it was last saved, in shared
 * memory. From the trail and the saved file, a process that takes over a mount
 * gets each node that the kernel may know, with its number. The trail is a ring
 * of records behind a head; doc/formats.md has the format. Offsets only grow; a
 * record is stored at its offset modulo the size of the ring.
 *
 * The records of one change are valid only together: the last of them is
 * marked. They are complete before the manifest's lock is released, and so
 * before another thread can see the change. Shared memory survives the death of
 * the process.
 */
#include "mount/names/names_trail_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* Call full() when the trail has grown by this much since the last save. */
#define SAVE_BYTES ((uint64_t)32 << 20)
#define PAGE_BYTES ((uint64_t)4096)

unsigned char *trail_at(const struct trail *t, uint64_t at)
{
	return t->map + TRAIL_HEAD_BYTES + at % TRAIL_RING_BYTES;
}

uint64_t trail_told_hash(const struct trail *t, uint64_t told)
{
	return hash64(&told, sizeof(told), t->seed);
}

/* -- Writing ------------------------------------------------------------- */

uint64_t trail_hash(const struct trail *t, const void *record)
{
	struct trail_record r;

	memcpy(&r, record, sizeof(r));
	return hash64((const unsigned char *)record + sizeof(r.hash),
		r.bytes - sizeof(r.hash), t->seed);
}

/* Complete the record that was begun last. `commit`: the record is the last one
 * of a change. */
static void trail_finish(struct trail *t, bool commit)
{
	struct trail_record *r = t->open;

	if (!r)
		return;
	r->commit = commit;
	r->hash = trail_hash(t, r);
	t->open = NULL;
}

static void trail_give_up(struct trail *t)
{
	t->lost = true;
	t->open = NULL;
	atomic_store(&t->head->lost, 1);
}

/* Begin a record. No record crosses the end of the ring. Returns NULL if the
 * ring is full. */
static struct trail_record *trail_grow(struct trail *t, uint32_t bytes)
{
	uint64_t at = t->next;
	uint64_t left = TRAIL_RING_BYTES - at % TRAIL_RING_BYTES;
	struct trail_record *r;

	if (left < bytes)
		at += left;
	if (at + bytes - t->start > TRAIL_RING_BYTES - PAGE_BYTES) {
		trail_give_up(t);
		return NULL;
	}
	trail_finish(t, false);
	r = (struct trail_record *)trail_at(t, at);
	memset(r, 0, sizeof(*r));
	r->at = at;
	r->bytes = bytes;
	t->next = at + bytes;
	t->open = r;
	return r;
}

static void record_version(struct trail_record *r, const struct file_version *v)
{
	r->size_bytes = v->size_bytes;
	r->mtime_ns = v->mtime_ns;
	r->tag = v->tag;
}

void trail_note(struct manifest *m, enum trail_kind kind, node_id id)
{
	const struct node *n = manifest_node_at(m, id);
	const struct owner *o = manifest_owner(m, n);
	bool named = kind == TRAIL_ADD;
	const char *name = named ? manifest_name(m, n) : "";
	const char *target =
		named && n->kind == KIND_LINK ? n->link->target : "";
	size_t name_bytes = strlen(name), target_bytes = strlen(target);
	size_t bytes = sizeof(struct trail_record) + name_bytes + target_bytes;
	struct trail_record *r;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!m->trail || m->trail->lost)
		return;
	r = trail_grow(m->trail, (uint32_t)((bytes + 7) / 8 * 8));
	if (!r)
		return;
	r->kind = (uint8_t)kind;
	r->node_kind = n->kind;
	r->node = id;
	r->parent = n->parent;
	r->slot = n->slot;
	r->mode = (uint16_t)o->mode;
	r->uid = o->uid;
	r->gid = o->gid;
	record_version(r, &n->version);
	r->name_bytes = (uint16_t)name_bytes;
	r->target_bytes = (uint16_t)target_bytes;
	memcpy(r->text, name, name_bytes);
	memcpy(r->text + name_bytes, target, target_bytes);
	memset(r->text + name_bytes + target_bytes, 0, r->bytes - bytes);
}

void trail_commit(struct manifest *m)
{
	struct trail *t = m->trail;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!t || !t->open)
		return;
	trail_finish(t, true);
	atomic_store_explicit(&t->head->end, t->next, memory_order_release);
	if (t->next - t->start > t->save_bytes && t->full) {
		/* UINT64_MAX: do not call full() again before the next save */
		t->save_bytes = UINT64_MAX;
		t->full(t->full_arg);
	}
}

/* Return the memory of offsets [from, to) to the system. */
static void trail_punch(struct trail *t, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t at = from % TRAIL_RING_BYTES;
		uint64_t n = to - from;

		if (n > TRAIL_RING_BYTES - at)
			n = TRAIL_RING_BYTES - at;
		/* If this fails, the memory will be overwritten later. */
		(void)fallocate(t->fd,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(TRAIL_HEAD_BYTES + at), (off_t)n);
		from += n;
	}
}

static uint64_t page_of(uint64_t at)
{
	return at / PAGE_BYTES * PAGE_BYTES;
}

void trail_saved(struct manifest *m, uint64_t at, uint64_t file_bytes)
{
	struct trail *t = m->trail;
	uint64_t old;

	pthread_rwlock_wrlock(&m->lock);
	old = t->start;
	/* Keep records on which nobody has acted yet, even if a save contains
	 * their changes. */
	if (at > t->told)
		at = t->told;
	if (at > t->start)
		t->start = at;
	at = t->start;
	t->save_bytes = SAVE_BYTES + file_bytes;
	if (!t->lost)
		atomic_store(&t->head->lost, 0);
	pthread_rwlock_unlock(&m->lock);
	trail_punch(t, page_of(old), page_of(at));
}

void trail_restart(struct manifest *m)
{
	struct trail *t = m->trail;

	ASSERT_HELD_TO_WRITE(&m->lock);
	if (!t->lost)
		return;
	trail_punch(t, page_of(t->start), t->next);
	t->start = t->told = t->next;
	t->lost = false;
}

void manifest_told(struct manifest *m, uint64_t at)
{
	struct trail *t = m->trail;

	if (!t)
		return;
	pthread_rwlock_wrlock(&m->lock);
	if (at > t->told) {
		t->told = at;
		/* If this process is killed between these two writes, the next
		 * process ignores both values, because they do not match. */
		atomic_store(&t->head->told, at);
		atomic_store(&t->head->told_hash, trail_told_hash(t, at));
	}
	pthread_rwlock_unlock(&m->lock);
}

uint64_t manifest_trail(const struct manifest *m)
{
	return m->trail ? m->trail->next : 0;
}

bool manifest_is_recorded(struct manifest *m)
{
	bool recorded;

	pthread_rwlock_rdlock(&m->lock);
	recorded = m->trail && !atomic_load(&m->trail->head->lost);
	pthread_rwlock_unlock(&m->lock);
	return recorded;
}

void manifest_when_full(struct manifest *m, void (*full)(void *arg), void *arg)
{
	pthread_rwlock_wrlock(&m->lock);
	if (m->trail) {
		m->trail->full_arg = arg;
		m->trail->full = full;
	}
	pthread_rwlock_unlock(&m->lock);
}

/* -- Creating and freeing ------------------------------------------------ */

uint64_t trail_head_hash(const struct trail_head *h)
{
	return hash64(h, offsetof(struct trail_head, head_hash), TRAIL_VERSION);
}

int trail_map(struct trail *t)
{
	size_t bytes = TRAIL_HEAD_BYTES + TRAIL_RING_BYTES;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, t->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	t->map = map;
	t->head = map;
	return 0;
}

void trail_free(struct trail *t)
{
	if (!t)
		return;
	if (t->map)
		(void)munmap(t->map, TRAIL_HEAD_BYTES + TRAIL_RING_BYTES);
	if (t->fd >= 0)
		(void)close(t->fd);
	free(t);
}

struct trail *trail_alloc(struct hash128 session, int fd)
{
	struct trail *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = fd;
	t->seed = session.lo;
	t->save_bytes = SAVE_BYTES;
	return t;
}

/* Create the shared memory. Its size is sealed: a process that maps it relies
 * on the size. */
static int trail_make_file(void)
{
	int fd = memfd_create("refrain-names", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)(TRAIL_HEAD_BYTES + TRAIL_RING_BYTES)) < 0 ||
		fcntl(fd, F_ADD_SEALS, TRAIL_SEALS) < 0) {
		int rc = -errno;

		(void)close(fd);
		return rc;
	}
	return fd;
}

int manifest_record(struct manifest *m, struct hash128 session)
{
	struct trail *t;
	int rc, fd = trail_make_file();

	if (fd < 0)
		return fd;
	t = trail_alloc(session, fd);
	if (!t) {
		(void)close(fd);
		return -ENOMEM;
	}
	rc = trail_map(t);
	if (rc < 0) {
		trail_free(t);
		return rc;
	}
	memcpy(t->head->magic, TRAIL_MAGIC, sizeof(t->head->magic));
	t->head->version = TRAIL_VERSION;
	t->head->head_bytes = TRAIL_HEAD_BYTES;
	t->head->session_hi = session.hi;
	t->head->session_lo = session.lo;
	t->head->base_hash = m->base_hash;
	t->head->head_hash = trail_head_hash(t->head);
	atomic_store(&t->head->told_hash, trail_told_hash(t, 0));
	pthread_rwlock_wrlock(&m->lock);
	m->session = session;
	m->trail = t;
	pthread_rwlock_unlock(&m->lock);
	return fd;
}
