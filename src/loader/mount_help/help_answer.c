/* SPDX-License-Identifier: MIT */
/*
 * Reads a line of JSON once, from left to right, and extracts the requested
 * values. Nesting is bounded, and no memory is allocated. No state; any thread.
 */
#include "loader/mount_help/help_answer_impl.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/hex.h"

#define DEPTH_MAX 32
#define NAME_BYTES 32
#define KEY_DIGITS 32
#define ITEM_MAX_BYTES (UINT64_C(1) << 30)

struct answer_scan {
	const char *at, *end;
	unsigned depth;
};

/* -- Words ----------------------------------------------------------------- */

static void blank(struct answer_scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\r' ||
			*s->at == '\n'))
		s->at++;
}

static bool take(struct answer_scan *s, char c)
{
	blank(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool word(struct answer_scan *s, const char *w)
{
	size_t n = strlen(w);

	blank(s);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, w, n) != 0)
		return false;
	s->at += n;
	return true;
}

/* A string's bytes; what does not fit is counted only. */
struct out {
	char *data;
	size_t room, used;
};

static void put_char(struct out *o, char c)
{
	if (o->used < o->room)
		o->data[o->used] = c;
	o->used++;
}

/* Only the basic plane: our names contain no surrogate pairs. */
static bool put_unicode(struct answer_scan *s, struct out *o)
{
	unsigned c = 0;

	if (s->end - s->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int d = hex_value(*s->at++);

		if (d < 0)
			return false;
		c = c << 4 | (unsigned)d;
	}
	if (c < 0x80) {
		put_char(o, (char)c);
	} else if (c < 0x800) {
		put_char(o, (char)(0xc0 | c >> 6));
		put_char(o, (char)(0x80 | (c & 0x3f)));
	} else {
		put_char(o, (char)(0xe0 | c >> 12));
		put_char(o, (char)(0x80 | (c >> 6 & 0x3f)));
		put_char(o, (char)(0x80 | (c & 0x3f)));
	}
	return true;
}

static bool put_escape(struct answer_scan *s, struct out *o)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p;
	char c;

	if (s->at == s->end)
		return false;
	c = *s->at++;
	if (c == 'u')
		return put_unicode(s, o);
	p = c ? strchr(from, c) : NULL;
	if (!p)
		return false;
	put_char(o, to[p - from]);
	return true;
}

/* With its NUL; one that does not fit, or has a NUL in it, is empty. */
static bool take_json_text(struct answer_scan *s, char *data, size_t room)
{
	struct out o = {data, room, 0};

	if (!take(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		char c = *s->at++;

		if ((unsigned char)c < 0x20)
			return false;
		if (c != '\\')
			put_char(&o, c);
		else if (!put_escape(s, &o))
			return false;
	}
	if (!take(s, '"'))
		return false;
	if (!room)
		return true;
	if (o.used >= room || memchr(data, 0, o.used))
		o.used = 0;
	data[o.used] = '\0';
	return true;
}

/* Parse any number; *value is UINT64_MAX if it is not a whole number. */
static bool number(struct answer_scan *s, uint64_t *value)
{
	const char *from;

	blank(s);
	*value = 0;
	for (from = s->at; s->at < s->end && *s->at; s->at++) {
		unsigned d = (unsigned)(*s->at - '0');

		if (d > 9 && !strchr("+-.eE", *s->at))
			break;
		if (d > 9 || *value > (UINT64_MAX - d) / 10)
			*value = UINT64_MAX;
		else
			*value = *value * 10 + d;
	}
	return s->at > from;
}

/* -- Values ---------------------------------------------------------------- */

/* Takes the value of a member, or an element: false if it is malformed. */
typedef bool member_fn(struct answer_scan *s, const char *name, void *arg);
typedef bool element_fn(struct answer_scan *s, void *arg);

static bool object(struct answer_scan *s, member_fn *fn, void *arg)
{
	char name[NAME_BYTES];

	if (!take(s, '{') || s->depth == DEPTH_MAX)
		return false;
	if (take(s, '}'))
		return true;
	s->depth++;
	do {
		if (!take_json_text(s, name, sizeof(name)) || !take(s, ':') ||
			!fn(s, name, arg))
			return false;
	} while (take(s, ','));
	s->depth--;
	return take(s, '}');
}

static bool array(struct answer_scan *s, element_fn *fn, void *arg)
{
	if (!take(s, '[') || s->depth == DEPTH_MAX)
		return false;
	if (take(s, ']'))
		return true;
	s->depth++;
	do {
		if (!fn(s, arg))
			return false;
	} while (take(s, ','));
	s->depth--;
	return take(s, ']');
}

static bool skip(struct answer_scan *s);

static bool skip_member(struct answer_scan *s, const char *name, void *arg)
{
	(void)name;
	(void)arg;
	return skip(s);
}

static bool skip_element(struct answer_scan *s, void *arg)
{
	(void)arg;
	return skip(s);
}

static bool skip(struct answer_scan *s)
{
	uint64_t value;

	blank(s);
	if (s->at == s->end)
		return false;
	switch (*s->at) {
	case '{':
		return object(s, skip_member, NULL);
	case '[':
		return array(s, skip_element, NULL);
	case '"':
		return take_json_text(s, NULL, 0);
	default:
		return word(s, "true") || word(s, "false") || word(s, "null") ||
			number(s, &value);
	}
}

/* -- Answers --------------------------------------------------------------- */

struct wanted {
	int ok;		  /* -1: not said */
	const char *name; /* the member that is wanted */
	bool (*take)(struct answer_scan *s, struct wanted *w);
	bool taken;
	void *out;
	size_t count, room;
};

static bool take_ok(struct answer_scan *s, int *ok)
{
	if (word(s, "true"))
		*ok = 1;
	else if (word(s, "false"))
		*ok = 0;
	else
		return false;
	return true;
}

static bool answer_member(struct answer_scan *s, const char *name, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(name, "ok") == 0)
		return take_ok(s, &w->ok);
	if (!w->name || w->taken || strcmp(name, w->name) != 0)
		return skip(s);
	w->taken = true;
	return w->take(s, w);
}

