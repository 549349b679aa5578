/* SPDX-License-Identifier: MIT */
/* Parses dates of HTTP headers and of XML documents. Pure functions. */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include <stdint.h>

/* Parse "2024-05-06T07:08:09[.123]Z". Returns the ns since 1970, as whole
 * seconds; 0 if the text is malformed. */
int64_t date_parse_iso(const char *text);

/* Parse "Mon, 06 May 2024 07:08:09 GMT" and the old forms of HTTP dates.
 * Returns like date_parse_iso(). */
int64_t date_parse_http(const char *text);

#endif
