/* SPDX-License-Identifier: MIT */
/* Reads JSON without storing the document. No shared state. */
#include "origin/web/creds_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define JSON_DEPTH_MAX 12u
#define JSON_TEXT_MAX 16384u

struct parser {
	const char *at, *end;
	json_value_fn *fn;
	void *arg;
	unsigned depth, objects;
	char key[128];
	char text[JSON_TEXT_MAX];
};

static void skip_blanks(struct parser *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static bool take_char(struct parser *r, char c)
{
	skip_blanks(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static int hex4(struct parser *r)
{
	int value = 0;

	if (r->end - r->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		char c = *r->at++;
		const char *d;

		if (c >= 'A' && c <= 'F')
			c = (char)(c - 'A' + 'a');
		d = c ? strchr(digits, c) : NULL;
		if (!d)
			return -1;
		value = value * 16 + (int)(d - digits);
	}
	return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* After "\u": one character, two escapes for those beyond 16 bits. */
static int take_unicode(struct parser *r, char *out)
{
	int high = hex4(r), low;

	if (high <= 0)
		return -1; /* NUL is not for us */
	if (high < 0xd800 || high > 0xdfff)
		return (int)put_utf8(out, (uint32_t)high);
	if (high > 0xdbff || r->end - r->at < 6 || r->at[0] != '\\' ||
		r->at[1] != 'u')
		return -1;
	r->at += 2;
	low = hex4(r);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	return (int)put_utf8(out,
		0x10000 + ((uint32_t)(high - 0xd800) << 10) +
			(uint32_t)(low - 0xdc00));
}

static int take_escape(struct parser *r, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *which;
	char c;

	if (r->at == r->end)
		return -1;
	c = *r->at++;
	if (c == 'u')
		return take_unicode(r, out);
	which = c ? strchr(from, c) : NULL;
	if (!which)
		return -1;
	*out = to[which - from];
	return 1;
}

/* After the quote. */
static bool take_string(struct parser *r, char *out, size_t size)
{
	size_t n = 0;

	while (r->at < r->end && *r->at != '"') {
		int len = 1;

		if (n + 5 > size || (unsigned char)*r->at < 0x20)
			return false;
		if (*r->at == '\\') {
			r->at++;
			len = take_escape(r, out + n);
			if (len < 0)
				return false;
		} else {
			out[n] = *r->at++;
		}
		n += (size_t)len;
	}
	out[n] = '\0';
	return take_char(r, '"');
}

/* A number, true, false or null; its text. */
static bool take_word(struct parser *r)
{
	size_t n = 0;

	while (r->at < r->end && n < 63 && *r->at &&
		strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *r->at))
		r->text[n++] = *r->at++;
	r->text[n] = '\0';
	return n > 0;
}

static bool json_take_value(struct parser *r);

static bool json_take_member(struct parser *r)
{
	char key[sizeof(r->key)];

	if (!take_char(r, '"') || !take_string(r, key, sizeof(key)) ||
		!take_char(r, ':'))
		return false;
	skip_blanks(r);
	if (r->at < r->end && (*r->at == '{' || *r->at == '['))
		return json_take_value(r);
	if (take_char(r, '"') ? !take_string(r, r->text, sizeof(r->text))
			      : !take_word(r))
		return false;
	r->fn(r->arg, r->objects, key, r->text);
	return true;
}

static bool json_take_object(struct parser *r)
{
	r->objects++;
	if (!take_char(r, '}')) {
		do {
			skip_blanks(r);
			if (!json_take_member(r))
				return false;
		} while (take_char(r, ','));
		if (!take_char(r, '}'))
			return false;
	}
	r->fn(r->arg, r->objects, "", NULL);
	r->objects--;
	return true;
}

static bool take_array(struct parser *r)
{
	if (take_char(r, ']'))
		return true;
	do {
		if (!json_take_value(r))
			return false;
	} while (take_char(r, ','));
	return take_char(r, ']');
}

static bool json_take_value(struct parser *r)
{
	bool good;

	if (++r->depth > JSON_DEPTH_MAX)
		return false;
	if (take_char(r, '{'))
		good = json_take_object(r);
	else if (take_char(r, '['))
		good = take_array(r);
	else if (take_char(r, '"'))
		good = take_string(r, r->text, sizeof(r->text));
	else
		good = take_word(r);
	r->depth--;
	return good;
}

int json_walk(const char *text, size_t len, json_value_fn *fn, void *arg)
{
	struct parser r = {.at = text, .end = text + len, .fn = fn, .arg = arg};

	if (!json_take_value(&r))
		return -EBADMSG;
	skip_blanks(&r);
	return r.at == r.end ? 0 : -EBADMSG;
}

struct json_wanted {
	const char *key;
	char *out;
	size_t size;
	unsigned depth; /* of what was found; 0: nothing yet */
};

static void find_value(
	void *arg, unsigned depth, const char *key, const char *value)
{
	struct json_wanted *w = arg;

	if (!value || (w->depth && w->depth <= depth) ||
		strcasecmp(key, w->key) != 0 || strlen(value) >= w->size)
		return;
	strcpy(w->out, value);
	w->depth = depth;
}

int json_find(
	const char *text, size_t len, const char *key, char *out, size_t size)
{
	struct json_wanted w = {key, out, size, 0};

	*out = '\0';
	return json_walk(text, len, find_value, &w);
}