static int answer(const char *line, size_t bytes, struct wanted *w)
{
	struct answer_scan s = {line, line + bytes, 0};

	w->ok = -1;
	if (!object(&s, answer_member, w))
		return -EBADMSG;
	blank(&s);
	if (s.at < s.end || w->ok < 0)
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

static bool take_number(struct answer_scan *s, struct wanted *w)
{
	return number(s, w->out) && *(uint64_t *)w->out != UINT64_MAX;
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

static bool take_value(struct answer_scan *s, uint64_t *out)
{
	uint64_t value;
	int truth;

	if (take_ok(s, &truth)) {
		*out = (uint64_t)truth;
		return true;
	}
	if (!number(s, &value))
		return skip(s);
	if (value != UINT64_MAX)
		*out = value;
	return true;
}

static bool values_member(struct answer_scan *s, const char *name, void *arg)
{
	struct values *v = arg;

	if (strcmp(name, "ok") == 0)
		return take_ok(s, &v->ok);
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(name, v->value[i].name) == 0)
			return take_value(s, &v->value[i].value);
	return skip(s);
}

int answer_values(const char *line, size_t bytes, struct answer_value *values,
	size_t count)
{
	struct answer_scan s = {line, line + bytes, 0};
	struct values v = {-1, values, count};

	if (!object(&s, values_member, &v))
		return -EBADMSG;
	blank(&s);
	return s.at < s.end || v.ok < 0 ? -EBADMSG : v.ok;
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

static bool key_member(struct answer_scan *s, const char *name, void *arg)
{
	struct one_key *k = arg;
	char digits[KEY_DIGITS + 1];

	if (strcmp(name, "size") == 0)
		return number(s, &k->bytes);
	if (strcmp(name, "key") != 0)
		return skip(s);
	k->named = take_json_text(s, digits, sizeof(digits)) &&
		parse_key(digits, &k->key);
	return k->named;
}

static bool take_key(struct answer_scan *s, void *arg)
{
	struct wanted *w = arg;
	struct answer_key *out = (struct answer_key *)w->out + w->count;
	struct one_key k = {.bytes = 0};

	if (w->count++ >= w->room)
		return false;
	*out = (struct answer_key){.bytes = 0};
	if (word(s, "null"))
		return true;
	if (!object(s, key_member, &k))
		return false;
	if (k.named && k.bytes && k.bytes <= ITEM_MAX_BYTES)
		*out = (struct answer_key){k.key, (uint32_t)k.bytes};
	return true;
}

static bool take_keys(struct answer_scan *s, struct wanted *w)
{
	return array(s, take_key, w);
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

static bool tier_member(struct answer_scan *s, const char *name, void *arg)
{
	struct wanted *w = arg;
	char(*dirs)[PATH_MAX] = w->out;

	if (strcmp(name, "dir") != 0 || w->count == w->room)
		return skip(s);
	if (!take_json_text(s, dirs[w->count], PATH_MAX))
		return false;
	w->count += dirs[w->count][0] == '/';
	return true;
}

static bool tier_element(struct answer_scan *s, void *arg)
{
	return object(s, tier_member, arg);
}

static bool status_member(struct answer_scan *s, const char *name, void *arg)
{
	return strcmp(name, "tiers") == 0 ? array(s, tier_element, arg)
					  : skip(s);
}

static bool take_status(struct answer_scan *s, struct wanted *w)
{
	return object(s, status_member, w);
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
