/* SPDX-License-Identifier: MIT */
/* Sums of READs by process, by directory and by source. One thread. */
#ifndef FLEET_READ_GROUPS_H
#define FLEET_READ_GROUPS_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/fleet/follow.h"

struct read_groups;

/* Returns NULL if memory is short. */
struct read_groups *read_groups_new(void);
void read_groups_free(struct read_groups *g); /* NULL is allowed */

/* Add a READ. If memory is short, only the totals include it. */
void read_groups_add(struct read_groups *g, const struct followed_read *read);
void read_groups_lost(struct read_groups *g, uint64_t reads);

/* Print the groups whose READs took longest, as text or as one object. */
void read_groups_print(struct read_groups *g, FILE *to);
/* returns NULL if memory is short */
json_t *read_groups_json(struct read_groups *g);

#endif
