/* SPDX-License-Identifier: MIT */
/*
 * A loader that shares its batches with other jobs: the public calls on a
 * member of a share. Any thread of the user.
 */
#ifndef SHARE_MEMBER_H
#define SHARE_MEMBER_H

#include <refrain/loader.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"

/* Join the share of the configuration, which has its full size. As
 * refrain_open(). */
int shared_open(struct batch_source **out, const struct refrain_config *c,
	struct error *err);

#endif
