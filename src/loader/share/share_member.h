/* SPDX-License-Identifier: MIT */
/*
 * The batch source of a loader that is a member of a share. Any thread of the
 * user.
 */
#ifndef SHARE_MEMBER_H
#define SHARE_MEMBER_H

#include <refrain/loader.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"

/* Join the share that the configuration names. *c must be a complete struct.
 * Returns as refrain_open(). */
int shared_open(struct batch_source **out, const struct refrain_config *c,
	struct error *err);

#endif
