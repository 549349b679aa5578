/* SPDX-License-Identifier: MIT */
/*
 * Makes a loader from any batch source, so that the public functions work with
 * it.
 */
#ifndef API_LOADER_IMPL_H
#define API_LOADER_IMPL_H

#include <refrain/loader.h>

#include "loader/engine/batch.h"

/* Create a loader whose batches come from `source`. Closing the loader closes
 * the source. Public functions that need an operation that the source lacks
 * return -ENOSYS. Returns 0 or -ENOMEM. */
int loader_over(struct refrain_loader **out, struct batch_source *source);

/* -- stats_json.c -- */

/* Print the statistics as JSON; see refrain_stats_json(). */
int stats_print(const struct refrain_stats *all, char *buf, size_t size);

#endif
