/* SPDX-License-Identifier: MIT */
/* The hosts of the partitioned cache and the thread that exchanges messages
 * with them. Other threads post reads, pushes and ends of leases to its loop.
 */
#include "origin/peer/peer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/format/key.h"
#include "common/memcached/memcached_address.h"
#include "origin/peer/peer_push_impl.h"
#include "origin/peer/peer_read_impl.h"

/* While there are requests, the thread checks for overdue answers at this
 * interval. */
#define PEERS_TICK_NS (5 * NS_PER_MS)
#define PEERS_IDLE_NS (100 * NS_PER_MS)
#define PEERS_DEPTH 64u
#define PEERS_PATIENCE_NS (60 * NS_PER_S)
#define PEERS_PENDING_BYTES ((uint64_t)64 << 20)
#define PEERS_CONTENT_PCT 94

/* A message to the thread: all requests for an item have ended. */
struct peers_end {
	struct post post;
	struct peers *peers;
	struct hash128 item;
};

struct peers {
	struct provider provider; /* must be first */
	uint32_t magic;
	size_t n; /* set once, as are the members up to `seed` */
	struct peer_host *host[PEERS_MAX];
	uint64_t hash[PEERS_MAX];
	struct hash128 dataset;
	uint64_t seed;
	struct loop loop;
	pthread_t thread;
	/* the peers' thread uses this member and the next four */
	struct reads reads;
	struct pushes pushes;
	struct leases *leases;
	struct trusts *trusts;
	unsigned nstrangers; /* number of hosts with another secret */
	/* Posted if memory is short: `failed` for a request, `lost_end` for a
	 * peers_end. has_digest is posted when the digest has changed. */
	struct post failed, lost_end, has_digest;
	pthread_mutex_t lock; /* guards all members below */
	struct list active;   /* readings that may be abandoned */
	/* Requests to be answered with -ENOMEM, linked by their .priv. */
	struct provider_read *failed_reads;
	struct provider_push *failed_pushes;
	struct hash128 digest;
};

int peer_check_host(const char *host, struct error *err)
{
	return address_check(host, err);
}

const char *peer_state_name(enum peer_state state)
{
	static const char *const names[] = {"trying", "up", "down", "refused"};

	return names[state];
}

/* -- From other threads ---------------------------------------------------- */

static struct hash128 peers_key(
	const struct peers *p, const struct provider_item *item)
{
	return key_item_of(p->dataset, key_digest(item->path), item->version,
		item->base, item->size);
}

static void peers_begin_read(struct post *post)
{
	struct reading *g = CONTAINER_OF(post, struct reading, begin);

	reading_begin(g, clock_now_ns());
	list_add_tail(&g->reads->all, &g->link);
}

static void peers_read(struct provider *s, struct provider_read *r)
{
	struct peers *p =
		OBJECT(peers, CONTAINER_OF(s, struct peers, provider));
	struct reading *g = calloc(1, sizeof(*g));

	if (!g) {
		pthread_mutex_lock(&p->lock);
		r->priv = p->failed_reads;
		p->failed_reads = r;
		pthread_mutex_unlock(&p->lock);
		loop_post(&p->loop, &p->failed);
		return;
	}
	post_init(&g->begin, peers_begin_read);
	g->reads = &p->reads;
	g->r = r;
	g->item = peers_key(p, &r->item);
	g->host = p->host[peer_owner(p->hash, p->n, g->item)];
	pthread_mutex_lock(&p->lock);
	list_add_tail(&p->active, &g->active);
	pthread_mutex_unlock(&p->lock);
	loop_post(&p->loop, &g->begin);
}

/* Abandon a read. The peers' thread is not woken: while there are reads or
 * leases, it checks them every PEERS_TICK_NS anyway. */
