/* SPDX-License-Identifier: MIT */
/* Asks a memcached and waits for the answers; see memcached_ask.h. */
#include "common/memcached/memcached_ask.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/memcached/memcached_remote.h"

struct asker {
	struct loop loop;
	struct remote *remote;
	uint64_t patience_ns;
};

int asker_new(struct asker **out, const char *host, uint32_t value_max_bytes,
	unsigned answer_ms)
{
	struct asker *a = calloc(1, sizeof(*a));
	struct remote_config config = {.host = host,
		.value_max_bytes = value_max_bytes,
		.answer_ms = answer_ms,
		.rest_ms = ASK_REST_MS};
	int rc;

	*out = a;
	if (!a)
		return -ENOMEM;
	config.loop = &a->loop;
	a->patience_ns = answer_ms * NS_PER_MS;
	rc = loop_init(&a->loop);
	if (rc == 0)
		rc = remote_new(&a->remote, &config);
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
	remote_free(a->remote);
	loop_release(&a->loop);
	free(a);
}

/* Wait for the address and begin to connect. */
static int asker_open(struct asker *a)
{
	uint64_t now_ns = clock_now_ns(), end_ns = now_ns + a->patience_ns;
	int rc;

	while ((rc = remote_open(a->remote, now_ns)) == -EAGAIN &&
		now_ns < end_ns) {
		loop_wait(&a->loop, now_ns + 5 * NS_PER_MS, remote_ready);
		now_ns = clock_now_ns();
	}
	if (rc == -EAGAIN)
		remote_fail(a->remote, rc, now_ns);
	return rc;
}

int asker_ask(struct asker *a, struct request *const *requests, unsigned n)
{
	uint64_t now_ns = clock_now_ns(), end_ns = now_ns + 4 * a->patience_ns;
	int rc = asker_open(a);

	if (rc < 0) {
		for (unsigned i = 0; i < n; i++)
			requests[i]->answered(requests[i], rc, NULL, NULL);
		return rc;
	}
	(void)remote_take_failure(a->remote); /* of an earlier call */
	for (unsigned i = 0; i < n; i++)
		remote_queue(a->remote, requests[i], now_ns);
	remote_flush(a->remote, now_ns);
	while (remote_requests(a->remote) > 0) {
		loop_wait(&a->loop, now_ns + 50 * NS_PER_MS, remote_ready);
		now_ns = clock_now_ns();
		remote_check(a->remote, now_ns);
		if (now_ns > end_ns)
			remote_fail(a->remote, -ETIMEDOUT, now_ns);
	}
	return remote_take_failure(a->remote);
}
