/* SPDX-License-Identifier: MIT */
/*
 * Asks a memcached and waits for the answers: a connection for a thread that
 * has nothing else to do meanwhile. After a failure it rests for a while, so
 * that a server that is gone costs its users no time; memcached_remote.h shows
 * its states. One thread uses it.
 */
#ifndef MEMCACHED_ASK_H
#define MEMCACHED_ASK_H

#include "common/memcached/memcached_wire.h"

#define ASK_REST_MS 1000u

struct asker;

/* Create a connection to a host that has passed address_check(). Returns 0 or
 * -errno. */
int asker_new(struct asker **out, const char *host, uint32_t value_max_bytes,
	unsigned answer_ms);
void asker_free(struct asker *a); /* NULL is allowed */

/*
 * Send the requests and wait until all of them are answered: at most answer_ms
 * for each of them, and at most four times as long for all of them. Their
 * answered() are called by this thread, with -errno if the connection is lost.
 * Returns 0, or -errno if any request failed in this way: -EHOSTDOWN while it
 * rests.
 */
int asker_ask(struct asker *a, struct request *const *requests, unsigned n);

#endif
