/* SPDX-License-Identifier: MIT */
/* Leases that this host holds; see peer_lease_impl.h. */
#include "origin/peer/peer_lease_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/clock.h"

#define LEASE_BEAT_NS (250 * NS_PER_MS)
/* If the holder of a lease does not end it, the server deletes it after this
 * time. */
#define LEASE_TTL_S 30
/* A refused item is not offered again for this time. */
#define LEASE_REFUSED_TTL_S 60

static const char lease_refusal[] = "refused";

struct lease {
	struct list link;
	struct peer_host *host;
	struct hash128 item;
	bool refused;
	uint64_t beat_ns; /* time of the last beat */
	unsigned beats;
};

struct leases {
	struct list held; /* list of struct lease, oldest beat first */
	uint64_t nonce;	  /* random number of this client */
};

/* A value of a lease that is being sent. It is freed when the answer comes. */
struct lease_note {
	struct request q;
	char text[40];
};

struct leases *leases_new(void)
{
	struct leases *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	list_init(&l->held);
	/* If the number is not random, the worst effect is that a dead lease
	 * looks alive. */
	if (getrandom(&l->nonce, sizeof(l->nonce), 0) < 0)
		l->nonce = clock_now_ns();
	return l;
}

static void lease_drop(struct lease *e)
{
	list_del(&e->link);
	free(e);
}

void leases_forget(struct leases *l)
{
	LIST_FOREACH_SAFE(i, next, &l->held)
		lease_drop(CONTAINER_OF(i, struct lease, link));
}

void leases_free(struct leases *l)
{
	if (!l)
		return;
	leases_forget(l);
	free(l);
}

bool leases_are_held(const struct leases *l)
{
	return !list_empty(&l->held);
}

static struct lease *lease_find(const struct leases *l, struct hash128 item)
{
	LIST_FOREACH(i, &l->held) {
		struct lease *e = CONTAINER_OF(i, struct lease, link);

		if (e->item.lo == item.lo && e->item.hi == item.hi)
			return e;
	}
	return NULL;
}

bool leases_has(const struct leases *l, struct hash128 item)
{
	return lease_find(l, item) != NULL;
}

bool lease_is_refusal(const uint8_t *value, size_t bytes)
{
	return bytes == sizeof(lease_refusal) - 1 &&
		memcmp(value, lease_refusal, bytes) == 0;
}

static void lease_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	/* If the command is lost, the lease still ends, because it gets no more
	 * beats. */
	(void)status;
	(void)a;
	(void)value;
	free(CONTAINER_OF(q, struct lease_note, q));
}

static void lease_write(
	const struct lease *e, const char *text, int ttl_s, uint64_t now_ns)
{
	struct lease_note *n = calloc(1, sizeof(*n));
	char key[UNIT_KEY_MAX];

	if (!n)
		return;
	(void)unit_lease_key(key, e->item);
	n->q.answered = lease_answered;
	(void)snprintf(n->text, sizeof(n->text), "%s", text);
	n->q.body = n->text;
	n->q.body_bytes = strlen(n->text);
	request_line(&n->q, "ms %s %zu T%d", key, n->q.body_bytes, ttl_s);
	if (peer_host_send(e->host, HOST_SMALL, &n->q, now_ns) < 0)
		free(n);
}

static void lease_beat(struct leases *l, struct lease *e, uint64_t now_ns)
{
	char text[40];

	(void)snprintf(text, sizeof(text), "%016llx %u",
		(unsigned long long)l->nonce, ++e->beats);
	lease_write(e, text, LEASE_TTL_S, now_ns);
	e->beat_ns = now_ns;
	list_del(&e->link);
	list_add_tail(&l->held, &e->link);
}

int leases_hold(struct leases *l, struct peer_host *h, struct hash128 item,
	uint64_t now_ns)
{
	struct lease *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->host = h;
	e->item = item;
	list_init(&e->link);
	lease_beat(l, e, now_ns);
	return 0;
}

void leases_refused(struct leases *l, struct hash128 item)
{
	struct lease *e = lease_find(l, item);

	if (e)
		e->refused = true;
}

void leases_end(struct leases *l, struct hash128 item, uint64_t now_ns)
{
	struct lease *e = lease_find(l, item);
	char key[UNIT_KEY_MAX];

	if (!e)
		return;
	if (e->refused) {
		lease_write(e, lease_refusal, LEASE_REFUSED_TTL_S, now_ns);
	} else {
		(void)unit_lease_key(key, item);
		peer_host_delete(e->host, HOST_SMALL, key);
	}
	lease_drop(e);
}

void leases_tick(struct leases *l, uint64_t now_ns)
{
	while (!list_empty(&l->held)) {
		struct lease *e = LIST_FIRST(&l->held, struct lease, link);

		if (e->beat_ns + LEASE_BEAT_NS > now_ns)
			return;
		lease_beat(l, e, now_ns);
	}
}
