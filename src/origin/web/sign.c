/* SPDX-License-Identifier: MIT */
/* AWS Signature Version 4. Pure functions, except that they change the caller's
 * cache of the signing key. Each thread needs a cache of its own. */
#include "origin/web/sign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#define HASH_BYTES 32
#define BLOCK_BYTES 64
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

	(void)SHA256(data, len, hash); /* cannot fail with these arguments */
	sign_put_hex(hash, out);
}

/* Hash two pieces, one after the other. `cache` contains the algorithm. */
static bool sha256(struct sign_key *cache, const void *a, size_t a_len,
	const void *b, size_t b_len, unsigned char out[HASH_BYTES])
{
	if (!cache->md)
		cache->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!cache->ctx)
		cache->ctx = EVP_MD_CTX_new();
	return cache->md && cache->ctx &&
		EVP_DigestInit_ex2(cache->ctx, cache->md, NULL) &&
		EVP_DigestUpdate(cache->ctx, a, a_len) &&
		EVP_DigestUpdate(cache->ctx, b, b_len) &&
		EVP_DigestFinal_ex(cache->ctx, out, NULL);
}

/* HMAC, as in RFC 2104. */
static bool hmac(struct sign_key *cache, const void *key, size_t key_len,
	const char *text, unsigned char out[HASH_BYTES])
{
	unsigned char pad[BLOCK_BYTES] = {0}, inner[HASH_BYTES];
	bool good = true;

	if (key_len > BLOCK_BYTES)
		good = sha256(cache, key, key_len, "", 0, pad);
	else
		memcpy(pad, key, key_len);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		pad[i] ^= 0x36;
	good = good &&
		sha256(cache, pad, BLOCK_BYTES, text, strlen(text), inner);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	good = good && sha256(cache, pad, BLOCK_BYTES, inner, HASH_BYTES, out);
	OPENSSL_cleanse(pad, sizeof(pad));
	return good;
}

void sign_key_wipe(struct sign_key *cache)
{
	EVP_MD_CTX_free(cache->ctx);
	EVP_MD_free(cache->md);
	OPENSSL_cleanse(cache, sizeof(*cache));
}

/* Hash all values from which the cached key was derived. */
static bool key_origin(struct sign_key *cache, const struct sign_request *r,
	const char *day, unsigned char of[HASH_BYTES])
{
	char head[512];
	int n = snprintf(
		head, sizeof(head), "%s\n%s\n%s\n", day, r->region, r->service);

	return n > 0 && (size_t)n < sizeof(head) &&
		sha256(cache, head, (size_t)n, r->secret, strlen(r->secret),
			of);
}

static int signing_key(
	struct sign_key *cache, const struct sign_request *r, const char *day)
{
	unsigned char of[HASH_BYTES];
	struct bytes first = {0};
	bool good;

	if (!key_origin(cache, r, day, of))
		return -EIO;
	if (cache->set && CRYPTO_memcmp(of, cache->of, HASH_BYTES) == 0)
		return 0;
	bytes_printf(&first, "AWS4%s", r->secret);
	good = !bytes_failed(&first) &&
		hmac(cache, bytes_get(&first), bytes_len(&first), day,
			cache->key) &&
		hmac(cache, cache->key, HASH_BYTES, r->region, cache->key) &&
		hmac(cache, cache->key, HASH_BYTES, r->service, cache->key) &&
		hmac(cache, cache->key, HASH_BYTES, "aws4_request", cache->key);
	bytes_wipe(&first);
	bytes_release(&first);
	memcpy(cache->of, of, HASH_BYTES);
	cache->set = good;
	return good ? 0 : -EIO;
}

/* Is a header with the hash of the payload needed? Only S3 requires it. */
static bool sends_hash(const struct sign_request *r)
{
	return strcmp(r->service, "s3") == 0;
}

/* Add a header line. This does not use printf(), which is slow, because it is
 * called for each request. */
static void put_line(struct bytes *out, const char *name, const char *value)
{
	bytes_text(out, name);
	bytes_text(out, value);
	bytes_char(out, '\n');
}

/* Write the headers in the order of their names, each as "name:value ". */
static void put_headers(
	struct bytes *out, const struct sign_request *r, const char *date)
{
	put_line(out, "host:", r->host);
	if (sends_hash(r))
		put_line(out, "x-amz-content-sha256:", r->payload_hash);
	put_line(out, "x-amz-date:", date);
	if (r->payer)
		bytes_text(out, "x-amz-request-payer:requester\n");
	if (r->token)
		put_line(out, "x-amz-security-token:", r->token);
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

static bool canonical_hash(struct sign_key *cache, const struct sign_request *r,
	const char *date, struct bytes *scratch, char hex[SIGN_HEX_BYTES])
{
	unsigned char hash[HASH_BYTES];

	bytes_reset(scratch);
	put_line(scratch, r->method, "");
	put_line(scratch, r->path, "");
	put_line(scratch, r->query, "");
	put_headers(scratch, r, date);
	bytes_char(scratch, '\n');
	put_names(scratch, r);
	bytes_char(scratch, '\n');
	bytes_text(scratch, r->payload_hash);
	if (bytes_failed(scratch) ||
		!sha256(cache, bytes_get(scratch), bytes_len(scratch), "", 0,
			hash))
		return false;
	sign_put_hex(hash, hex);
	return true;
}

static void put_lines(struct bytes *out, const struct sign_request *r,
	const char *date, const char *scope, const char *signature)
{
	if (sends_hash(r))
		put_line(out, "x-amz-content-sha256: ", r->payload_hash);
	put_line(out, "x-amz-date: ", date);
	if (r->payer)
		bytes_text(out, "x-amz-request-payer: requester\n");
	if (r->token)
		put_line(out, "x-amz-security-token: ", r->token);
	bytes_text(out, "Authorization: " ALGORITHM " Credential=");
	bytes_text(out, r->access_key);
	bytes_char(out, '/');
	bytes_text(out, scope);
	bytes_text(out, ", SignedHeaders=");
	put_names(out, r);
	put_line(out, ", Signature=", signature);
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
	if (!canonical_hash(cache, r, date, &scratch, hash))
		rc = bytes_failed(&scratch) ? -ENOMEM : -EIO;
	bytes_reset(&scratch);
	put_line(&scratch, ALGORITHM, "");
	put_line(&scratch, date, "");
	put_line(&scratch, bytes_get(&scope), "");
	bytes_text(&scratch, hash);
	if (rc == 0 && (bytes_failed(&scratch) || bytes_failed(&scope)))
		rc = -ENOMEM;
	if (rc == 0 &&
		!hmac(cache, cache->key, HASH_BYTES, bytes_get(&scratch), mac))
		rc = -EIO;
	if (rc == 0) {
		sign_put_hex(mac, signature);
		put_lines(out, r, date, bytes_get(&scope), signature);
		rc = bytes_failed(out) ? -ENOMEM : 0;
	}
	bytes_release(&scratch);
	bytes_release(&scope);
	return rc;
}
