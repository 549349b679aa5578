/* SPDX-License-Identifier: MIT */
/*
 * Parses the text of fields. Words are separated by blanks, fields by
 * semicolons. A message names the field and the byte at which the mistake
 * begins, counted from 1. No state; any thread.
 */
#include <errno.h>
#include <refrain/loader.h>
#include <stdio.h>
#include <string.h>

#include "common/base/near.h"
#include "common/base/real.h"
#include "loader/fields/field_options_impl.h"

#define BLANKS " \t\r\n"

/* The position of the parser in the text. */
struct field_text {
	const char *start, *at;
	struct field_def *field;
	struct error *err;
};

/* A word NAME or NAME=VALUE. */
struct field_word {
	const char *name, *value; /* `value` is NULL in a word NAME */
	size_t name_bytes, value_bytes;
};

static int field_wrong(struct field_text *t, const char *at, const char *what)
{
	size_t bytes = strcspn(at, BLANKS ";");

	return error_set(t->err, -EINVAL, "fields, at byte %zu ('%.*s'): %s",
		(size_t)(at - t->start) + 1, bytes < 64 ? (int)bytes : 64, at,
		what);
}

static void skip_blanks_of(struct field_text *t)
{
	t->at += strspn(t->at, BLANKS);
}

/* Get the next word of the field. Returns false if the field has no more words.
 */
static bool next_word(struct field_text *t, struct field_word *out)
{
	size_t bytes;

	skip_blanks_of(t);
	bytes = strcspn(t->at, BLANKS ";");
	*out = (struct field_word){.name = t->at};
	out->name_bytes = strcspn(t->at, BLANKS ";=");
	if (out->name_bytes < bytes) {
		out->value = t->at + out->name_bytes + 1;
		out->value_bytes = bytes - out->name_bytes - 1;
	}
	t->at += bytes;
	return bytes > 0;
}

static bool word_is(const struct field_word *w, const char *name)
{
	return strlen(name) == w->name_bytes &&
		memcmp(name, w->name, w->name_bytes) == 0;
}

/* -- Values of options ----------------------------------------------------- */

static int field_set_real(struct field_text *t, const struct field_option *o,
	const struct field_word *w, double *v)
{
	char text[32] = "", why[96], least[REAL_TEXT_MAX], most[REAL_TEXT_MAX];
	char *end = text;

	if (w->value_bytes > 0 && w->value_bytes < sizeof(text)) {
		memcpy(text, w->value, w->value_bytes);
		text[w->value_bytes] = '\0';
		*v = real_parse(text, &end);
	}
	if (end != text && !*end && *v >= o->least && *v <= o->most &&
		(o->type == OPTION_REAL || *v == (double)(uint32_t)*v))
		return 0;
	(void)snprintf(why, sizeof(why), "%s must be a %snumber from %s to %s",
		o->name, o->type == OPTION_REAL ? "" : "whole ",
		real_text(least, o->least), real_text(most, o->most));
	return field_wrong(t, w->name, why);
}

/* Parse one pair "A-B" of point numbers, which count from 1, and move *at
 * behind it. */
static bool take_pair(struct field_def *f, const char **at)
{
	unsigned n[2] = {0, 0};

	for (int i = 0; i < 2; i++) {
		if (i == 1 && *(*at)++ != '-')
			return false;
		while (**at >= '0' && **at <= '9' && n[i] < 1000)
			n[i] = n[i] * 10 + (unsigned)(*(*at)++ - '0');
		if (n[i] < 1 || n[i] > FIELD_POINTS_MAX ||
			f->twin[n[i] - 1] != n[i] - 1)
			return false;
	}
	f->twin[n[0] - 1] = (uint8_t)(n[1] - 1);
	f->twin[n[1] - 1] = (uint8_t)(n[0] - 1);
	return n[0] != n[1];
}

static int field_set_pairs(struct field_text *t, const struct field_word *w)
{
	const char *at = w->value, *end = w->value + w->value_bytes;

	for (unsigned i = 0; i < FIELD_POINTS_MAX; i++)
		t->field->twin[i] = (uint8_t)i;
	for (;;) {
		if (!take_pair(t->field, &at))
			break;
		if (at == end)
			return 0;
		if (*at++ != ',')
			break;
	}
	return field_wrong(t, w->name,
		"pairs must be like 2-3,4-5: numbers of points, each once");
}

/* Set the sides of a crop, as in 64x128x128. */
static int field_set_sides(struct field_text *t, const struct field_word *w)
{
	const char *at = w->value, *end = w->value + w->value_bytes;
	uint32_t *side = t->field->array.crop;

	for (unsigned i = 0; i < 3; i++) {
		side[i] = 0;
		while (at < end && *at >= '0' && *at <= '9' && side[i] <= 4096)
			side[i] = side[i] * 10 + (uint32_t)(*at++ - '0');
		if (side[i] < 1 || side[i] > 4096)
			break;
		if (i == 2 && at == end)
			return 0;
		if (at == end || *at++ != 'x')
			break;
	}
	return field_wrong(t, w->name,
		"crop must be like 64x128x128: depth, height and width, each "
		"from 1 to 4096");
}

