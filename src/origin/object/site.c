/* SPDX-License-Identifier: MIT */
/* Finds out host, path and region of a source from its text. Runs before any
 * thread exists, except the functions for regions and redirects. */
#include "origin/object/site_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define S3 "s3://"
#define REGION_DEFAULT "us-east-1"
#define ENDPOINT_MAX 1024
/* The characters with which the name of a bucket may begin and end. */
#define BUCKET_ENDS "abcdefghijklmnopqrstuvwxyz0123456789"

static bool is_s3(const char *source)
{
	return strncmp(source, S3, strlen(S3)) == 0;
}

/* -- As typed -------------------------------------------------------------- */

static int refuse_source(const char *why, struct error *err)
{
	/* The message does not repeat the source, which may contain a password.
	 */
	return error_set(err, -EINVAL, "cannot use this source: %s", why);
}

static int check_bucket(const char *bucket, size_t len, struct error *err)
{
	if (len < 3 || len > 63)
		return refuse_source("a bucket's name has 3 to 63 characters; "
				     "write s3://BUCKET/PREFIX",
			err);
	if (strspn(bucket, BUCKET_ENDS ".-") < len)
		return refuse_source("a bucket's name has lower-case letters, "
				     "digits, '.' and '-' only",
			err);
	if (!strchr(BUCKET_ENDS, bucket[0]) ||
		!strchr(BUCKET_ENDS, bucket[len - 1]) ||
		memmem(bucket, len, "..", 2))
		return refuse_source("a bucket's name begins and ends with a "
				     "letter or digit, and has no '..'",
			err);
	return 0;
}

/* Returns the length of a text without slashes at its end. */
static size_t trimmed_length(const char *text)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == '/')
		len--;
	return len;
}

int object_resolve(const char *source, char **out, struct error *err)
{
	const char *after = strstr(source, "://");
	size_t len, host;
	int rc = 0;

	if (!after)
		return refuse_source("write s3://BUCKET/PREFIX or "
				     "https://HOST/PATH/",
			err);
	after += 3;
	host = strcspn(after, "/?#");
	if (memchr(after, '@', host))
		return refuse_source(
			"it must not contain a user name or password; use "
			"--profile or the environment",
			err);
	if (after[strcspn(after, "?#")])
		return refuse_source(
			"it must not contain a query string or '#'", err);
	if (is_s3(source))
		rc = check_bucket(after, host, err);
	else if (host == 0)
		rc = refuse_source("it has no host", err);
	if (rc < 0)
		return rc;
	len = trimmed_length(source);
	*out = strndup(source, len);
	return *out ? 0 : error_set(err, -ENOMEM, "%m");
}

/* -- Endpoints ------------------------------------------------------------- */

static int parse_endpoint(
	struct object_origin *r, const char *text, struct error *err)
{
	struct url url;
	int rc = url_parse(text, &url);

	if (rc < 0)
		return error_set(err, rc,
			"cannot understand this URL; write http(s)://HOST/");
	r->scheme = strdup(url.scheme);
	strcpy(r->host, url.host);
	r->base_path = url.path;
	return r->scheme ? 0 : error_set(err, -ENOMEM, "%m");
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	if (a && *a)
		return a;
	if (b && *b)
		return b;
	return c && *c ? c : NULL;
}

static void site_find_region(
	struct object_origin *r, const struct object_config *config)
{
	const char *region = first_of(config->region, getenv("AWS_REGION"),
		getenv("AWS_DEFAULT_REGION"));
	char text[OBJECT_REGION_MAX] = "";

	if (region && strlen(region) < sizeof(text))
		strcpy(text, region);
	else if (!creds_profile_setting(
			 config->profile, "region", text, sizeof(text)))
		strcpy(text, REGION_DEFAULT);
	strcpy(r->region, text);
}

static void aws_host(struct object_origin *r)
{
	const char *cn = strncmp(r->region, "cn-", 3) == 0 ? ".cn" : "";
	const char *bucket = r->path_style ? "" : r->bucket;

	(void)snprintf(r->host, sizeof(r->host), "%s%ss3.%s.amazonaws.com%s",
		bucket, *bucket ? "." : "", r->region, cn);
}

void site_set_region(struct object_origin *r, const char *region)
{
	LOCK_SCOPE(&r->lock);

	if (strlen(region) >= sizeof(r->region) ||
		strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
			strlen(region))
		return;
	strcpy(r->region, region);
	if (r->aws)
		aws_host(r);
}

