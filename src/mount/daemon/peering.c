/* SPDX-License-Identifier: MIT */
/*
 * The partitioned cache of a mount. Starts the client of the peers, decides
 * whether tiers keep copies of the peers' items, and sends the peers a digest
 * of this host's list of files. The decision and the digest depend on the
 * manifest. A separate thread checks them every second, because computing the
 * digest takes a walk over all files.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/format/key.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

#define LOOK_NS NS_PER_S
/* Maximum time for which the start waits for peers. Until they answer, reads go
 * to the origin. */
#define SETTLE_PEERS_NS NS_PER_S

struct peering {
	uint32_t magic;
	/* The members before `scan` are set once */
	struct peers *peers;
	struct compare *compare;
	size_t npeers;
	struct manifest *manifest;
	struct tree *tree;
	struct scan *scan; /* set by peering_start() */
	pthread_t thread;
	bool started;
	/* Only the thread uses these. `said`: the peers have got a digest. The
	 * number is the generation of the names in that digest */
	bool said;
	uint64_t said_generation;
	pthread_mutex_t lock; /* guards `stopping` */
	pthread_cond_t cond;
	bool stopping;
};

/* Returns a digest of the list of files, as a sum of hashes, so that the order
 * of the files does not matter. */
static struct hash128 manifest_digest(struct manifest *mf)
{
	struct hash128 sum = {0};
	struct node_info info;

	for (node_id id = NODE_ROOT; id < manifest_end(mf); id++) {
		struct hash128 one;

		if (manifest_get(mf, id, &info) < 0 || info.retired ||
			info.attr.kind != KIND_FILE)
			continue;
		one = key_item_of((struct hash128){0}, info.digest,
			info.attr.version, 0, info.attr.version.size_bytes);
		sum.lo += one.lo;
		sum.hi += one.hi;
	}
	return sum;
}

static void peering_tell(struct peering *p)
{
	uint64_t generation = tree_generation(p->tree);

	if (p->said && generation == p->said_generation)
		return;
	peers_set_manifest(p->peers, manifest_digest(p->manifest));
	p->said = true;
	p->said_generation = generation;
}

/* Decide whether tiers keep copies of the peers' items. Until all files are
 * known, they keep none. */
static void peering_set_copies(struct peering *p, bool listed)
{
	struct manifest_totals totals;
	bool all;

	manifest_totals(p->manifest, &totals);
	all = listed && peers_can_hold(p->peers, totals.bytes);
	atomic_store_explicit(&peers_provider(p->peers)->instead_of_tiers, !all,
		memory_order_relaxed);
}

static bool peering_wait(struct peering *p)
{
	uint64_t until = clock_now_ns() + LOOK_NS;
	LOCK_SCOPE(&p->lock);

	while (!p->stopping && cond_wait_until(&p->cond, &p->lock, until))
		;
	return !p->stopping;
}

static void *peering_main(void *arg)
{
	struct peering *p = OBJECT(peering, arg);

	do {
		bool listed = scan_state(p->scan) == SCAN_COMPLETE;

		peering_set_copies(p, listed);
		if (listed)
			peering_tell(p);
	} while (peering_wait(p));
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

static int peering_connect(struct peering *p,
	const struct peering_config *config, struct error *err)
{
	struct peers_config peers = config->peers;
	int rc = compare_new(&p->compare, config->origin, peers.counters);

	if (rc < 0)
		return error_set(err, rc, "cannot start the peers: %m");
	peers.check = compare_unit;
	peers.check_arg = p->compare;
	return peers_start(&p->peers, &peers, err);
}

int peering_new(struct peering **out, const struct peering_config *config,
	struct error *err)
{
	struct peering *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, -ENOMEM, "cannot start the peers: %m");
	rc = peering_connect(p, config, err);
	if (rc < 0) {
		compare_free(p->compare);
		free(p);
		return rc;
	}
	MAGIC_BEGIN(p, peering);
	p->npeers = config->peers.nhosts;
	p->manifest = config->manifest;
	p->tree = config->tree;
	lock_init(&p->lock, RANK_PEERING);
	cond_init(&p->cond);
	peering_set_copies(p, false);
	(void)peers_settle(
		/* peers that answer later are used from then on */
		p->peers, SETTLE_PEERS_NS);
	*out = p;
	return 0;
}

int peering_start(struct peering *p, struct scan *scan, struct error *err)
{
	int rc;

	p->scan = scan;
	rc = pthread_create(&p->thread, NULL, peering_main, p);
	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	p->started = true;
	return 0;
}

void peering_quit(struct peering *p)
{
	if (!p || !p->started)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->started = false;
}

