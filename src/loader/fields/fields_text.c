/* SPDX-License-Identifier: MIT */
/* Writes the canonical text of fields. No state; any thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/real.h"
#include "loader/fields/field_options_impl.h"

struct text_out {
	char *text;
	size_t used;
};

/* This always fits: FIELDS_TEXT_MAX is more than eight fields with all options
 * need. */
static void text_put(struct text_out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void text_put(struct text_out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->text + o->used, FIELDS_TEXT_MAX - o->used, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < FIELDS_TEXT_MAX - o->used)
		o->used += (size_t)n;
}

static void put_pairs(struct text_out *o, const struct field_def *f)
{
	const char *before = " pairs=";

	for (unsigned i = 0; i < FIELD_POINTS_MAX; i++)
		if (f->twin[i] > i) {
			text_put(o, "%s%u-%u", before, i + 1, f->twin[i] + 1U);
			before = ",";
		}
}

static void put_number(
	struct text_out *o, const struct field_option *option, double v)
{
	char text[REAL_TEXT_MAX];

	if (option->type == OPTION_COUNT)
		text_put(o, " %s=%.0f", option->name, v);
	else
		text_put(o, " %s=%s", option->name, real_text(text, v));
}

static void put_option(struct text_out *o, const struct field_def *f,
	const struct field_option *option, const struct field_def *usual)
{
	const char *at = (const char *)f + option->offset;
	const char *there = (const char *)usual + option->offset;
	uint32_t count;
	const char *word;
	double real;
	size_t bytes;
	int n;

	switch (option->type) {
	case OPTION_FLAG:
		if (*(const bool *)at)
			text_put(o, " %s", option->name);
		return;
	case OPTION_COUNT:
		memcpy(&count, at, sizeof(count));
		if (memcmp(at, there, sizeof(count)) != 0)
			put_number(o, option, count);
		return;
	case OPTION_REAL:
		memcpy(&real, at, sizeof(real));
		if (memcmp(at, there, sizeof(real)) != 0)
			put_number(o, option, real);
		return;
	case OPTION_WORD:
		memcpy(&n, at, sizeof(n));
		word = field_word_at(option->words, n, &bytes);
		if (memcmp(at, there, sizeof(n)) != 0)
			text_put(o, " %s=%.*s", option->name, (int)bytes, word);
		return;
	case OPTION_SIDES:
		text_put(o, " %s=%ux%ux%u", option->name, f->array.crop[0],
			f->array.crop[1], f->array.crop[2]);
		return;
	case OPTION_PAIRS:
		put_pairs(o, f);
		return;
	}
}

static void text_put_field(struct text_out *o, const struct field_def *f)
{
	const struct field_option *option;
	const char *kind = field_kind_of(f->kind)->name;
	struct field_def usual = {.kind = 0};

	field_defaults(&usual, f->kind);
	text_put(o, "%s%s%s", f->name, *f->member ? "=" : "", f->member);
	if (strcmp(f->name, kind) != 0)
		text_put(o, " kind=%s", kind);
	for (unsigned i = 0; (option = field_option_at(i)); i++)
		if (field_option_fits(option, f->kind))
			put_option(o, f, option, &usual);
}

void fields_text(const struct fields *f, char to[FIELDS_TEXT_MAX])
{
	struct text_out o = {.text = to};

	*to = '\0';
	for (unsigned i = 0; i < f->count; i++) {
		text_put(&o, "%s", i > 0 ? "; " : "");
		text_put_field(&o, &f->field[i]);
	}
}
