/* SPDX-License-Identifier: MIT */
/*
 * Gets the requested values from a line of JSON (common/base/json.h). No memory
 * is allocated. Any thread; no state.
 */
#include "loader/mount_help/help_answer_impl.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/hex.h"
#include "common/base/json.h"

#define KEY_DIGITS 32
#define ITEM_MAX_BYTES (UINT64_C(1) << 30)

/* -- Answers --------------------------------------------------------------- */

struct wanted {
	int ok;		  /* value of "ok"; -1: the answer has none */
	const char *name; /* name of the member to get */
	bool (*take)(struct json_scan *s, struct wanted *w);
	bool taken;
	void *out;
	size_t count, room;
};

static bool take_ok(struct json_scan *s, int *ok)
{
	bool value;

	if (!json_take_bool(s, &value))
		return false;
	*ok = value;
	return true;
}

static bool answer_member(struct json_scan *s, const char *name, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(name, "ok") == 0)
		return take_ok(s, &w->ok);
	if (!w->name || w->taken || strcmp(name, w->name) != 0)
		return json_skip(s);
	w->taken = true;
	return w->take(s, w);
}

static int answer(const char *line, size_t bytes, struct wanted *w)
{
	struct json_scan s = json_scan(line, bytes);

	w->ok = -1;
	if (!json_take_object(&s, answer_member, w))
		return -EBADMSG;
	if (!json_is_over(&s) || w->ok < 0)
		return -EBADMSG;
	if (w->ok && w->name && !w->taken)
		return -EBADMSG;
	return w->ok;
}

int answer_ok(const char *line, size_t bytes)
{
	struct wanted w = {.name = NULL};

	return answer(line, bytes, &w);
}

static bool take_number(struct json_scan *s, struct wanted *w)
{
	return json_take_number(s, w->out) && *(uint64_t *)w->out != UINT64_MAX;
}

int answer_number(
	const char *line, size_t bytes, const char *name, uint64_t *out)
{
	struct wanted w = {.name = name, .take = take_number, .out = out};

	return answer(line, bytes, &w);
}

/* -- Several numbers ------------------------------------------------------- */

struct values {
	int ok;
	struct answer_value *value;
	size_t count;
};

static bool take_value(struct json_scan *s, uint64_t *out)
{
	uint64_t value;
	bool truth;

	if (json_take_bool(s, &truth)) {
		*out = truth;
		return true;
	}
	if (!json_take_number(s, &value))
		return json_skip(s);
	if (value != UINT64_MAX)
		*out = value;
	return true;
}

static bool values_member(struct json_scan *s, const char *name, void *arg)
{
	struct values *v = arg;

	if (strcmp(name, "ok") == 0)
		return take_ok(s, &v->ok);
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(name, v->value[i].name) == 0)
			return take_value(s, &v->value[i].value);
	return json_skip(s);
}

int answer_values(const char *line, size_t bytes, struct answer_value *values,
	size_t count)
{
	struct json_scan s = json_scan(line, bytes);
	struct values v = {-1, values, count};

	if (!json_take_object(&s, values_member, &v))
		return -EBADMSG;
	return !json_is_over(&s) || v.ok < 0 ? -EBADMSG : v.ok;
}

/* -- Keys ------------------------------------------------------------------ */

struct one_key {
	struct hash128 key;
	uint64_t bytes;
	bool named;
};

static bool parse_key(const char *digits, struct hash128 *key)
{
	uint64_t word[2] = {0, 0};

	if (strlen(digits) != KEY_DIGITS)
		return false;
	for (int i = 0; i < KEY_DIGITS; i++) {
		int d = hex_value(digits[i]);

		if (d < 0)
			return false;
		word[i / 16] = word[i / 16] << 4 | (uint64_t)d;
	}
	*key = (struct hash128){.hi = word[0], .lo = word[1]};
	return true;
}

static bool key_member(struct json_scan *s, const char *name, void *arg)
{
	struct one_key *k = arg;
	char digits[KEY_DIGITS + 1];

	if (strcmp(name, "size") == 0)
		return json_take_number(s, &k->bytes);
	if (strcmp(name, "key") != 0)
		return json_skip(s);
	k->named = json_take_text(s, digits, sizeof(digits)) &&
		parse_key(digits, &k->key);
	return k->named;
}

static bool take_key(struct json_scan *s, void *arg)
{
	struct wanted *w = arg;
	struct answer_key *out = (struct answer_key *)w->out + w->count;
	struct one_key k = {.bytes = 0};

	if (w->count++ >= w->room)
		return false;
	*out = (struct answer_key){.bytes = 0};
	if (json_take_null(s))
		return true;
	if (!json_take_object(s, key_member, &k))
		return false;
	if (k.named && k.bytes && k.bytes <= ITEM_MAX_BYTES)
		*out = (struct answer_key){k.key, (uint32_t)k.bytes};
	return true;
}

static bool take_keys(struct json_scan *s, struct wanted *w)
{
	return json_take_array(s, take_key, w);
}

int answer_keys(
	const char *line, size_t bytes, struct answer_key *keys, size_t count)
{
	struct wanted w = {
		.name = "keys", .take = take_keys, .out = keys, .room = count};
	int rc = answer(line, bytes, &w);

	return rc == 1 && w.count != count ? -EBADMSG : rc;
}

/* -- Tiers ----------------------------------------------------------------- */

static bool tier_member(struct json_scan *s, const char *name, void *arg)
{
	struct wanted *w = arg;
	char(*dirs)[PATH_MAX] = w->out;

	if (strcmp(name, "dir") != 0 || w->count == w->room)
		return json_skip(s);
	if (!json_take_text(s, dirs[w->count], PATH_MAX))
		return false;
	w->count += dirs[w->count][0] == '/';
	return true;
}

static bool tier_element(struct json_scan *s, void *arg)
{
	return json_take_object(s, tier_member, arg);
}

static bool status_member(struct json_scan *s, const char *name, void *arg)
{
	return strcmp(name, "tiers") == 0
		? json_take_array(s, tier_element, arg)
		: json_skip(s);
}

static bool take_status(struct json_scan *s, struct wanted *w)
{
	return json_take_object(s, status_member, w);
}

int answer_tiers(
	const char *line, size_t bytes, char dirs[ANSWER_TIERS_MAX][PATH_MAX])
{
	struct wanted w = {.name = "status",
		.take = take_status,
		.out = dirs,
		.room = ANSWER_TIERS_MAX};
	int rc = answer(line, bytes, &w);

	return rc == 1 ? (int)w.count : rc;
}

/* -- Requests -------------------------------------------------------------- */

static bool needs_escapes(const char *name, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return true;
	}
	return false;
}

char *answer_put_name(char *at, const char *name, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";
	bool hex = needs_escapes(name, bytes);

	if (hex) {
		memcpy(at, "{\"hex\":", 7);
		at += 7;
	}
	*at++ = '"';
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)name[i];

		if (hex)
			*at++ = digits[c >> 4];
		*at++ = hex ? digits[c & 15] : name[i];
	}
	*at++ = '"';
	if (hex)
		*at++ = '}';
	return at;
}
