/* SPDX-License-Identifier: MIT */
/*
 * The fields of a configuration: parses them, lays out their columns, and finds
 * out which members the examples must have. No state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "loader/core/settings.h"

/* -- Members --------------------------------------------------------------- */

static bool has_places(const char *at, const char *places)
{
	size_t n = strlen(places);

	return strncmp(at, places, n) == 0 && (!at[n] || at[n] == ';');
}

/* Returns the number of the member with these places. If no other field has
 * this member, it is added to the text, which has room for the members of all
 * fields. */
static uint32_t take_places(struct settings_members *m, const char *places)
{
	size_t used = strlen(m->text);
	const char *at = m->text;
	uint32_t n = 0;

	while (*at && !has_places(at, places)) {
		at += strcspn(at, ";");
		at += *at == ';';
		n++;
	}
	if (*at)
		return n;
	(void)snprintf(m->text + used, sizeof(m->text) - used, "%s%s",
		used ? ";" : "", places);
	m->optional |= UINT32_C(1) << n;
	return n;
}

static bool has_rows(const struct field_def *f)
{
	return f->kind == REFRAIN_KIND_BOXES || f->kind == REFRAIN_KIND_POINTS;
}

/* Find the member of each field. Several fields may share a member; it is
 * optional only if all of these fields are optional. */
static void find_members(struct settings *s)
{
	for (unsigned i = 0; i < s->fields.count; i++) {
		const struct field_def *f = &s->fields.field[i];
		const char *places = field_places(f);
		uint32_t n;

		s->members.of[i] = MEMBER_NONE;
		if (has_rows(f) && !*f->member && s->c.annotations)
			s->members.of[i] = MEMBER_ANNOTATED;
		if (!*places || s->members.of[i] == MEMBER_ANNOTATED)
			continue;
		n = take_places(&s->members, places);
		s->members.of[i] = (int)n;
		if (!f->optional)
			s->members.optional &= ~(UINT32_C(1) << n);
	}
}

/* -- Checks ---------------------------------------------------------------- */

/* Returns the number of fields of this kind, and the last of them. */
static unsigned count_fields(
	const struct settings *s, int kind, const struct field_def **last)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == kind) {
			*last = &s->fields.field[i];
			n++;
		}
	return n;
}

/* Returns the first field of this kind, or NULL. */
static const struct field_def *first_field(const struct settings *s, int kind)
{
	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == kind)
			return &s->fields.field[i];
	return NULL;
}

const struct token_windows *settings_tokens(const struct settings *s)
{
	const struct field_def *f = first_field(s, REFRAIN_KIND_TOKENS);

	return f ? &f->tokens : NULL;
}

const struct array_crops *settings_array(const struct settings *s)
{
	const struct field_def *f = first_field(s, REFRAIN_KIND_ARRAY);

	return f ? &f->array : NULL;
}

enum volume_choice settings_volume_choice(const struct settings *s)
{
	if (s->c.augment == REFRAIN_AUGMENT_EVAL)
		return VOLUME_CENTRE;
	return s->c.flags & REFRAIN_FLAG_NO_FLIP ? VOLUME_RANDOM
						 : VOLUME_RANDOM_FLIP;
}

int settings_sample_type(const struct settings *s)
{
	const struct token_windows *tokens = settings_tokens(s);

	if (tokens)
		return tokens->type;
	if (settings_array(s))
		return settings_array(s)->type;
	return s->image_sample ? s->c.type : REFRAIN_U8;
}

size_t settings_value_bytes(const struct settings *s)
{
	const struct token_windows *tokens = settings_tokens(s);

	if (settings_array(s))
		return settings_array(s)->value_bytes;
	if (!tokens)
		return 1;
	return tokens->type == REFRAIN_I64 ? sizeof(int64_t) : sizeof(int32_t);
}

/* Check a field of tokens or of arrays. */
static int check_only(
	const struct settings *s, const struct field_def *f, struct error *err)
{
	if (s->fields.count > 1)
		return error_set(err, -EINVAL,
			"fields: examples of tokens or arrays have no other "
			"fields");
	if (*f->member)
		return error_set(err, -EINVAL,
			"fields: '%s' cannot have a member: it is what makes "
			"an example",
			f->name);
	if (f->kind == REFRAIN_KIND_ARRAY &&
		s->c.augment != REFRAIN_AUGMENT_TRAIN &&
		s->c.augment != REFRAIN_AUGMENT_EVAL)
		return error_set(err, -EINVAL,
			"augment must be train or eval for crops of arrays");
	if (f->kind == REFRAIN_KIND_ARRAY && s->changes)
		return error_set(err, -EINVAL,
			"echo is auto: with arrays it must be a number, as all "
			"crops of an array are read at once");
	return 0;
}

static int check_image(const struct settings *s, struct error *err)
{
	const struct field_def *image = NULL, *other = NULL;

	if (s->plain || s->c.record_bytes || !s->image_sample)
		return error_set(err, -EINVAL,
			"fields: the examples must be images, without "
			"record_bytes, augment_fn() or sample_bytes");
	if (count_fields(s, REFRAIN_KIND_IMAGE, &image) != 1)
		return error_set(err, -EINVAL,
			"fields: there must be one field of the kind image");
	(void)count_fields(s, REFRAIN_KIND_CLASS, &other);
	if (*image->member || (other && *other->member))
		return error_set(err, -EINVAL,
			"fields: '%s' cannot have a member: the image and the "
			"class are what makes an example",
			*image->member ? image->name : other->name);
	return 0;
}

static int check_annotations(const struct settings *s, struct error *err)
{
	bool used = false;

	for (unsigned i = 0; i < s->fields.count; i++)
		used = used || s->members.of[i] == MEMBER_ANNOTATED;
	if (s->c.annotations && !used)
		return error_set(err, -EINVAL,
			"annotations is set, but fields has neither boxes nor "
			"points without a member");
	return 0;
}

int settings_parse_fields(struct settings *s, struct error *err)
{
	return s->c.fields && *s->c.fields
		? fields_parse(&s->fields, s->c.fields, err)
		: 0;
}

int settings_fields(struct settings *s, struct error *err)
{
	const struct field_def *boxes, *only;
	int rc = 0;

	if (s->c.annotations && !*s->c.annotations)
		s->c.annotations = NULL;
	only = first_field(s, REFRAIN_KIND_TOKENS);
	only = only ? only : first_field(s, REFRAIN_KIND_ARRAY);
	if (s->fields.count)
		rc = only ? check_only(s, only, err) : check_image(s, err);
	if (rc < 0)
		return rc;
	if (s->c.augment == REFRAIN_AUGMENT_IOU &&
		!count_fields(s, REFRAIN_KIND_BOXES, &boxes))
		return error_set(
			err, -EINVAL, "augment is iou: fields must have boxes");
	find_members(s);
	rc = check_annotations(s, err);
	return rc < 0 ? rc
		      : columns_layout(&s->columns, &s->fields, s->c.batch,
				s->c.height, s->c.width, err);
}

uint64_t settings_text_hash(const struct settings *s, const struct member *m)
{
	char text[FIELDS_TEXT_MAX];

	if (m->offset == offsetof(struct refrain_config, mix))
		return s->mix_hash;
	fields_text(&s->fields, text);
	return hash64(text, strlen(text), 1);
}
