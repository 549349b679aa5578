/* SPDX-License-Identifier: MIT */
/*
 * Parses headers of .npy files; see npy.h. A header is the magic number, the
 * version, the length of a text, and the text, which is a dictionary in
 * Python's syntax:
 *
 *	{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "loader/dataset/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES (sizeof(MAGIC) - 1)
#define DESCR_MAX 16

/* The text that is being parsed. */
struct npy_text {
	const char *at, *end;
	struct npy *out;
	unsigned seen; /* bits of enum npy_key */
	struct error *err;
};

enum npy_key { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEYS_ALL = 7 };

static int npy_wrong(const struct npy_text *t, const char *why)
{
	return error_set(t->err, -EBADMSG, "it is not a usable .npy: %s", why);
}

size_t npy_header_bytes(const void *data, size_t bytes)
{
	const uint8_t *p = data;
	size_t length, start;

	if (bytes < NPY_START_BYTES || memcmp(p, MAGIC, MAGIC_BYTES) != 0 ||
		p[6] < 1 || p[6] > 3)
		return 0;
	start = p[6] == 1 ? 10 : 12;
	length = p[8] | (size_t)p[9] << 8;
	if (p[6] > 1)
		length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
	return length <= NPY_HEADER_MAX - start ? start + length : 0;
}

/* -- Words ----------------------------------------------------------------- */

static void npy_blanks(struct npy_text *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\n'))
		t->at++;
}

/* Move past this character, if it is next. */
static bool npy_take(struct npy_text *t, char c)
{
	npy_blanks(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool npy_take_word(struct npy_text *t, const char *word)
{
	size_t n = strlen(word);

	npy_blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

/* Get a text in quotes. Returns false if there is none, or if it has more than
 * DESCR_MAX - 1 bytes. */
static bool npy_take_text(struct npy_text *t, char out[DESCR_MAX])
{
	const char *start, *end;
	char quote;

	npy_blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
		return false;
	quote = *t->at;
	start = t->at + 1;
	end = memchr(start, quote, (size_t)(t->end - start));
	if (!end || end - start >= DESCR_MAX)
		return false;
	memcpy(out, start, (size_t)(end - start));
	out[end - start] = '\0';
	t->at = end + 1;
	return true;
}

static bool npy_take_number(struct npy_text *t, uint64_t *out)
{
	const char *start;

	npy_blanks(t);
	*out = 0;
	for (start = t->at; t->at < t->end && *t->at >= '0' && *t->at <= '9';
		t->at++)
		if (__builtin_mul_overflow(*out, 10, out) ||
			__builtin_add_overflow(*out, *t->at - '0', out))
			return false;
	return t->at > start;
}

/* -- Values ---------------------------------------------------------------- */

static int npy_descr(struct npy_text *t)
{
	char d[DESCR_MAX];
	bool known;

	if (!npy_take_text(t, d))
		return npy_wrong(t, "its values are not plain numbers");
	if (d[0] == '>')
		return npy_wrong(t, "its values are big-endian");
	known = strlen(d) == 3 && strchr("<|=", d[0]) && strchr("uifb", d[1]) &&
		strchr("1248", d[2]);
	if (known && d[1] == 'f')
		known = d[2] != '1';
	if (known && d[1] == 'b')
		known = d[2] == '1';
	if (!known)
		return npy_wrong(t, "its values are not plain numbers");
	t->out->kind = d[1];
	t->out->value_bytes = (uint32_t)(d[2] - '0');
	return 0;
}

static int npy_order(struct npy_text *t)
{
	if (npy_take_word(t, "True"))
		return npy_wrong(
			t, "it is in Fortran order; save it in C order");
	return npy_take_word(t, "False")
		? 0
		: npy_wrong(t, "fortran_order is neither True nor False");
}

static int npy_shape(struct npy_text *t)
{
	struct npy *out = t->out;

	out->ndim = 0;
	if (!npy_take(t, '('))
		return npy_wrong(t, "its shape is not a tuple");
	while (!npy_take(t, ')')) {
		if (out->ndim == NPY_DIMS_MAX)
			return npy_wrong(t, "it has more than 6 dimensions");
		if (!npy_take_number(t, &out->shape[out->ndim]))
			return npy_wrong(t, "its shape has no whole numbers");
		out->ndim++;
		if (npy_take(t, ','))
			continue;
		if (!npy_take(t, ')'))
			return npy_wrong(t, "its shape does not end");
		break;
	}
	return 0;
}

static int npy_member(struct npy_text *t)
{
	static const struct {
		const char *name;
		enum npy_key key;
		int (*take)(struct npy_text *t);
	} members[] = {{"descr", KEY_DESCR, npy_descr},
		{"fortran_order", KEY_ORDER, npy_order},
		{"shape", KEY_SHAPE, npy_shape}};
	char name[DESCR_MAX];

	if (!npy_take_text(t, name) || !npy_take(t, ':'))
		return npy_wrong(t, "its header is not a dictionary");
	for (unsigned i = 0; i < sizeof(members) / sizeof(*members); i++) {
		if (strcmp(members[i].name, name) != 0)
			continue;
		if (t->seen & members[i].key)
			return npy_wrong(t, "its header has a member twice");
		t->seen |= members[i].key;
		return members[i].take(t);
	}
	return npy_wrong(t, "its header has an unknown member");
}

static int npy_dictionary(struct npy_text *t)
{
	int rc = 0;

	if (!npy_take(t, '{'))
		return npy_wrong(t, "its header is not a dictionary");
	while (rc == 0 && !npy_take(t, '}')) {
		rc = npy_member(t);
		if (rc == 0 && !npy_take(t, ',')) {
			if (!npy_take(t, '}'))
				return npy_wrong(t, "its header does not end");
			break;
		}
	}
	npy_blanks(t);
	if (rc == 0 && (t->seen != KEYS_ALL || t->at != t->end))
		return npy_wrong(t, "its header is not complete");
	return rc;
}

int npy_parse(
	struct npy *out, const void *data, size_t bytes, struct error *err)
{
	size_t header = npy_header_bytes(data, bytes);
	const char *p = data;
	struct npy_text t = {.out = out, .err = err};
	int rc;

	memset(out, 0, sizeof(*out));
	if (!header || header > bytes)
		return npy_wrong(&t, "it has no header of version 1, 2 or 3");
	t.at = p + (p[6] == 1 ? 10 : 12);
	t.end = p + header;
	rc = npy_dictionary(&t);
	if (rc < 0)
		return rc;
	out->at = header;
	out->bytes = out->value_bytes;
	for (uint32_t i = 0; i < out->ndim; i++)
		if (__builtin_mul_overflow(
			    out->bytes, out->shape[i], &out->bytes))
			return npy_wrong(&t, "its shape is too large");
	if (out->bytes > INT64_MAX - out->at)
		return npy_wrong(&t, "its shape is too large");
	return 0;
}
