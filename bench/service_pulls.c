/* SPDX-License-Identifier: MIT */
/*
 * `service-pulls HOST:PORT [SECONDS]`: the processor time that a trainer needs
 * for a sample of 224 x 224 u8 pixels that another host has prepared, with the
 * client of memcached in src/common/memcached: receiving it, checking its hash,
 * and finishing it as f32 and as u8. Prints one line of JSON, in milliseconds
 * of processor time a sample. The main thread does everything; REQUESTS gets
 * are in flight, and samples go into a ring of SLABS batches.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/loop.h"
#include "common/memcached/memcached_address.h"
#include "common/memcached/memcached_wire.h"
#include "loader/image/augment.h"
#include "refrain/loader.h"

#define SIDE 224u
#define SAMPLE_BYTES (3 * SIDE * SIDE)
#define REQUESTS 24u
#define SLABS 26u /* number of samples that are written in turn */
#define VALUES 200u
#define TURNS 5u
#define VALUE_MAX_BYTES (256u << 10)

enum what { PULL, HASH, FINISH_U8, FINISH_F32, WHATS };

static const char *const names[WHATS] = {
	"pull_ms", "pull_hash_ms", "pull_hash_u8_ms", "pull_hash_f32_ms"};

struct pulls {
	struct loop loop;
	struct wire *wire;
	enum what what;
	unsigned next;	 /* number of the next value, and of its slab */
	unsigned flying; /* number of requests in flight */
	bool going;
	uint64_t done, bad;
	struct augmenter *u8, *f32;
	struct crop crop;
	uint8_t *slabs;
	/* vector code may read bytes after the pixels */
	uint8_t pixels[SAMPLE_BYTES + AUGMENT_SLACK_BYTES];
};

struct pull {
	struct request q;
	struct pulls *p;
	uint64_t hash;
};

static void die(const char *what, int rc)
{
	(void)fprintf(stderr, "service-pulls: %s: %s\n", what, strerror(-rc));
	exit(EXIT_FAILURE);
}

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(what, rc);
}

static void pull_send(struct pulls *p, struct pull *one);

static void finish(struct pulls *p, const uint8_t *value)
{
	uint8_t *to = p->slabs +
		(size_t)(p->next % SLABS) * SAMPLE_BYTES * sizeof(float);

	if (p->what == FINISH_U8)
		augment_finish(p->u8, &p->crop, value, to);
	if (p->what == FINISH_F32)
		augment_finish(p->f32, &p->crop, value, to);
}

static void pulled(struct request *q, int status, const struct meta_answer *a,
	const uint8_t *value)
{
	struct pull *one = CONTAINER_OF(q, struct pull, q);
	struct pulls *p = one->p;

	p->flying--;
	if (status < 0)
		return;
	if (a->kind != META_VA || a->value_bytes != SAMPLE_BYTES)
		p->bad++;
	else if (p->what >= HASH && hash64(value, SAMPLE_BYTES, 1) == 0)
		p->bad++;
	else
		finish(p, value);
	p->done++;
	if (p->going)
		pull_send(p, one);
}

static void pull_send(struct pulls *p, struct pull *one)
{
	one->q = (struct request){
		.answered = pulled, .cost_bytes = SAMPLE_BYTES};
	request_line(&one->q, "mg pull%08u v", p->next++ % VALUES);
	wire_queue(p->wire, &one->q, clock_now_ns());
	p->flying++;
}

static void stored(struct request *q, int status, const struct meta_answer *a,
	const uint8_t *value)
{
	(void)value;
	if (status < 0 || a->kind != META_HD)
		die("the server does not accept a value", -EIO);
	CONTAINER_OF(q, struct pull, q)->p->flying--;
}

static void ready(struct loop *l, uint64_t data, uint32_t events)
{
	(void)l;
	must("connection",
		wire_event((struct wire *)(uintptr_t)data, events,
			clock_now_ns()));
}

