/* SPDX-License-Identifier: MIT */
/* AWS Signature Version 4 with libcrypto. Only `host` and the x-amz-* headers
 * are signed, so a proxy may change all other headers. */
#ifndef WEB_SIGN_H
#define WEB_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "origin/web/body.h"

#define SIGN_HEX_BYTES 65
/* SHA-256 of no bytes: the payload hash of a request without a body. */
#define SIGN_EMPTY_HASH                                                        \
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* The signing key for one day, region, service and secret. Computing it takes
 * four HMACs, so each thread that signs keeps one. Zero it before its first
 * use; wipe it with sign_key_wipe(). */
struct sign_key {
	/* Objects of libcrypto, which are kept because creating them takes
	 * longer than a hash. */
	struct evp_md_st *md;
	struct evp_md_ctx_st *ctx;
	unsigned char key[32];
	/* SHA-256 of all values on which the key depends */
	unsigned char of[32];
	bool set;
};

struct sign_request {
	const char *method;
	const char *host;
	const char *path; /* encoded, begins with '/' */
	/* canonical: encoded, with sorted names; "" if there is none */
	const char *query;
	const char *payload_hash;
	bool payer; /* send x-amz-request-payer: requester */
	const char *access_key, *secret;
	const char *token; /* token of temporary credentials, or NULL */
	const char *region, *service;
	time_t now;
};

/* Append the signed header lines to `out`, each as "Name: value ": the date,
 * the payload's hash (s3 only), payer, token and Authorization. Returns 0,
 * -ENOMEM, or -EIO if libcrypto failed. */
int sign_headers(struct sign_key *cache, const struct sign_request *r,
	struct bytes *out);

void sign_key_wipe(struct sign_key *cache);

/* Write the SHA-256 of a body in hexadecimal. */
void sign_sha256_hex(const void *data, size_t len, char out[SIGN_HEX_BYTES]);

#endif
