/* SPDX-License-Identifier: MIT */
/* Makes names and messages safe to print. No state; any thread. */
#include "common/base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The longest result for one character: four bytes, each as \xHH. */
#define PIECE_MAX 16

struct range {
	uint32_t first, last;
};

/* Characters that are valid UTF-8 but reorder or hide text, or end a line. */
static const struct range unsafe[] = {
	{0x80, 0x9f}, /* C1 controls: 9b begins an escape sequence */
	{0xad, 0xad}, /* soft hyphen */
	{0x61c, 0x61c}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
	{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

static bool is_unsafe(uint32_t c)
{
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		if (c >= unsafe[i].first && c <= unsafe[i].last)
			return true;
	return false;
}

/* Decode the UTF-8 character that begins here. Returns its length; 0 if it is
 * invalid. */
static size_t decode_utf8(const unsigned char *s, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0xc2 ? 0
		: s[0] < 0xe0  ? 2
		: s[0] < 0xf0  ? 3
		: s[0] < 0xf5  ? 4
			       : 0;

	if (n == 0)
		return 0;
	*c = s[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3fU);
	}
	if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff))
		return 0;
	return n;
}

/* Write `n` bytes as \xHH; returns the length written. */
static size_t put_hex(char *to, const unsigned char *s, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*to++ = '\\';
		*to++ = 'x';
		*to++ = digits[s[i] >> 4];
		*to++ = digits[s[i] & 15];
	}
	return 4 * n;
}

/* Write the first character of *text to `piece`, escaped, and move *text to the
 * next character. Returns the length of the piece. */
static size_t next_piece(const unsigned char **text, char piece[PIECE_MAX])
{
	static const char named[] = "\nn\tt\rr";
	const unsigned char *s = *text;
	const char *name = strchr(named, *s);
	uint32_t c = 0;
	size_t n = *s < 0x80 ? 1 : decode_utf8(s, &c);

	*text += n ? n : 1;
	if (name && *s < ' ') {
		piece[0] = '\\';
		piece[1] = name[1];
		return 2;
	}
	if (n == 0 || *s < ' ' || *s == 0x7f || (n > 1 && is_unsafe(c)))
		return put_hex(piece, s, n ? n : 1);
	memcpy(piece, s, n);
	return n;
}

static const char *escape_to(
	char *buf, size_t size, const char *text, bool exact)
{
	const unsigned char *s = (const unsigned char *)text;
	char piece[PIECE_MAX];
	size_t used = 0;

	while (*s) {
		bool backslash = *s == '\\';
		size_t n = next_piece(&s, piece);

		if (exact && backslash)
			piece[n++] = '\\';
		if (n >= size - used)
			break;
		memcpy(buf + used, piece, n);
		used += n;
	}
	buf[used] = '\0';
	return buf;
}

const char *escape_text(char *buf, size_t size, const char *text)
{
	return escape_to(buf, size, text, false);
}

const char *escape_name(char *buf, size_t size, const char *name)
{
	return escape_to(buf, size, name, true);
}

void escape_print(FILE *to, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	char piece[PIECE_MAX];

	while (*s) {
		size_t n = next_piece(&s, piece);

		(void)fwrite(piece, 1, n, to);
	}
}
