/* SPDX-License-Identifier: MIT */
/*
 * Calls: commands to a board or a store, each with room for its answer.
 * calls_make() sends calls in batches, with asker_ask(), and sets the members
 * that hold the answers.
 */
#ifndef SERVICE_CALL_H
#define SERVICE_CALL_H

#include "common/memcached/memcached_ask.h"

/* The longest value of a state. */
#define SERVICE_STATE_MAX (20u << 10)

struct service_call {
	struct request q; /* private */
	int status;	  /* 0, or -errno if there is no answer */
	enum meta_kind kind;
	uint64_t cas; /* the number that memcached gives to the value */
	/* the caller's buffer; the answer fills its first `bytes` bytes */
	char *value;
	size_t room, bytes;
	bool cut; /* the value did not fit */
};

/* When a value is written. */
enum call_mode {
	CALL_SET,
	CALL_ADD, /* only if the key does not exist */
	/* only if the value at the key still has the number `cas` */
	CALL_COMPARE,
};

/* Make a call that gets a value and its number. If `value` is NULL, the call
 * only finds out whether the key exists. */
void call_get(
	struct service_call *c, const char *key, char *value, size_t room);
/* Make a call that writes a value, which must stay valid until the answer. Only
 * CALL_COMPARE uses `cas`. The answer has the number of the new value. */
void call_put(struct service_call *c, const char *key, const void *value,
	size_t bytes, enum call_mode mode, uint64_t cas, unsigned ttl_s);
/* Make a call that deletes a key; if cas > 0, only while the value still has
 * this number. */
void call_delete(struct service_call *c, const char *key, uint64_t cas);

/* Was the value found, or the command executed? */
static inline bool call_done(const struct service_call *c)
{
	return c->status == 0 && (c->kind == META_HD || c->kind == META_VA);
}

/* Send the calls and wait for the answers. Returns 0, or -errno if an answer
 * is missing. */
int calls_make(struct asker *a, struct service_call *calls, unsigned n);

#endif
