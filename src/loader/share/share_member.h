/* SPDX-License-Identifier: MIT */
/*
 * The batch source of a loader that is a member of a share. For any thread of
 * the user.
 */
#ifndef SHARE_MEMBER_H
#define SHARE_MEMBER_H

#include <refrain/loader.h>

#include "common/base/err.h"
#include "loader/engine/batch.h"

/* Join the share that the configuration names. *c must be complete, with all
 * members of this version. Returns like refrain_open(). */
int shared_open(struct batch_source **out, const struct refrain_config *c,
	struct error *err);

#endif
