/* SPDX-License-Identifier: MIT */
/* Prints a status for people. Only `refrain status` uses this. */
#ifndef TOOLS_STATUS_VIEW_H
#define TOOLS_STATUS_VIEW_H

#include <jansson.h>

/* Print one screen. `before` is the status of elapsed_s seconds earlier, or
 * NULL; it is needed for rates. */
void status_print(const json_t *now, const json_t *before, double elapsed_s);

/* Print the answer to the request "debug", and the shares of this user. */
void status_print_debug(const json_t *debug);

#endif
