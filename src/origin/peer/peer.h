/* SPDX-License-Identifier: MIT */
/*
 * The partitioned cache: the memory of several hosts, each of which runs
 * memcached -M, is one cache of items. Every item has one owner among the
 * hosts, chosen by highest random weight. `struct peers` is this host's client
 * of all of them, with one thread of its own, and is a provider of fills
 * (origin/provider.h).
 *
 * A read asks the owner for the units of the item, 256 KiB each. A unit is
 * checked (length, and a checksum keyed with item, unit, dataset and secret)
 * before any byte of it is delivered. Of each mount that has pushed units, some
 * units are compared with the origin before the others are used. If units are
 * missing, exactly one host gets the item's lease. Its read ends with -ENOENT,
 * so its cache asks the origin and pushes the units to their owner. Reads of
 * other hosts wait and get the units as they arrive. If the holder of a lease
 * gives no sign of life for 750 ms, the waiting hosts read from the origin
 * themselves. So each byte is read from the origin once, if no host fails and
 * the engine accepts the item.
 *
 * Every wait has a limit. If a server does not answer in time, its connections
 * are closed, its reads go to the origin, and it is asked again only after a
 * probe has succeeded. doc/formats.md has the formats of keys and values.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/hash.h"
#include "common/base/loop.h"
#include "common/memcached/memcached_address.h"
#include "origin/provider.h"

/* Limits of peers_start(). */
#define PEERS_MAX 512u
#define PEER_NAME_MAX ADDRESS_MAX /* of "HOST[:PORT]" */

#define PEER_DEFAULT_PORT ADDRESS_DEFAULT_PORT

struct peers;

/* A unit from a peer that is to be compared with the origin: do the bytes [off,
 * off + len) of that version of the file have this hash? */
struct peers_check {
	char *path;
	struct file_version version;
	uint64_t off;  /* offset in the file */
	size_t len;    /* at most 256 KiB */
	uint64_t hash; /* hash64() without seed */
	/* Set by the comparison: 1 if the bytes are the same, 0 if they differ,
	 * -errno if the origin did not answer. */
	int result;
	struct post checked; /* this member and all below are private */
	struct peers *owner;
	struct writer *writer;
	unsigned proof;
};

/* Start to compare the unit without blocking. The comparison ends with a call
 * of peers_checked(), on any thread, but not during this call. */
typedef void peers_check_fn(void *arg, struct peers_check *c);

/* End a comparison whose `result` is set, and free it. */
void peers_checked(struct peers_check *c);

struct peers_config {
	/* The hosts, each "HOST", "HOST:PORT", "[IPV6]:PORT" or the absolute
	 * path of a unix socket. The order does not matter, but all hosts of a
	 * cluster must spell the names in the same way: the spelling decides
	 * which host owns which item. */
	const char *const *host;
	size_t nhosts;
	/* The name of this host in the list; NULL: this host is not in the
	 * list. In the second case it uses the cache, but gives no memory to
	 * it. */
	const char *name;
	/* Bytes that are part of every checksum; the same on all hosts. May be
	 * empty. */
	const void *secret;
	size_t secret_bytes;
	/* The name of the dataset in the engine; the same on all hosts that
	 * mount it. NULL: only watch the servers, and do not call
	 * peers_provider(). */
	const char *dataset;
	/* Compares units with the origin before they are used. Required with a
	 * dataset. */
	peers_check_fn *check;
	void *check_arg;
	/* Limit for the bytes of pushed items in memory; 0: 64 MiB. */
	uint64_t pending_bytes;
	/* For counters peer_* and events PEER_*. Counters and events may be
	 * NULL. */
	struct counters *counters;
	const struct event_sink *events;
};

/* Check the spelling of a host. Returns 0, or -EINVAL with a message that says
 * how to write a host. */
int peer_check_host(const char *host, struct error *err);

/* Start the thread and begin to connect. The strings and bytes of `config` are
 * copied. If a server does not answer, this is not an error, but peers_status()
 * shows it. Returns 0; or -EINVAL if a host is invalid or occurs twice, or if
 * `name` is not in the list. */