void peering_free(struct peering *p)
{
	if (!p)
		return;
	compare_stop(p->compare);
	peers_stop(p->peers);
	compare_free(p->compare);
	(void)pthread_cond_destroy(&p->cond); /* no thread waits any more */
	(void)pthread_mutex_destroy(&p->lock);
	MAGIC_END(p);
	free(p);
}

struct provider *peering_provider(const struct peering *p)
{
	return peers_provider(p->peers);
}

/* -- Status ---------------------------------------------------------------- */

static json_t *peer_object(const struct peer_status *s)
{
	static const char *const match[] = {"unknown", "same", "differs"};
	json_t *o = json_object();

	(void)json_object_set_new(o, "host", ctl_text_new(s->host));
	(void)json_object_set_new(
		o, "state", json_string(peer_state_name(s->state)));
	if (s->reason[0])
		(void)json_object_set_new(o, "reason", ctl_text_new(s->reason));
	(void)json_object_set_new(o, "version", ctl_text_new(s->version));
	(void)json_object_set_new(o, "self", json_boolean(s->self));
	(void)json_object_set_new(
		o, "manifest", json_string(match[s->manifest]));
	(void)json_object_set_new(o, "secret", json_string(match[s->secret]));
	ctl_set_number(o, "up", s->state == PEER_UP);
	ctl_set_number(o, "used_bytes", s->used_bytes);
	ctl_set_number(o, "capacity_bytes", s->capacity_bytes);
	ctl_set_number(o, "evictions", s->evictions);
	ctl_set_number(o, "items", s->items);
	ctl_set_number(o, "hits", s->hits);
	ctl_set_number(o, "hit_bytes", s->hit_bytes);
	ctl_set_number(o, "misses", s->misses);
	ctl_set_number(o, "fills", s->fills);
	ctl_set_number(o, "fill_bytes", s->fill_bytes);
	ctl_set_number(o, "refused", s->refused);
	ctl_set_number(o, "bad", s->bad);
	ctl_set_number(o, "foreign", s->foreign);
	ctl_set_number(o, "errors", s->errors);
	ctl_set_number(o, "dropped", s->dropped);
	return o;
}

void peering_status(const struct peering *p, struct cache *cache, json_t *o)
{
	const struct provider *provider = peers_provider(p->peers);
	struct cache_provider_counts counts;
	json_t *all = json_array();

	for (size_t i = 0; i < p->npeers; i++) {
		struct peer_status s;

		peers_status(p->peers, i, &s);
		(void)json_array_append_new(all, peer_object(&s));
	}
	(void)json_object_set_new(o, "peers", all);
	cache_provider_counts(cache, 0, &counts);
	ctl_set_number(o, "peer_pushes_dropped", counts.push_dropped);
	(void)json_object_set_new(o, "peers_hold_all",
		json_boolean(!atomic_load_explicit(
			&provider->instead_of_tiers, memory_order_relaxed)));
	(void)json_object_set_new(
		o, "peers_differ", json_boolean(peers_differ(p->peers)));
}

void peering_limits(const struct peering *p, limit_fn *fn, void *arg)
{
	char text[PEER_NAME_MAX + PEER_REASON_MAX + 128];
	bool self = false;

	for (size_t i = 0; i < p->npeers; i++) {
		struct peer_status s;

		peers_status(p->peers, i, &s);
		self |= s.self;
		text[0] = '\0';
		if (s.state == PEER_REFUSED || s.state == PEER_DOWN)
			(void)snprintf(text, sizeof(text),
				"peer '%s' is not used: %s", s.host, s.reason);
		else if (s.secret == PEER_MATCH_DIFFERS)
			(void)snprintf(text, sizeof(text),
				"host '%s' has another --peer-secret, and "
				"neither host can use what the other stores; "
				"give all hosts the same secret",
				s.host);
		else if (s.manifest == PEER_MATCH_DIFFERS)
			(void)snprintf(text, sizeof(text),
				"peer '%s' has a different list of files, and "
				"files that differ are not shared; run "
				"'refrain refresh' on both hosts",
				s.host);
		if (text[0])
			fn(arg, text);
	}
	if (peers_differ(p->peers))
		fn(arg,
			"the peers hold another dataset under the same name, "
			"with files of the same names, sizes and times, and "
			"are not used; mount each dataset with its own "
			"--peer-dataset, or restart the servers");
	if (!self)
		fn(arg,
			"this host is not in the list of --peers, so it "
			"contributes no memory, and the hosts cannot compare "
			"its list of files; if it is listed under another "
			"name, give --peer-name");
}
