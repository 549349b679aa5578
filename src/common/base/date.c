/* SPDX-License-Identifier: MIT */
/* Parses dates in the forms that servers use. Pure functions, no locale. */
#include "common/base/date.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t era, of_era, of_year;

	year -= month <= 2;
	era = year / 400; /* rounds down, because years are positive here */
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	of_era = year - era * 400;
	of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
	return era * 146097 + of_era - 719468;
}

static int64_t make_ns(int year, int month, int day, int hour, int min, int s)
{
	int64_t t;

	if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 ||
		day > 31 || hour < 0 || hour > 23 || min < 0 || min > 59 ||
		s < 0 || s > 60)
		return 0;
	t = days_of(year, month, day) * 86400 + hour * 3600 + min * 60 + s;
	return t * (int64_t)NS_PER_S;
}

/* Returns the number of the first `n` characters, which are digits. */
static int digits_of(const char *text, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++)
		value = 10 * value + text[i] - '0';
	return value;
}

/* Does the text match `form`? 'd' stands for any digit, 'm' for any letter. */
static bool has_form(const char *text, const char *form)
{
	for (; *form; form++, text++)
		if (*form == 'd'	       ? *text < '0' || *text > '9'
				: *form == 'm' ? *text < 'A' || *text > 'z'
					       : *text != *form)
			return false;
	return true;
}

/* This does not use sscanf(), which is slow, because a listing can have
 * millions of dates. */
int64_t date_parse_iso(const char *text)
{
	if (!has_form(text, "dddd-dd-ddTdd:dd:dd"))
		return 0;
	return make_ns(digits_of(text, 4), digits_of(text + 5, 2),
		digits_of(text + 8, 2), digits_of(text + 11, 2),
		digits_of(text + 14, 2), digits_of(text + 17, 2));
}

static int month_of(const char *name)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const char *at = strlen(name) == 3 ? strstr(names, name) : NULL;

	return at && (at - names) % 3 == 0 ? (int)(at - names) / 3 + 1 : 0;
}

int64_t date_parse_http(const char *text)
{
	const char *comma = strchr(text, ',');
	char name[4] = "";
	int day, year, hour, min, s;

	/* Servers of today all use this form. */
	if (comma && has_form(comma, ", dd mmm dddd dd:dd:dd")) {
		memcpy(name, comma + 5, 3);
		return make_ns(digits_of(comma + 9, 4), month_of(name),
			digits_of(comma + 2, 2), digits_of(comma + 14, 2),
			digits_of(comma + 17, 2), digits_of(comma + 20, 2));
	}
	if (comma &&
		sscanf(comma + 1, " %2d %3s %4d %2d:%2d:%2d", &day, name, &year,
			&hour, &min, &s) == 6)
		return make_ns(year, month_of(name), day, hour, min, s);
	if (comma &&
		sscanf(comma + 1, " %2d-%3s-%2d %2d:%2d:%2d", &day, name, &year,
			&hour, &min, &s) == 6)
		return make_ns(year + (year < 70 ? 2000 : 1900), month_of(name),
			day, hour, min, s);
	if (sscanf(text, "%*3s %3s %2d %2d:%2d:%2d %4d", name, &day, &hour,
		    &min, &s, &year) == 6)
		return make_ns(year, month_of(name), day, hour, min, s);
	return 0;
}
