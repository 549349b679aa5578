/* SPDX-License-Identifier: MIT */
/* Prints a status for people. Private to `refrain status`.
 */
#ifndef TOOLS_STATUS_VIEW_H
#define TOOLS_STATUS_VIEW_H

#include <jansson.h>

/*
 * Print one screen. `before` is the status of elapsed_s seconds ago, for rates,
 * or NULL.
 */
void status_print(const json_t *now, const json_t *before, double elapsed_s);

/* Print the answer to "debug", and the shares of the user. */
void status_print_debug(const json_t *debug);

#endif