int peers_start(struct peers **out, const struct peers_config *config,
	struct error *err);

/* End all requests and the thread. No request may be made during or after this
 * call, so free the cache before. All comparisons must have ended. NULL is
 * allowed. */
void peers_stop(struct peers *p);

/* Returns the provider for struct cache_config, which exists as long as `p`. */
struct provider *peers_provider(struct peers *p);

enum peer_state {
	PEER_TRYING, /* not connected yet, or checking its settings */
	PEER_UP,     /* in use */
	PEER_DOWN,   /* failed; the client probes it several times in 5 s */
	/* with its settings it could lose items; .reason says what to do */
	PEER_REFUSED,
};

/* Returns the name: "trying", "up", "down" or "refused". */
const char *peer_state_name(enum peer_state state);

/* Is a property of the host the same as ours? */
enum peer_match {
	PEER_MATCH_UNKNOWN, /* the host has not reported it, or is not up */
	PEER_MATCH_SAME,
	PEER_MATCH_DIFFERS,
};

#define PEER_REASON_MAX 240u

/* A copy of what is known about one host. Counts are those of this client since
 * its start. The server reports its use, capacity and evictions: these are at
 * most a few seconds old, and 0 before the first connection. */
struct peer_status {
	char host[PEER_NAME_MAX + 1]; /* spelled as in the list */
	char version[32];	      /* version of the server; "" if unknown */
	/* PEER_DOWN: why the host is down. PEER_REFUSED: the wrong setting, and
	 * what to do. */
	char reason[PEER_REASON_MAX];
	enum peer_state state;
	enum peer_match manifest, secret;
	bool self;		 /* this is the client's own host */
	uint64_t used_bytes;	 /* "bytes" of the server, with its overhead */
	uint64_t capacity_bytes; /* "limit_maxbytes" of the server */
	/* reported by the server; a number above 0 is a fault */
	uint64_t evictions;
	uint64_t items; /* number of values of any kind in the server */
	/* units that were found, and the bytes of their content */
	uint64_t hits, hit_bytes;
	uint64_t misses;	    /* reads that were not answered in full */
	uint64_t fills, fill_bytes; /* units that the server has stored */
	uint64_t refused; /* units for which the server had no memory */
	uint64_t bad;	  /* units with wrong length or checksum */
	uint64_t foreign; /* units of another dataset */
	/* failed requests: time-outs, resets, and answers that break the
	 * protocol */
	uint64_t errors;
	/* units not pushed because the host was down or had just refused others
	 */
	uint64_t dropped;
};

/* Get the status of host i, in the order of the list; i < nhosts. */
void peers_status(struct peers *p, size_t i, struct peer_status *status);

/* Can the engine hold `bytes` of content? Returns true if all hosts have been
 * up, and 0.94 of the sum of their capacities is enough. A host that is down
 * for a while still counts with its last known capacity, so that placement does
 * not change with every failure. */
bool peers_can_hold(struct peers *p, uint64_t bytes);

/* Wait until each host is up with known memory use, down, or refused, but at
 * most timeout_ns. Returns false on a time-out. */
bool peers_settle(struct peers *p, uint64_t timeout_ns);

/* Do the peers hold another dataset that uses the name of this one, and no
 * units of this dataset from other mounts? In this case the peers are not used.
 */
bool peers_differ(const struct peers *p);

/*
 * Set the digest of this host's manifest, over (path, size, mtime, tag) of its
 * files. It is stored in this host's server, where other hosts compare it with
 * theirs every few seconds. If two hosts differ, the event PEER_MANIFEST and
 * the status of the host report this. Call this again after a change. Needs a
 * dataset.
 */
void peers_set_manifest(struct peers *p, struct hash128 digest);

/* -- Pure functions, for tests, `refrain peers` and simulations ------------ */

/* Returns the owner of an item among n hosts: the host with the highest random
 * weight. When a host joins or leaves, only the items that it owns move. */
size_t peer_owner(
	const uint64_t *peer_host_hash, size_t n, struct hash128 item);

/* Returns the hash of a host as the list spells it; for peer_owner(). */
uint64_t peer_host_hash(const char *host);

#endif
