/* SPDX-License-Identifier: MIT */
/* Parses lists of NAME=VALUE by a table. No state; any thread. */
#include "common/base/words.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/real.h"
#include "common/base/size.h"

static int parse_word_number(const char *text, uint64_t *n, struct error *err)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		return error_set(err, -EINVAL,
			"'%s' is not a number of at most 64 bits", text);
	return 0;
}

static int parse_word_time(const char *text, uint64_t *ns, struct error *err)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", NS_PER_MS},
		{"s", NS_PER_S}, {"m", 60 * NS_PER_S}};
	char *end;
	double value = real_parse(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && strcmp(end, units[i].suffix) == 0 &&
			value >= 0 && value <= 1e6) {
			*ns = (uint64_t)(value * (double)units[i].ns);
			return 0;
		}
	return error_set(err, -EINVAL,
		"'%s' is not a time; give 500us, 20ms or 1.5s", text);
}

static int parse_word_share(const char *text, double *share, struct error *err)
{
	char *end;

	*share = real_parse(text, &end);
	if (end == text || *end || !(*share >= 0 && *share <= 1))
		return error_set(
			err, -EINVAL, "'%s' is not between 0 and 1", text);
	return 0;
}

static int copy_word_text(const char *text, char *to, struct error *err)
{
	if (strlen(text) >= WORD_TEXT_BYTES)
		return error_set(err, -EINVAL, "'%s' is too long", text);
	strcpy(to, text);
	return 0;
}

static int parse_word_value(void *out, const struct word_def *def,
	const char *value, struct error *err)
{
	void *field = (char *)out + def->offset;

	switch (def->kind) {
	case WORD_NUMBER:
		return parse_word_number(value, field, err);
	case WORD_SIZE:
		return size_parse(value, 0, field, err);
	case WORD_TIME:
		return parse_word_time(value, field, err);
	case WORD_SHARE:
		return parse_word_share(value, field, err);
	case WORD_TEXT:
		break;
	}
	return copy_word_text(value, field, err);
}

/* Report an unknown name, with the known ones: "known are a, b and c". */
static int word_unknown(
	const struct word_def *table, const char *name, struct error *err)
{
	char known[512] = "";

	for (const struct word_def *d = table; d->name; d++) {
		const char *before = d == table ? ""
			: d[1].name		? ", "
						: " and ";

		strncat(known, before, sizeof(known) - strlen(known) - 1);
		strncat(known, d->name, sizeof(known) - strlen(known) - 1);
	}
	return error_set(
		err, -EINVAL, "unknown word '%s'; known are %s", name, known);
}

static int word_parse(
	void *out, const struct word_def *table, char *word, struct error *err)
{
	char *value = strchr(word, '=');

	if (!value)
		return error_set(err, -EINVAL, "'%s' is not NAME=VALUE", word);
	*value++ = '\0';
	for (const struct word_def *d = table; d->name; d++)
		if (strcmp(word, d->name) == 0)
			return parse_word_value(out, d, value, err);
	return word_unknown(table, word, err);
}

int words_parse(void *out, const struct word_def *table, const char *text,
	struct error *err)
{
	CLEANUP_FREE char *copy = strdup(text);
	char *save = NULL;
	int rc = 0;

	if (!copy)
		return error_set(err, -ENOMEM, "%m");
	for (char *word = strtok_r(copy, ",", &save); word && rc == 0;
		word = strtok_r(NULL, ",", &save))
		rc = word_parse(out, table, word, err);
	return rc;
}
