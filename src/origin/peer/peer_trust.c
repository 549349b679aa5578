/* SPDX-License-Identifier: MIT */
/* Decides which units are used; peer_trust_impl.h draws the states. */
#include "origin/peer/peer_trust_impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/list.h"

/* Number of hash buckets of writers, a power of two. */
#define TRUST_BUCKETS 256u
#define TRUST_WRITERS_MAX 4096u
/* Maximum number of comparisons at a time. */
#define TRUST_CHECKS_MAX 16u
/* The pause after a comparison for which the origin gave no answer. */
#define TRUST_PAUSE_NS (250 * NS_PER_MS)
#define TRUST_PROBE_READS 64u
/* For a comparison that belongs to no proof: an index that no proof has. */
#define TRUST_NO_PROOF TRUST_UNITS

enum writer_state { WRITER_NEW, WRITER_TRUSTED, WRITER_FOREIGN };
enum proof_state { PROOF_NONE, PROOF_ASKED, PROOF_SAME };

/* A unit that is compared before its writer is trusted. */
struct proof {
	struct hash128 item;
	uint32_t n;
	enum proof_state state;
};

struct writer {
	struct list link;
	uint64_t id;
	enum writer_state state;
	struct proof proof[TRUST_UNITS];
	unsigned news;
	uint64_t not_before_ns; /* time of the next comparison */
};

struct trusts {
	struct peers *owner; /* set once, as are the next four members */
	peers_check_fn *check;
	void *check_arg;
	struct counters *counters;
	const struct event_sink *events;
	struct list bucket[TRUST_BUCKETS]; /* lists of struct writer */
	struct writer *own;
	unsigned nwriters, nchecks;
	/* numbers of other mounts in these states */
	unsigned nforeign, ntrusted;
	uint64_t again_ns;
	unsigned nskipped;
	atomic_bool differ; /* relaxed, because no other data depends on it */
};

/* -- Writers --------------------------------------------------------------- */

static struct writer *writer_find(const struct trusts *t, uint64_t id)
{
	LIST_FOREACH(l, &t->bucket[id % TRUST_BUCKETS]) {
		struct writer *w = CONTAINER_OF(l, struct writer, link);

		if (w->id == id)
			return w;
	}
	return NULL;
}

static struct writer *writer_add(struct trusts *t, uint64_t id)
{
	struct writer *w = NULL;

	if (t->nwriters < TRUST_WRITERS_MAX)
		w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->id = id;
	list_add_tail(&t->bucket[id % TRUST_BUCKETS], &w->link);
	t->nwriters++;
	return w;
}

static void writer_set(
	struct trusts *t, struct writer *w, enum writer_state state)
{
	t->ntrusted -= w != t->own && w->state == WRITER_TRUSTED;
	w->state = state;
	t->ntrusted += w != t->own && state == WRITER_TRUSTED;
	t->nforeign += state == WRITER_FOREIGN;
	atomic_store_explicit(
		&t->differ, !trusts_may_push(t), memory_order_relaxed);
}

/* Returns the proof of this unit; if there is none, an unused proof; otherwise
 * NULL. */
static struct proof *writer_proof(struct writer *w, const struct unit *u)
{
	struct proof *empty = NULL;

	for (unsigned i = 0; i < TRUST_UNITS; i++) {
		struct proof *s = &w->proof[i];

		if (s->state == PROOF_NONE)
			empty = s;
		else if (s->n == u->n && s->item.lo == u->item.lo &&
			s->item.hi == u->item.hi)
			return s;
	}
	return empty;
}

static bool writer_is_proved(const struct writer *w)
{
	for (unsigned i = 0; i < TRUST_UNITS; i++)
		if (w->proof[i].state != PROOF_SAME)
			return false;
	return true;
}

/* -- Life ------------------------------------------------------------------ */

struct trusts *trusts_new(const struct peers_config *config,
	struct peers *owner, uint64_t now_ns, struct error *err)
{
	struct trusts *t = calloc(1, sizeof(*t));
	uint64_t id;

	if (!t) {
		(void)error_set(err, -ENOMEM, "cannot start the peers: %m");
		return NULL;
	}
	for (unsigned i = 0; i < TRUST_BUCKETS; i++)
		list_init(&t->bucket[i]);
	t->owner = owner;
	t->check = config->check;
	t->check_arg = config->check_arg;
	t->counters = config->counters;
	t->events = config->events;
	t->again_ns = now_ns + TRUST_AGAIN_NS;
	if (getrandom(&id, sizeof(id), 0) == sizeof(id))
		t->own = writer_add(t, id);
	if (!t->own) {
		(void)error_set(err, -errno,
			"cannot get a random number for the peers: %m");
		trusts_free(t);
		return NULL;
	}
	t->own->state = WRITER_TRUSTED;
	return t;
}

