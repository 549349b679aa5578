/* SPDX-License-Identifier: MIT */
/* Asks services for credentials, including those of the container and the
 * instance. Each call blocks its thread for a few seconds at most; this is the
 * thread that renews credentials. No message contains text that a service has
 * sent. */
#include "origin/web/creds_fetch_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/date.h"
#include "common/base/json.h"
#include "origin/web/http_head.h"
#include "origin/web/url.h"
#include "origin/web/xml.h"

#define INSTANCE_MS 1000u
#define ANSWER_MAX ((size_t)256 << 10)
#define INSTANCE_URL "http://169.254.169.254"
#define CONTAINER_URL "http://169.254.170.2"

/* -- HTTP ------------------------------------------------------------------ */

static size_t fetch_header(char *line, size_t size, size_t n, void *arg)
{
	head_line(arg, line, size * n);
	return size * n;
}

static size_t fetch_body(char *data, size_t size, size_t n, void *arg)
{
	struct bytes *out = arg;

	n *= size;
	if (bytes_len(out) + n > ANSWER_MAX)
		return 0;
	bytes_add(out, data, n);
	return bytes_failed(out) ? 0 : n;
}

static struct curl_slist *fetch_lines(const char *headers)
{
	CLEANUP_FREE char *copy = strdup(headers ? headers : "");
	struct curl_slist *lines = NULL, *more;
	char *save = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		more = curl_slist_append(lines, line);
		lines = more ? more : lines;
	}
	if (copy)
		OPENSSL_cleanse(copy, headers ? strlen(headers) : 0);
	return lines;
}

static void fetch_options(CURL *easy, const struct query *f, struct bytes *out)
{
	curl_easy_setopt(easy, CURLOPT_URL, f->url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)f->timeout_ms);
	/* With this option, the time limit also includes name resolution. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, fetch_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, out);
	if (f->direct)
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (f->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, f->ca_file);
	if (f->body)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, f->body);
	if (f->method)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, f->method);
}

/* Get the body of the answer, whatever its HTTP status. Returns the HTTP
 * status, or -errno. */
static int fetch_url(struct query *f, struct bytes *out)
{
	struct head head = {.code = 0};
	CURL *easy = curl_easy_init();
	struct curl_slist *lines = fetch_lines(f->headers);
	long status = 0;
	CURLcode code;

	if (!easy) {
		curl_slist_free_all(lines);
		return -ENOMEM;
	}
	fetch_options(easy, f, out);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, fetch_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
	code = curl_easy_perform(easy);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(easy);
	curl_slist_free_all(lines);
	if (head.date_ns)
		f->ahead_s = head.date_ns / (int64_t)NS_PER_S - time(NULL);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return -ETIMEDOUT;
	return code == CURLE_OK ? (int)status : -EIO;
}

static int fetch_failed(
	int status, const char *what, const char *advice, struct error *err)
{
	if (status < 0)
		return error_set(err, status, "%s does not answer (%s)", what,
			strerror(-status));
	return error_set(err, -EACCES, "%s answers with HTTP status %d; %s",
		what, status, advice);
}

/* -- What services say ----------------------------------------------------- */

/* Copy the value of a member; "" if the document is malformed. */
static void secret_field(
	const char *text, size_t len, const char *name, char *out, size_t size)
{
	*out = '\0';
	if (text[strspn(text, " \t\r\n")] == '<')
		xml_find(text, len, name, out, size);
	else if (json_find(text, len, name, out, size) < 0)
		*out = '\0';
}

/* Parse a date, or milliseconds since 1970; 0 if the text is neither. */
static time_t end_of_life(const char *text)
{
	char *end;
	long long ms = strtoll(text, &end, 10);

	return *end ? date_parse_iso(text) / (int64_t)NS_PER_S : ms / 1000;
}

int secret_from_text(const char *text, size_t len, struct secret *out)
{
	char expires[64];

	secret_field(text, len, "AccessKeyId", out->access_key,
		sizeof(out->access_key));
	secret_field(text, len, "SecretAccessKey", out->key, sizeof(out->key));
	secret_field(text, len, "SessionToken", out->token, sizeof(out->token));
	if (!out->token[0])
		secret_field(
			text, len, "Token", out->token, sizeof(out->token));
	secret_field(text, len, "Expiration", expires, sizeof(expires));
	out->expires_s = end_of_life(expires);
	return out->access_key[0] && out->key[0] ? 0 : -EBADMSG;
}

void wipe_bytes(struct bytes *b)
{
	bytes_wipe(b);
	bytes_release(b);
}

int ask_service(struct query *f, const char *what, const char *advice,
	struct secret *out, struct error *err)
{
	struct bytes answer = {0};
	int rc = fetch_url(f, &answer);

	if (rc != 200)
		rc = fetch_failed(rc, what, advice, err);
	else if (secret_from_text(bytes_get(&answer), bytes_len(&answer), out) <
		0)
		rc = error_set(err, -EBADMSG, "%s sent no credentials", what);
	else
		rc = 0;
	if (rc == 0 && out->expires_s)
		out->expires_s -= f->ahead_s;
	wipe_bytes(&answer);
	return rc;
}

/* -- Containers ------------------------------------------------------------ */

