/* SPDX-License-Identifier: MIT */
/*
 * Sets members of the configuration from text, using the table in
 * settings_table.c. Any thread may call this. The only state is each thread's
 * last error message.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/near.h"
#include "common/base/real.h"
#include "common/base/size.h"
#include "loader/core/settings.h"
#include "loader/core/settings_table.h"
#include "common/schedule/schedule.h"

#define NUMBERS_MAX 3

static __thread struct error no_handle;

struct error *settings_error(void)
{
	return &no_handle;
}

/* -- Texts ----------------------------------------------------------------- */

/* Parse a decimal whole number; a '-' is accepted only if `below_zero`. */
static int text_whole(
	const char *text, bool below_zero, int64_t *out, struct error *err)
{
	bool minus = below_zero && *text == '-';
	const char *digits = text + minus;
	uint64_t v;
	char *end;

	errno = 0;
	v = strtoull(digits, &end, 10);
	if (*digits < '0' || *digits > '9' || *end)
		return error_set(
			err, -EINVAL, "'%s' is not a whole number", text);
	if (errno || (minus && v > INT64_MAX))
		return error_set(err, -EINVAL, "'%s' is too large", text);
	*out = minus ? -(int64_t)v : (int64_t)v;
	return 0;
}

/* Parse 2, 2.5 or 5/2 up to a comma or the end of the text, and set *text to
 * the character after the number. */
static int text_real(const char **text, double *out, struct error *err)
{
	const char *at = *text;
	double over = 1;
	char *end;

	*out = real_parse(at, &end);
	if (end != at && *end == '/') {
		at = end + 1;
		over = real_parse(at, &end);
	}
	*out /= over;
	if (end == at || (*end && *end != ',') || !isfinite(*out))
		return error_set(err, -EINVAL,
			"'%s' is not a number such as 2, 2.5 or 5/2", *text);
	*text = end;
	return 0;
}

/* Parse `count` numbers; a single number sets all of them. */
static int text_reals(
	const char *text, double *out, uint32_t count, struct error *err)
{
	const char *at = text;
	uint32_t n = 0;
	int rc;

	do {
		at += n > 0; /* skip the comma */
		rc = n < count ? text_real(&at, &out[n], err) : 0;
		n++;
	} while (rc == 0 && n <= count && *at);
	if (rc < 0)
		return rc;
	if (n != 1 && n != count)
		return error_set(err, -EINVAL,
			"'%s' is not a list of %u numbers separated by "
			"commas",
			text, count);
	for (uint32_t i = n; i < count; i++)
		out[i] = out[0];
	return 0;
}

/* Find the word in a list "a|b|c" and return its number, from 0, in *out; "0"
 * means the first word. */
static int text_word(
	const char *words, const char *text, int64_t *out, struct error *err)
{
	size_t len = strlen(text);
	const char *w = words;

	if (strcmp(text, "0") == 0) {
		*out = 0;
		return 0;
	}
	for (*out = 0; *w; (*out)++) {
		size_t n = strcspn(w, "|");

		if (n == len && memcmp(w, text, n) == 0)
			return 0;
		w += n + (w[n] == '|');
	}
	return error_set(err, -EINVAL, "'%s' is not one of %s", text, words);
}

static int text_truth(const char *text, bool *out, struct error *err)
{
	static const char *const words[] = {
		"0", "1", "false", "true", "no", "yes", "off", "on"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcasecmp(words[i], text) == 0) {
			*out = i % 2;
			return 0;
		}
	return error_set(err, -EINVAL, "'%s' is neither true nor false", text);
}

/* Parse 224 or 320x240; 0 means the default. */
static int text_sides(
	const char *text, uint32_t *width, uint32_t *height, struct error *err)
{
	char end;
	int n;

	*width = *height = 0;
	if (strcmp(text, "0") == 0)
		return 0;
	n = sscanf(text, "%5ux%5u%c", width, height, &end);
	if (n == 1 && strlen(text) <= 5 &&
		strspn(text, "0123456789") == strlen(text))
		*height = *width;
	else if (n != 2)
		*width = *height = 0;
	if (!*width || !*height)
		return error_set(err, -EINVAL,
			"'%s' is not a valid size: write 224, or WIDTHxHEIGHT "
			"such as 320x240",
			text);
	return 0;
}

/* -- Members --------------------------------------------------------------- */

