/* SPDX-License-Identifier: MIT */
/* Dates of HTTP headers and of XML documents. Pure functions. */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include <stdint.h>

/* "2024-05-06T07:08:09[.123]Z": ns since 1970, whole seconds; 0 if malformed.
 */
int64_t date_parse_iso(const char *text);

/* "Mon, 06 May 2024 07:08:09 GMT" and its old forms; 0 if malformed. */
int64_t date_parse_http(const char *text);

#endif
