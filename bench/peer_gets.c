/* SPDX-License-Identifier: MIT */
/*
 * `peer-gets HOST:PORT [ITEMS] [SECONDS]`: measures two clients that read items
 * of 110 KB from one memcached: the client of the peers, and a bare client that
 * sends requests without waiting and drops the bytes it receives. The clients
 * run in turns, several times. Prints the rates of each turn, and the median of
 * their ratios. The main thread is the bare client; the client of the peers has
 * its own thread.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/format/key.h"
#include "common/base/list.h"
#include "origin/peer/peer.h"

#define ITEM_BYTES ((size_t)110000)
#define ITEMS_MAX 4096u
#define DEPTH 32u
#define TURNS 5u
#define BARE_WIRES 2u

static void die(const char *what)
{
	(void)fprintf(stderr, "peer-gets: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* -- The client of the peers ----------------------------------------------- */

struct reading {
	struct provider *provider;
	unsigned nitems;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	bool going;
	unsigned out;	/* number of requests in flight */
	unsigned next;	/* number of the next item */
	unsigned waits; /* number of slots without a request */
	struct slot *free[DEPTH];
	uint64_t done, failed;
};

struct slot {
	struct provider_read r;
	struct reading *all;
};

static void describe(struct provider_item *item, unsigned number)
{
	static char paths[ITEMS_MAX][16];

	(void)snprintf(paths[number], sizeof(paths[0]), "f%u", number);
	*item = (struct provider_item){
		.path = paths[number],
		.version = {.size_bytes = ITEM_BYTES, .mtime_ns = 1},
		.size = ITEM_BYTES,
	};
	item->key = key_item_of(key_digest("peer-gets"), key_digest(item->path),
		item->version, 0, ITEM_BYTES);
}

static void slot_data(
	struct provider_read *r, uint64_t off, const void *bytes, size_t len)
{
	(void)r;
	(void)off;
	(void)bytes;
	(void)len;
}

