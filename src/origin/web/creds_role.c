/* SPDX-License-Identifier: MIT */
/* Services of AWS that return the credentials of a role: STS and SSO. Each call
 * blocks its thread, for a few seconds at most. */
#include "origin/web/creds_fetch_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin/web/sign.h"
#include "origin/web/url.h"

/* If this machine's clock differs by more than this, the request is repeated:
 * AWS accepts a difference of less than five minutes. */
#define SKEW_S 240

/* Find the endpoint of a service. The environment may name one for this service
 * or one for all services; otherwise it is that of AWS for `name`. The caller
 * frees out->path. */
static int find_service(const char *variable, const char *name,
	const char *region, struct url *out, struct error *err)
{
	const char *given = getenv(variable);
	char aws[256];
	int rc;

	if (!given || !*given)
		given = getenv("AWS_ENDPOINT_URL");
	(void)snprintf(aws, sizeof(aws), "https://%s.%s.amazonaws.com%s", name,
		region, strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
	rc = url_parse(given && *given ? given : aws, out);
	return rc < 0 ? error_set(err, rc,
				"cannot understand the URL of %s or "
				"AWS_ENDPOINT_URL; write http(s)://HOST/",
				variable)
		      : 0;
}

/* -- STS ------------------------------------------------------------------- */

static void put_field(struct bytes *b, const char *name, const char *value)
{
	bytes_printf(b, "%s%s=", bytes_len(b) > 0 ? "&" : "", name);
	bytes_encode(b, value, strlen(value), false);
}

static void role_body(const struct role *r, struct bytes *b)
{
	put_field(b, "Action",
		r->token ? "AssumeRoleWithWebIdentity" : "AssumeRole");
	if (r->external_id)
		put_field(b, "ExternalId", r->external_id);
	put_field(b, "RoleArn", r->arn);
	put_field(b, "RoleSessionName", r->session ? r->session : "refrain");
	put_field(b, "Version", "2011-06-15");
	if (r->token)
		put_field(b, "WebIdentityToken", r->token);
}

/* Sign with the time of the service's clock, which its last answer has shown.
 */
static int sign_role(const struct role *r, const char *host, const char *path,
	const struct bytes *body, time_t ahead_s, struct bytes *headers)
{
	char hash[SIGN_HEX_BYTES];
	struct sign_key key = {.set = false};
	struct sign_request request = {
		.method = "POST",
		.host = host,
		.path = path,
		.query = "",
		.payload_hash = hash,
		.access_key = r->from->access_key,
		.secret = r->from->key,
		.token = r->from->token[0] ? r->from->token : NULL,
		.region = r->region,
		.service = "sts",
		.now = time(NULL) + ahead_s,
	};
	int rc;

	sign_sha256_hex(bytes_get(body), bytes_len(body), hash);
	rc = sign_headers(&key, &request, headers);
	sign_key_wipe(&key);
	return rc;
}

/* Send the query, signed if there are credentials to sign with. */
static int ask_role(const struct role *r, struct query *f,
	const struct url *url, const struct bytes *body, struct secret *out,
	struct error *err)
{
	const char *path = strchr(strstr(f->url, "://") + 3, '/');
	struct bytes headers = {0};
	int rc = !r->from
		? 0
		: sign_role(r, url->host, path, body, f->ahead_s, &headers);

	f->headers = bytes_get(&headers);
	if (rc == 0)
		rc = ask_service(f, "STS",
			"check the role, and the credentials or the token "
			"that it is assumed with",
			out, err);
	wipe_bytes(&headers);
	return rc;
}

int fetch_role(const struct role *r, struct secret *out, struct error *err)
{
	struct bytes body = {0}, full = {0};
	struct url url = {.path = NULL};
	struct query f = {.ca_file = r->ca_file, .timeout_ms = SERVICE_MS};
	int rc = find_service(
		"AWS_ENDPOINT_URL_STS", "sts", r->region, &url, err);

	if (rc < 0)
		return rc;
	role_body(r, &body);
	bytes_printf(&full, "%s://%s%s/", url.scheme, url.host, url.path);
	f.url = bytes_get(&full);
	f.body = bytes_get(&body);
	if (bytes_failed(&body) || bytes_failed(&full))
		rc = -ENOMEM;
	if (rc == 0)
		rc = ask_role(r, &f, &url, &body, out, err);
	/* Repeat the request with the time of the service's clock. */
	if (rc == -EACCES && r->from && llabs(f.ahead_s) > SKEW_S)
		rc = ask_role(r, &f, &url, &body, out, err);
	wipe_bytes(&body);
	bytes_release(&full);
	free(url.path);
	return rc;
}

/* -- SSO ------------------------------------------------------------------- */

int fetch_sso(const struct sso *s, struct secret *out, struct error *err)
{
	struct bytes url = {0}, headers = {0};
	struct url place = {.path = NULL};
	struct query f = {.ca_file = s->ca_file, .timeout_ms = SERVICE_MS};
	int rc = find_service(
		"AWS_ENDPOINT_URL_SSO", "portal.sso", s->region, &place, err);

	if (rc < 0)
		return rc;
	bytes_printf(&url,
		"%s://%s%s/federation/credentials?account_id=", place.scheme,
		place.host, place.path);
	free(place.path);
	bytes_encode(&url, s->account, strlen(s->account), false);
	bytes_text(&url, "&role_name=");
	bytes_encode(&url, s->role, strlen(s->role), false);
	bytes_printf(&headers, "x-amz-sso_bearer_token: %s\n", s->token);
	f.url = bytes_get(&url);
	f.headers = bytes_get(&headers);
	rc = bytes_failed(&url) || bytes_failed(&headers)
		? -ENOMEM
		: ask_service(&f, "SSO",
			  "check the profile's account and role, or run 'aws "
			  "sso login'",
			  out, err);
	bytes_release(&url);
	wipe_bytes(&headers);
	return rc;
}
