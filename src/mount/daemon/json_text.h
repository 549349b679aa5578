/* SPDX-License-Identifier: MIT */
/* Converts names, which are bytes, to JSON strings, which are UTF-8, and
 * numbers to members of an object. Text for people may lose bytes that are not
 * UTF-8; a path in a request must not. The functions have no state, and any
 * thread may call them. */
#ifndef DAEMON_JSON_TEXT_H
#define DAEMON_JSON_TEXT_H

#include <jansson.h>
#include <stdint.h>

/* Returns the text as a JSON string. If the text is not UTF-8, each byte above
 * 127 becomes a question mark. NULL: memory is short. */
json_t *ctl_text_new(const char *text);

/* Returns the path as a JSON string or, if it is not UTF-8, as {"hex":"..."}.
 * NULL: memory is short. */
json_t *ctl_path_new(const char *path);

/* Get the path from a value of ctl_path_new(); the caller frees it. Returns 0;
 * -EINVAL if the value is not a valid path, is empty or contains a NUL; or
 * -ENOMEM. */
int ctl_path_get(const json_t *value, char **path);

/* Set a member of an object to a number. If memory is short, the member is
 * missing. */
void ctl_set_number(json_t *o, const char *name, uint64_t value);

#endif
