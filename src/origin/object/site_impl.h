/* SPDX-License-Identifier: MIT */
/* Finds out host, region and path of an origin from its URL as typed. */
#ifndef OBJECT_SITE_IMPL_H
#define OBJECT_SITE_IMPL_H

#include "origin/object/object_impl.h"

/* Set scheme, host, base_path, bucket, prefix and region. Returns 0, or -errno
 * with err set. */
int site_open(struct object_origin *r, const char *source,
	const struct object_config *config, struct error *err);
void site_release(struct object_origin *r);

/* Note that the bucket is in another region. Any thread. */
void site_set_region(struct object_origin *r, const char *region);

#endif