static void slot_done(struct provider_read *r, int status)
{
	struct slot *s = CONTAINER_OF(r, struct slot, r);
	struct reading *a = s->all;

	pthread_mutex_lock(&a->lock);
	a->done += status == 0;
	a->failed += status != 0;
	a->free[a->waits++] = s;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

struct pushed {
	struct provider_push p;
	struct reading *all;
};

static void push_ended(struct provider_push *p, int status)
{
	struct reading *a = CONTAINER_OF(p, struct pushed, p)->all;

	pthread_mutex_lock(&a->lock);
	a->done += status == 0;
	a->failed += status != 0;
	a->out--;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

static void fill(struct reading *a, const void *data)
{
	static struct pushed pushed[ITEMS_MAX];

	for (unsigned i = 0; i < a->nitems; i++) {
		pushed[i].all = a;
		pushed[i].p.done = push_ended;
		pushed[i].p.data = data;
		pushed[i].p.len = ITEM_BYTES;
		describe(&pushed[i].p.item, i);
		pthread_mutex_lock(&a->lock);
		while (a->out >= 8)
			pthread_cond_wait(&a->cond, &a->lock);
		a->out++;
		pthread_mutex_unlock(&a->lock);
		a->provider->ops->push(a->provider, &pushed[i].p);
	}
	pthread_mutex_lock(&a->lock);
	while (a->out > 0)
		pthread_cond_wait(&a->cond, &a->lock);
	pthread_mutex_unlock(&a->lock);
	if (a->failed > 0) {
		errno = ENOSPC;
		die("the server does not accept all items");
	}
}

/* Returns how many items per second the client of the peers reads. */
static double read_peers(struct reading *a, double seconds)
{
	static struct slot slots[DEPTH];
	uint64_t begin = clock_now_ns();
	uint64_t end = begin + (uint64_t)(seconds * 1e9), took;

	a->waits = DEPTH;
	a->done = a->failed = 0;
	for (unsigned i = 0; i < DEPTH; i++)
		a->free[i] = &slots[i];
	for (;;) {
		bool going = clock_now_ns() < end;
		struct slot *s = NULL;

		pthread_mutex_lock(&a->lock);
		while (a->waits == 0 || (!going && a->waits < DEPTH))
			pthread_cond_wait(&a->cond, &a->lock);
		if (going)
			s = a->free[--a->waits];
		pthread_mutex_unlock(&a->lock);
		if (!s)
			break;
		*s = (struct slot){.all = a};
		describe(&s->r.item, a->next++ % a->nitems);
		s->r.len = ITEM_BYTES;
		s->r.data = slot_data;
		s->r.done = slot_done;
		a->provider->ops->read(a->provider, &s->r);
	}
	took = clock_now_ns() - begin;
	if (a->failed > 0)
		(void)fprintf(stderr, "peer-gets: %llu reads failed\n",
			(unsigned long long)a->failed);
	return (double)a->done * 1e9 / (double)took;
}

/* -- The bare client ------------------------------------------------------- */

struct bare {
	int fd[BARE_WIRES];
	unsigned out[BARE_WIRES];
	/* bytes of the answers that have not yet arrived */
	uint64_t bytes[BARE_WIRES];
	uint64_t answer_bytes;
	unsigned next; /* number of the next value */
	char *buf;
};

static int bare_connect(const char *host)
{
	char name[PEER_NAME_MAX + 1];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char *colon;
	int fd, one = 1;

	(void)snprintf(name, sizeof(name), "%s", host);
	colon = strrchr(name, ':');
	if (!colon) {
		errno = EINVAL;
		die("HOST:PORT");
	}
	*colon = '\0';
	if (getaddrinfo(name, colon + 1, &hints, &found) != 0)
		die("cannot find the host");
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		die("cannot connect");
	freeaddrinfo(found);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void bare_send(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0)
			die("cannot send");
		at += n;
		len -= (size_t)n;
	}
}

static void bare_get(int fd, unsigned number)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "mg bare%04u v\r\n", number);

	bare_send(fd, line, (size_t)n);
}

/* Store as many values as the client of the peers has stored, so that both
 * clients read the same amount of the server's memory. */
static void bare_store(struct bare *b, const void *data, unsigned nitems)
{
	char line[64];
	ssize_t n = 0;

	for (unsigned i = 0; i < nitems; i++) {
		n = snprintf(line, sizeof(line), "ms bare%04u %zu\r\n", i,
			ITEM_BYTES);
		bare_send(b->fd[0], line, (size_t)n);
		bare_send(b->fd[0], data, ITEM_BYTES);
		bare_send(b->fd[0], "\r\n", 2);
		n = read(b->fd[0], line, sizeof(line));
		if (n < 2 || memcmp(line, "HD", 2) != 0)
			die("the server does not accept an item");
	}
	/* Find out the length of an answer's header: some servers send a space
	 * after the size, others do not. */
	bare_get(b->fd[0], 0);
	n = recv(b->fd[0], line, sizeof(line), MSG_PEEK);
	b->answer_bytes = 0;
	for (ssize_t i = 0; i < n && b->answer_bytes == 0; i++)
		if (line[i] == '\n')
			b->answer_bytes = (uint64_t)i + 1 + ITEM_BYTES + 2;
	for (uint64_t left = b->answer_bytes; left > 0; left -= (uint64_t)n) {
		n = read(b->fd[0], b->buf, left);
		if (n <= 0)
			die("cannot receive");
	}
}

