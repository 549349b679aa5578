/* SPDX-License-Identifier: MIT */
/*
 * The part of the exporter that people read: a page, exporter_page.html, and
 * the JSON that the page reads. No state.
 */
#ifndef FLEET_EXPORTER_PAGE_IMPL_H
#define FLEET_EXPORTER_PAGE_IMPL_H

#include <jansson.h>
#include <stddef.h>

#include "analysis/fleet/fleet.h"

/* The page: one file that refers to no other. It never changes. */
const char *page_html(size_t *size);

/*
 * The last look at all mounts, and the shares (may be NULL), as one object; the
 * caller frees the text. NULL for want of memory.
 */
char *page_data(const struct fleet *fleet, json_t *shares, size_t *size);

#endif
