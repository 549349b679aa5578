/* SPDX-License-Identifier: MIT */
/* The tables of kinds and options of fields; see field_options_impl.h. */
#include "loader/fields/field_options_impl.h"

#include <refrain/loader.h>
#include <string.h>

#define BIT(kind) (1U << REFRAIN_KIND_##kind)

static const struct field_kind kinds[] = {
	{REFRAIN_KIND_IMAGE, "image", " jpg jpeg png ", 0, ""},
	{REFRAIN_KIND_CLASS, "class", " cls ", 0, ""},
	{REFRAIN_KIND_CLASSES, "classes", " ", 64, "txt"},
	{REFRAIN_KIND_BOXES, "boxes", " ", 100, "json,labels/txt"},
	{REFRAIN_KIND_POINTS, "points", " ", 32, "json,labels/txt"},
	{REFRAIN_KIND_MASK, "mask", " ", 0, "masks/,mask.png"},
	{REFRAIN_KIND_TOKENS, "tokens", " bin ", 0, ""},
	{REFRAIN_KIND_ARRAY, "array", " npy ", 0, ""},
	{REFRAIN_KIND_BYTES, "bytes", " txt json ", 4096, "txt"},
};

static const struct field_option options[] = {
	{"max", BIT(CLASSES) | BIT(BOXES) | BIT(POINTS) | BIT(BYTES),
		OPTION_COUNT, offsetof(struct field_def, max), NULL, 1,
		FIELD_ROWS_MAX, 0},
	{"keep", BIT(BOXES), OPTION_WORD, offsetof(struct field_def, keep),
		"centre|visible", 0, 0, KEEP_CENTRE},
	{"min_visible", BIT(BOXES), OPTION_REAL,
		offsetof(struct field_def, min_visible), NULL, 0, 1, 0},
	{"min_side", BIT(BOXES), OPTION_REAL,
		offsetof(struct field_def, min_side), NULL, 0, 65536, 1},
	{"crowd", BIT(BOXES), OPTION_FLAG, offsetof(struct field_def, crowd),
		NULL, 0, 0, 0},
	{"points", BIT(POINTS), OPTION_COUNT,
		offsetof(struct field_def, points), NULL, 1, FIELD_POINTS_MAX,
		17},
	{"pairs", BIT(POINTS), OPTION_PAIRS, offsetof(struct field_def, twin),
		NULL, 0, 0, 0},
	{"type", BIT(MASK), OPTION_WORD, offsetof(struct field_def, type),
		"u8|||u16||i32", 0, 0, REFRAIN_U8},
	{"fill", BIT(MASK), OPTION_COUNT, offsetof(struct field_def, fill),
		NULL, 0, 65535, 255},
	{"length", BIT(TOKENS), OPTION_COUNT,
		offsetof(struct field_def, tokens.length), NULL, 1,
		FIELD_TOKENS_MAX, 1024},
	{"overlap", BIT(TOKENS), OPTION_COUNT,
		offsetof(struct field_def, tokens.overlap), NULL, 0,
		FIELD_TOKENS_MAX, 1},
	{"from", BIT(TOKENS), OPTION_WORD,
		offsetof(struct field_def, tokens.from), "u8|u16|u32", 0, 0, 1},
	{"type", BIT(TOKENS), OPTION_WORD,
		offsetof(struct field_def, tokens.type), "|||||i32|i64", 0, 0,
		REFRAIN_I64},
	{"crop", BIT(ARRAY), OPTION_SIDES, offsetof(struct field_def, array),
		NULL, 0, 0, 0},
	{"channels", BIT(ARRAY), OPTION_COUNT,
		offsetof(struct field_def, array.channels), NULL, 0, 1024, 0},
	{"type", BIT(ARRAY), OPTION_WORD,
		offsetof(struct field_def, array.type),
		"u8|f16|f32|u16|i16|i32|i64", 0, 0, REFRAIN_F32},
	{"fixed", BIT(TOKENS), OPTION_FLAG,
		offsetof(struct field_def, tokens.fixed), NULL, 0, 0, 0},
	{"optional", 0, OPTION_FLAG, offsetof(struct field_def, optional), NULL,
		0, 0, 0},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* The option `type` stores the number of a word; each word must have the number
 * of its type. */
_Static_assert(REFRAIN_U8 == 0 && REFRAIN_U16 == 3 && REFRAIN_I32 == 5 &&
		REFRAIN_I64 == 6 && REFRAIN_F16 == 1 && REFRAIN_F32 == 2 &&
		REFRAIN_I16 == 4,
	"as in its row");

const struct field_kind *field_kind_at(unsigned i)
{
	return i < KINDS ? &kinds[i] : NULL;
}

const struct field_kind *field_kind_of(int kind)
{
	unsigned i = 0;

	while (i < KINDS && kinds[i].kind != kind)
		i++;
	return field_kind_at(i);
}

const struct field_option *field_option_at(unsigned i)
{
	return i < OPTIONS ? &options[i] : NULL;
}

const char *field_places(const struct field_def *f)
{
	return *f->member ? f->member : field_kind_of(f->kind)->places;
}

bool field_option_fits(const struct field_option *o, int kind)
{
	return !o->kinds || o->kinds >> kind & 1;
}

void field_defaults(struct field_def *f, int kind)
{
	f->kind = kind;
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct field_option *o = &options[i];
		char *at = (char *)f + o->offset;
		uint32_t count = (uint32_t)o->fallback;
		int word = (int)o->fallback;

		if (!field_option_fits(o, kind))
			continue;
		if (o->type == OPTION_COUNT)
			memcpy(at, &count, sizeof(count));
		else if (o->type == OPTION_REAL)
			memcpy(at, &o->fallback, sizeof(o->fallback));
		else if (o->type == OPTION_WORD)
			memcpy(at, &word, sizeof(word));
	}
	for (unsigned i = 0; i < FIELD_POINTS_MAX; i++)
		f->twin[i] = (uint8_t)i;
	f->max = field_kind_of(kind)->max;
}

const char *field_word_at(const char *words, int n, size_t *bytes)
{
	for (; n > 0; n--)
		words += strcspn(words, "|") + 1;
	*bytes = strcspn(words, "|");
	return words;
}

int field_word_find(const char *words, const char *word, size_t bytes)
{
	for (int n = 0;; n++) {
		size_t len = strcspn(words, "|");

		if (len > 0 && len == bytes && memcmp(words, word, len) == 0)
			return n;
		if (!words[len])
			return -1;
		words += len + 1;
	}
}
