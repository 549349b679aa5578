/* SPDX-License-Identifier: MIT */
/*
 * Gives a batch source the public calls.
 */
#ifndef API_LOADER_IMPL_H
#define API_LOADER_IMPL_H

#include <refrain/loader.h>

#include "loader/engine/batch.h"

/* Create a loader whose batches come from `source`; closing the loader closes
 * the source. A call for which the source has no operation returns -ENOSYS.
 * Returns 0 or -ENOMEM. */
int loader_over(struct refrain_loader **out, struct batch_source *source);

/* -- stats_json.c -- */

/* Implements refrain_stats_json(). */
int stats_print(const struct refrain_stats *all, char *buf, size_t size);

#endif