static int store_whole(struct refrain_config *c, const struct member *m,
	int64_t v, struct error *err)
{
	void *at = (char *)c + m->offset;

	if (m->kind == KIND_U64) {
		*(uint64_t *)at = (uint64_t)v;
		return 0;
	}
	if (m->kind == KIND_I32 ? v != (int32_t)v : v != (uint32_t)v)
		return error_set(
			err, -EINVAL, "%" PRIu64 " is too large", (uint64_t)v);
	if (m->kind == KIND_I32)
		*(int32_t *)at = (int32_t)v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

static int set_whole(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	int64_t v = 0;
	int rc = text_whole(text, m->kind == KIND_I32, &v, err);

	return rc < 0 ? rc : store_whole(c, m, v, err);
}

static int set_bytes(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	uint64_t bytes = 0;

	if (size_parse(text, 0, &bytes, err) < 0)
		return -EINVAL;
	return store_whole(c, m, (int64_t)bytes, err);
}

static int set_word(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	int64_t v = 0;
	int rc = text_word(m->arg, text, &v, err);

	return rc < 0 ? rc : store_whole(c, m, v, err);
}

static int set_reals(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	void *at = (char *)c + m->offset;
	uint32_t count = member_count(m);
	double values[NUMBERS_MAX] = {0};
	int rc = text_reals(text, values, count, err);

	for (uint32_t i = 0; rc == 0 && i < count; i++)
		if (m->kind == KIND_F32)
			((float *)at)[i] = (float)values[i];
		else
			((double *)at)[i] = values[i];
	return rc;
}

/* Set a mean; 0 is stored as -0, because a member that is 0 is not set. */
static int set_mean(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	int rc = set_reals(c, m, text, err);

	for (unsigned i = 0; rc == 0 && i < 3; i++)
		if (c->mean[i] == 0.F)
			c->mean[i] = -0.F;
	return rc;
}

/* Set the echo factor from text in the form of schedule_echo; 0 is the
 * default. */
static int set_factor(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	struct schedule_echo echo = {0, 1};
	int rc = 0;

	if (strcmp(text, "0") != 0 && strcmp(text, "0.0") != 0)
		rc = schedule_echo_parse(text, &echo, err);
	if (rc == 0)
		*(double *)(void *)((char *)c + m->offset) =
			(double)echo.p / echo.q;
	return rc;
}

static int set_echo(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	if (strcmp(text, "auto") != 0)
		return set_factor(c, m, text, err);
	c->echo = REFRAIN_ECHO_AUTO;
	return 0;
}

static int set_flag(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	bool on = false;
	int rc = text_truth(text, &on, err);

	if (rc == 0)
		c->flags = on ? c->flags | m->bit : c->flags & ~m->bit;
	return rc;
}

static int set_text(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	(void)err;
	*(const char **)(void *)((char *)c + m->offset) = text;
	return 0;
}

static int set_sides(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	uint32_t width = 0, height = 0;
	int rc = text_sides(text, &width, &height, err);

	(void)m;
	if (rc == 0) {
		c->width = width;
		c->height = height;
	}
	return rc;
}

static int member_set(struct refrain_config *c, const struct member *m,
	const char *text, struct error *err)
{
	static int (*const setters[])(struct refrain_config *,
		const struct member *, const char *, struct error *) = {
		[REFRAIN_MEMBER_NUMBER] = set_whole,
		[REFRAIN_MEMBER_REAL] = set_reals,
		[REFRAIN_MEMBER_ECHO] = set_echo,
		[REFRAIN_MEMBER_BYTES] = set_bytes,
		[REFRAIN_MEMBER_WORD] = set_word,
		[REFRAIN_MEMBER_FLAG] = set_flag,
		[REFRAIN_MEMBER_SIDES] = set_sides,
		[REFRAIN_MEMBER_TEXT] = set_text,
	};
	int rc;

	if (m->offset == offsetof(struct refrain_config, echo_max))
		rc = set_factor(c, m, text, err);
	else if (m->offset == offsetof(struct refrain_config, mean))
		rc = set_mean(c, m, text, err);
	else
		rc = setters[m->type](c, m, text, err);
	return rc < 0 ? error_wrap(err, rc, "%s", m->name) : 0;
}

static int unknown_member(const char *name, struct error *err)
{
	struct near near = {.given = name, .len = strlen(name)};
	const struct member *m;
	char text[NEAR_TEXT_MAX];

	for (size_t i = 0; (m = member_at(i)); i++)
		if (m->type != MEMBER_OTHER)
			near_try(&near, m->name);
	return error_set(err, -ENOENT,
		"'%s' is not a member of the configuration%s", name,
		near_text(&near, "", text));
}

int refrain_config_set(
	struct refrain_config *config, const char *name, const char *text)
{
	struct error *err = settings_error();
	const struct member *m;
	struct refrain_config c;
	size_t known;
	int rc;

	if (!config || !name || !text)
		return error_set(err, -EINVAL, "%s must not be NULL",
			!config		? "config"
				: !name ? "name"
					: "text");
	m = member_find(name);
	known = config->size < sizeof(c) ? config->size : sizeof(c);
	if (!m)
		return unknown_member(name, err);
	if (known < m->offset + m->bytes)
		return error_set(err, -E2BIG,
			"%s: the program was compiled with an older header, "
			"which lacks it",
			m->name);
	refrain_config_init(&c);
	memcpy(&c, config, known);
	rc = member_set(&c, m, text, err);
	if (rc == 0 &&
		!(m->type == REFRAIN_MEMBER_ECHO &&
			c.echo == REFRAIN_ECHO_AUTO))
		rc = member_check(&c, m, err);
	if (rc == 0)
		memcpy((char *)config + sizeof(c.size),
			(const char *)&c + sizeof(c.size),
			known - sizeof(c.size));
	return rc;
}

/* -- Queries --------------------------------------------------------------- */

static const struct member *settable(uint32_t n)
{
	const struct member *m;

	for (size_t i = 0; (m = member_at(i)); i++)
		if (m->type != MEMBER_OTHER && n-- == 0)
			return m;
	return NULL;
}

int refrain_config_member(uint32_t n, struct refrain_member *out)
{
	const struct member *m = settable(n);
	struct refrain_member full;
	size_t room;

	if (!out)
		return error_set(
			settings_error(), -EINVAL, "out must not be NULL");
	if (!m)
		return 0;
	room = out->size < sizeof(full) ? out->size : sizeof(full);
	full = (struct refrain_member){
		.size = room,
		.name = m->name,
		.arg = m->arg,
		.help = m->help,
		.type = m->type,
		.count = member_count(m),
		.fallback = m->fallback,
		.min = m->min,
		.max = m->max,
	};
	memcpy(out, &full, room);
	return 1;
}
