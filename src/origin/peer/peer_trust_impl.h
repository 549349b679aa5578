/* SPDX-License-Identifier: MIT */
/*
 * Decides which units are used. A key names the dataset, the path, the size and
 * the time of a file, but another dataset can have all of these in common. So
 * each mount has a random id, and every unit contains the id of the mount that
 * has pushed it, its *writer*. Some units of each writer are compared with the
 * origin before any of its units is used, and one unit a minute after that:
 *
 *   NEW -- TRUST_UNITS units are the same --> TRUSTED
 *    |  one differs                             |  one differs
 *    +---------------> FOREIGN <----------------+
 *
 * A unit that was found to be the same as the origin's bytes is used, whatever
 * its writer's state. A mount trusts its own units. Used by the thread of the
 * peers. Private to this room.
 */
#ifndef PEER_TRUST_IMPL_H
#define PEER_TRUST_IMPL_H

#include "origin/peer/peer.h"
#include "origin/peer/peer_unit_impl.h"

/* The number of a writer's units that are compared before the others are used.
 */
#define TRUST_UNITS 4u
/* The time after which one more unit is compared. */
#define TRUST_AGAIN_NS (60 * NS_PER_S)

enum trust {
	TRUST_YES,   /* use the unit */
	TRUST_NO,    /* its writer has another dataset */
	TRUST_LATER, /* ask again when trusts_news() changes */
};

struct trusts;

/* Create the trusts. `owner` is passed to each check. Returns NULL, with a
 * message, if memory is short or there are no random numbers. */
struct trusts *trusts_new(const struct peers_config *config,
	struct peers *owner, uint64_t now_ns, struct error *err);
void trusts_free(struct trusts *t); /* NULL is allowed */

/* Returns the id of this mount. */
uint64_t trusts_own(const struct trusts *t);

/* May this unit, whose checksum is right, be used? Starts a comparison of the
 * unit if that is useful. */
enum trust trusts_unit(struct trusts *t, const struct unit *u,
	const struct provider_item *item, const void *content, uint64_t now_ns);
/* Returns a number that changes when a comparison of one of the writer's units
 * ends. */
unsigned trusts_news(const struct trusts *t, uint64_t writer);
/* End a comparison, and free it. */
void trusts_checked(struct trusts *t, struct peers_check *c, uint64_t now_ns);

/* May the peers be asked, and may units be pushed to them? Not if they hold
 * units of another dataset, and none of this dataset from other mounts. But one
 * read in 64 may ask them even then. */
bool trusts_may_read(struct trusts *t);
bool trusts_may_push(const struct trusts *t);
/* Is any writer known to have another dataset? */
bool trusts_any_foreign(const struct trusts *t);
/* Does trusts_may_push() return false? Any thread. */
bool trusts_differ(const struct trusts *t);

#endif
