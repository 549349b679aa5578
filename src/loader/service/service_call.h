/* SPDX-License-Identifier: MIT */
/*
 * Commands to a board or a store, each with room for its answer. They are sent
 * in batches, by asker_ask(); afterwards the members say what came back.
 */
#ifndef SERVICE_CALL_H
#define SERVICE_CALL_H

#include "common/memcached/memcached_ask.h"

/* The longest value of a state. */
#define SERVICE_STATE_MAX (20u << 10)

struct service_call {
	struct request q; /* private */
	int status;	  /* 0, or -errno: there is no answer */
	enum meta_kind kind;
	uint64_t cas; /* of the value */
	char *value;  /* the caller's; its first `bytes` bytes are set */
	size_t room, bytes;
	bool cut; /* the value did not fit */
};

/* How a value is written. */
enum call_mode {
	CALL_SET,
	CALL_ADD,     /* only if there is no such key */
	CALL_COMPARE, /* only if the value still has the number `cas` */
};

/* Get a value and its number. Without a value (NULL) the call only tells
 * whether the key is there. */
void call_get(
	struct service_call *c, const char *key, char *value, size_t room);
/* Write a value, which must stay until the answer; `cas` is only used by
 * CALL_COMPARE. The answer has the number of the new value. */
void call_put(struct service_call *c, const char *key, const void *value,
	size_t bytes, enum call_mode mode, uint64_t cas, unsigned ttl_s);
/* Delete a key; with cas > 0 only if the value still has this number. */
void call_delete(struct service_call *c, const char *key, uint64_t cas);

/* Was the value found, or the command carried out? */
static inline bool call_done(const struct service_call *c)
{
	return c->status == 0 && (c->kind == META_HD || c->kind == META_VA);
}

/* Send the calls and wait for the answers. Returns 0, or -errno if an answer
 * is missing. */
int calls_make(struct asker *a, struct service_call *calls, unsigned n);

#endif