static void turn(struct pulls *p)
{
	must("connection", wire_flush(p->wire));
	must("connection", wire_check(p->wire, clock_now_ns()));
	loop_wait(&p->loop, clock_now_ns() + 100 * NS_PER_MS, ready);
}

static void store(struct pulls *p)
{
	for (unsigned i = 0; i < VALUES; i++) {
		struct pull one = {.p = p};

		one.q.answered = stored;
		one.q.body = p->pixels;
		one.q.body_bytes = SAMPLE_BYTES;
		request_line(&one.q, "ms pull%08u %u T600", i, SAMPLE_BYTES);
		p->flying++;
		wire_queue(p->wire, &one.q, clock_now_ns());
		while (p->flying > 0)
			turn(p);
	}
}

static double used_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the processor time per sample, in milliseconds. */
static double measure(struct pulls *p, enum what what, double seconds)
{
	static struct pull all[REQUESTS];
	uint64_t end_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);
	double from = used_s();

	p->what = what;
	p->done = 0;
	p->going = true;
	for (unsigned i = 0; i < REQUESTS; i++) {
		all[i].p = p;
		pull_send(p, &all[i]);
	}
	while (p->flying > 0) {
		turn(p);
		p->going = clock_now_ns() < end_ns;
	}
	return 1e3 * (used_s() - from) / (double)p->done;
}

static void connect_to(struct pulls *p, const char *host)
{
	const struct wire_config config = {.loop = &p->loop,
		.value_max_bytes = VALUE_MAX_BYTES,
		.answer_ms = 2000};
	const struct sockaddr *addr;
	struct address *a;
	struct error err;
	socklen_t len;

	if (address_check(host, &err) < 0) {
		(void)fprintf(stderr, "service-pulls: %s\n", err.msg);
		exit(EXIT_FAILURE);
	}
	must("address", address_new(&a, host));
	must("loop", loop_init(&p->loop));
	p->wire = wire_new(&config, p);
	if (!p->wire)
		die("memory", -ENOMEM);
	must("address: give it as a number", address_get(a, &addr, &len));
	must("connect", wire_open(p->wire, addr, len, clock_now_ns()));
	address_free(a);
}

static struct augmenter *finisher(int type)
{
	struct augment_config c = {.height = SIDE,
		.width = SIDE,
		.type = type,
		.layout = REFRAIN_NHWC,
		.normalise = true,
		.mean = {0.485F, 0.456F, 0.406F},
		.std = {0.229F, 0.224F, 0.225F}};
	struct augmenter *a;

	must("augmenter", augmenter_new(&a, &c));
	return a;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct pulls p;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
	double ms[WHATS][TURNS];

	if (argc < 2) {
		(void)fprintf(
			stderr, "usage: service-pulls HOST:PORT [SECONDS]\n");
		return EXIT_FAILURE;
	}
	p.slabs = malloc((size_t)SLABS * SAMPLE_BYTES * sizeof(float));
	if (!p.slabs)
		die("memory", -ENOMEM);
	for (size_t i = 0; i < SAMPLE_BYTES; i++)
		p.pixels[i] = (uint8_t)(i * 131 >> 3);
	p.u8 = finisher(REFRAIN_U8);
	p.f32 = finisher(REFRAIN_F32);
	connect_to(&p, argv[1]);
	store(&p);
	for (unsigned t = 0; t < TURNS; t++)
		for (unsigned w = 0; w < WHATS; w++)
			ms[w][t] = measure(&p, (enum what)w, seconds);
	(void)printf("{\"sample_bytes\": %u, \"bad\": %" PRIu64, SAMPLE_BYTES,
		p.bad);
	for (unsigned w = 0; w < WHATS; w++) {
		qsort(ms[w], TURNS, sizeof(double), by_size);
		(void)printf(", \"%s\": %.4f", names[w], ms[w][TURNS / 2]);
	}
	(void)printf("}\n");
	wire_free(p.wire);
	loop_release(&p.loop);
	augmenter_free(p.u8);
	augmenter_free(p.f32);
	free(p.slabs);
	return p.bad > 0;
}
