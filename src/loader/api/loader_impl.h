/* SPDX-License-Identifier: MIT */
/*
 * The public calls on a source of batches.
 */
#ifndef API_LOADER_IMPL_H
#define API_LOADER_IMPL_H

#include <refrain/loader.h>

#include "loader/engine/batch.h"

/* Create a loader whose batches come from `source`; closing the loader closes
 * the source. Calls that the source has no operation for return -ENOSYS.
 * -ENOMEM. */
int loader_over(struct refrain_loader **out, struct batch_source *source);

/* -- stats_json.c -- */

/* Implements refrain_stats_json(). */
int stats_print(const struct refrain_stats *all, char *buf, size_t size);

#endif