static void peers_abandon(struct provider *s, struct provider_read *r)
{
	struct peers *p =
		OBJECT(peers, CONTAINER_OF(s, struct peers, provider));

	pthread_mutex_lock(&p->lock);
	LIST_FOREACH(l, &p->active) {
		struct reading *g = CONTAINER_OF(l, struct reading, active);

		if (g->r == r)
			atomic_store_explicit(
				&g->abandoned, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&p->lock);
}

static void peers_begin_push(struct post *post)
{
	struct push_job *j = CONTAINER_OF(post, struct push_job, begin);

	list_add_tail(&j->all->waiting, &j->link);
}

static void peers_push(struct provider *s, struct provider_push *push)
{
	struct peers *p =
		OBJECT(peers, CONTAINER_OF(s, struct peers, provider));
	struct push_job *j = calloc(1, sizeof(*j));

	if (!j) {
		pthread_mutex_lock(&p->lock);
		push->priv = p->failed_pushes;
		p->failed_pushes = push;
		pthread_mutex_unlock(&p->lock);
		loop_post(&p->loop, &p->failed);
		return;
	}
	post_init(&j->begin, peers_begin_push);
	j->all = &p->pushes;
	j->p = push;
	j->unit.item = peers_key(p, &push->item);
	j->unit.n = (uint32_t)(push->off / UNIT_BYTES);
	j->unit.bytes = (uint32_t)push->len;
	j->host = p->host[peer_owner(p->hash, p->n, j->unit.item)];
	loop_post(&p->loop, &j->begin);
}

/* Answer the requests for which memory was short. */
static void peers_fail(struct post *post)
{
	struct peers *p = CONTAINER_OF(post, struct peers, failed);
	struct provider_read *reads;
	struct provider_push *pushes;

	pthread_mutex_lock(&p->lock);
	reads = p->failed_reads;
	pushes = p->failed_pushes;
	p->failed_reads = NULL;
	p->failed_pushes = NULL;
	pthread_mutex_unlock(&p->lock);
	while (reads) {
		struct provider_read *r = reads;

		reads = r->priv;
		r->done(r, -ENOMEM);
	}
	while (pushes) {
		struct provider_push *push = pushes;

		pushes = push->priv;
		push->done(push, -ENOMEM);
	}
}

static void peers_end_lease(struct post *post)
{
	struct peers_end *e = CONTAINER_OF(post, struct peers_end, post);

	leases_end(e->peers->leases, e->item, clock_now_ns());
	free(e);
}

static void peers_forget_leases(struct post *post)
{
	leases_forget(CONTAINER_OF(post, struct peers, lost_end)->leases);
}

/* Post the end of an item. The peers' thread is not woken, because the caller
 * holds a lock. The end matters only if there is a lease, and then the thread
 * checks every PEERS_TICK_NS anyway. */
static void peers_ended(struct provider *s, const struct provider_item *item)
{
	struct peers *p = CONTAINER_OF(s, struct peers, provider);
	struct peers_end *e = calloc(1, sizeof(*e));

	if (e) {
		post_init(&e->post, peers_end_lease);
		e->peers = p;
		e->item = peers_key(p, item);
	}
	loop_post_quietly(&p->loop, e ? &e->post : &p->lost_end);
}

static void peers_take_check(struct post *post)
{
	struct peers_check *c = CONTAINER_OF(post, struct peers_check, checked);

	trusts_checked(c->owner->trusts, c, clock_now_ns());
}

void peers_checked(struct peers_check *c)
{
	post_init(&c->checked, peers_take_check);
	loop_post(&c->owner->loop, &c->checked);
}

static const struct provider_ops peers_ops = {
	.read = peers_read,
	.abandon = peers_abandon,
	.push = peers_push,
	.ended = peers_ended,
};

/* -- The thread ------------------------------------------------------------ */

static void peers_take_digest(struct post *post)
{
	struct peers *p = CONTAINER_OF(post, struct peers, has_digest);
	struct hash128 digest;

	pthread_mutex_lock(&p->lock);
	digest = p->digest;
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		peer_host_set_manifest(p->host[i], digest);
}

static void peers_tell(struct peers *p, struct list *ended)
{
	LIST_FOREACH_SAFE(l, next, ended) {
		struct reading *g = CONTAINER_OF(l, struct reading, link);
		struct provider_read *r = g->r;
		int status = g->status;

		if (status < 0)
			host_count(g->host, HOST_MISSES, 1);
		pthread_mutex_lock(&p->lock);
		list_del(&g->active);
		pthread_mutex_unlock(&p->lock);
		list_del(&g->link);
		free(g);
		r->done(r, status);
	}
}

static bool peers_are_idle(const struct peers *p)
{
	return list_empty(&p->reads.all) && list_empty(&p->pushes.waiting) &&
		!leases_are_held(p->leases);
}

static void peers_on_event(struct loop *l, uint64_t data, uint32_t events)
{
	/* `data` is what loop_watch() has got */
	struct wire *w = (struct wire *)(uintptr_t)data;

	(void)l;
	peer_host_event(wire_owner(w), w, events, clock_now_ns());
}

static void *peers_main(void *arg)
{
	struct peers *p = OBJECT(peers, arg);
	struct list ended;

	list_init(&ended);
	for (;;) {
		uint64_t now_ns = clock_now_ns();

		loop_wait(&p->loop,
			now_ns +
				(peers_are_idle(p) ? PEERS_IDLE_NS
						   : PEERS_TICK_NS),
			peers_on_event);
		if (!loop_run_posts(&p->loop))
			return NULL;
		now_ns = clock_now_ns();
		for (size_t i = 0; i < p->n; i++)
			peer_host_tick(p->host[i], now_ns);
		leases_tick(p->leases, now_ns);
		reads_step(&p->reads, &ended, now_ns);
		pushes_step(&p->pushes, now_ns);
		for (size_t i = 0; i < p->n; i++)
			peer_host_flush(p->host[i], now_ns);
		peers_tell(p, &ended);
	}
}

/* -- Life ------------------------------------------------------------------ */

static int peers_add(struct peers *p, const struct peers_config *config,
	const struct peer_host_config *host, size_t i, struct error *err)
{
	const char *name = config->host[i];
	bool self = config->name && strcmp(config->name, name) == 0;
	int rc = address_check(name, err);

	for (size_t k = 0; rc == 0 && k < i; k++)
		if (strcmp(config->host[k], name) == 0)
			rc = error_set(err, -EINVAL,
				"'%s' is in the list of peers twice", name);
	if (rc == 0)
		rc = peer_host_new(&p->host[i], host, name, self, err);
	if (rc < 0)
		return rc;
	p->hash[i] = peer_host_hash(name);
	p->n = i + 1;
	return 0;
}

static int peers_open(
	struct peers *p, const struct peers_config *config, struct error *err)
{
	struct peer_host_config host = {.loop = &p->loop,
		.dataset = p->dataset,
		.named = config->dataset != NULL,
		.secret_mark = unit_secret_mark(p->seed),
		.nstrangers = &p->nstrangers,
		.counters = config->counters,
		.events = config->events};
	int rc = loop_init(&p->loop);

	if (rc < 0)
		return error_set(err, rc, "cannot start the peers: %m");
	p->trusts = trusts_new(config, p, clock_now_ns(), err);
	if (!p->trusts)
		return -ENOMEM;
	p->leases = leases_new();
	if (!p->leases)
		return error_set(err, -ENOMEM, "cannot start the peers: %m");
	if (config->nhosts > PEERS_MAX)
		return error_set(err, -EINVAL, "at most %u peers are supported",
			PEERS_MAX);
	for (size_t i = 0; i < config->nhosts && rc == 0; i++)
		rc = peers_add(p, config, &host, i, err);
	return rc;
}

static void peers_free(struct peers *p)
{
	for (size_t i = 0; i < p->n; i++)
		peer_host_free(p->host[i]);
	leases_free(p->leases);
	trusts_free(p->trusts);
	loop_release(&p->loop);
	(void)pthread_mutex_destroy(&p->lock);
	MAGIC_END(p);
	free(p);
}

static struct peers *peers_new(const struct peers_config *config)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	MAGIC_BEGIN(p, peers);
	p->provider.ops = &peers_ops;
	p->provider.traits = (struct provider_traits){
		.request_bytes = READ_UNITS * UNIT_BYTES,
		.unit_bytes = UNIT_BYTES,
		.depth = PEERS_DEPTH,
		.patience_ns = PEERS_PATIENCE_NS,
		.pending_bytes = config->pending_bytes ? config->pending_bytes
						       : PEERS_PENDING_BYTES,
	};
	if (config->dataset)
		p->dataset = key_digest(config->dataset);
	p->seed = unit_seed(p->dataset, config->secret, config->secret_bytes);
	lock_init(&p->lock, RANK_PEERS);
	post_init(&p->failed, peers_fail);
	post_init(&p->lost_end, peers_forget_leases);
	post_init(&p->has_digest, peers_take_digest);
	list_init(&p->reads.all);
	list_init(&p->pushes.waiting);
	list_init(&p->active);
	return p;
}

