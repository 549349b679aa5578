/* SPDX-License-Identifier: MIT */
/* Parses the lines of an index. The text may come from a network, so each field
 * is checked before it is used. Pure functions. */
#include "origin/layer/named_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/beneath.h"
#include "common/base/clock.h"

#define HEAD_PLAIN "# refrain index 1: path, size, mtime, label"
#define HEAD_TAGS "# refrain index 2: path, size, mtime, tag, label"
#define HEAD_LEVELS                                                            \
	"# refrain index 3: path, size, mtime, tag, drop1, drop2, label"

struct field {
	const char *at;
	size_t n;
};

static int refuse_line(
	const struct index_lines *x, const char *why, struct error *err)
{
	return error_set(err, -EBADMSG,
		"line %" PRIu64 ": %s; make the index with 'refrain index'",
		x->line, why);
}

/* Take the text up to the next tab or the end of the line. */
static bool take_field(struct field *line, struct field *out)
{
	const char *tab;

	if (!line->at)
		return false;
	tab = memchr(line->at, '\t', line->n);
	out->at = line->at;
	out->n = tab ? (size_t)(tab - line->at) : line->n;
	line->n -= out->n + (tab != NULL);
	line->at = tab ? tab + 1 : NULL;
	return true;
}

/* Parse decimal digits. */
static bool take_digits(const struct field *f, uint64_t *out)
{
	*out = 0;
	if (f->n == 0 || f->n > 18)
		return false;
	for (size_t i = 0; i < f->n; i++) {
		if (f->at[i] < '0' || f->at[i] > '9')
			return false;
		*out = *out * 10 + (uint64_t)(f->at[i] - '0');
	}
	return true;
}

/* Parse seconds, with up to nine digits after a point; "" stands for 0. */
static bool take_time(struct field f, int64_t *out)
{
	const char *point = memchr(f.at, '.', f.n);
	struct field part = f;
	bool negative = f.n > 0 && f.at[0] == '-';
	uint64_t s, ns = 0;

	*out = 0;
	if (f.n == 0)
		return true;
	if (point) {
		part = (struct field){
			point + 1, f.n - (size_t)(point + 1 - f.at)};
		if (part.n > 9 || !take_digits(&part, &ns))
			return false;
		for (size_t i = part.n; i < 9; i++)
			ns *= 10;
		f.n = (size_t)(point - f.at);
	}
	f.at += negative;
	f.n -= negative;
	if (!take_digits(&f, &s) || s > INT64_MAX / NS_PER_S - 1)
		return false;
	*out = (int64_t)(s * NS_PER_S + ns);
	if (negative)
		*out = -*out;
	return true;
}

/* Parse hexadecimal digits; "" stands for 0. */
static bool take_tag(const struct field *f, uint64_t *out)
{
	static const char digits[] = "0123456789abcdef";

	*out = 0;
	if (f->n > 16)
		return false;
	for (size_t i = 0; i < f->n; i++) {
		const char *digit = memchr(digits, f->at[i], 16);

		if (!digit)
			return false;
		*out = *out << 4 | (uint64_t)(digit - digits);
	}
	return true;
}

/* Take the levels of a file; "" stands for none. */
static bool take_levels(struct index_lines *x, struct field *line)
{
	struct field f;

	memset(x->level, 0, sizeof(x->level));
	for (size_t b = 0; x->has_levels && b < JPEG_DROP_BITS_MAX; b++)
		if (!take_field(line, &f) ||
			(f.n > 0 && !take_digits(&f, &x->level[b])) ||
			x->level[b] > x->version.size_bytes)
			return false;
	return true;
}

static bool take_path(const struct field *f, char out[PATH_MAX])
{
	char *to = out;

	for (size_t i = 0; i < f->n; i++) {
		char c = f->at[i];

		if (c == '\\') {
			if (++i == f->n || !strchr("tn\\", f->at[i]))
				return false;
			c = f->at[i] == 't'	  ? '\t'
				: f->at[i] == 'n' ? '\n'
						  : '\\';
		}
		if (!c || to == out + PATH_MAX - 1)
			return false;
		*to++ = c;
	}
	*to = '\0';
	return to > out && beneath_check(out) == 0;
}

static bool is_line(const struct field *line, const char *text)
{
	return line->n == strlen(text) && memcmp(line->at, text, line->n) == 0;
}

static int take_head(
	struct index_lines *x, struct field *line, struct error *err)
{
	x->crlf = line->n > 0 && line->at[line->n - 1] == '\r';
	line->n -= x->crlf;
	x->has_levels = is_line(line, HEAD_LEVELS);
	x->has_tags = x->has_levels || is_line(line, HEAD_TAGS);
	if (x->has_tags || is_line(line, HEAD_PLAIN))
		return 0;
	return refuse_line(x,
		"it is not the first line of an index, or of an unknown "
		"version",
		err);
}

static int take_file_line(
	struct index_lines *x, struct field line, struct error *err)
{
	struct field path, size, mtime, tag = {"", 0}, label;

	if (!take_field(&line, &path) || !take_field(&line, &size) ||
		!take_field(&line, &mtime) ||
		(x->has_tags && !take_field(&line, &tag)))
		return refuse_line(x, "it does not have all fields", err);
	if (!take_path(&path, x->path))
		return refuse_line(x, "its path is not valid", err);
	if (!take_digits(&size, &x->version.size_bytes))
		return refuse_line(x, "its size is not valid", err);
	if (!take_levels(x, &line))
		return refuse_line(x, "its levels are not valid", err);
	if (!take_field(&line, &label) || line.at)
		return refuse_line(x, "it does not have all fields", err);
	if (!take_time(mtime, &x->version.mtime_ns))
		return refuse_line(x, "its time is not valid", err);
	if (!take_tag(&tag, &x->version.tag))
		return refuse_line(x, "its tag is not valid", err);
	return 1;
}

int index_lines_next(struct index_lines *x, struct error *err)
{
	while (x->at < x->end || x->line == 0) {
		size_t room = x->at < x->end ? (size_t)(x->end - x->at) : 0;
		const char *newline = memchr(x->at, '\n', room);
		struct field line = {
			x->at, newline ? (size_t)(newline - x->at) : room};
		int rc;

		x->at = newline ? newline + 1 : x->end;
		if (x->line++ > 0) {
			line.n -= x->crlf && line.n > 0 &&
				line.at[line.n - 1] == '\r';
			return take_file_line(x, line, err);
		}
		rc = take_head(x, &line, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
