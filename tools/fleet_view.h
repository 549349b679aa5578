/* SPDX-License-Identifier: MIT */
/* Prints one line for each mount of the host and each share of this user, for
 * `refrain top` and `refrain status --all`. One thread. */
#ifndef TOOLS_FLEET_VIEW_H
#define TOOLS_FLEET_VIEW_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/err.h"

struct fleet_view;

/* Create a view. Returns 0, or -ENOMEM with err set. */
int fleet_view_new(struct fleet_view **out, struct error *err);
void fleet_view_free(struct fleet_view *view); /* NULL is allowed */

/* Ask all mounts and shares for their state, within a second. Returns 0, or
 * -errno with err set. */
int fleet_view_look(struct fleet_view *view, struct error *err);

/* Is a mount dead or hung, or is there a share whose host does not answer? */
bool fleet_view_failed(const struct fleet_view *view);

/* Print a table. With `redraw`, standard output is a terminal: the table
 * replaces the last one and is cut to the terminal's size. */
int fleet_view_print(const struct fleet_view *view, bool redraw);

/* Print all mounts and shares as one JSON object. */
int fleet_view_print_json(const struct fleet_view *view);

#endif
