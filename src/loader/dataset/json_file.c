/* SPDX-License-Identifier: MIT */
/* Reads JSON files value by value; see json_file_impl.h. */
#include "loader/dataset/json_file_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 20)

void json_file_init(
	struct json_file *f, int fd, const char *path, struct error *err)
{
	*f = (struct json_file){.fd = fd, .path = path, .err = err};
}

void json_file_release(struct json_file *f)
{
	free(f->data);
	f->data = NULL;
}

int json_file_fail(struct json_file *f, int rc, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	/* a long message is cut */
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return error_set(f->err, rc, "'%s', at byte %llu: %s", f->path,
		(unsigned long long)(f->before + f->at), what);
}

/* Drop the bytes before *from, and read more. Returns how many bytes were
 * added, 0 at the end of the file, or -errno. */
static ssize_t json_file_more(struct json_file *f, size_t *from)
{
	ssize_t n;

	if (*from > 0) {
		memmove(f->data, f->data + *from, f->have - *from);
		f->have -= *from;
		f->at -= *from;
		f->before += *from;
		*from = 0;
	}
	if (f->room - f->have < READ_BYTES) {
		size_t room = f->room ? 2 * f->room : 2 * READ_BYTES;
		char *p = realloc(f->data, room);

		if (!p)
			return error_set(f->err, -ENOMEM, "%m");
		f->data = p;
		f->room = room;
	}
	do
		n = read(f->fd, f->data + f->have, READ_BYTES);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return json_file_fail(f, -errno, "cannot read: %m");
	f->have += (size_t)n;
	return n;
}

/* Skip blanks. Returns the next character, which is not taken yet; 0 at the
 * end; or -errno. */
static int next_byte(struct json_file *f)
{
	for (;;) {
		ssize_t n;

		while (f->at < f->have) {
			char c = f->data[f->at];

			if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
				return (unsigned char)c;
			f->at++;
		}
		n = json_file_more(f, &(size_t){f->at});
		if (n <= 0)
			return (int)n;
	}
}

int json_file_take(struct json_file *f, char c)
{
	int next = next_byte(f);

	if (next < 0)
		return next;
	if (next != (unsigned char)c)
		return 0;
	f->at++;
	return 1;
}

int json_file_is_over(struct json_file *f)
{
	int next = next_byte(f);

	return next < 0 ? next : next == 0 && f->at == f->have;
}

/* State of the search for the end of a value. */
struct json_span {
	unsigned depth;
	bool text, escaped, scalar;
};

/* Look at one byte of the value. Returns true if the value ends before this
 * byte. */
static bool span_step(struct json_span *s, char c, bool *last)
{
	*last = false;
	if (s->text) {
		*last = !s->escaped && c == '"' && s->depth == 0;
		s->text = s->escaped || c != '"';
		s->escaped = !s->escaped && c == '\\';
		return false;
	}
	switch (c) {
	case '"':
		s->text = true;
		return s->scalar;
	case '{':
	case '[':
		s->depth++;
		return s->scalar;
	case '}':
	case ']':
		if (s->depth == 0)
			return true;
		*last = --s->depth == 0;
		return false;
	case ',':
	case ':':
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		return s->depth == 0;
	default:
		s->scalar |= s->depth == 0;
		return false;
	}
}

/* Move to the end of the value. With `keep`, its bytes stay in memory, and
 * *from is the index of the first one. */
static int find_value_end(struct json_file *f, bool keep, size_t *from)
{
	struct json_span span = {.depth = 0};
	bool last = false;

	while (!last) {
		while (f->at < f->have && !last) {
			if (span_step(&span, f->data[f->at], &last))
				return 0;
			f->at++;
		}
		if (!last) {
			size_t start = keep ? *from : f->at;
			ssize_t n;

			if (keep && f->at - *from > JSON_VALUE_MAX)
				return json_file_fail(f, -E2BIG,
					"a value of more than %zu bytes",
					JSON_VALUE_MAX);
			n = json_file_more(f, &start);
			*from = start;
			if (n < 0)
				return (int)n;
			if (n == 0)
				return span.scalar ? 0
						   : json_file_fail(f, -EBADMSG,
							     "the file ends "
							     "too early");
		}
	}
	return 0;
}

int json_file_value(struct json_file *f, struct json_scan *out)
{
	int next = next_byte(f), rc;
	size_t from = f->at;

	if (next < 0)
		return next;
	if (next == 0)
		return json_file_fail(f, -EBADMSG, "the file ends too early");
	rc = find_value_end(f, out != NULL, &from);
	if (rc == 0 && out)
		*out = json_scan(f->data + from, f->at - from);
	return rc;
}
