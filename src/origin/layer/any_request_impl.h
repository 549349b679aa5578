/* SPDX-License-Identifier: MIT */
/*
 * A request of any kind, for decorators: the copy of a request that is passed
 * to the inner origin.
 */
#ifndef LAYER_ANY_REQUEST_IMPL_H
#define LAYER_ANY_REQUEST_IMPL_H

#include "origin/origin.h"

union origin_any {
	struct origin_request req; /* the beginning of each */
	struct origin_read read;
	struct origin_stat stat;
	struct origin_list list;
};

/* Copy the caller's part of a request, without `priv` and members set by an
 * origin. */
static inline void any_copy(union origin_any *to, struct origin_request *from)
{
	if (from->op == ORIGIN_READ)
		to->read = *origin_read_of(from);
	else if (from->op == ORIGIN_STAT)
		to->stat = *origin_stat_of(from);
	else
		to->list = *origin_list_of(from);
	to->req.priv = NULL;
	if (from->op == ORIGIN_READ)
		to->read.lost_bytes = 0;
}

#endif