/* Returns how many items per second the bare client reads. */
static double read_bare(struct bare *b, unsigned nitems, double seconds)
{
	uint64_t begin = clock_now_ns(), done = 0;
	uint64_t end = begin + (uint64_t)(seconds * 1e9);
	bool going = true;

	for (unsigned i = 0; i < BARE_WIRES; i++)
		b->out[i] = 0;
	while (going || b->out[0] + b->out[1] > 0) {
		struct pollfd p[BARE_WIRES];

		going = clock_now_ns() < end;
		for (unsigned i = 0; i < BARE_WIRES; i++) {
			while (going && b->out[i] < DEPTH / BARE_WIRES) {
				bare_get(b->fd[i], b->next++ % nitems);
				b->out[i]++;
				b->bytes[i] += b->answer_bytes;
			}
			p[i] = (struct pollfd){.fd = b->fd[i],
				.events = b->out[i] ? POLLIN : 0};
		}
		if (poll(p, BARE_WIRES, 1000) < 0)
			die("cannot wait");
		for (unsigned i = 0; i < BARE_WIRES; i++) {
			ssize_t n;

			if (!(p[i].revents & POLLIN))
				continue;
			n = read(b->fd[i], b->buf, 1 << 18);
			if (n <= 0)
				die("cannot receive");
			b->bytes[i] -= (uint64_t)n;
			while (b->out[i] > 0 &&
				b->bytes[i] <=
					(b->out[i] - 1) * b->answer_bytes) {
				b->out[i]--;
				done++;
			}
		}
	}
	return (double)done * 1e9 / (double)(clock_now_ns() - begin);
}

/* -- Both clients ---------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Confirm that the content of a unit is right. Values of an earlier run have
 * the same content. */
static void confirm(void *arg, struct peers_check *c)
{
	(void)arg;
	c->result = 1;
	peers_checked(c);
}

static struct peers *start(const char *host)
{
	struct peers_config config = {.host = &host,
		.nhosts = 1,
		.dataset = "peer-gets",
		.check = confirm};
	struct peers *peers;
	struct peer_status status;
	struct error err;

	if (peers_start(&peers, &config, &err) < 0) {
		(void)fprintf(stderr, "peer-gets: %s\n", err.msg);
		exit(EXIT_FAILURE);
	}
	(void)peers_settle(peers, 3 * NS_PER_S);
	peers_status(peers, 0, &status);
	if (status.state == PEER_UP)
		return peers;
	(void)fprintf(stderr, "peer-gets: the server is %s: %s\n",
		peer_state_name(status.state), status.reason);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct reading a = {.lock = PTHREAD_MUTEX_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER};
	double seconds = argc > 3 ? strtod(argv[3], NULL) : 1;
	double ratio[TURNS];
	struct peers *peers;
	struct bare b = {.answer_bytes = 0};
	char *data = calloc(1, ITEM_BYTES);

	if (argc < 2 || !data) {
		(void)fprintf(stderr,
			"usage: peer-gets HOST:PORT [ITEMS] [SECONDS]\n");
		return EXIT_FAILURE;
	}
	a.nitems = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 500;
	if (a.nitems == 0 || a.nitems > ITEMS_MAX)
		a.nitems = ITEMS_MAX;
	for (size_t i = 0; i < ITEM_BYTES; i++)
		data[i] = (char)(i * 131 >> 3);
	b.buf = malloc(1 << 18);
	for (unsigned i = 0; i < BARE_WIRES; i++)
		b.fd[i] = bare_connect(argv[1]);
	bare_store(&b, data, a.nitems);
	peers = start(argv[1]);
	a.provider = peers_provider(peers);
	fill(&a, data);
	for (unsigned i = 0; i < TURNS; i++) {
		double bare = read_bare(&b, a.nitems, seconds);
		double ours = read_peers(&a, seconds);

		ratio[i] = ours / bare;
		(void)printf("peers %.0f items/s, bare %.0f items/s: %.3f\n",
			ours, bare, ratio[i]);
	}
	qsort(ratio, TURNS, sizeof(ratio[0]), by_size);
	(void)printf("ratio %.3f\n", ratio[TURNS / 2]);
	peers_stop(peers);
	free(data);
	free(b.buf);
	return 0;
}
