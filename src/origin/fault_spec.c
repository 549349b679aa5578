/* SPDX-License-Identifier: MIT */
/* Parses a specification of faults. No state; any thread. */
#include "origin/fault_spec_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/real.h"
#include "base/size.h"

static int parse_time(const char *text, uint64_t *ns, struct error *err)
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

static int parse_share(const char *text, double *share, struct error *err)
{
	char *end;

	*share = real_parse(text, &end);
	if (end == text || *end || !(*share >= 0 && *share <= 1))
		return error_set(
			err, -EINVAL, "'%s' is not between 0 and 1", text);
	return 0;
}

static int fault_spec_parse_number(
	const char *text, uint64_t *n, struct error *err)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		return error_set(err, -EINVAL, "'%s' is not a number", text);
	return 0;
}

static int parse_match(
	struct fault_spec *s, const char *text, struct error *err)
{
	if (strlen(text) >= sizeof(s->match))
		return error_set(err, -EINVAL, "match= is too long");
	strcpy(s->match, text);
	return 0;
}

static int parse_word(struct fault_spec *s, char *word, struct error *err)
{
	char *value = strchr(word, '=');
	uint64_t n = 0;
	int rc;

	if (!value)
		return error_set(err, -EINVAL, "'%s' is not NAME=VALUE", word);
	*value++ = '\0';
	if (strcmp(word, "delay") == 0)
		return parse_time(value, &s->delay_ns, err);
	if (strcmp(word, "error") == 0)
		return parse_share(value, &s->error, err);
	if (strcmp(word, "short") == 0)
		return parse_share(value, &s->cut, err);
	if (strcmp(word, "stall") == 0)
		return parse_share(value, &s->stall, err);
	if (strcmp(word, "rate") == 0)
		return size_parse(value, 0, &s->rate_bytes, err);
	if (strcmp(word, "pieces") == 0)
		return size_parse(value, 0, &s->piece_bytes, err);
	if (strcmp(word, "seed") == 0)
		return fault_spec_parse_number(value, &s->seed, err);
	if (strcmp(word, "match") == 0)
		return parse_match(s, value, err);
	if (strcmp(word, "meta") != 0)
		return error_set(err, -EINVAL,
			"unknown fault '%s'; known are delay, error, short, "
			"pieces, stall, rate, meta, match and seed",
			word);
	rc = fault_spec_parse_number(value, &n, err);
	s->meta = n != 0;
	return rc;
}

int fault_spec_parse(struct fault_spec *s, const char *text, struct error *err)
{
	CLEANUP_FREE char *copy = strdup(text);
	char *save = NULL;

	memset(s, 0, sizeof(*s));
	if (!copy)
		return error_set(err, -ENOMEM, "fault: %m");
	for (char *word = strtok_r(copy, ",", &save); word;
		word = strtok_r(NULL, ",", &save)) {
		int rc = parse_word(s, word, err);

		if (rc)
			return error_wrap(err, rc, "fault '%s'", text);
	}
	return 0;
}
