/* SPDX-License-Identifier: MIT */
/* Parses the first lines of memcached's answers. */
#include "common/memcached/memcached_meta.h"

#include <errno.h>
#include <string.h>

struct meta_word {
	const char *word;
	enum meta_kind kind;
	bool flags; /* flags of the meta protocol follow the word */
};

static const struct meta_word meta_words[] = {
	{"HD", META_HD, true},
	{"VA", META_VA, true},
	{"EN", META_EN, true},
	{"NF", META_NF, true},
	{"NS", META_NS, true},
	{"EX", META_EX, true},
	{"MN", META_MN, true},
	{"STAT", META_STAT, false},
	{"END", META_END, false},
	{"VERSION", META_VERSION, false},
	{"SERVER_ERROR", META_ERROR, false},
	{"CLIENT_ERROR", META_ERROR, false},
	{"ERROR", META_ERROR, false},
};

/* Parse a decimal number that fills [at, end). */
static bool meta_number(
	const char *at, const char *end, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (at == end)
		return false;
	for (; at < end; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (*at < '0' || *at > '9' || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*out = n;
	return true;
}

/* Returns the end of the word that begins at `at`. */
static const char *meta_word_end(const char *at, const char *end)
{
	const char *space = memchr(at, ' ', (size_t)(end - at));

	return space ? space : end;
}

static int meta_flag(const char *at, const char *end, struct meta_answer *out)
{
	bool fits = true;
	uint64_t n = 0;

	switch (*at++) {
	case 'O':
		fits = meta_number(at, end, UINT32_MAX, &n) && n > 0;
		out->opaque = (uint32_t)n;
		break;
	case 'c':
		fits = meta_number(at, end, UINT64_MAX, &out->cas);
		break;
	case 'W':
		fits = at == end;
		out->won = true;
		break;
	default: /* other flags are ignored */
		break;
	}
	return fits ? 0 : -EBADMSG;
}

static int meta_flags(const char *at, const char *end, struct meta_answer *out)
{
	while (at < end) {
		const char *stop;

		if (*at++ != ' ')
			return -EBADMSG;
		if (at == end)
			break; /* there was a space at the end of the line */
		stop = meta_word_end(at, end);
		if (stop == at || meta_flag(at, stop, out) < 0)
			return -EBADMSG;
		at = stop;
	}
	return 0;
}

static const char *meta_find_word(
	const char *at, const char *end, const struct meta_word **out)
{
	const char *stop = meta_word_end(at, end);

	for (size_t i = 0; i < sizeof(meta_words) / sizeof(meta_words[0]);
		i++) {
		size_t len = strlen(meta_words[i].word);

		if ((size_t)(stop - at) == len &&
			memcmp(at, meta_words[i].word, len) == 0) {
			*out = &meta_words[i];
			return stop;
		}
	}
	return NULL;
}

static void meta_text(const char *at, const char *end, struct meta_answer *out)
{
	/* The texts are "out of memory storing object" and "Out of memory
	 * during read". */
	static const char full[] = "ut of memory";

	if (at < end)
		at++;
	out->text = at;
	out->text_bytes = (size_t)(end - at);
	if (out->kind == META_ERROR &&
		memmem(at, out->text_bytes, full, sizeof(full) - 1))
		out->kind = META_FULL;
}

static int meta_line(const char *at, const char *end, uint32_t value_max,
	struct meta_answer *out)
{
	const struct meta_word *w = NULL;
	uint64_t n;

	*out = (struct meta_answer){.opaque = 0};
	at = meta_find_word(at, end, &w);
	if (!at)
		return -EBADMSG;
	out->kind = w->kind;
	if (!w->flags) {
		meta_text(at, end, out);
		return 0;
	}
	if (w->kind == META_VA) {
		const char *stop;

		if (at == end)
			return -EBADMSG;
		stop = meta_word_end(++at, end);
		if (!meta_number(at, stop, value_max, &n))
			return -EBADMSG;
		out->value_bytes = (uint32_t)n;
		at = stop;
	}
	return meta_flags(at, end, out);
}

ssize_t meta_parse(const void *bytes, size_t size, uint32_t value_max,
	struct meta_answer *out)
{
	const char *at = bytes;
	size_t look = size < META_LINE_MAX ? size : META_LINE_MAX;
	const char *end = memchr(at, '\n', look);
	int rc;

	if (!end)
		return size < META_LINE_MAX ? 0 : -EBADMSG;
	if (end == at || end[-1] != '\r')
		return -EBADMSG;
	rc = meta_line(at, end - 1, value_max, out);
	return rc < 0 ? rc : end + 1 - at;
}
