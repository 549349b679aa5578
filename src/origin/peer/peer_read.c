/* SPDX-License-Identifier: MIT */
/* Reads of items; peer_read_impl.h draws the states. */
#include "origin/peer/peer_read_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"

/* If a read gets no answer for this time, the origin is asked. */
#define READ_LIMIT_NS (650 * NS_PER_MS)
/* A fast server must answer within this time. */
#define READ_LIMIT_FAST_NS (250 * NS_PER_MS)
/* If a link is slower than this, reads do not wait for it. */
#define READ_FLOOR_BYTES_PER_S ((uint64_t)4 << 20)
/* A link that is faster than this delivers 8 MiB within READ_LIMIT_NS, so its
 * server counts as fast. */
#define READ_FAST_BYTES_PER_S ((uint64_t)13 << 20)
#define READ_LOOK_NS (15 * NS_PER_MS)
/* If the end of a comparison is not reported, its result is checked at this
 * interval. */
#define READ_LOOK_CHECK_NS (200 * NS_PER_MS)
#define READ_LEASE_TTL_S 30

/* A command to a server. It is freed when the answer comes. */
struct read_get {
	struct request q;
	struct list link;  /* in the list of the reading's commands */
	struct reading *g; /* NULL if the read has ended */
	struct reads *reads;
	struct peer_host *host;
	struct unit unit;
};

static void read_finish(struct reading *g, int status)
{
	if (g->state == READ_DONE)
		return;
	g->state = READ_DONE;
	g->status = status;
}

static struct read_get *read_get_new(struct reading *g)
{
	struct read_get *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->g = g;
	t->reads = g->reads;
	t->host = g->host;
	t->unit.item = g->item;
	list_init(&t->link);
	return t;
}

/* Handle the answer to a command. Returns the read to which the command
 * belongs, or NULL. */
static struct reading *read_get_done(struct read_get *t)
{
	list_del(&t->link);
	if (t->g)
		t->g->nasked--;
	return t->g;
}

/* Have the answers to the read's commands ignored. */
static void read_leave(struct reading *g)
{
	LIST_FOREACH_SAFE(l, next, &g->gets) {
		struct read_get *t = CONTAINER_OF(l, struct read_get, link);

		t->g = NULL;
		list_del(&t->link);
		list_init(&t->link);
	}
	g->nasked = 0;
}

static void read_get_send(
	struct read_get *t, enum peer_host_line line, uint64_t now_ns)
{
	struct reading *g = t->g;

	if (peer_host_send(g->host, line, &t->q, now_ns) == 0) {
		list_add_tail(&g->gets, &t->link);
		g->nasked++;
		return;
	}
	free(t);
	read_finish(g, -EHOSTDOWN);
}

/* -- Units ----------------------------------------------------------------- */

static uint32_t read_unit_bytes(const struct reading *g, uint32_t n)
{
	uint64_t left = g->r->item.size - (uint64_t)n * UNIT_BYTES;

	return (uint32_t)(left < UNIT_BYTES ? left : UNIT_BYTES);
}

/* Delete a unit. If the command is lost, the next reader of the unit deletes
 * it. */
static void read_delete(struct reading *g, uint32_t n)
{
	char key[UNIT_KEY_MAX];

	(void)unit_key(key, g->item, n);
	peer_host_delete(g->host, HOST_SMALL, key);
}

/* Pass the requested part of the unit to the caller. */
static void read_deliver(
	struct reading *g, const struct unit *u, const uint8_t *content)
{
	uint64_t begin = (uint64_t)u->n * UNIT_BYTES, end = begin + u->bytes;
	uint64_t from = begin > g->r->off ? begin : g->r->off;
	uint64_t to = g->r->off + g->r->len;

	if (to > end)
		to = end;
	host_count(g->host, HOST_HITS, 1);
	host_count(g->host, HOST_HIT_BYTES, u->bytes);
	g->has[u->n - g->first] = true;
	g->r->data(g->r, from, content + (from - begin), (size_t)(to - from));
}

/* Use an undamaged unit. */
static void read_use(struct reading *g, const struct unit *u,
	const uint8_t *content, uint64_t now_ns)
{
	struct trusts *t = g->reads->trusts;

	switch (trusts_unit(t, u, &g->r->item, content, now_ns)) {
	case TRUST_YES:
		read_deliver(g, u, content);
		break;
	case TRUST_NO:
		g->foreign = true;
		host_count(g->host, HOST_FOREIGN, 1);
		break;
	case TRUST_LATER:
		g->unsure = true;
		g->writer = u->writer;
		g->news = trusts_news(t, u->writer);
		break;
	}
}