static int open_bucket(struct object_origin *r, const char *source)
{
	const char *bucket = source + strlen(S3);
	const char *slash = strchr(bucket, '/');
	const char *rest = slash ? slash + 1 : "";
	struct bytes prefix = {0};

	r->bucket = slash ? strndup(bucket, (size_t)(slash - bucket))
			  : strdup(bucket);
	bytes_text(&prefix, rest);
	if (*rest)
		bytes_char(&prefix, '/');
	r->prefix = bytes_take(&prefix);
	return r->bucket && r->prefix && !bytes_failed(&prefix) ? 0 : -ENOMEM;
}

static int open_aws(struct object_origin *r)
{
	r->aws = true;
	r->scheme = strdup("https");
	r->base_path = strdup("");
	/* If the name contains a dot, the certificate would not match the host,
	 * so use path style. */
	r->path_style = strchr(r->bucket, '.') != NULL;
	aws_host(r);
	return r->scheme && r->base_path ? 0 : -ENOMEM;
}

/* For path style, make the bucket the first part of the path. */
static int add_bucket(struct object_origin *r)
{
	struct bytes path = {0};

	bytes_printf(&path, "%s/%s", r->base_path, r->bucket);
	free(r->base_path);
	r->base_path = bytes_take(&path);
	return bytes_failed(&path) ? -ENOMEM : 0;
}

/* Get the URL of a store that is not AWS. Returns false if none is configured.
 */
static bool find_endpoint(
	const struct object_config *config, char *out, size_t size)
{
	const char *given = first_of(config->endpoint_url,
		getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"));

	if (!given)
		return creds_profile_setting(
			config->profile, "endpoint_url", out, size);
	(void)snprintf(out, size, "%s", given);
	return true;
}

static int open_s3(struct object_origin *r, const char *source,
	const struct object_config *config, struct error *err)
{
	char endpoint[ENDPOINT_MAX] = "";
	int rc = open_bucket(r, source);

	if (rc < 0)
		return error_set(err, rc, "%m");
	site_find_region(r, config);
	if (!find_endpoint(config, endpoint, sizeof(endpoint)) ||
		!endpoint[0]) {
		rc = open_aws(r);
	} else {
		r->path_style = true;
		rc = parse_endpoint(r, endpoint, err);
		if (rc < 0)
			return error_wrap(err, rc, "--endpoint-url");
	}
	if (rc == 0 && r->path_style)
		rc = add_bucket(r);
	return rc < 0 ? error_set(err, rc, "%m") : 0;
}

static bool is_of_aws(const char *host)
{
	const char *end = strstr(host, ".amazonaws.com");

	return end && (!end[14] || strcmp(end + 14, ".cn") == 0);
}

/* If the dataset is not in AWS, its text never equals a SOURCE. The same
 * objects always have the same text. */
int object_dataset(const char *source, const struct object_config *config,
	char **out, struct error *err)
{
	char endpoint[ENDPOINT_MAX] = "";
	struct bytes text = {0};
	struct url url;

	/* If the URL cannot be parsed, object_new() reports why. */
	if (is_s3(source) &&
		find_endpoint(config, endpoint, sizeof(endpoint)) &&
		url_parse(endpoint, &url) == 0) {
		if (!is_of_aws(url.host))
			bytes_printf(&text, "s3=%s://%s%s/%s", url.scheme,
				url.host, url.path, source + strlen(S3));
		free(url.path);
	}
	if (bytes_len(&text) == 0)
		bytes_text(&text, source);
	if (bytes_failed(&text)) {
		bytes_release(&text);
		return error_set(err, -ENOMEM, "%m");
	}
	*out = bytes_take(&text);
	return 0;
}

int site_open(struct object_origin *r, const char *source,
	const struct object_config *config, struct error *err)
{
	r->s3 = is_s3(source);
	if (r->s3)
		return open_s3(r, source, config, err);
	r->prefix = strdup("");
	if (!r->prefix)
		return error_set(err, -ENOMEM, "%m");
	return parse_endpoint(r, source, err);
}

void site_release(struct object_origin *r)
{
	free(r->scheme);
	free(r->bucket);
	free(r->prefix);
	free(r->base_path);
}