int peers_start(struct peers **out, const struct peers_config *config,
	struct error *err)
{
	struct peers *p = peers_new(config);
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "cannot start the peers: %m");
	rc = peers_open(p, config, err);
	if (rc == 0) {
		p->reads.leases = p->pushes.leases = p->leases;
		p->reads.trusts = p->pushes.trusts = p->trusts;
		p->reads.seed = p->pushes.seed = p->seed;
		rc = -pthread_create(&p->thread, NULL, peers_main, p);
		if (rc < 0)
			(void)error_set(err, rc, "cannot start a thread: %m");
		else
			/* wake the thread, so that it probes at once */
			loop_wake(&p->loop);
	}
	if (rc < 0) {
		peers_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void peers_stop(struct peers *p)
{
	if (!p)
		return;
	loop_stop(&p->loop);
	pthread_join(p->thread, NULL);
	peers_free(p);
}

struct provider *peers_provider(struct peers *p)
{
	return &p->provider;
}

/* -- What is known of them ------------------------------------------------- */

void peers_status(struct peers *p, size_t i, struct peer_status *status)
{
	host_status(p->host[i], status);
}

bool peers_can_hold(struct peers *p, uint64_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct peer_status s;

		host_status(p->host[i], &s);
		if (s.capacity_bytes == 0 || s.state == PEER_REFUSED)
			return false;
		sum += s.capacity_bytes;
	}
	return sum / 100 * PEERS_CONTENT_PCT >= bytes;
}

static bool peers_are_settled(struct peers *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct peer_status s;

		host_status(p->host[i], &s);
		if (s.state == PEER_TRYING)
			return false;
	}
	return true;
}

bool peers_settle(struct peers *p, uint64_t timeout_ns)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t end = clock_now_ns() + timeout_ns;

	while (!peers_are_settled(p)) {
		if (clock_now_ns() > end)
			return false;
		/* if the pause ends early, the check is only repeated */
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

bool peers_differ(const struct peers *p)
{
	return trusts_differ(p->trusts);
}

void peers_set_manifest(struct peers *p, struct hash128 digest)
{
	pthread_mutex_lock(&p->lock);
	p->digest = digest;
	pthread_mutex_unlock(&p->lock);
	loop_post(&p->loop, &p->has_digest);
}