static void read_unit_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct read_get *t = CONTAINER_OF(q, struct read_get, q);
	struct reading *g = read_get_done(t);
	bool there = status == 0 && a->kind == META_VA;

	if (!g) {
		free(t);
		return;
	}
	if (status < 0 || (status == 0 && a->kind > META_EX)) {
		read_finish(g, status < 0 ? status : -EIO);
	} else if (there &&
		unit_is_right(
			value, a->value_bytes, g->reads->seed, &t->unit)) {
		peer_host_delivered(g->host);
		if (g->state != READ_DONE)
			read_use(g, &t->unit, value + UNIT_HEAD_BYTES,
				clock_now_ns());
	} else if (there) {
		peer_host_bad(g->host);
		read_delete(g, t->unit.n);
	}
	free(t);
}

/* Request missing units, as long as the host has room for requests. */
static void read_get_units(struct reading *g, uint64_t now_ns)
{
	char key[UNIT_KEY_MAX];

	while (g->state == READ_GETTING && g->next <= g->last) {
		struct read_get *t;

		if (g->has[g->next - g->first]) {
			g->next++;
			continue;
		}
		if (!peer_host_is_up(g->host)) {
			read_finish(g, -EHOSTDOWN);
			return;
		}
		if (!peer_host_has_room(g->host, HOST_GETS))
			return;
		t = read_get_new(g);
		if (!t) {
			read_finish(g, -ENOMEM);
			return;
		}
		t->unit.n = g->next;
		t->unit.bytes = read_unit_bytes(g, g->next);
		(void)unit_key(key, g->item, g->next++);
		t->q.answered = read_unit_answered;
		t->q.cost_bytes = t->unit.bytes;
		request_line(&t->q, "mg %s v T%d", key, UNIT_TTL_S);
		read_get_send(t, HOST_GETS, now_ns);
	}
}

static bool read_has_all(const struct reading *g)
{
	for (uint32_t n = g->first; n <= g->last; n++)
		if (!g->has[n - g->first])
			return false;
	return true;
}

static void read_again(struct reading *g, uint64_t now_ns)
{
	g->state = READ_GETTING;
	g->next = g->first;
	g->unsure = false;
	g->limit_ns = now_ns + READ_LIMIT_NS;
}

/* -- Leases ---------------------------------------------------------------- */

static void read_wait(struct reading *g, const struct meta_answer *a,
	const uint8_t *value, uint64_t now_ns)
{
	uint64_t beat =
		a->kind == META_VA ? hash64(value, a->value_bytes, 1) : 0;

	if (!g->has_beat || beat != g->beat) {
		g->beat_ns = now_ns;
		g->beat = beat;
		g->has_beat = true;
	}
	if (now_ns > g->beat_ns + LEASE_DEAD_NS) {
		read_finish(g, -ENOENT);
		return;
	}
	g->state = READ_WAITING;
	g->urgent_ns = 0; /* 0: the read does not wait for a server now */
	g->look_ns = now_ns + READ_LOOK_NS;
}

/* Does this host hold the lease, and does the read still want it? */
static bool read_won(const struct read_get *t, uint64_t now_ns)
{
	struct leases *all = t->reads->leases;

	if (leases_hold(all, t->host, t->unit.item, now_ns) < 0)
		return false;
	if (t->g && t->g->state != READ_DONE)
		return true;
	leases_end(all, t->unit.item, now_ns);
	return false;
}

static void read_lease_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct read_get *t = CONTAINER_OF(q, struct read_get, q);
	struct reading *g = read_get_done(t);
	uint64_t now_ns = clock_now_ns();
	bool won = status == 0 && a->won;
	bool ours = won && read_won(t, now_ns);

	free(t);
	if (!g)
		return;
	if (won) {
		g->ours = ours;
		if (ours)
			/* request units again, because some may have come */
			read_again(g, now_ns);
		else
			read_finish(g, -ENOENT);
	} else if (status < 0) {
		read_finish(g, status);
	} else if (g->state == READ_DONE) {
		return;
	} else if (a->kind > META_EX ||
		(a->kind == META_VA &&
			lease_is_refusal(value, a->value_bytes))) {
		read_finish(g, -ENOENT);
	} else {
		read_wait(g, a, value, now_ns);
	}
}

static void read_ask_lease(struct reading *g, uint64_t now_ns)
{
	struct read_get *t;
	char key[UNIT_KEY_MAX];

	if (leases_has(g->reads->leases, g->item)) {
		read_finish(g, -ENOENT);
		return;
	}
	t = read_get_new(g);
	if (!t) {
		read_finish(g, -ENOMEM);
		return;
	}
	g->state = READ_LEASING;
	(void)unit_lease_key(key, g->item);
	t->q.answered = read_lease_answered;
	/* Do not add T to N: a loser would extend the lease of a dead winner.
	 */
	request_line(&t->q, "mg %s v N%d", key, READ_LEASE_TTL_S);
	read_get_send(t, HOST_SMALL, now_ns);
}

