/* SPDX-License-Identifier: MIT */
/*
 * Asks a server for its settings, its use, the digest of its host's manifest,
 * and a mark of its host's secret. The thread of the peers. Private to
 * this room.
 */
#ifndef PEER_INQUIRY_IMPL_H
#define PEER_INQUIRY_IMPL_H

#include "origin/peer/peer.h"
#include "origin/peer/peer_server_impl.h"
#include "origin/peer/memcached_wire_impl.h"

struct inquiry {
	struct hash128 dataset; /* set once, as all up to told() */
	bool named;		/* there is a dataset */
	uint64_t secret_mark;
	/* Called when the server has answered all questions and `s` is up to
	 * date. Not called if the connection is lost. */
	void (*told)(struct inquiry *i, uint64_t now_ns);
	struct server server;
	enum peer_match manifest, secret;
	bool self;	 /* set once: the server is of this host */
	bool has_digest; /* these two: of this host's manifest */
	struct hash128 digest;
	unsigned nasked; /* private: on their way */
	uint64_t now_ns; /* private: when the last was asked */
};

/* Ask for version, settings and use; NULL memory is as a lost connection. */
void inquiry_settings(struct inquiry *i, struct wire *w, uint64_t now_ns);
/* Ask for use and digest, unless an answer is still awaited. */
void inquiry_use(struct inquiry *i, struct wire *w, uint64_t now_ns);

#endif
