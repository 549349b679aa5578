/* SPDX-License-Identifier: MIT */
/* Asks a server for its settings, its use, the digest of its host's manifest,
 * and a hash of its host's secret. Used by the peers' thread. Private to this
 * room. */
#ifndef PEER_INQUIRY_IMPL_H
#define PEER_INQUIRY_IMPL_H

#include "origin/peer/peer.h"
#include "common/memcached/memcached_server.h"
#include "common/memcached/memcached_wire.h"
#include "origin/peer/peer_unit_impl.h"

struct inquiry {
	/* this member and those up to told() are set once */
	struct hash128 dataset;
	bool named; /* there is a dataset */
	uint64_t secret_mark;
	/* Called when the server has answered all questions and `s` is up to
	 * date. Not called if the connection is lost. */
	void (*told)(struct inquiry *i, uint64_t now_ns);
	struct server server;
	enum peer_match manifest, secret;
	bool self; /* set once: this is the server of this host */
	/* this member and the next one are about this host's manifest */
	bool has_digest;
	struct hash128 digest;
	unsigned nasked; /* private: number of questions without an answer */
	uint64_t now_ns; /* private: time of the last question */
};

/* Ask for version, settings and use. If memory is short, the connection counts
 * as lost. */
void inquiry_settings(struct inquiry *i, struct wire *w, uint64_t now_ns);
/* Ask for use and digest, unless an earlier answer has not come yet. */
void inquiry_use(struct inquiry *i, struct wire *w, uint64_t now_ns);

#endif
