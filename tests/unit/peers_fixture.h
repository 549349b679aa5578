/* SPDX-License-Identifier: MIT */
/* For tests of src/origin/peer/peer.h: clients of the partitioned cache, and
 * requests like those of a cache. The content of an item is computed from its
 * number, so a wrong byte is always found. All state belongs to the program. */
#ifndef TESTS_PEERS_FIXTURE_H
#define TESTS_PEERS_FIXTURE_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/format/key.h"
#include "origin/peer/peer.h"
#include "origin/peer/peer_unit_impl.h"
#include "suite.h"

#define PEERS_DATASET "set"
/* No correct operation takes this long, however busy the machine is. */
#define PEERS_WAIT_NS (60 * NS_PER_S)
/* All time limits of the client are longer than this. So a failure within this
 * time is not caused by a busy machine. */
#define PEERS_LIMIT_NS (500 * NS_PER_MS)
#define PEERS_TRIES 20

static char peers_dir[] = "/tmp/refrain-peers-XXXXXX";
static char peers_socket[64];

static inline void peers_dir_make(void)
{
	ck_assert_ptr_nonnull(mkdtemp(peers_dir));
	(void)snprintf(peers_socket, sizeof(peers_socket), "%s/s", peers_dir);
}

static inline void peers_dir_remove(void)
{
	(void)unlink(peers_socket);
	ck_assert_int_eq(rmdir(peers_dir), 0);
}

static inline void peers_pause(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Wait until the condition is true; fails after PEERS_WAIT_NS. */
#define PEERS_UNTIL(what)                                                      \
	do {                                                                   \
		uint64_t end_ns_ = clock_now_ns() + PEERS_WAIT_NS;             \
                                                                               \
		while (!(what)) {                                              \
			ck_assert_msg(                                         \
				clock_now_ns() < end_ns_, "not %s", #what);    \
			peers_pause();                                         \
		}                                                              \
	} while (0)

/* -- Clients --------------------------------------------------------------- */

static inline uint8_t item_byte(unsigned number, uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 18) * 3 + number);
}

/* How the origin of a client answers when the client compares a unit. */
enum peers_origin {
	PEERS_ORIGIN,	     /* with the same items as the peers */
	PEERS_ORIGIN_FAILS,  /* with a failure */
	PEERS_ORIGIN_OTHERS, /* with different content for every item */
};
static _Atomic unsigned peers_compared;

static inline void peers_compare(void *arg, struct peers_check *c)
{
	const enum peers_origin *origin = arg;
	unsigned number = (unsigned)strtoul(c->path + 1, NULL, 10);
	uint8_t *data = malloc(c->len);

	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < c->len; i++)
		data[i] = item_byte(number, c->off + i) +
			(*origin == PEERS_ORIGIN_OTHERS);
	c->result = *origin == PEERS_ORIGIN_FAILS
		? -EIO
		: hash64(data, c->len, 0) == c->hash;
	free(data);
	atomic_fetch_add(&peers_compared, 1);
	peers_checked(c);
}

/* Start a client. `name` is the host on which the client runs, or NULL. */
static inline struct peers *peers_client_of(enum peers_origin origin,
	const char *name, const char *dataset, const char *secret)
{
	static enum peers_origin origins[] = {
		PEERS_ORIGIN, PEERS_ORIGIN_FAILS, PEERS_ORIGIN_OTHERS};
	const char *host[] = {peers_socket};
	struct peers_config config = {.host = host,
		.nhosts = 1,
		.name = name,
		.secret = secret,
		.secret_bytes = strlen(secret),
		.dataset = dataset,
		.check = peers_compare,
		.check_arg = &origins[origin]};
	struct error err;
	struct peers *p = NULL;

	ck_assert_int_eq(peers_start(&p, &config, &err), 0);
	return p;
}

static inline struct peers *peers_client(
	const char *dataset, const char *secret)
{
	return peers_client_of(PEERS_ORIGIN, NULL, dataset, secret);
}

static inline struct peer_status peers_now(struct peers *p)
{
	struct peer_status s;

	peers_status(p, 0, &s);
	return s;
}

static inline struct peers *peers_client_up(
	const char *dataset, const char *secret)
{
	struct peers *p = peers_client(dataset, secret);

	PEERS_UNTIL(peers_now(p).state == PEER_UP);
	return p;
}

/* -- Items ----------------------------------------------------------------- */

static inline struct provider_item item_of(unsigned number, uint64_t size)
{
	static char paths[512][16]; /* paths must be valid until done() */

	ck_assert_uint_lt(number, 512);
	(void)snprintf(paths[number], sizeof(paths[number]), "f%u", number);
	return (struct provider_item){
		.path = paths[number], .version = {size, 7, 0}, .size = size};
}

static inline struct hash128 item_key(const struct provider_item *i)
{
	return key_item_of(key_digest(PEERS_DATASET), key_digest(i->path),
		i->version, i->base, i->size);
}

/* -- Reads ----------------------------------------------------------------- */

