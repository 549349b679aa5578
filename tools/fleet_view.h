/* SPDX-License-Identifier: MIT */
/*
 * All mounts of the host and this user's shares, one line each, for `refrain
 * top` and `refrain status --all`. One thread.
 */
#ifndef TOOLS_FLEET_VIEW_H
#define TOOLS_FLEET_VIEW_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/err.h"

struct fleet_view;

/* Create a view; -ENOMEM. */
int fleet_view_new(struct fleet_view **out, struct error *err);
void fleet_view_free(struct fleet_view *view); /* NULL is allowed */

/* Look at everything; takes up to a second. -errno. */
int fleet_view_look(struct fleet_view *view, struct error *err);

/* Is a mount dead or hung, or is there a share whose host does not answer? */
bool fleet_view_failed(const struct fleet_view *view);

/* Print a table. With `redraw` on a terminal, it replaces the last one and is
 * cut to fit. */
int fleet_view_print(const struct fleet_view *view, bool redraw);

/* Print one JSON object. */
int fleet_view_print_json(const struct fleet_view *view);

#endif
