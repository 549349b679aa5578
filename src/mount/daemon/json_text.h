/* SPDX-License-Identifier: MIT */
/*
 * Names are bytes, JSON strings are UTF-8. Text for people may lose bytes,
 * the path in a request may not. No state; any thread.
 */
#ifndef DAEMON_JSON_TEXT_H
#define DAEMON_JSON_TEXT_H

#include <jansson.h>

/*
 * The text as a JSON string; if it is not UTF-8, each byte above 127 becomes
 * a question mark. NULL for want of memory.
 */
json_t *ctl_text_new(const char *text);

/*
 * The path as a JSON string or, if it is not UTF-8, as {"hex":"..."}. NULL
 * for want of memory.
 */
json_t *ctl_path_new(const char *path);

/*
 * Get the path from a value of ctl_path_new(); the caller frees it. Returns
 * -EINVAL if the value is not a valid path, is empty or contains a NUL.
 */
int ctl_path_get(const json_t *value, char **path);

#endif