void trusts_free(struct trusts *t)
{
	for (unsigned i = 0; t && i < TRUST_BUCKETS; i++)
		LIST_FOREACH_SAFE(l, next, &t->bucket[i])
			free(CONTAINER_OF(l, struct writer, link));
	free(t);
}

uint64_t trusts_own(const struct trusts *t)
{
	return t->own->id;
}

/* -- Comparing ------------------------------------------------------------- */

static bool check_start(struct trusts *t, struct writer *w,
	const struct unit *u, const struct provider_item *item,
	const void *content, unsigned proof)
{
	struct peers_check *c = NULL;

	if (t->nchecks < TRUST_CHECKS_MAX)
		c = calloc(1, sizeof(*c));
	if (!c)
		return false;
	c->path = strdup(item->path);
	if (!c->path) {
		free(c);
		return false;
	}
	c->version = item->version;
	c->off = item->base + (uint64_t)u->n * UNIT_BYTES;
	c->len = u->bytes;
	c->hash = hash64(content, u->bytes, 0);
	c->owner = t->owner;
	c->writer = w;
	c->proof = proof;
	t->nchecks++;
	t->check(t->check_arg, c);
	return true;
}

/* Decide about a unit of a writer that is not trusted yet. */
static enum trust trust_new(struct trusts *t, struct writer *w,
	const struct unit *u, const struct provider_item *item,
	const void *content, uint64_t now_ns)
{
	struct proof *s = writer_proof(w, u);

	if (s && s->state == PROOF_SAME)
		return TRUST_YES;
	if (!s || s->state == PROOF_ASKED || now_ns < w->not_before_ns)
		return TRUST_LATER;
	if (check_start(t, w, u, item, content, (unsigned)(s - w->proof))) {
		s->item = u->item;
		s->n = u->n;
		s->state = PROOF_ASKED;
	}
	return TRUST_LATER;
}

enum trust trusts_unit(struct trusts *t, const struct unit *u,
	const struct provider_item *item, const void *content, uint64_t now_ns)
{
	struct writer *w = writer_find(t, u->writer);

	if (!w)
		w = writer_add(t, u->writer);
	if (!w || w->state == WRITER_FOREIGN)
		return TRUST_NO;
	if (w->state == WRITER_NEW)
		return trust_new(t, w, u, item, content, now_ns);
	if (now_ns >= t->again_ns &&
		check_start(t, w, u, item, content, TRUST_NO_PROOF))
		t->again_ns = now_ns + TRUST_AGAIN_NS;
	return TRUST_YES;
}

unsigned trusts_news(const struct trusts *t, uint64_t writer)
{
	const struct writer *w = writer_find(t, writer);

	return w ? w->news : 0;
}

static void trust_foreign(
	struct trusts *t, struct writer *w, const struct peers_check *c)
{
	writer_set(t, w, WRITER_FOREIGN);
	event_report(t->events,
		&(struct event){.kind = EVENT_PEER_FOREIGN, .path = c->path});
}

void trusts_checked(struct trusts *t, struct peers_check *c, uint64_t now_ns)
{
	struct writer *w = c->writer;
	struct proof *s = c->proof < TRUST_UNITS ? &w->proof[c->proof] : NULL;

	t->nchecks--;
	w->news++;
	if (c->result >= 0 && t->counters) {
		COUNT(t->counters, peer_checks);
		COUNT_ADD(t->counters, peer_check_bytes, c->len);
	}
	if (s)
		s->state = c->result > 0 ? PROOF_SAME : PROOF_NONE;
	if (c->result == 0 && w->state != WRITER_FOREIGN)
		trust_foreign(t, w, c);
	else if (c->result < 0)
		w->not_before_ns = now_ns + TRUST_PAUSE_NS;
	else if (w->state == WRITER_NEW && writer_is_proved(w))
		writer_set(t, w, WRITER_TRUSTED);
	free(c->path);
	free(c);
}

/* -- What follows from it -------------------------------------------------- */

bool trusts_any_foreign(const struct trusts *t)
{
	return t->nforeign > 0;
}

bool trusts_may_push(const struct trusts *t)
{
	return t->own->state == WRITER_TRUSTED &&
		(t->nforeign == 0 || t->ntrusted > 0);
}

bool trusts_may_read(struct trusts *t)
{
	return trusts_may_push(t) || ++t->nskipped % TRUST_PROBE_READS == 0;
}

bool trusts_differ(const struct trusts *t)
{
	return atomic_load_explicit(&t->differ, memory_order_relaxed);
}