/* -- Comparisons ----------------------------------------------------------- */

static void read_check(struct reading *g, uint64_t now_ns)
{
	if (g->check_ns == 0)
		g->check_ns = now_ns + READ_LIMIT_NS;
	g->state = READ_CHECKING;
	g->urgent_ns = 0; /* 0: the read does not wait for a server now */
	g->look_ns = now_ns + READ_LOOK_CHECK_NS;
}

static void read_check_step(struct reading *g, uint64_t now_ns)
{
	if (now_ns >= g->check_ns)
		read_finish(g, -ENOENT);
	else if (now_ns >= g->look_ns ||
		trusts_news(g->reads->trusts, g->writer) != g->news)
		read_again(g, now_ns);
}

/* -- Steps ----------------------------------------------------------------- */

void reading_begin(struct reading *g, uint64_t now_ns)
{
	list_init(&g->gets);
	g->first = (uint32_t)(g->r->off / UNIT_BYTES);
	g->last = (uint32_t)((g->r->off + g->r->len - 1) / UNIT_BYTES);
	if (g->last - g->first >= READ_UNITS)
		read_finish(g, -EINVAL);
	else if (!trusts_may_read(g->reads->trusts))
		read_finish(g, -ENOENT);
	else
		read_again(g, now_ns);
}

/* Continue after the server has answered all commands of the reading. */
static void read_got(struct reading *g, uint64_t now_ns)
{
	if (read_has_all(g)) {
		if (g->ours)
			leases_end(g->reads->leases, g->item, now_ns);
		read_finish(g, 0);
	} else if (g->ours || g->foreign) {
		read_finish(g, -ENOENT);
	} else if (g->unsure) {
		read_check(g, now_ns);
	} else {
		read_ask_lease(g, now_ns);
	}
}

static void read_overdue(struct reading *g, uint64_t now_ns)
{
	uint64_t rate = peer_host_rate(g->host);

	if (now_ns < g->limit_ns)
		return;
	if (rate >= READ_FLOOR_BYTES_PER_S && peer_host_is_up(g->host)) {
		g->limit_ns = now_ns + READ_LIMIT_FAST_NS;
		return;
	}
	if (g->nasked > 0)
		peer_host_give_up(g->host);
	read_finish(g, -ETIMEDOUT);
}

/* A reader waits for the read. If that takes too long, end the read: the bytes
 * that came are used, and the origin is asked for the rest. */
static void read_urgent(struct reading *g, uint64_t now_ns)
{
	if (!atomic_load_explicit(&g->r->urgent, memory_order_relaxed))
		return;
	if (g->urgent_ns == 0)
		g->urgent_ns = now_ns;
	if (now_ns >= g->urgent_ns + READ_LIMIT_NS &&
		peer_host_rate(g->host) < READ_FAST_BYTES_PER_S)
		read_finish(g, -ETIMEDOUT);
}

static void reading_step(struct reading *g, uint64_t now_ns)
{
	if (atomic_load_explicit(&g->abandoned, memory_order_relaxed))
		read_finish(g, -ECANCELED);
	if (g->state == READ_WAITING && now_ns >= g->look_ns) {
		if (peer_host_is_up(g->host))
			read_again(g, now_ns);
		else
			read_finish(g, -EHOSTDOWN);
	}
	if (g->state == READ_CHECKING)
		read_check_step(g, now_ns);
	if (g->state == READ_GETTING) {
		read_get_units(g, now_ns);
		if (g->state == READ_GETTING && g->next > g->last &&
			g->nasked == 0)
			read_got(g, now_ns);
	}
	if (g->state == READ_GETTING || g->state == READ_LEASING)
		read_overdue(g, now_ns);
	if (g->state == READ_GETTING || g->state == READ_LEASING)
		read_urgent(g, now_ns);
}

void reads_step(struct reads *all, struct list *ended, uint64_t now_ns)
{
	LIST_FOREACH_SAFE(l, next, &all->all) {
		struct reading *g = CONTAINER_OF(l, struct reading, link);

		reading_step(g, now_ns);
		if (g->state != READ_DONE)
			continue;
		read_leave(g);
		/* This host has won the lease, but its reader does not want the
		 * item any more, so the origin is not asked. */
		if (g->ours && g->status == -ECANCELED)
			leases_end(all->leases, g->item, now_ns);
		list_del(&g->link);
		list_add_tail(ended, &g->link);
	}
}