static int field_set_word(struct field_text *t, const struct field_option *o,
	const struct field_word *w, int *out)
{
	char why[96];
	int n = field_word_find(o->words, w->value, w->value_bytes);

	if (n >= 0) {
		*out = n;
		return 0;
	}
	n = snprintf(why, sizeof(why), "%s must be one of", o->name);
	for (const char *p = o->words; *p; p += *p == '|') {
		size_t bytes = strcspn(p, "|");

		if (bytes > 0)
			n += snprintf(why + n, sizeof(why) - (size_t)n, " %.*s",
				(int)bytes, p);
		p += bytes;
	}
	return field_wrong(t, w->name, why);
}

static int field_set_option(struct field_text *t, const struct field_option *o,
	const struct field_word *w)
{
	char *at = (char *)t->field + o->offset;
	char text[REAL_TEXT_MAX];
	uint32_t count;
	double real = 0;
	int rc;

	if ((o->type == OPTION_FLAG) != !w->value)
		return field_wrong(t, w->name,
			w->value ? "this option takes no value"
				 : "this option needs a value");
	switch (o->type) {
	case OPTION_FLAG:
		*(bool *)(void *)at = true;
		return 0;
	case OPTION_WORD:
		return field_set_word(t, o, w, (int *)(void *)at);
	case OPTION_SIDES:
		return field_set_sides(t, w);
	case OPTION_PAIRS:
		return field_set_pairs(t, w);
	case OPTION_COUNT:
	case OPTION_REAL:
		break;
	}
	rc = field_set_real(t, o, w, &real);
	count = rc == 0 ? (uint32_t)real : 0;
	if (rc == 0 && o->type == OPTION_COUNT)
		memcpy(at, &count, sizeof(count));
	/* Store the number as the canonical text would give it, so that both
	 * texts set the same value. */
	real = real_parse(real_text(text, real), NULL);
	if (rc == 0 && o->type == OPTION_REAL)
		memcpy(at, &real, sizeof(real));
	return rc;
}

static int unknown_option(struct field_text *t, const struct field_word *w)
{
	struct near near = {.given = w->name, .len = w->name_bytes};
	const struct field_option *o;
	char hint[NEAR_TEXT_MAX], why[160];

	for (unsigned i = 0; (o = field_option_at(i)); i++)
		if (field_option_fits(o, t->field->kind))
			near_try(&near, o->name);
	(void)snprintf(why, sizeof(why), "%s has no such option%s",
		field_kind_of(t->field->kind)->name,
		near_text(&near, "", hint));
	return field_wrong(t, w->name, why);
}

static int field_take_option(
	struct field_text *t, const struct field_word *w, unsigned *seen)
{
	const struct field_option *o;

	if (word_is(w, "kind")) /* kind_given() has parsed it */
		return 0;
	for (unsigned i = 0; (o = field_option_at(i)); i++) {
		if (!word_is(w, o->name) ||
			!field_option_fits(o, t->field->kind))
			continue;
		if (*seen >> i & 1)
			return field_wrong(
				t, w->name, "this option is set twice");
		*seen |= 1U << i;
		return field_set_option(t, o, w);
	}
	return unknown_option(t, w);
}

/* -- The kind -------------------------------------------------------------- */

static int kind_named(const char *name, size_t bytes)
{
	const struct field_kind *k;

	for (unsigned i = 0; (k = field_kind_at(i)); i++)
		if (strlen(k->name) == bytes &&
			memcmp(k->name, name, bytes) == 0)
			return k->kind;
	return 0;
}

/* Returns the kind that the suffix of a member suggests. */
static int kind_suggested(const char *member)
{
	const char *dot = strrchr(member, '.');
	char suffix[FIELD_MEMBER_MAX + 2];
	const struct field_kind *k;

	(void)snprintf(suffix, sizeof(suffix), " %s ", dot ? dot + 1 : member);
	for (unsigned i = 0; *member && (k = field_kind_at(i)); i++)
		if (strstr(k->suffixes, suffix))
			return k->kind;
	return 0;
}

/* Returns the kind that the option `kind` gives. The option may be any word of
 * the field. */
static int kind_given(struct field_text t, struct field_word *w)
{
	while (next_word(&t, w))
		if (word_is(w, "kind"))
			return w->value ? kind_named(w->value, w->value_bytes)
					: 0;
	w->name = NULL;
	return 0;
}

static int find_kind(struct field_text *t, const struct field_word *first)
{
	int kind = kind_named(t->field->name, strlen(t->field->name));
	struct field_word given;
	int other = kind_given(*t, &given);

	if (given.name && !other)
		return field_wrong(t, given.name,
			"kind must be one of image class classes boxes points "
			"mask tokens array bytes");
	if (given.name && kind && kind != other)
		return field_wrong(
			t, given.name, "the name of the field is another kind");
	kind = kind ? kind : other;
	kind = kind ? kind : kind_suggested(t->field->member);
	if (!kind)
		return field_wrong(t, first->name,
			"neither its name nor its member says of which kind "
			"it is; add kind=image, mask, boxes, ...");
	return kind;
}