/* One read of a whole item. */
struct asked {
	struct provider_read r;
	unsigned number;
	/* number of calls of done(), and of wrong bytes */
	_Atomic unsigned done, wrong;
	_Atomic uint64_t bytes; /* number of bytes received */
	_Atomic int status;
	uint64_t begun_ns;
	_Atomic uint64_t ended_ns;
};

static inline void asked_data(
	struct provider_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct asked *a = (struct asked *)(void *)r;
	const uint8_t *at = bytes;
	unsigned wrong = atomic_load(&a->done) > 0;

	for (size_t i = 0; i < len; i++)
		wrong += at[i] != item_byte(a->number, off + i);
	atomic_fetch_add(&a->wrong, wrong);
	atomic_fetch_add(&a->bytes, len);
}

static inline void asked_done(struct provider_read *r, int status)
{
	struct asked *a = (struct asked *)(void *)r;

	atomic_store(&a->status, status);
	atomic_store(&a->ended_ns, clock_now_ns());
	atomic_fetch_add(&a->done, 1);
}

static inline void ask(
	struct peers *p, struct asked *a, unsigned number, uint64_t size)
{
	struct provider *s = peers_provider(p);

	memset(a, 0, sizeof(*a));
	a->number = number;
	a->r.item = item_of(number, size);
	a->r.len = size;
	a->r.data = asked_data;
	a->r.done = asked_done;
	atomic_init(&a->r.urgent, true);
	a->begun_ns = clock_now_ns();
	s->ops->read(s, &a->r);
}

static inline int answer_of(struct asked *a)
{
	PEERS_UNTIL(atomic_load(&a->done) > 0);
	ck_assert_uint_eq(atomic_load(&a->done), 1);
	ck_assert_uint_eq(atomic_load(&a->wrong), 0);
	if (atomic_load(&a->status) == 0)
		ck_assert_uint_eq(atomic_load(&a->bytes), a->r.len);
	return atomic_load(&a->status);
}

static inline uint64_t asked_ns(const struct asked *a)
{
	return atomic_load(&a->ended_ns) - a->begun_ns;
}

/* Read an item. If the result is not `want` and took so long that a busy
 * machine may be the cause, read again. */
static inline int ask_again(struct peers *p, struct asked *a, unsigned number,
	uint64_t size, int want)
{
	for (unsigned i = 0; i < PEERS_TRIES; i++) {
		PEERS_UNTIL(peers_now(p).state == PEER_UP);
		ask(p, a, number, size);
		if (answer_of(a) == want || asked_ns(a) < PEERS_LIMIT_NS ||
			want == INT_MIN)
			break;
	}
	return answer_of(a);
}

/* -- Pushes ---------------------------------------------------------------- */

struct pushed {
	struct provider_push p;
	_Atomic unsigned done;
	_Atomic int status;
};

static inline void pushed_done(struct provider_push *p, int status)
{
	struct pushed *x = (struct pushed *)(void *)p;

	atomic_store(&x->status, status);
	atomic_fetch_add(&x->done, 1);
}

static inline int push_unit_once(
	struct peers *p, unsigned number, uint64_t size, uint64_t off)
{
	struct provider *s = peers_provider(p);
	size_t len =
		size - off < UNIT_BYTES ? (size_t)(size - off) : UNIT_BYTES;
	uint8_t *data = malloc(len);
	struct pushed x;

	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < len; i++)
		data[i] = item_byte(number, off + i);
	memset(&x, 0, sizeof(x));
	x.p.item = item_of(number, size);
	x.p.off = off;
	x.p.len = len;
	x.p.data = data;
	x.p.done = pushed_done;
	s->ops->push(s, &x.p);
	PEERS_UNTIL(atomic_load(&x.done) > 0);
	free(data);
	return atomic_load(&x.status);
}

/* Push one unit of an item, as after a fetch. Returns 0 or -ENOSPC. */
static inline int push_unit(
	struct peers *p, unsigned number, uint64_t size, uint64_t off)
{
	int rc = -EIO;

	for (unsigned i = 0; i < PEERS_TRIES && rc < 0 && rc != -ENOSPC; i++) {
		uint64_t begin_ns;

		PEERS_UNTIL(peers_now(p).state == PEER_UP);
		begin_ns = clock_now_ns();
		rc = push_unit_once(p, number, size, off);
		if (clock_now_ns() < begin_ns + PEERS_LIMIT_NS)
			break;
	}
	ck_assert(rc == 0 || rc == -ENOSPC);
	return rc;
}

static inline void end_item(struct peers *p, unsigned number, uint64_t size)
{
	struct provider *s = peers_provider(p);
	struct provider_item i = item_of(number, size);

	s->ops->ended(s, &i);
}

/* Push all units of an item, and end the fetch. Returns the number of units
 * kept. */
static inline unsigned push_item(
	struct peers *p, unsigned number, uint64_t size)
{
	unsigned kept = 0;

	for (uint64_t off = 0; off < size; off += UNIT_BYTES)
		kept += push_unit(p, number, size, off) == 0;
	end_item(p, number, size);
	return kept;
}

#endif
