/* SPDX-License-Identifier: MIT */
/* One host: its connections, its state and its probes; see peer_host_impl.h. */
#include "origin/peer/peer_host_impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/memcached/memcached_address.h"
#include "origin/peer/peer_inquiry_impl.h"

/* The first two connections are for gets, the last for pushes. */
#define HOST_WIRES 3u
#define HOST_PUSH_WIRE (HOST_WIRES - 1)

/* Limit for the bytes that are requested or being sent on a connection. */
#define HOST_WINDOW_BYTES (8 * UNIT_BYTES)
/* Maximum number of requests on a connection. Lease commands are small, so
 * HOST_WINDOW_BYTES does not limit them. */
#define HOST_REQUESTS_MAX 4096u

#define HOST_ANSWER_MS 500u

#define HOST_RETRY_MIN_NS (250 * NS_PER_MS)
#define HOST_RETRY_MAX_NS (2 * NS_PER_S)
/* The maximum pause between trials that fail. With it, a restarted host is used
 * again within 5 s. */
#define HOST_TRIAL_MAX_NS (4 * NS_PER_S)
#define HOST_REOPEN_NS (50 * NS_PER_MS)
#define HOST_STATS_NS (2 * NS_PER_S)
#define HOST_RATE_NS (250 * NS_PER_MS)
#define HOST_PROBE_PUSHES 100u

struct peer_host {
	/* this member and those up to `wire` are set once */
	struct peer_host_config config;
	char name[PEER_NAME_MAX + 1];
	struct address *address;
	struct wire *wire[HOST_WIRES];
	/* Only the peers' thread uses the members below. */
	/* time before which the connection is not opened again */
	uint64_t reopen_ns[HOST_WIRES];
	enum peer_state state;
	bool give_up;
	bool trial;
	/* states of the host that the log has reported */
	struct {
		bool away, full, other, stranger;
	} reported;
	/* time of the next attempt, and length of the last pause */
	uint64_t retry_ns, wait_ns;
	uint64_t stats_ns; /* time to ask for statistics again */
	/* rate in bytes/s, and the measurement in progress */
	uint64_t rate_since_ns, rate_bytes, rate;
	bool full;
	unsigned nskipped;
	struct inquiry inquiry;
	_Atomic uint64_t counts[HOST_COUNTS];
	pthread_mutex_t lock; /* guards `said` */
	struct peer_status said;
};

/* -- Counting -------------------------------------------------------------- */

void host_count(struct peer_host *h, enum host_count what, uint64_t n)
{
	struct counters *c = h->config.counters;
	_Atomic uint64_t *const all[HOST_COUNTS] = {
		[HOST_HITS] = c ? &c->peer_hits : NULL,
		[HOST_HIT_BYTES] = c ? &c->peer_hit_bytes : NULL,
		[HOST_MISSES] = c ? &c->peer_misses : NULL,
		[HOST_FILLS] = c ? &c->peer_fills : NULL,
		[HOST_FILL_BYTES] = c ? &c->peer_fill_bytes : NULL,
		[HOST_REFUSED] = c ? &c->peer_refused : NULL,
		[HOST_BAD] = c ? &c->peer_bad : NULL,
		[HOST_FOREIGN] = c ? &c->peer_foreign : NULL,
		[HOST_ERRORS] = c ? &c->peer_errors : NULL,
		[HOST_DROPPED] = c ? &c->peer_dropped : NULL,
	};

	(void)atomic_fetch_add_explicit(
		&h->counts[what], n, memory_order_relaxed);
	if (c)
		(void)atomic_fetch_add_explicit(
			all[what], n, memory_order_relaxed);
}

static uint64_t peer_host_counted(struct peer_host *h, enum host_count what)
{
	return atomic_load_explicit(&h->counts[what], memory_order_relaxed);
}

static void peer_host_report(
	struct peer_host *h, enum event_kind kind, const char *text)
{
	event_report(h->config.events,
		&(struct event){.kind = kind,
			.path = h->name,
			.text = text,
			.cause = h->name,
			.turn = kind != EVENT_PEER_BAD,
			.n = peer_host_counted(h, HOST_BAD)});
}

void peer_host_bad(struct peer_host *h)
{
	host_count(h, HOST_BAD, 1);
	if (*h->config.nstrangers == 0)
		peer_host_report(h, EVENT_PEER_BAD, NULL);
}

/* -- What others see ------------------------------------------------------- */

