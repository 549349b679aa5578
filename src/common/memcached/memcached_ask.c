/* SPDX-License-Identifier: MIT */
/* Asks a memcached and waits for the answers; see memcached_ask.h. */
#include "common/memcached/memcached_ask.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/memcached/memcached_address.h"

struct asker {
	struct loop loop;
	struct wire *wire;
	struct address *address;
	uint64_t rest_until_ns;
	int status; /* status of the last event: 0 or -errno */
	uint64_t patience_ns;
};

int asker_new(struct asker **out, const char *host, uint32_t value_max_bytes,
	unsigned answer_ms)
{
	struct asker *a = calloc(1, sizeof(*a));
	struct wire_config config = {
		.value_max_bytes = value_max_bytes, .answer_ms = answer_ms};
	int rc;

	*out = a;
	if (!a)
		return -ENOMEM;
	config.loop = &a->loop;
	a->patience_ns = answer_ms * NS_PER_MS;
	rc = loop_init(&a->loop);
	if (rc == 0)
		rc = address_new(&a->address, host);
	if (rc == 0) {
		a->wire = wire_new(&config, a);
		rc = a->wire ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		asker_free(a);
		*out = NULL;
	}
	return rc;
}

void asker_free(struct asker *a)
{
	if (!a)
		return;
	wire_free(a->wire);
	address_free(a->address);
	loop_release(&a->loop);
	free(a);
}

static void asker_ready(struct loop *l, uint64_t data, uint32_t events)
{
	struct asker *a = wire_owner((struct wire *)(uintptr_t)data);
	int rc = wire_event(a->wire, events, clock_now_ns());

	(void)l;
	if (rc < 0)
		a->status = rc;
}

/* Wait for the address and begin to connect. */
static int asker_connect(struct asker *a)
{
	uint64_t end_ns = clock_now_ns() + a->patience_ns;
	const struct sockaddr *addr;
	socklen_t len;
	int rc;

	if (clock_now_ns() < a->rest_until_ns)
		return -EHOSTDOWN;
	while ((rc = address_get(a->address, &addr, &len)) == -EAGAIN &&
		clock_now_ns() < end_ns)
		loop_wait(
			&a->loop, clock_now_ns() + 5 * NS_PER_MS, asker_ready);
	return rc < 0 ? rc : wire_open(a->wire, addr, len, clock_now_ns());
}

static void asker_fail(struct asker *a, int status)
{
	wire_shut(a->wire, status);
	a->rest_until_ns = clock_now_ns() + ASK_REST_MS * NS_PER_MS;
}

int asker_ask(struct asker *a, struct request *const *requests, unsigned n)
{
	int rc = wire_is_closed(a->wire) ? asker_connect(a) : 0;

	if (rc < 0) {
		if (rc != -EHOSTDOWN)
			asker_fail(a, rc);
		for (unsigned i = 0; i < n; i++)
			requests[i]->answered(requests[i], rc, NULL, NULL);
		return rc;
	}
	for (unsigned i = 0; i < n; i++)
		wire_queue(a->wire, requests[i], clock_now_ns());
	a->status = wire_flush(a->wire);
	while (a->status == 0 && wire_requests(a->wire) > 0) {
		loop_wait(
			&a->loop, clock_now_ns() + 50 * NS_PER_MS, asker_ready);
		if (a->status == 0)
			a->status = wire_check(a->wire, clock_now_ns());
	}
	rc = a->status;
	if (rc < 0)
		asker_fail(a, rc);
	return rc;
}
