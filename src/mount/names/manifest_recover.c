/* SPDX-License-Identifier: MIT */
/*
 * Recovers the manifest of another process: from the file that it saved last,
 * and from the trail of its changes since then. No byte is used before its
 * checksum has been verified. Runs on one thread, before other threads exist.
 */
#include "mount/names/names_trail_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/lock.h"

/* -- Records ------------------------------------------------------------- */

/* Is there a valid record at this offset? */
static bool record_valid(
	const struct trail *t, uint64_t at, struct trail_record *r)
{
	uint64_t left = TRAIL_RING_BYTES - at % TRAIL_RING_BYTES;

	if (left < sizeof(*r))
		return false;
	memcpy(r, trail_at(t, at), sizeof(*r));
	return r->at == at && r->bytes >= sizeof(*r) && r->bytes % 8 == 0 &&
		r->bytes <= left && r->bytes <= TRAIL_RECORD_MAX &&
		sizeof(*r) + r->name_bytes + r->target_bytes <= r->bytes &&
		r->hash == trail_hash(t, trail_at(t, at));
}

/* Get the record at *at. If there is none, the record is at the next beginning
 * of the ring, because no record crosses the end of the ring. Sets *at to the
 * offset after the record. Returns NULL if there is no further record. */
static const struct trail_record *trail_next(
	const struct trail *t, uint64_t *at)
{
	uint64_t begin = *at;
	struct trail_record r;

	if (!record_valid(t, begin, &r)) {
		begin += TRAIL_RING_BYTES - begin % TRAIL_RING_BYTES;
		if (begin == *at || begin - *at > TRAIL_RECORD_MAX ||
			!record_valid(t, begin, &r))
			return NULL;
	}
	*at = begin + r.bytes;
	return (const struct trail_record *)trail_at(t, begin);
}

/* Returns the end of the last complete change. */
static uint64_t trail_find_end(const struct trail *t, uint64_t from)
{
	uint64_t end = from;
	const struct trail_record *r;

	while ((r = trail_next(t, &from)))
		if (r->commit)
			end = from;
	return end;
}

static bool record_text(const struct trail_record *r, char *name, char *target)
{
	if (r->name_bytes > NAME_MAX || r->target_bytes >= PATH_MAX)
		return false;
	memcpy(name, r->text, r->name_bytes);
	name[r->name_bytes] = '\0';
	memcpy(target, r->text + r->name_bytes, r->target_bytes);
	target[r->target_bytes] = '\0';
	return strlen(name) == r->name_bytes &&
		strlen(target) == r->target_bytes;
}

static struct file_attr record_attr(const struct trail_record *r)
{
	return (struct file_attr){
		.version = {.size_bytes = r->size_bytes,
			.mtime_ns = r->mtime_ns,
			.tag = r->tag},
		.kind = r->node_kind,
		.mode = r->mode,
		.uid = r->uid,
		.gid = r->gid,
	};
}

static int replay_add(struct manifest *m, const struct trail_record *r)
{
	char name[NAME_MAX + 1], target[PATH_MAX];
	struct file_entry e = {
		.name = name, .target = target, .attr = record_attr(r)};
	struct node_slot slot = {r->node, r->slot, false};
	node_id id;

	if (!record_text(r, name, target) || r->node_kind < KIND_FILE ||
		r->node_kind > KIND_LINK ||
		manifest_table_find(m, r->parent, name) != 0)
		return -EBADMSG;
	return manifest_restore(m, r->parent, &e, &slot, &id);
}

static int replay_change(struct manifest *m, const struct trail_record *r)
{
	struct node *n = manifest_node(m, r->node);
	struct file_attr attr = record_attr(r);

	if (!n || n->kind != r->node_kind)
		return -EBADMSG;
	switch ((enum trail_kind)r->kind) {
	case TRAIL_RETIRE:
		if (node_retired(n) || r->node == NODE_ROOT)
			return -EBADMSG;
		manifest_unname(m, r->node);
		return 0;
	case TRAIL_FREE:
		if (!node_retired(n) || (n->kind == KIND_DIR && n->dir.kids))
			return -EBADMSG;
		manifest_drop(m, r->node);
		return 0;
	case TRAIL_LISTED:
		if (n->kind != KIND_DIR)
			return -EBADMSG;
		n->dir.listed = true;
		return 0;
	case TRAIL_ATTR:
		n->version = attr.version;
		return manifest_set_attr(m, n, &attr);
	case TRAIL_FOLLOW:
		n->version = attr.version;
		return 0;
	case TRAIL_ADD:
		break;
	}
	return -EBADMSG;
}

static int trail_replay(struct manifest *m, struct trail *t)
{
	uint64_t at = m->base_trail;
	int rc = 0;

	ASSERT_HELD_TO_WRITE(&m->lock);
	while (rc == 0 && at < t->next) {
		const struct trail_record *r = trail_next(t, &at);

		if (!r)
			return -EBADMSG;
		rc = r->kind == TRAIL_ADD ? replay_add(m, r)
					  : replay_change(m, r);
	}
	return rc;
}

/* Some facts about readers were known only to the previous process: how many
 * references the kernel has to each node, which files were read, and which
 * missing names the kernel knows. Assume the safe value for each. */