/* -- A field --------------------------------------------------------------- */

static bool is_field_name(const char *p, size_t bytes, const char *more)
{
	for (size_t i = 0; i < bytes; i++) {
		char c = p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
			!(c >= '0' && c <= '9') && c != '_' && c != '-' &&
			(!c || !strchr(more, c)))
			return false;
	}
	return bytes > 0;
}

static int field_take_name(struct field_text *t, const struct field_word *w)
{
	struct field_def *f = t->field;

	if (!is_field_name(w->name, w->name_bytes, "") ||
		w->name_bytes >= sizeof(f->name))
		return field_wrong(t, w->name,
			"the name of a field has up to 31 letters, digits, _ "
			"and -");
	if (w->value &&
		(!is_field_name(w->value, w->value_bytes, "./") ||
			w->value_bytes >= sizeof(f->member)))
		return field_wrong(t, w->name,
			"a member has up to 63 letters, digits, _, -, . and "
			"/");
	memcpy(f->name, w->name, w->name_bytes);
	if (w->value)
		memcpy(f->member, w->value, w->value_bytes);
	return 0;
}

static int check_field(struct field_text *t, const struct field_word *first,
	const struct fields *others)
{
	const struct field_def *f = t->field;

	for (unsigned i = 0; i < others->count; i++) {
		if (strcmp(others->field[i].name, f->name) == 0)
			return field_wrong(
				t, first->name, "another field has this name");
		if (f->kind == REFRAIN_KIND_CLASS &&
			f->kind == others->field[i].kind)
			return field_wrong(t, first->name,
				"there is another field of classes");
	}
	for (unsigned i = 0;
		f->kind == REFRAIN_KIND_POINTS && i < FIELD_POINTS_MAX; i++)
		if (f->twin[i] != i &&
			(i >= f->points || f->twin[i] >= f->points))
			return field_wrong(t, first->name,
				"pairs has a point that a row does not have");
	if (f->kind == REFRAIN_KIND_MASK && f->type == REFRAIN_U8 &&
		f->fill > UINT8_MAX)
		return field_wrong(t, first->name, "fill must fit in type");
	if (f->kind == REFRAIN_KIND_ARRAY && !f->array.crop[2])
		return field_wrong(t, first->name,
			"an array needs its crop, like crop=64x128x128");
	if ((f->kind == REFRAIN_KIND_IMAGE || f->kind == REFRAIN_KIND_TOKENS ||
		    f->kind == REFRAIN_KIND_ARRAY) &&
		f->optional)
		return field_wrong(t, first->name,
			"what makes an example cannot be optional");
	return 0;
}

/* Set how NumPy names the type of an array. */
static void name_type(struct array_crops *a)
{
	static const struct {
		char kind;
		uint8_t bytes;
	} types[] = {
		[REFRAIN_U8] = {'u', 1},
		[REFRAIN_F16] = {'f', 2},
		[REFRAIN_F32] = {'f', 4},
		[REFRAIN_U16] = {'u', 2},
		[REFRAIN_I16] = {'i', 2},
		[REFRAIN_I32] = {'i', 4},
		[REFRAIN_I64] = {'i', 8},
	};

	a->kind = types[a->type].kind;
	a->value_bytes = types[a->type].bytes;
}

static int field_take(struct field_text *t, const struct fields *others)
{
	struct field_word first, w;
	unsigned seen = 0;
	int rc;

	memset(t->field, 0, sizeof(*t->field));
	(void)next_word(t, &first);
	rc = field_take_name(t, &first);
	if (rc == 0)
		rc = find_kind(t, &first);
	if (rc < 0)
		return rc;
	field_defaults(t->field, rc);
	rc = 0;
	while (rc == 0 && next_word(t, &w))
		rc = field_take_option(t, &w, &seen);
	name_type(&t->field->array);
	return rc < 0 ? rc : check_field(t, &first, others);
}

int fields_parse(struct fields *out, const char *text, struct error *err)
{
	struct field_text t = {.start = text, .at = text, .err = err};
	int rc = 0;

	out->count = 0;
	while (rc == 0) {
		skip_blanks_of(&t);
		if (!*t.at)
			break;
		if (*t.at == ';')
			return field_wrong(&t, t.at, "a field is missing here");
		if (out->count == FIELDS_MAX)
			return field_wrong(&t, t.at, "more than 8 fields");
		t.field = &out->field[out->count];
		rc = field_take(&t, out);
		out->count++;
		t.at += *t.at == ';';
	}
	if (rc == 0 && out->count == 0)
		return error_set(err, -EINVAL, "fields: there is none");
	return rc;
}
