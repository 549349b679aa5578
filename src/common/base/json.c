/* SPDX-License-Identifier: MIT */
/* Reads JSON from left to right. No shared state. */
#include "common/base/json.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base/hex.h"
#include "common/base/real.h"

/* Maximum length of a value that json_walk() passes to its callback. */
#define WALK_TEXT_MAX 16384u

/* -- Words ----------------------------------------------------------------- */

static void skip_blanks(struct json_scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\r' ||
			*s->at == '\n'))
		s->at++;
}

static bool take_char(struct json_scan *s, char c)
{
	skip_blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool take_word(struct json_scan *s, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(s);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}

bool json_is_over(struct json_scan *s)
{
	skip_blanks(s);
	return s->at == s->end;
}

bool json_take_bool(struct json_scan *s, bool *value)
{
	*value = take_word(s, "true");
	return *value || take_word(s, "false");
}

bool json_take_null(struct json_scan *s)
{
	return take_word(s, "null");
}

bool json_take_number(struct json_scan *s, uint64_t *value)
{
	const char *from;

	skip_blanks(s);
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

/* Take digits. *value gets the number that they form; *fits becomes false if
 * that number is not below 2^53. Returns how many digits there are. */
static size_t json_digits(struct json_scan *s, uint64_t *value, bool *fits)
{
	const char *from = s->at;

	for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
		*value = *value * 10 + (uint64_t)(*s->at - '0');
		if (*value > UINT64_C(1) << 53)
			*fits = false, *value = 0;
	}
	return (size_t)(s->at - from);
}

/* Parse a number that json_take_real() cannot compute exactly from its digits.
 */
static bool parse_real(const char *from, size_t bytes, double *value)
{
	char text[512], *end;

	if (bytes >= sizeof(text))
		return false;
	memcpy(text, from, bytes);
	text[bytes] = '\0';
	*value = real_parse(text, &end);
	/* true if the number is finite: infinity minus itself is not 0 */
	return *end == '\0' && *value - *value == 0;
}

static bool take_exponent(struct json_scan *s)
{
	uint64_t ignored = 0;
	bool fits;

	s->at++;
	if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
		s->at++;
	return json_digits(s, &ignored, &fits) > 0;
}

bool json_take_real(struct json_scan *s, double *value)
{
	static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
		1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	uint64_t digits = 0;
	size_t after = 0;
	bool fits = true, negative;
	const char *from;

	skip_blanks(s);
	from = s->at;
	negative = s->at < s->end && *s->at == '-';
	s->at += negative;
	if (json_digits(s, &digits, &fits) == 0)
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		after = json_digits(s, &digits, &fits);
		if (after == 0)
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		if (!take_exponent(s))
			return false;
		fits = false;
	}
	if (!fits || after >= sizeof(tens) / sizeof(tens[0]))
		return parse_real(from, (size_t)(s->at - from), value);
	/* Numerator and denominator are exact, so the result is rounded only
	 * once. */
	*value = (double)digits / tens[after];
	*value = negative ? -*value : *value;
	return true;
}

/* -- Strings --------------------------------------------------------------- */

/* Where to write the bytes of a string. Bytes that do not fit are only counted.
 */
struct json_out {
	char *text;
	size_t room, used;
};

static void put_char(struct json_out *o, uint32_t c)
{
	if (o->used < o->room)
		o->text[o->used] = (char)c;
	o->used++;
}

static void put_utf8(struct json_out *o, uint32_t c)
{
	if (c < 0x80) {
		put_char(o, c);
		return;
	}
	if (c < 0x800) {
		put_char(o, 0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			put_char(o, 0xe0 | c >> 12);
		} else {
			put_char(o, 0xf0 | c >> 18);
			put_char(o, 0x80 | (c >> 12 & 63));
		}
		put_char(o, 0x80 | (c >> 6 & 63));
	}
	put_char(o, 0x80 | (c & 63));
}

/* Take four hexadecimal digits. Returns their value, or -1 if there are fewer.
 */
