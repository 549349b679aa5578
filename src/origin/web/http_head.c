/* SPDX-License-Identifier: MIT */
/* Parses the headers of answers, line by line. No shared state. */
#include "origin/web/http_head.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"
#include "common/base/date.h"
#include "common/base/hash.h"

#define RETRY_AFTER_MAX_S 60u
/* Maximum length of the value of a header that is used. */
#define VALUE_MAX ((size_t)HEAD_LOCATION_MAX)

uint64_t etag_tag(const char *etag, size_t len)
{
	uint64_t tag;

	if (len >= 2 && memcmp(etag, "W/", 2) == 0) {
		etag += 2;
		len -= 2;
	}
	if (len >= 2 && etag[0] == '"' && etag[len - 1] == '"') {
		etag++;
		len -= 2;
	}
	if (len == 0)
		return 0;
	tag = hash64(etag, len, 0);
	return tag ? tag : 1;
}

/* Parse the digits of a number. Returns false if there are none. */
static bool digits_value(const char **at, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0 && *out <= INT64_MAX;
}

static void take_length(struct head *h, const char *value)
{
	h->has_length = digits_value(&value, &h->length) && *value == '\0';
	h->bad |= !h->has_length;
}

/* Parse "bytes 0-99/1000", "bytes 0-99/" and a star, or "bytes star/1000" (in
 * an answer 416). */
static void take_range(struct head *h, const char *value)
{
	bool good = strncasecmp(value, "bytes ", 6) == 0;

	value += good ? 6 : 0;
	if (good && *value == '*') {
		value++;
	} else if (good) {
		good = digits_value(&value, &h->first) && *value++ == '-' &&
			digits_value(&value, &h->last) && h->first <= h->last;
		h->has_range = good;
	}
	if (good)
		good = *value++ == '/';
	if (good && strcmp(value, "*") != 0) {
		h->has_total = digits_value(&value, &h->total) && !*value &&
			(!h->has_range || h->last < h->total);
		good = h->has_total;
	}
	h->bad |= !good;
}

static void take_etag(struct head *h, const char *value)
{
	size_t len = strlen(value);

	h->tag = etag_tag(value, len);
	h->weak = strncmp(value, "W/", 2) == 0;
	if (len < sizeof(h->etag))
		memcpy(h->etag, value, len + 1);
}

static void take_retry_after(struct head *h, const char *value)
{
	uint64_t s = 0;

	if (!digits_value(&value, &s))
		/* not a number but a date: the client uses its own pauses
		 * instead */
		return;
	if (s > RETRY_AFTER_MAX_S)
		s = RETRY_AFTER_MAX_S;
	h->retry_after_ns = s * NS_PER_S;
}

static void head_take_text(char *out, size_t size, const char *value)
{
	size_t len = strlen(value);

	if (len < size)
		memcpy(out, value, len + 1);
}

static void take_type(struct head *h, char *value)
{
	value[strcspn(value, "; \t")] = '\0';
	head_take_text(h->type, sizeof(h->type), value);
}

static void take_header(struct head *h, const char *name, char *value)
{
	if (strcasecmp(name, "content-length") == 0)
		take_length(h, value);
	else if (strcasecmp(name, "content-range") == 0)
		take_range(h, value);
	else if (strcasecmp(name, "etag") == 0)
		take_etag(h, value);
	else if (strcasecmp(name, "last-modified") == 0)
		h->modified_ns = date_parse_http(value);
	else if (strcasecmp(name, "date") == 0)
		h->date_ns = date_parse_http(value);
	else if (strcasecmp(name, "retry-after") == 0)
		take_retry_after(h, value);
	else if (strcasecmp(name, "x-amz-bucket-region") == 0)
		head_take_text(h->region, sizeof(h->region), value);
	else if (strcasecmp(name, "location") == 0)
		head_take_text(h->location, sizeof(h->location), value);
	else if (strcasecmp(name, "content-type") == 0)
		take_type(h, value);
	else if (strcasecmp(name, "content-encoding") == 0)
		h->encoded = strcasecmp(value, "identity") != 0;
}

static void head_take_status(struct head *h, const char *line)
{
	const char *at = strchr(line, ' ');
	uint64_t code = 0;

	memset(h, 0, sizeof(*h));
	while (at && *at == ' ')
		at++;
	if (!at || !digits_value(&at, &code) || code < 100 || code > 999)
		h->bad = true;
	h->code = (unsigned)code;
}

void head_line(struct head *h, const char *line, size_t len)
{
	char copy[VALUE_MAX + 64];
	char *colon, *value;

	while (len > 0 && strchr("\r\n \t", line[len - 1]))
		len--;
	if (len == 0 || len >= sizeof(copy) || memchr(line, 0, len))
		return;
	memcpy(copy, line, len);
	copy[len] = '\0';
	if (strncmp(copy, "HTTP/", 5) == 0) {
		head_take_status(h, copy);
		return;
	}
	colon = strchr(copy, ':');
	if (!colon)
		return;
	*colon = '\0';
	value = colon + 1;
	value += strspn(value, " \t");
	take_header(h, copy, value);
}
