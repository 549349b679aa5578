/* SPDX-License-Identifier: MIT */
/* Verifies Signature Version 4 for the stand-in. It uses the request as it was
 * received: the headers that SignedHeaders names, the path and the query.
 * Secrets are computed from access keys; temporary access keys contain their
 * expiry. */
#include "far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

static double wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

void far_issue(char id[64], char secret[96], char token[96], char expires[40],
	int64_t *expires_s)
{
	static unsigned serial;
	double end_ms = wall_ms() + far_set.expire_s * 1e3;
	time_t end = (time_t)(end_ms / 1e3 + far_set.skew_s);
	struct tm tm;

	gmtime_r(&end, &tm);
	snprintf(id, 64, "ASIA%014.0fX%u", end_ms, serial++);
	far_secret_of(id, secret);
	snprintf(token, 96, "token/of+%s==", id);
	strftime(expires, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
	*expires_s = end;
	far_count.secrets++;
}

const char *far_secret_of(const char *id, char out[96])
{
	snprintf(out, 96, "Secret/%s+key", id);
	return out;
}

static void hmac_to(
	const void *key, int len, const char *text, unsigned char out[32])
{
	unsigned n;
	unsigned char copy[32];

	HMAC(EVP_sha256(), key, len, (const unsigned char *)text, strlen(text),
		copy, &n);
	memcpy(out, copy, 32);
}

static void hex_of(const unsigned char hash[32], char out[65])
{
	for (int i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Write the query with its parameters sorted, as the signature needs it. */
static void put_query(char *to, const char *query)
{
	char *copy = strdup(query), *parts[64] = {NULL}, *save = NULL;
	size_t n = 0;

	for (char *p = strtok_r(copy, "&", &save); p && n < 64;
		p = strtok_r(NULL, "&", &save))
		parts[n++] = p;
	qsort(parts, n, sizeof(parts[0]), by_text);
	for (size_t i = 0; i < n; i++) {
		strcat(to, i ? "&" : "");
		strcat(to, parts[i]);
		if (!strchr(parts[i], '='))
			strcat(to, "=");
	}
	free(copy);
}

static void put_signed(char *to, const struct far_request *r, const char *names)
{
	char *copy = strdup(names), *save = NULL;

	for (char *name = strtok_r(copy, ";", &save); name;
		name = strtok_r(NULL, ";", &save)) {
		const char *value = far_header(r, name);

		sprintf(to + strlen(to), "%s:%s\n", name, value ? value : "");
	}
	free(copy);
	sprintf(to + strlen(to), "\n%s\n", names);
}

struct claim {
	char id[64], day[16], region[64], service[32], names[256], sign[80];
};

static bool parse_claim(const char *text, struct claim *c)
{
	return sscanf(text,
		       "AWS4-HMAC-SHA256 Credential=%63[^/]/%15[^/]/%63[^/]/"
		       "%31[^/]/aws4_request, SignedHeaders=%255[^,], "
		       "Signature=%79s",
		       c->id, c->day, c->region, c->service, c->names,
		       c->sign) == 6;
}

/* Compute the signature that the request should have. */
static void expected(const struct far_request *r, const struct claim *c,
	const char *date, char out[65])
{
	const char *hash = far_header(r, "x-amz-content-sha256");
	char *text = calloc(1, 65536), secret[96], key_text[128], hex[65];
	unsigned char mac[32];

	sprintf(text, "%s\n%s\n", r->method, r->path);
	put_query(text, r->query);
	strcat(text, "\n");
	put_signed(text, r, c->names);
	if (hash) {
		strcat(text, hash);
	} else {
		SHA256((const unsigned char *)r->body, r->body_len, mac);
		hex_of(mac, hex);
		strcat(text, hex);
	}
	SHA256((unsigned char *)text, strlen(text), mac);
	hex_of(mac, hex);
	sprintf(text, "AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%s", date,
		c->day, c->region, c->service, hex);
	snprintf(key_text, sizeof(key_text), "AWS4%s",
		far_secret_of(c->id, secret));
	hmac_to(key_text, (int)strlen(key_text), c->day, mac);
	hmac_to(mac, 32, c->region, mac);
	hmac_to(mac, 32, c->service, mac);
	hmac_to(mac, 32, "aws4_request", mac);
	hmac_to(mac, 32, text, mac);
	hex_of(mac, out);
	free(text);
}

static const char *check_life(const struct far_request *r, const char *id)
{
	const char *token = far_header(r, "x-amz-security-token");
	char right[96];

	if (strncmp(id, "ASIA", 4) != 0)
		return far_set.only > 0 && atof(id + 2) != far_set.only
			? "ExpiredToken"
			: NULL;
	snprintf(right, sizeof(right), "token/of+%s==", id);
	if (!token || strcmp(token, right) != 0)
		return "InvalidToken";
	return atof(id + 4) < wall_ms() ? "ExpiredToken" : NULL;
}

const char *far_verify(const struct far_request *r)
{
	const char *text = far_header(r, "authorization");
	const char *date = far_header(r, "x-amz-date");
	struct claim c;
	char right[65];
	struct tm tm = {0};

	if (!text || !date)
		return "AccessDenied";
	if (!parse_claim(text, &c) || !strstr(c.names, "host"))
		return "AuthorizationHeaderMalformed";
	if (strncmp(c.id, "AK", 2) != 0 && strncmp(c.id, "ASIA", 4) != 0)
		return "InvalidAccessKeyId";
	if (far_set.move > 0 && strcmp(c.region, "eu-far-1") != 0 &&
		strcmp(c.service, "s3") == 0)
		return far_set.move > 1 ? FAR_OTHER_REGION
					: "AuthorizationHeaderMalformed";
	strptime(date, "%Y%m%dT%H%M%SZ", &tm);
	if (llabs((long long)timegm(&tm) -
		    (long long)(time(NULL) + (time_t)far_set.skew_s)) > 900)
		return "RequestTimeTooSkewed";
	expected(r, &c, date, right);
	if (strcmp(right, c.sign) != 0)
		return "SignatureDoesNotMatch";
	return check_life(r, c.id);
}
