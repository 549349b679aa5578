/* SPDX-License-Identifier: MIT */
/*
 * The parts of a mix as examples of a dataset, or the buckets of a dataset.
 */
#ifndef ENGINE_MIX_H
#define ENGINE_MIX_H

#include "common/base/err.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings.h"

struct dataset;
struct mixture;

/*
 * Fill in the configuration of the schedule. If the settings have a mix or
 * buckets, the configuration points to *mixture, which is created if it is
 * NULL; the caller frees it after the last use of the schedule. Returns 0,
 * -EINVAL if a part has no example, -E2BIG if the dataset is too large for a
 * mix, or -ENOMEM.
 */
int mixture_schedule(const struct settings *s, const struct dataset *dataset,
	struct mixture **mixture, struct schedule_config *out,
	struct error *err);
void mixture_free(struct mixture *mixture); /* NULL is allowed */

/* Returns the bytes of memory that a mixture uses. */
size_t mixture_memory_bytes(const struct mixture *mixture);

#endif
