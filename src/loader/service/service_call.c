/* SPDX-License-Identifier: MIT */
/* Commands to a board or a store; see service_call.h. */
#include "loader/service/service_call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Number of calls that are sent together. */
#define CALLS_AT_ONCE 64u

static void service_call_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct service_call *c = CONTAINER_OF(q, struct service_call, q);

	c->status = status;
	if (status < 0)
		return;
	c->kind = a->kind;
	c->cas = a->cas;
	if (a->kind != META_VA || !c->value)
		return;
	c->cut = a->value_bytes > c->room;
	c->bytes = c->cut ? 0 : a->value_bytes;
	memcpy(c->value, value, c->bytes);
}

static void service_call_begin(struct service_call *c)
{
	*c = (struct service_call){
		.q.answered = service_call_answered, .status = -ENOTCONN};
}

void call_get(struct service_call *c, const char *key, char *value, size_t room)
{
	service_call_begin(c);
	c->value = value;
	c->room = room;
	c->q.cost_bytes = room;
	request_line(&c->q, "mg %s%s", key, value ? " v c" : "");
}

void call_put(struct service_call *c, const char *key, const void *value,
	size_t bytes, enum call_mode mode, uint64_t cas, unsigned ttl_s)
{
	char how[32] = "";

	service_call_begin(c);
	if (mode == CALL_ADD)
		(void)snprintf(how, sizeof(how), " ME");
	else if (mode == CALL_COMPARE)
		(void)snprintf(how, sizeof(how), " C%" PRIu64, cas);
	c->q.body = value;
	c->q.body_bytes = bytes;
	request_line(&c->q, "ms %s %zu T%u c%s", key, bytes, ttl_s, how);
}

void call_delete(struct service_call *c, const char *key, uint64_t cas)
{
	service_call_begin(c);
	if (cas)
		request_line(&c->q, "md %s C%" PRIu64, key, cas);
	else
		request_line(&c->q, "md %s", key);
}

int calls_make(struct asker *a, struct service_call *calls, unsigned n)
{
	struct request *q[CALLS_AT_ONCE];
	int rc = 0;

	for (unsigned i = 0; i < n; i += CALLS_AT_ONCE) {
		unsigned some = n - i < CALLS_AT_ONCE ? n - i : CALLS_AT_ONCE;
		int status;

		for (unsigned k = 0; k < some; k++)
			q[k] = &calls[i + k].q;
		status = asker_ask(a, q, some);
		rc = status < 0 ? status : rc;
	}
	return rc;
}
