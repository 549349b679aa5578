/* SPDX-License-Identifier: MIT */
/*
 * AWS Signature Version 4. Pure functions but for the caller's cache of the
 * signing key; any thread with a cache of its own.
 */
#include "web/sign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#define HASH_BYTES 32
#define ALGORITHM "AWS4-HMAC-SHA256"

static void sign_put_hex(const unsigned char *hash, char out[SIGN_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < HASH_BYTES; i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 15];
	}
	out[2 * HASH_BYTES] = '\0';
}

void sign_sha256_hex(const void *data, size_t len, char out[SIGN_HEX_BYTES])
{
	unsigned char hash[HASH_BYTES] = {0};

	(void)SHA256(data, len, hash); /* cannot fail for these arguments */
	sign_put_hex(hash, out);
}

static bool hmac(const void *key, size_t key_len, const char *text,
	unsigned char out[HASH_BYTES])
{
	unsigned len = 0;

	return HMAC(EVP_sha256(), key, (int)key_len,
		       (const unsigned char *)text, strlen(text), out, &len) &&
		len == HASH_BYTES;
}

void sign_key_wipe(struct sign_key *cache)
{
	OPENSSL_cleanse(cache, sizeof(*cache));
}

/* One hash of everything the cached key was derived from. */
static void key_origin(const struct sign_request *r, const char *day,
	unsigned char of[HASH_BYTES])
{
	struct bytes all = {0};

	bytes_printf(
		&all, "%s\n%s\n%s\n%s", day, r->region, r->service, r->secret);
	memset(of, 0, HASH_BYTES);
	if (!all.failed)
		(void)SHA256(
			(const unsigned char *)bytes_get(&all), all.len, of);
	if (all.at)
		OPENSSL_cleanse(all.at, all.len);
	bytes_release(&all);
}

static int signing_key(
	struct sign_key *cache, const struct sign_request *r, const char *day)
{
	unsigned char of[HASH_BYTES];
	struct bytes first = {0};
	bool good;

	key_origin(r, day, of);
	if (cache->set && CRYPTO_memcmp(of, cache->of, HASH_BYTES) == 0)
		return 0;
	bytes_printf(&first, "AWS4%s", r->secret);
	good = !first.failed && hmac(first.at, first.len, day, cache->key) &&
		hmac(cache->key, HASH_BYTES, r->region, cache->key) &&
		hmac(cache->key, HASH_BYTES, r->service, cache->key) &&
		hmac(cache->key, HASH_BYTES, "aws4_request", cache->key);
	if (first.at)
		OPENSSL_cleanse(first.at, first.len);
	bytes_release(&first);
	memcpy(cache->of, of, HASH_BYTES);
	cache->set = good;
	return good ? 0 : -EIO;
}

/* S3 wants the payload's hash as a header; other services do not need it. */
static bool sends_hash(const struct sign_request *r)
{
	return strcmp(r->service, "s3") == 0;
}

/* The headers in order of their names, "name:value\n" each. */
static void put_headers(
	struct bytes *out, const struct sign_request *r, const char *date)
{
	bytes_printf(out, "host:%s\n", r->host);
	if (sends_hash(r))
		bytes_printf(out, "x-amz-content-sha256:%s\n", r->payload_hash);
	bytes_printf(out, "x-amz-date:%s\n", date);
	if (r->payer)
		bytes_text(out, "x-amz-request-payer:requester\n");
	if (r->token)
		bytes_printf(out, "x-amz-security-token:%s\n", r->token);
}

static void put_names(struct bytes *out, const struct sign_request *r)
{
	bytes_text(out, "host");
	if (sends_hash(r))
		bytes_text(out, ";x-amz-content-sha256");
	bytes_text(out, ";x-amz-date");
	if (r->payer)
		bytes_text(out, ";x-amz-request-payer");
	if (r->token)
		bytes_text(out, ";x-amz-security-token");
}

static void canonical_hash(const struct sign_request *r, const char *date,
	struct bytes *scratch, char hash[SIGN_HEX_BYTES])
{
	bytes_reset(scratch);
	bytes_printf(scratch, "%s\n%s\n%s\n", r->method, r->path, r->query);
	put_headers(scratch, r, date);
	bytes_char(scratch, '\n');
	put_names(scratch, r);
	bytes_printf(scratch, "\n%s", r->payload_hash);
	sign_sha256_hex(bytes_get(scratch), scratch->len, hash);
}

static void put_lines(struct bytes *out, const struct sign_request *r,
	const char *date, const char *scope, const char *signature)
{
	if (sends_hash(r))
		bytes_printf(
			out, "x-amz-content-sha256: %s\n", r->payload_hash);
	bytes_printf(out, "x-amz-date: %s\n", date);
	if (r->payer)
		bytes_text(out, "x-amz-request-payer: requester\n");
	if (r->token)
		bytes_printf(out, "x-amz-security-token: %s\n", r->token);
	bytes_printf(out,
		"Authorization: " ALGORITHM " Credential=%s/%s, SignedHeaders=",
		r->access_key, scope);
	put_names(out, r);
	bytes_printf(out, ", Signature=%s\n", signature);
}

int sign_headers(
	struct sign_key *cache, const struct sign_request *r, struct bytes *out)
{
	char date[32], day[16], hash[SIGN_HEX_BYTES], signature[SIGN_HEX_BYTES];
	unsigned char mac[HASH_BYTES];
	struct bytes scratch = {0}, scope = {0};
	struct tm tm;
	int rc;

	if (!gmtime_r(&r->now, &tm))
		return -EIO;
	(void)strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	(void)strftime(day, sizeof(day), "%Y%m%d", &tm);
	rc = signing_key(cache, r, day);
	if (rc < 0)
		return rc;
	bytes_printf(
		&scope, "%s/%s/%s/aws4_request", day, r->region, r->service);
	canonical_hash(r, date, &scratch, hash);
	bytes_reset(&scratch);
	bytes_printf(&scratch, ALGORITHM "\n%s\n%s\n%s", date,
		bytes_get(&scope), hash);
	if (scratch.failed || scope.failed)
		rc = -ENOMEM;
	else if (!hmac(cache->key, HASH_BYTES, scratch.at, mac))
		rc = -EIO;
	if (rc == 0) {
		sign_put_hex(mac, signature);
		put_lines(out, r, date, scope.at, signature);
		rc = out->failed ? -ENOMEM : 0;
	}
	bytes_release(&scratch);
	bytes_release(&scope);
	return rc;
}
