/* SPDX-License-Identifier: MIT */
/* Parses SIZE arguments, and formats sizes for people. Pure functions, callable
 * from any thread. The decimal point is '.' in every locale. */
#include "common/base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Maximum number of decimals. 10^6 times the largest unit (2^40) still fits
 * into 64 bits, so fractions are exact. */
#define DECIMALS_MAX 6
#define ONE UINT64_C(1000000)

struct number {
	uint64_t whole;
	uint64_t millionths; /* the fraction, in millionths; less than ONE */
};

static int parse_whole(const char **p, uint64_t *out)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)**p))
		return -EINVAL;
	for (; isdigit((unsigned char)**p); (*p)++) {
		uint64_t digit = (uint64_t)(**p - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*out = v;
	return 0;
}

static int parse_millionths(const char **p, uint64_t *out)
{
	uint64_t v = 0;
	int n = 0;

	for (; isdigit((unsigned char)**p); (*p)++, n++) {
		if (n == DECIMALS_MAX)
			return -EINVAL;
		v = v * 10 + (uint64_t)(**p - '0');
	}
	if (n == 0)
		return -EINVAL;
	for (; n < DECIMALS_MAX; n++)
		v *= 10;
	*out = v;
	return 0;
}

static int size_parse_number(const char **p, struct number *n)
{
	int rc = parse_whole(p, &n->whole);

	n->millionths = 0;
	if (rc < 0 || **p != '.')
		return rc;
	(*p)++;
	return parse_millionths(p, &n->millionths);
}

/* Returns the bits to shift for a suffix; -1 if the suffix is invalid. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "KMGT";
	const char *at;

	if (suffix[0] == '\0')
		return 0;
	at = strchr(letters, suffix[0]);
	if (!at || suffix[1] != '\0')
		return -1;
	return 10 * (int)(at - letters + 1);
}

/* Returns the valid suffix for a text such as 1GB, 1GiB or 1g, or 0. */
static char suffix_meant(const char *suffix)
{
	char letter = (char)toupper((unsigned char)suffix[0]);
	const char *rest = suffix + (suffix[0] != '\0');

	if (!letter || !strchr("KMGT", letter))
		return '\0';
	return !*rest || strcasecmp(rest, "b") == 0 ||
			strcasecmp(rest, "ib") == 0
		? letter
		: '\0';
}

static int scale_suffix(const struct number *n, int shift, uint64_t *bytes)
{
	uint64_t part = (n->millionths << shift) / ONE;

	if (shift == 0 && n->millionths)
		return -EINVAL; /* not a whole number of bytes */
	if (n->whole > UINT64_MAX >> shift)
		return -ERANGE;
	/* cannot overflow: `part` is less than 1 << shift */
	*bytes = (n->whole << shift) + part;
	return 0;
}

static int scale_percent(
	const struct number *n, uint64_t whole, uint64_t *bytes)
{
	uint64_t all = 100 * ONE, share;

	if (n->whole > 100)
		return -EINVAL;
	share = n->whole * ONE + n->millionths;
	if (share > all)
		return -EINVAL;
	/* The product is computed in two parts, so that it fits into 64 bits.
	 */
	*bytes = whole / all * share + whole % all * share / all;
	return 0;
}

int size_parse(const char *text, uint64_t whole_bytes, uint64_t *bytes,
	struct error *err)
{
	const char *p = text;
	struct number n;
	int shift, rc = size_parse_number(&p, &n);

	if (rc == 0 && strcmp(p, "%") == 0) {
		if (!whole_bytes)
			return error_set(err, -EINVAL,
				"'%s': a percentage is not allowed here; give "
				"a size such as 64G",
				text);
		rc = scale_percent(&n, whole_bytes, bytes);
	} else if (rc == 0) {
		shift = suffix_shift(p);
		if (shift < 0 && suffix_meant(p))
			return error_set(err, -EINVAL,
				"'%s' is not a valid size; did you mean "
				"%.*s%c? (K, M, G and T are powers of 1024)",
				text, (int)(p - text), text, suffix_meant(p));
		rc = shift < 0 ? -EINVAL : scale_suffix(&n, shift, bytes);
	}
	if (rc == -ERANGE)
		return error_set(err, rc, "'%s': size out of range", text);
	if (rc < 0)
		return error_set(err, rc,
			"'%s' is not a valid size; write bytes, or a number "
			"with K, M, G, T%s",
			text, whole_bytes ? ", or N% (0 to 100)" : "");
	return 0;
}

const char *size_format(uint64_t bytes, char buf[SIZE_TEXT_MAX])
{
	static const char *const units[] = {
		"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		(void)snprintf(buf, SIZE_TEXT_MAX, "%" PRIu64 " B", bytes);
		return buf;
	}
	/* From 1023.95 on, one decimal would show 1024.0, so the next unit is
	 * used. */
	for (v /= 1024; v >= 1023.95; v /= 1024)
		i++;
	(void)snprintf(buf, SIZE_TEXT_MAX, "%.1f %s", v, units[i]);
	return buf;
}
