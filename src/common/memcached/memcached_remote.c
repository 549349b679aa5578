/* SPDX-License-Identifier: MIT */
/* A memcached that rests after failures; see memcached_remote.h. */
#include "common/memcached/memcached_remote.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/memcached/memcached_address.h"

struct remote {
	struct wire *wire;
	struct address *address;
	uint64_t rest_until_ns, rest_ns;
	int failure;
};

int remote_new(struct remote **out, const struct remote_config *config)
{
	struct remote *r = calloc(1, sizeof(*r));
	const struct wire_config wire = {.loop = config->loop,
		.value_max_bytes = config->value_max_bytes,
		.answer_ms = config->answer_ms};
	int rc;

	*out = r;
	if (!r)
		return -ENOMEM;
	r->rest_ns = config->rest_ms * NS_PER_MS;
	rc = address_new(&r->address, config->host);
	if (rc == 0) {
		r->wire = wire_new(&wire, r);
		rc = r->wire ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		remote_free(r);
		*out = NULL;
	}
	return rc;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	wire_free(r->wire);
	address_free(r->address);
	free(r);
}

void remote_fail(struct remote *r, int status, uint64_t now_ns)
{
	r->failure = status;
	r->rest_until_ns = now_ns + r->rest_ns;
	wire_shut(r->wire, status);
}

bool remote_rests(const struct remote *r, uint64_t now_ns)
{
	return wire_is_closed(r->wire) && now_ns < r->rest_until_ns;
}

int remote_open(struct remote *r, uint64_t now_ns)
{
	const struct sockaddr *addr;
	socklen_t len;
	int rc;

	if (!wire_is_closed(r->wire))
		return 0;
	if (remote_rests(r, now_ns))
		return -EHOSTDOWN;
	rc = address_get(r->address, &addr, &len);
	if (rc == -EAGAIN)
		return rc;
	if (rc == 0)
		rc = wire_open(r->wire, addr, len, now_ns);
	if (rc < 0)
		remote_fail(r, rc, now_ns);
	return rc;
}

void remote_queue(struct remote *r, struct request *q, uint64_t now_ns)
{
	wire_queue(r->wire, q, now_ns);
}

void remote_flush(struct remote *r, uint64_t now_ns)
{
	int rc = wire_flush(r->wire);

	if (rc < 0)
		remote_fail(r, rc, now_ns);
}

void remote_check(struct remote *r, uint64_t now_ns)
{
	int rc = wire_check(r->wire, now_ns);

	if (rc < 0)
		remote_fail(r, rc, now_ns);
}

unsigned remote_requests(const struct remote *r)
{
	return wire_requests(r->wire);
}

int remote_take_failure(struct remote *r)
{
	int status = r->failure;

	r->failure = 0;
	return status;
}

void remote_ready(struct loop *l, uint64_t data, uint32_t events)
{
	struct remote *r = wire_owner((struct wire *)(uintptr_t)data);
	uint64_t now_ns = clock_now_ns();
	int rc = wire_event(r->wire, events, now_ns);

	(void)l;
	if (rc < 0)
		remote_fail(r, rc, now_ns);
}
