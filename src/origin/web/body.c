/* SPDX-License-Identifier: MIT */
/* Growing strings, percent-encoding, and small files. Each string has one
 * owner; no shared state. */
#include "origin/web/body.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/hex.h"

/* The minimum memory that a string allocates. */
#define FIRST_ROOM ((size_t)256)
#define FILE_MAX_BYTES ((size_t)1 << 20)

static bool bytes_reserve(struct bytes *b, size_t more)
{
	size_t end = b->len + more + (b->at ? 0 : FIRST_ROOM);

	if (more > BYTES_MAX || b->len + more > BYTES_MAX ||
		ARRAY_ROOM(b->at, end, &b->room) < 0)
		b->failed = true;
	return !b->failed;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (!bytes_reserve(b, len))
		return;
	if (len > 0)
		memcpy(b->at + b->len, data, len);
	b->len += len;
	b->at[b->len] = '\0';
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_add(b, text, strlen(text));
}

void bytes_char(struct bytes *b, char c)
{
	bytes_add(b, &c, 1);
}

void bytes_printf(struct bytes *b, const char *fmt, ...)
{
	va_list args, again;
	size_t room;
	int n;

	if (!bytes_reserve(b, 0))
		return;
	room = b->room - b->len;
	va_start(args, fmt);
	va_copy(again, args);
	n = vsnprintf(b->at + b->len, room, fmt, args);
	va_end(args);
	/* If the memory was too small, allocate more and format again. */
	if (n >= 0 && bytes_reserve(b, (size_t)n)) {
		if ((size_t)n >= room)
			(void)vsnprintf(
				b->at + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	b->at[b->len] = '\0';
	va_end(again);
}

void bytes_reset(struct bytes *b)
{
	b->len = 0;
	b->failed = false;
	if (b->at)
		b->at[0] = '\0';
}

void bytes_release(struct bytes *b)
{
	free(b->at);
	memset(b, 0, sizeof(*b));
}

void bytes_wipe(struct bytes *b)
{
	if (b->at)
		explicit_bzero(b->at, b->room);
}

char *bytes_take(struct bytes *b)
{
	char *text = b->at ? b->at : strdup("");

	b->at = NULL;
	b->len = b->room = 0;
	return text;
}

/* -- Percent-encoding ------------------------------------------------------ */

static bool is_unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
		c == '~';
}

void bytes_encode(
	struct bytes *b, const char *text, size_t len, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";

	if (!bytes_reserve(b, 3 * len))
		return;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (is_unreserved(c) || (keep_slash && c == '/')) {
			b->at[b->len++] = (char)c;
			continue;
		}
		b->at[b->len++] = '%';
		b->at[b->len++] = digits[c >> 4];
		b->at[b->len++] = digits[c & 15];
	}
	b->at[b->len] = '\0';
}

int bytes_decode(char *text, bool plus)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		int high, low;

		if (*in != '%') {
			*out++ = (char)(plus && *in == '+' ? ' ' : *in);
			continue;
		}
		high = hex_value(in[1]);
		low = high < 0 ? -1 : hex_value(in[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -1;
		*out++ = (char)(high * 16 + low);
		in += 2;
	}
	*out = '\0';
	return (int)(out - text);
}

int bytes_read_file(const char *path, struct bytes *b)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	char block[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, block, sizeof(block))) > 0) {
		bytes_add(b, block, (size_t)n);
		if (b->len > FILE_MAX_BYTES)
			return -EFBIG;
	}
	if (n < 0)
		return -errno;
	while (b->len > 0 && isspace((unsigned char)b->at[b->len - 1]))
		b->at[--b->len] = '\0';
	return b->failed ? -ENOMEM : 0;
}
