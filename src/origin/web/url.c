/* SPDX-License-Identifier: MIT */
/* Parses URLs with libcurl's parser. No shared state. */
#include "origin/web/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/base/cleanup.h"

static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
	char *text = NULL, *copy;

	if (curl_url_get(url, part, &text, flags) != CURLUE_OK)
		return NULL;
	copy = strdup(text);
	curl_free(text);
	return copy;
}

static bool has_user(CURLU *url)
{
	CLEANUP_FREE char *user = url_part(url, CURLUPART_USER, 0);

	return user != NULL;
}

/* Get the host in the form of the Host header. */
static int take_host(CURLU *url, struct url *out)
{
	CLEANUP_FREE char *host = url_part(url, CURLUPART_HOST, 0);
	CLEANUP_FREE char *port =
		url_part(url, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
	int n;

	if (!host || has_user(url))
		return -EINVAL;
	n = snprintf(out->host, sizeof(out->host), "%s%s%s", host,
		port ? ":" : "", port ? port : "");
	return n > 0 && (size_t)n < sizeof(out->host) ? 0 : -EINVAL;
}

static int take_scheme(CURLU *url, struct url *out)
{
	CLEANUP_FREE char *scheme = url_part(url, CURLUPART_SCHEME, 0);

	if (!scheme ||
		(strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
		return -EINVAL;
	strcpy(out->scheme, scheme);
	return 0;
}

/* Encode the characters of a path that a request must not contain, and leave
 * all others. */
static char *tidy_path(const char *path)
{
	struct bytes b = {0};
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)path[i];

		if (c <= ' ' || c >= 127 || strchr("\"<>\\^`{|}", c))
			bytes_printf(&b, "%%%02X", c);
		else
			bytes_char(&b, (char)c);
	}
	if (bytes_failed(&b))
		return NULL;
	return bytes_take(&b);
}

int url_parse(const char *text, struct url *out)
{
	CLEANUP_FREE char *path = NULL;
	CURLU *url = curl_url();
	int rc = url ? -EINVAL : -ENOMEM;

	if (url &&
		curl_url_set(url, CURLUPART_URL, text,
			CURLU_PATH_AS_IS | CURLU_ALLOW_SPACE) == CURLUE_OK) {
		rc = take_scheme(url, out);
		if (rc == 0)
			rc = take_host(url, out);
		path = url_part(url, CURLUPART_PATH, 0);
	}
	curl_url_cleanup(url);
	if (rc < 0)
		return rc;
	out->path = tidy_path(path ? path : "");
	return out->path ? 0 : -ENOMEM;
}

int url_resolve(const char *from, const char *location, struct bytes *out)
{
	bool tls = strncmp(from, "https:", 6) == 0;
	CURLU *url = curl_url();
	char *text = NULL, *user = NULL;
	int rc = -EIO;

	if (!url)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_URL, from,
		    CURLU_PATH_AS_IS | CURLU_ALLOW_SPACE) == CURLUE_OK &&
		curl_url_set(url, CURLUPART_URL, location,
			CURLU_PATH_AS_IS | CURLU_ALLOW_SPACE) == CURLUE_OK &&
		curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK)
		rc = 0;
	if (rc == 0 && curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK)
		rc = -EIO;
	if (rc == 0 && strncmp(text, "https:", 6) != 0 &&
		(tls || strncmp(text, "http:", 5) != 0))
		rc = -EIO;
	if (rc == 0)
		bytes_text(out, text);
	if (bytes_failed(out))
		rc = -ENOMEM;
	curl_free(text);
	curl_free(user);
	curl_url_cleanup(url);
	return rc;
}
