/* SPDX-License-Identifier: MIT */
/*
 * Converts names and numbers to JSON, and names back; see json_text.h. No
 * state.
 */
#include "mount/daemon/json_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

json_t *ctl_text_new(const char *text)
{
	json_t *value = json_string(text);
	CLEANUP_FREE char *plain = NULL;

	if (value)
		return value;
	plain = strdup(text);
	if (!plain)
		return NULL;
	for (char *p = plain; *p; p++)
		if ((unsigned char)*p > 127)
			*p = '?';
	return json_string(plain);
}

static const char hex_digits[] = "0123456789abcdef";

static char *to_hex(const char *path)
{
	char *hex = malloc(2 * strlen(path) + 1), *to = hex;

	if (!hex)
		return NULL;
	for (; *path; path++) {
		unsigned char byte = (unsigned char)*path;

		*to++ = hex_digits[byte >> 4];
		*to++ = hex_digits[byte & 15];
	}
	*to = '\0';
	return hex;
}

json_t *ctl_path_new(const char *path)
{
	json_t *value = json_string(path);
	CLEANUP_FREE char *hex = NULL;

	if (value)
		return value;
	hex = to_hex(path);
	return hex ? json_pack("{s:s}", "hex", hex) : NULL;
}

static int digit(char c)
{
	const char *at = c ? strchr(hex_digits, c) : NULL;

	return at ? (int)(at - hex_digits) : -1;
}

static int from_hex(const char *hex, size_t len, char **path)
{
	CLEANUP_FREE char *bytes = NULL;

	if (len == 0 || len % 2)
		return -EINVAL;
	bytes = calloc(1, len / 2 + 1);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < len / 2; i++) {
		int hi = digit(hex[2 * i]), lo = digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0 || hi + lo == 0)
			return -EINVAL;
		bytes[i] = (char)(hi << 4 | lo);
	}
	*path = steal_ptr(&bytes);
	return 0;
}

int ctl_path_get(const json_t *value, char **path)
{
	const json_t *hex = json_object_get(value, "hex");
	const char *text = json_string_value(value);

	if (json_is_string(hex))
		return from_hex(
			json_string_value(hex), json_string_length(hex), path);
	if (!text || !*text || strlen(text) != json_string_length(value))
		return -EINVAL;
	*path = strdup(text);
	return *path ? 0 : -ENOMEM;
}

void ctl_set_number(json_t *o, const char *name, uint64_t value)
{
	(void)json_object_set_new(o, name, json_integer((json_int_t)value));
}