/* Is `host` this machine? Removes a port from `host`. */
static bool is_local_host(char *host)
{
	struct in6_addr v6, pods;
	struct in_addr v4;

	if (*host == '[') {
		host[strcspn(host, "]")] = '\0';
		return inet_pton(AF_INET6, host + 1, &v6) == 1 &&
			inet_pton(AF_INET6, "fd00:ec2::23", &pods) == 1 &&
			(IN6_IS_ADDR_LOOPBACK(&v6) ||
				IN6_ARE_ADDR_EQUAL(&v6, &pods));
	}
	host[strcspn(host, ":")] = '\0';
	return strcasecmp(host, "localhost") == 0 ||
		strcmp(host, "169.254.170.2") == 0 ||
		strcmp(host, "169.254.170.23") == 0 ||
		(inet_pton(AF_INET, host, &v4) == 1 &&
			ntohl(v4.s_addr) >> 24 == 127);
}

/* May a token be sent to this URL? Plain HTTP is only allowed where nobody on
 * the network can listen. */
static bool may_have_token(const char *text)
{
	struct url url;

	if (url_parse(text, &url) < 0)
		return false;
	free(url.path);
	return strcmp(url.scheme, "https") == 0 || is_local_host(url.host);
}

static int container_token(struct bytes *headers, struct error *err)
{
	const char *file = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *token = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	struct bytes text = {0};
	int rc = 0;

	if (file && *file) {
		rc = bytes_read_file(file, &text);
		if (rc < 0)
			rc = error_set(err, rc, "cannot read '%s': %m", file);
	} else if (token) {
		bytes_text(&text, token);
	}
	if (rc == 0 && strpbrk(bytes_get(&text), "\r\n"))
		rc = error_set(err, -EINVAL,
			"the container's authorization token has more than "
			"one line");
	if (rc == 0 && bytes_len(&text) > 0)
		bytes_printf(headers, "Authorization: %s\n", bytes_get(&text));
	wipe_bytes(&text);
	return rc;
}

int fetch_container(const char *ca_file, struct secret *out, struct error *err)
{
	const char *relative = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *whole = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	struct bytes url = {0}, headers = {0};
	struct query f = {
		.ca_file = ca_file, .timeout_ms = SERVICE_MS, .direct = true};
	int rc;

	if (relative && *relative)
		bytes_printf(&url, CONTAINER_URL "%s", relative);
	else if (whole && *whole)
		bytes_text(&url, whole);
	else
		return -ENOENT;
	if (!may_have_token(bytes_get(&url))) {
		bytes_release(&url);
		return error_set(err, -EINVAL,
			"AWS_CONTAINER_CREDENTIALS_FULL_URI must be https or "
			"on this machine");
	}
	rc = container_token(&headers, err);
	f.url = bytes_get(&url);
	f.headers = bytes_get(&headers);
	if (rc == 0)
		rc = ask_service(&f, "the container's service",
			"check its authorization token", out, err);
	bytes_release(&url);
	wipe_bytes(&headers);
	return rc;
}

/* -- Instance metadata ----------------------------------------------------- */

/* Prepare a query to the instance's service. It is valid as long as `url` and
 * the other strings. */
static struct query instance_fetch(struct bytes *url, const char *base,
	const char *path, const char *method, const char *headers)
{
	size_t len = strlen(base);

	while (len > 0 && base[len - 1] == '/')
		len--;
	bytes_add(url, base, len);
	bytes_text(url, path);
	return (struct query){.url = bytes_get(url),
		.method = method,
		.headers = headers,
		.timeout_ms = INSTANCE_MS,
		.direct = true};
}

static int ask_instance(const char *base, const char *path, const char *method,
	const char *headers, struct bytes *out)
{
	struct bytes url = {0};
	struct query f = instance_fetch(&url, base, path, method, headers);
	int rc = fetch_url(&f, out);

	bytes_release(&url);
	return rc;
}

static int instance_role(const char *base, const char *headers,
	struct bytes *path, struct error *err)
{
	static const char top[] = "/latest/meta-data/iam/security-credentials/";
	struct bytes role = {0};
	int rc = ask_instance(base, top, NULL, headers, &role);

	bytes_printf(path, "%s%.*s", top,
		(int)strcspn(bytes_get(&role), "\r\n"), bytes_get(&role));
	if (rc == 200 && (bytes_len(&role) == 0 || bytes_failed(path)))
		rc = 404;
	bytes_release(&role);
	return rc == 200 ? 0
			 : fetch_failed(rc, "the instance's role",
				   "check that the instance has one", err);
}

int fetch_instance(struct secret *out, struct error *err)
{
	const char *off = getenv("AWS_EC2_METADATA_DISABLED");
	const char *base = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	struct bytes token = {0}, headers = {0}, path = {0}, url = {0};
	struct query f;
	int rc;

	if (off && strcasecmp(off, "true") == 0)
		return -ENOENT;
	if (!base || !*base)
		base = INSTANCE_URL;
	rc = ask_instance(base, "/latest/api/token", "PUT",
		"X-aws-ec2-metadata-token-ttl-seconds: 21600\n", &token);
	if (rc != 200) {
		wipe_bytes(&token);
		return -ENOENT; /* there is no such service, or no role */
	}
	bytes_printf(&headers, "X-aws-ec2-metadata-token: %.*s\n",
		(int)strcspn(bytes_get(&token), "\r\n"), bytes_get(&token));
	rc = instance_role(base, bytes_get(&headers), &path, err);
	if (rc == 0) {
		f = instance_fetch(&url, base, bytes_get(&path), NULL,
			bytes_get(&headers));
		rc = ask_service(&f, "instance metadata",
			"check the instance's role", out, err);
	}
	wipe_bytes(&token);
	wipe_bytes(&headers);
	bytes_release(&path);
	bytes_release(&url);
	return rc;
}