static int take_hex(struct json_scan *s)
{
	int value = 0;

	if (s->end - s->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(*s->at++);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* Take the rest of an escape "\u", which is one character. If its number
 * exceeds 16 bits, a second escape belongs to it. */
static bool take_unicode(struct json_scan *s, struct json_out *o)
{
	int high = take_hex(s), low;

	if (high <= 0)
		return false;
	if (high < 0xd800 || high > 0xdfff) {
		put_utf8(o, (uint32_t)high);
		return true;
	}
	if (high > 0xdbff || s->end - s->at < 2 || s->at[0] != '\\' ||
		s->at[1] != 'u')
		return false;
	s->at += 2;
	low = take_hex(s);
	if (low < 0xdc00 || low > 0xdfff)
		return false;
	put_utf8(o,
		0x10000 + ((uint32_t)(high - 0xd800) << 10) +
			(uint32_t)(low - 0xdc00));
	return true;
}

static bool take_escape(struct json_scan *s, struct json_out *o)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *which;
	char c;

	if (s->at == s->end)
		return false;
	c = *s->at++;
	if (c == 'u')
		return take_unicode(s, o);
	which = c ? strchr(from, c) : NULL;
	if (!which)
		return false;
	put_char(o, (uint32_t)to[which - from]);
	return true;
}

bool json_take_text(struct json_scan *s, char *text, size_t room)
{
	struct json_out o = {text, room, 0};

	if (!take_char(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		char c = *s->at++;

		if ((unsigned char)c < 0x20)
			return false;
		if (c != '\\')
			put_char(&o, (uint32_t)c);
		else if (!take_escape(s, &o))
			return false;
	}
	if (!take_char(s, '"'))
		return false;
	if (room > 0)
		text[o.used < room ? o.used : 0] = '\0';
	return true;
}

/* -- Objects and arrays ---------------------------------------------------- */

bool json_take_object(struct json_scan *s, json_member_fn *fn, void *arg)
{
	char name[JSON_NAME_MAX];

	if (!take_char(s, '{') || s->depth == JSON_DEPTH_MAX)
		return false;
	if (take_char(s, '}'))
		return true;
	s->depth++;
	do {
		if (!json_take_text(s, name, sizeof(name)) ||
			!take_char(s, ':') || !fn(s, name, arg))
			return false;
	} while (take_char(s, ','));
	s->depth--;
	return take_char(s, '}');
}

bool json_take_array(struct json_scan *s, json_element_fn *fn, void *arg)
{
	if (!take_char(s, '[') || s->depth == JSON_DEPTH_MAX)
		return false;
	if (take_char(s, ']'))
		return true;
	s->depth++;
	do {
		if (!fn(s, arg))
			return false;
	} while (take_char(s, ','));
	s->depth--;
	return take_char(s, ']');
}

static char next_char(struct json_scan *s)
{
	skip_blanks(s);
	return s->at < s->end ? *s->at : '\0';
}

/* Take a string, a number, true, false or null, as text. */
static bool take_scalar(struct json_scan *s, char *text, size_t room)
{
	const char *from;
	uint64_t number;
	bool truth;
	size_t len;

	if (next_char(s) == '"')
		return json_take_text(s, text, room);
	from = s->at;
	if (!json_take_bool(s, &truth) && !json_take_null(s) &&
		!json_take_number(s, &number))
		return false;
	len = (size_t)(s->at - from);
	if (room > 0) {
		len = len < room ? len : 0;
		memcpy(text, from, len);
		text[len] = '\0';
	}
	return true;
}

static bool skip_element(struct json_scan *s, void *arg)
{
	(void)arg;
	return json_skip(s);
}

static bool skip_member(struct json_scan *s, const char *name, void *arg)
{
	(void)name;
	return skip_element(s, arg);
}

bool json_skip(struct json_scan *s)
{
	switch (next_char(s)) {
	case '{':
		return json_take_object(s, skip_member, NULL);
	case '[':
		return json_take_array(s, skip_element, NULL);
	default:
		return take_scalar(s, NULL, 0);
	}
}

/* -- Whole documents ------------------------------------------------------- */

struct json_walk {
	json_value_fn *fn;
	void *arg;
	unsigned objects; /* number of objects around the next value */
	char text[WALK_TEXT_MAX];
};

static bool walk_member(struct json_scan *s, const char *name, void *arg);
static bool walk_element(struct json_scan *s, void *arg);

/* Walk an object or an array. */
static bool walk_nested(struct json_scan *s, struct json_walk *w)
{
	if (next_char(s) == '[')
		return json_take_array(s, walk_element, w);
	w->objects++;
	if (!json_take_object(s, walk_member, w))
		return false;
	w->fn(w->arg, w->objects, "", NULL);
	w->objects--;
	return true;
}

static bool walk_element(struct json_scan *s, void *arg)
{
	char next = next_char(s);

	return next == '{' || next == '[' ? walk_nested(s, arg) : json_skip(s);
}

static bool walk_member(struct json_scan *s, const char *name, void *arg)
{
	struct json_walk *w = arg;
	char next = next_char(s);

	if (next == '{' || next == '[')
		return walk_nested(s, w);
	if (!take_scalar(s, w->text, sizeof(w->text)))
		return false;
	w->fn(w->arg, w->objects, name, w->text);
	return true;
}

int json_walk(const char *text, size_t len, json_value_fn *fn, void *arg)
{
	struct json_walk w = {.fn = fn, .arg = arg};
	struct json_scan s = json_scan(text, len);

	return walk_element(&s, &w) && json_is_over(&s) ? 0 : -EBADMSG;
}

struct json_wanted {
	const char *key;
	char *out;
	size_t size;
	/* number of objects around the value found; 0: none was found */
	unsigned depth;
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