static void trail_assume(struct manifest *m)
{
	for (node_id id = NODE_ROOT; id < m->end; id++) {
		struct node *n = manifest_node(m, id);

		if (!n)
			continue;
		atomic_store(&n->refs, NODE_HELD);
		if (n->kind == KIND_FILE)
			atomic_store(&n->reading, NODE_READ);
		else if (n->kind == KIND_DIR)
			n->dir.negative = true;
	}
}

static int trail_check(const struct trail *t, const struct manifest *m)
{
	const struct trail_head *h = t->head;

	if (memcmp(h->magic, TRAIL_MAGIC, sizeof(h->magic)) != 0 ||
		h->version != TRAIL_VERSION ||
		h->head_bytes != TRAIL_HEAD_BYTES ||
		h->head_hash != trail_head_hash(h) ||
		h->session_hi != m->session.hi ||
		h->session_lo != m->session.lo || atomic_load(&h->lost) != 0)
		return -EBADMSG;
	return 0;
}

static int trail_check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size != TRAIL_HEAD_BYTES + TRAIL_RING_BYTES ||
		fcntl(fd, F_GET_SEALS) != TRAIL_SEALS)
		return -EBADMSG;
	return 0;
}

int manifest_check(int fd, struct error *err)
{
	struct trail_head h;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
		memcmp(h.magic, TRAIL_MAGIC, sizeof(h.magic)) != 0)
		return error_set(err, -EBADMSG, "its list of names is damaged");
	if (h.version != TRAIL_VERSION)
		return error_set(err, -EBADMSG,
			"its list of names has version %u, and this program "
			"reads %u",
			h.version, TRAIL_VERSION);
	return 0;
}

/* Load the saved manifest that the trail continues. */
static int load_base(struct manifest *m, int dirfd, const struct trail *t)
{
	int rc = manifest_load(m, dirfd);

	if (rc < 0 && rc != -ENOENT)
		return rc;
	/* The file must have been saved in this session, or be the file with
	 * which the session began. */
	if (!m->base_same && m->base_hash != t->head->base_hash)
		return -EBADMSG;
	return 0;
}

static int recover(struct manifest *m, int dirfd, struct trail *t)
{
	uint64_t told;
	int rc = trail_check_file(t->fd);

	if (rc == 0)
		rc = trail_map(t);
	if (rc == 0)
		rc = trail_check(t, m);
	if (rc == 0)
		rc = load_base(m, dirfd, t);
	if (rc < 0)
		return rc;
	t->next = trail_find_end(t, m->base_trail);
	if (t->next < atomic_load(&t->head->end))
		return -EBADMSG;
	told = atomic_load(&t->head->told);
	if (atomic_load(&t->head->told_hash) != trail_told_hash(t, told) ||
		told > t->next)
		told = 0;
	t->told = told;
	t->start = told < m->base_trail ? told : m->base_trail;
	pthread_rwlock_wrlock(&m->lock);
	rc = trail_replay(m, t);
	if (rc == 0) {
		manifest_nodes_taken(m);
		trail_assume(m);
		atomic_store(&t->head->end, t->next);
	}
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

int manifest_recover(
	struct manifest *m, int dirfd, struct hash128 session, int fd)
{
	struct trail *t = trail_alloc(session, fd);
	int rc;

	if (!t) {
		(void)close(fd);
		return -ENOMEM;
	}
	m->session = session;
	rc = recover(m, dirfd, t);
	if (rc < 0) {
		trail_free(t);
		return rc;
	}
	m->trail = t;
	return 0;
}

/* -- Changes on which the previous process has not acted ----------------- */

static enum manifest_change change_of(enum trail_kind kind)
{
	switch (kind) {
	case TRAIL_ADD:
		return MANIFEST_ADDED;
	case TRAIL_RETIRE:
		return MANIFEST_REMOVED;
	case TRAIL_FOLLOW:
		return MANIFEST_FOLLOWED;
	case TRAIL_ATTR:
		return MANIFEST_ATTR;
	case TRAIL_FREE:
	case TRAIL_LISTED:
		break;
	}
	return MANIFEST_SAME;
}

static void untold(struct manifest *m, const struct trail_record *r,
	manifest_event_fn *fn, void *arg)
{
	struct manifest_event ev = {.change = change_of(r->kind), .seen = true};
	const struct node *n = manifest_node(m, r->node);

	/* The node is gone: it was freed since the save, so the kernel had
	 * forgotten it. */
	if (ev.change == MANIFEST_SAME || !n || n->parent != r->parent)
		return;
	ev.dir = n->parent;
	ev.name = manifest_name(m, n);
	ev.id = ev.change == MANIFEST_REMOVED ? 0 : r->node;
	if (ev.change == MANIFEST_REMOVED && !node_retired(n))
		return;
	manifest_info(m, r->node, &ev.old);
	if (ev.change == MANIFEST_FOLLOWED)
		ev.old.attr.kind = 0; /* the previous version is not known */
	fn(arg, &ev);
}

void manifest_untold(struct manifest *m, manifest_event_fn *fn, void *arg)
{
	struct trail *t = m->trail;
	const struct trail_record *r;
	uint64_t at, end;

	if (!t)
		return;
	pthread_rwlock_wrlock(&m->lock);
	at = t->told;
	end = t->next;
	/* If the first record is later than the offset, report all records. */
	if (at < t->start)
		at = t->start;
	while (at < end && (r = trail_next(t, &at)))
		untold(m, r, fn, arg);
	pthread_rwlock_unlock(&m->lock);
}