static void peer_host_say(struct peer_host *h, const char *reason)
{
	const struct server *server = &h->inquiry.server;
	struct peer_status *s = &h->said;
	LOCK_SCOPE(&h->lock);

	s->state = h->state;
	s->manifest =
		h->state == PEER_UP ? h->inquiry.manifest : PEER_MATCH_UNKNOWN;
	s->secret =
		h->state == PEER_UP ? h->inquiry.secret : PEER_MATCH_UNKNOWN;
	memcpy(s->version, server->version, sizeof(s->version));
	s->used_bytes = server->used_bytes;
	s->evictions = server->evictions;
	s->items = server->items;
	if (server->capacity_bytes > 0)
		s->capacity_bytes = server->capacity_bytes;
	if (reason)
		(void)snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

void host_status(struct peer_host *h, struct peer_status *s)
{
	pthread_mutex_lock(&h->lock);
	*s = h->said;
	pthread_mutex_unlock(&h->lock);
	s->hits = peer_host_counted(h, HOST_HITS);
	s->hit_bytes = peer_host_counted(h, HOST_HIT_BYTES);
	s->misses = peer_host_counted(h, HOST_MISSES);
	s->fills = peer_host_counted(h, HOST_FILLS);
	s->fill_bytes = peer_host_counted(h, HOST_FILL_BYTES);
	s->refused = peer_host_counted(h, HOST_REFUSED);
	s->bad = peer_host_counted(h, HOST_BAD);
	s->foreign = peer_host_counted(h, HOST_FOREIGN);
	s->errors = peer_host_counted(h, HOST_ERRORS);
	s->dropped = peer_host_counted(h, HOST_DROPPED);
}

static void peer_host_told(struct inquiry *i, uint64_t now_ns);

/* -- Life ------------------------------------------------------------------ */

int peer_host_new(struct peer_host **out, const struct peer_host_config *config,
	const char *name, bool self, struct error *err)
{
	const struct wire_config wire = {.loop = config->loop,
		.value_max_bytes = UNIT_VALUE_MAX,
		.answer_ms = HOST_ANSWER_MS};
	struct peer_host *h = calloc(1, sizeof(*h));
	int rc = h ? 0 : -ENOMEM;

	if (h) {
		h->config = *config;
		(void)snprintf(h->name, sizeof(h->name), "%s", name);
		lock_init(&h->lock, RANK_PEER_HOST);
		server_init(&h->inquiry.server);
		h->inquiry.dataset = config->dataset;
		h->inquiry.named = config->named;
		h->inquiry.secret_mark = config->secret_mark;
		h->inquiry.self = self;
		h->inquiry.told = peer_host_told;
		h->said.self = self;
		memcpy(h->said.host, h->name, sizeof(h->name));
		rc = address_new(&h->address, name);
	}
	for (unsigned i = 0; i < HOST_WIRES && rc == 0; i++) {
		h->wire[i] = wire_new(&wire, h);
		rc = h->wire[i] ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		peer_host_free(h);
		return error_set(err, rc, "cannot prepare peer '%s': %m", name);
	}
	*out = h;
	return 0;
}

void peer_host_free(struct peer_host *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < HOST_WIRES; i++)
		wire_free(h->wire[i]);
	address_free(h->address);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

void peer_host_set_manifest(struct peer_host *h, struct hash128 digest)
{
	h->inquiry.has_digest = true;
	h->inquiry.digest = digest;
	/* 0: store the digest and compare those of others at once */
	h->stats_ns = 0;
}

/* -- States ---------------------------------------------------------------- */

static void host_set(
	struct peer_host *h, enum peer_state state, const char *reason)
{
	enum peer_state before = h->state;

	h->state = state;
	peer_host_say(h, reason);
	if (state == before)
		return;
	if (state == PEER_UP && h->reported.away)
		peer_host_report(h, EVENT_PEER_BACK, NULL);
	if (state == PEER_DOWN)
		peer_host_report(h, EVENT_PEER_DOWN, reason);
	if (state == PEER_REFUSED)
		peer_host_report(h, EVENT_PEER_REFUSED, reason);
	h->reported.away = state != PEER_UP;
}

static void peer_host_close_all(struct peer_host *h, int status)
{
	for (unsigned i = 0; i < HOST_WIRES; i++) {
		if (!wire_is_closed(h->wire[i]))
			host_count(h, HOST_ERRORS,
				h->state == PEER_UP ? wire_requests(h->wire[i])
						    : 0);
		wire_shut(h->wire[i], status);
	}
}

/* Set the time of the next attempt. The pause grows with each failure. */
static void peer_host_back_off(struct peer_host *h, uint64_t now_ns)
{
	uint64_t max = h->trial ? HOST_TRIAL_MAX_NS : HOST_RETRY_MAX_NS;

	h->wait_ns = h->wait_ns ? h->wait_ns * 2 : HOST_RETRY_MIN_NS;
	if (h->wait_ns > max)
		h->wait_ns = max;
	h->retry_ns = now_ns + h->wait_ns;
}

/* Close all connections. Do not call this in answered(). */
static void peer_host_down(struct peer_host *h, int status, uint64_t now_ns)
{
	char why[PEER_REASON_MAX];

	if (status == -ETIMEDOUT)
		(void)snprintf(why, sizeof(why),
			"it did not answer in time, or answered too slowly");
	else
		(void)snprintf(why, sizeof(why), "%s", strerror(-status));
	h->give_up = false;
	peer_host_close_all(h, status);
	if (status == -ETIMEDOUT && h->state == PEER_UP)
		h->trial = true;
	peer_host_back_off(h, now_ns);
	host_set(h, PEER_DOWN, why);
}

void peer_host_give_up(struct peer_host *h)
{
	h->give_up = true;
}

void peer_host_delivered(struct peer_host *h)
{
	h->trial = false;
	h->wait_ns = 0;
}

bool peer_host_is_up(const struct peer_host *h)
{
	return h->state == PEER_UP && !h->give_up;
}

uint64_t peer_host_rate(const struct peer_host *h)
{
	return h->rate;
}

static void peer_host_refuse(
	struct peer_host *h, const char *fault, uint64_t now_ns)
{
	/* peer_host_tick() will close the connections, because answered() must
	 * not. */
	peer_host_back_off(h, now_ns);
	host_set(h, PEER_REFUSED, fault);
}

static void peer_host_told(struct inquiry *i, uint64_t now_ns)
{
	struct peer_host *h = CONTAINER_OF(i, struct peer_host, inquiry);
	const char *fault = server_fault(&i->server, UNIT_VALUE_MAX);
	bool other = i->manifest == PEER_MATCH_DIFFERS;
	bool stranger = i->secret == PEER_MATCH_DIFFERS;

	if (fault)
		peer_host_refuse(h, fault, now_ns);
	else if (h->state != PEER_UP)
		host_set(h, PEER_UP, "");
	else
		peer_host_say(h, NULL);
	/* Reset the pause, but not during a trial, where it has to grow with
	 * each failure. */
	if (!fault && !h->trial)
		h->wait_ns = 0;
	if (other && !h->reported.other)
		peer_host_report(h, EVENT_PEER_MANIFEST, NULL);
	h->reported.other = other;
	if (stranger && !h->reported.stranger)
		peer_host_report(h, EVENT_PEER_SECRET, NULL);
	*h->config.nstrangers += stranger - h->reported.stranger;
	h->reported.stranger = stranger;
}

/* -- Connections ----------------------------------------------------------- */

static int peer_host_connect(
	struct peer_host *h, struct wire *w, uint64_t now_ns)
{
	const struct sockaddr *addr;
	socklen_t len;
	int rc = address_get(h->address, &addr, &len);

	return rc < 0 ? rc : wire_open(w, addr, len, now_ns);
}

/* Open the first connection, and ask for the settings on it. The other
 * connections are opened when they are known. */
static void peer_host_probe(struct peer_host *h, uint64_t now_ns)
{
	int rc;

	if (now_ns < h->retry_ns || !wire_is_closed(h->wire[0]))
		return;
	rc = peer_host_connect(h, h->wire[0], now_ns);
	if (rc == 0)
		inquiry_settings(&h->inquiry, h->wire[0], now_ns);
	else if (rc != -EAGAIN)
		peer_host_down(h, rc, now_ns);
}

static bool peer_host_has_wire(const struct peer_host *h)
{
	for (unsigned i = 0; i < HOST_WIRES; i++)
		if (!wire_is_closed(h->wire[i]))
			return true;
	return false;
}

static void peer_host_lost(
	struct peer_host *h, struct wire *w, int status, uint64_t now_ns)
{
	if (status == -ETIMEDOUT || h->state != PEER_UP) {
		peer_host_down(h, status, now_ns);
		return;
	}
	host_count(h, HOST_ERRORS, wire_requests(w) > 0 ? wire_requests(w) : 1);
	wire_shut(w, status);
	for (unsigned i = 0; i < HOST_WIRES; i++)
		if (h->wire[i] == w)
			h->reopen_ns[i] = now_ns + HOST_REOPEN_NS;
	if (!peer_host_has_wire(h))
		peer_host_down(h, status, now_ns);
}

static void peer_host_reopen(struct peer_host *h, uint64_t now_ns)
{
	for (unsigned i = 0; i < HOST_WIRES && h->state == PEER_UP; i++) {
		int rc;

		if (!wire_is_closed(h->wire[i]) || now_ns < h->reopen_ns[i])
			continue;
		rc = peer_host_connect(h, h->wire[i], now_ns);
		h->reopen_ns[i] = now_ns + HOST_REOPEN_NS;
		if (rc < 0 && rc != -EAGAIN)
			peer_host_lost(h, h->wire[i], rc, now_ns);
	}
}

static void peer_host_ask_use(struct peer_host *h, uint64_t now_ns)
{
	if (now_ns < h->stats_ns)
		return;
	for (unsigned i = 0; i < HOST_WIRES; i++)
		if (wire_is_open(h->wire[i])) {
			inquiry_use(&h->inquiry, h->wire[i], now_ns);
			h->stats_ns = now_ns + HOST_STATS_NS;
			return;
		}
}

static void peer_host_measure(struct peer_host *h, uint64_t now_ns)
{
	uint64_t ns = now_ns - h->rate_since_ns;

	for (unsigned i = 0; i < HOST_WIRES; i++)
		h->rate_bytes += wire_take_received(h->wire[i]);
	if (ns < HOST_RATE_NS)
		return;
	h->rate = (uint64_t)((double)h->rate_bytes * 1e9 / (double)ns);
	h->rate_bytes = 0;
	h->rate_since_ns = now_ns;
}

void peer_host_tick(struct peer_host *h, uint64_t now_ns)
{
	peer_host_measure(h, now_ns);
	for (unsigned i = 0; i < HOST_WIRES; i++)
		if (wire_check(h->wire[i], now_ns) < 0)
			h->give_up = true;
	if (h->give_up)
		peer_host_down(h, -ETIMEDOUT, now_ns);
	if (h->state == PEER_REFUSED && peer_host_has_wire(h) &&
		h->inquiry.nasked == 0)
		peer_host_close_all(h, -ECANCELED);
	if (h->state == PEER_UP) {
		peer_host_reopen(h, now_ns);
		peer_host_ask_use(h, now_ns);
	} else {
		peer_host_probe(h, now_ns);
	}
}

void peer_host_event(
	struct peer_host *h, struct wire *w, uint32_t events, uint64_t now_ns)
{
	int rc = wire_event(w, events, now_ns);

	if (rc < 0)
		peer_host_lost(h, w, rc, now_ns);
}

void peer_host_flush(struct peer_host *h, uint64_t now_ns)
{
	for (unsigned i = 0; i < HOST_WIRES; i++) {
		int rc = wire_flush(h->wire[i]);

		if (rc < 0)
			peer_host_lost(h, h->wire[i], rc, now_ns);
	}
}

/* -- Requests -------------------------------------------------------------- */

/* Returns the less busy connection for requests of this kind; NULL: none is
 * open. */
static struct wire *peer_host_pick(
	const struct peer_host *h, enum peer_host_line line)
{
	unsigned from = line == HOST_PUSHES ? HOST_PUSH_WIRE : 0;
	unsigned to = line == HOST_PUSHES ? HOST_WIRES : HOST_PUSH_WIRE;
	struct wire *best = NULL;

	for (unsigned i = from; i < to; i++)
		if (!wire_is_closed(h->wire[i]) &&
			(!best || wire_cost(h->wire[i]) < wire_cost(best)))
			best = h->wire[i];
	return best;
}

bool peer_host_has_room(const struct peer_host *h, enum peer_host_line line)
{
	const struct wire *w = peer_host_pick(h, line);

	if (!w || wire_requests(w) >= HOST_REQUESTS_MAX)
		return false;
	if (h->trial && line == HOST_GETS)
		return wire_cost(w) == 0 && wire_cost(h->wire[0]) == 0;
	return wire_cost(w) < HOST_WINDOW_BYTES;
}

int peer_host_send(struct peer_host *h, enum peer_host_line line,
	struct request *q, uint64_t now_ns)
{
	struct wire *w = peer_host_is_up(h) ? peer_host_pick(h, line) : NULL;

	if (!w)
		return -EHOSTDOWN;
	wire_queue(w, q, now_ns);
	return 0;
}

static void peer_host_deleted(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	(void)status;
	(void)a;
	(void)value;
	free(q);
}

void peer_host_delete(
	struct peer_host *h, enum peer_host_line line, const char *key)
{
	struct request *q = calloc(1, sizeof(*q));

	if (!q)
		return;
	q->answered = peer_host_deleted;
	request_line(q, "md %s", key);
	if (peer_host_send(h, line, q, clock_now_ns()) < 0)
		free(q);
}

/* -- Memory of the server -------------------------------------------------- */

void peer_host_full(struct peer_host *h, bool full)
{
	if (full && !h->reported.full)
		peer_host_report(h, EVENT_PEER_FULL, NULL);
	h->reported.full |= full;
	h->full = full;
}

bool peer_host_may_push(struct peer_host *h)
{
	if (!h->full || ++h->nskipped % HOST_PROBE_PUSHES == 0)
		return true;
	return false;
}
