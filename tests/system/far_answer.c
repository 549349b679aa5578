/* SPDX-License-Identifier: MIT */
/* Makes the answers of the stand-in; see far.h. */
#include "far.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
	char *at;
	size_t len, room;
};

static void put(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void room_for(struct text *t, size_t n)
{
	if (t->len + n + 1 <= t->room)
		return;
	t->room = (t->len + n + 1) * 2;
	t->at = realloc(t->at, t->room);
}

static void put(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	room_for(t, 8192);
	va_start(args, fmt);
	n = vsnprintf(t->at + t->len, 8192, fmt, args);
	va_end(args);
	t->len += (size_t)n;
}

void far_decode(char *text, bool plus)
{
	char *out = text;

	for (; *text; text++) {
		unsigned c;

		if (*text == '%' && sscanf(text + 1, "%2x", &c) == 1) {
			*out++ = (char)c;
			text += 2;
		} else {
			*out++ = (char)(plus && *text == '+' ? ' ' : *text);
		}
	}
	*out = '\0';
}

void far_query(
	const struct far_request *r, const char *name, char *out, size_t size)
{
	char *copy = strdup(r->query), *save = NULL;

	*out = '\0';
	for (char *p = strtok_r(copy, "&", &save); p;
		p = strtok_r(NULL, "&", &save)) {
		char *value = strchr(p, '=');

		if (value)
			*value++ = '\0';
		if (strcmp(p, name) == 0 && value)
			snprintf(out, size, "%s", value);
	}
	far_decode(out, true);
	free(copy);
}

static bool happens(double share)
{
	return share > 0 && (double)random() / 2147483648.0 < share;
}

static void give_body(struct far_answer *a, struct text *t)
{
	a->body = t->at;
	a->length = t->len;
}

static void give_error(struct far_answer *a, unsigned status, const char *code)
{
	struct text t = {0};

	a->status = status;
	put(&t,
		"<?xml version=\"1.0\"?>\n<Error><Code>%s</Code>"
		"<Message>as you see</Message>",
		code);
	if (strcmp(code, "AuthorizationHeaderMalformed") == 0)
		put(&t, "<Region>eu-far-1</Region>");
	put(&t, "</Error>");
	snprintf(a->headers + strlen(a->headers), 200,
		"Content-Type: application/xml\r\n");
	give_body(a, &t);
}

/* -- Control --------------------------------------------------------------- */

static void set_one(const char *name, double value)
{
	static const struct {
		const char *name;
		double *field;
	} fields[] = {
#define FIELD(f) {#f, &far_set.f}
		FIELD(delay_ms),
		FIELD(list_ms),
		FIELD(rate),
		FIELD(busy),
		FIELD(never),
		FIELD(cut),
		FIELD(bad_range),
		FIELD(no_range),
		FIELD(no_length),
		FIELD(error_doc),
		FIELD(bad_etag),
		FIELD(endless),
		FIELD(loop),
		FIELD(expire_s),
		FIELD(verify),
		FIELD(files),
		FIELD(size),
		FIELD(dirs),
		FIELD(retry_after),
		FIELD(skew_s),
		FIELD(no_list),
		FIELD(truncate_xml),
		FIELD(no_size),
		FIELD(move),
		FIELD(down),
		FIELD(payer),
		FIELD(away),
		FIELD(code),
		FIELD(archived),
		FIELD(nagle),
		FIELD(only),
		FIELD(same),
		FIELD(web),
		FIELD(no_after),
		FIELD(blank),
		FIELD(flood),
#undef FIELD
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(fields[i].name, name) == 0) {
			*fields[i].field = value;
			return;
		}
	fprintf(stderr, "far: no setting '%s'\n", name);
	exit(2);
}

static void control(const struct far_request *r, struct far_answer *a)
{
	struct text t = {0};
	char *copy = strdup(r->query), *save = NULL;

	if (strcmp(r->path, "/-/set") == 0) {
		for (char *p = strtok_r(copy, "&", &save); p;
			p = strtok_r(NULL, "&", &save)) {
			char *value = strchr(p, '=');

			if (!value)
				continue;
			*value++ = '\0';
			set_one(p, atof(value));
		}
	} else if (strcmp(r->path, "/-/zero") == 0) {
		memset(&far_count, 0, sizeof(far_count));
	}
	free(copy);
#define SHOW(f) put(&t, "%s %llu\n", #f, (unsigned long long)far_count.f)
	SHOW(requests);
	SHOW(gets);
	SHOW(heads);
	SHOW(lists);
	SHOW(puts);
	SHOW(busy);
	SHOW(never);
	SHOW(cut);
	SHOW(refused);
	SHOW(services);
	SHOW(secrets);
	SHOW(bytes);
	SHOW(object_bytes);
	SHOW(connections);
	SHOW(most);
	SHOW(most_bytes);
	SHOW(authorized);
#undef SHOW
	put(&t, "going %u\n", far_going);
	give_body(a, &t);
}

/* -- Services -------------------------------------------------------------- */

static void http_date(int64_t s, char out[40])
{
	time_t at = (time_t)s;
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(out, 40, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* Write the date by the clock of this process, which a test may shift. */
static void put_date(struct far_answer *a)
{
	char date[40];

	http_date(time(NULL) + (time_t)far_set.skew_s, date);
	snprintf(a->headers + strlen(a->headers), 64, "Date: %s\r\n", date);
}

static void give_json(struct far_answer *a, const char *format)
{
	char id[64], secret[96], token[96], expires[40];
	int64_t end;
	struct text t = {0};

	far_issue(id, secret, token, expires, &end);
	if (strcmp(format, "sso") == 0)
		put(&t,
			"{\"roleCredentials\":{\"accessKeyId\":\"%s\","
			"\"secretAccessKey\":\"%s\",\"sessionToken\":\"%s\","
			"\"expiration\":%lld}}",
			id, secret, token, (long long)end * 1000);
	else
		put(&t,
			"{\"Code\":\"Success\",\"AccessKeyId\":\"%s\","
			"\"SecretAccessKey\":\"%s\",\"Token\":\"%s\","
			"\"Expiration\":\"%s\"}",
			id, secret, token, expires);
	give_body(a, &t);
}

static void give_sts(const struct far_request *r, struct far_answer *a)
{
	char id[64], secret[96], token[96], expires[40];
	const char *why = NULL;
	bool web = memmem(r->body, r->body_len, "WithWebIdentity", 15);
	int64_t end;
	struct text t = {0};

	if (!web)
		why = far_verify(r);
	else if (!memmem(r->body, r->body_len, "WebIdentityToken=web%2Bid", 25))
		why = "InvalidIdentityToken";
	if (why) {
		give_error(a, 403, why);
		return;
	}
	far_issue(id, secret, token, expires, &end);
	put(&t,
		"<R xmlns=\"https://sts/\"><Result><Credentials>"
		"<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s"
		"</SecretAccessKey><SessionToken>%s</SessionToken>"
		"<Expiration>%s</Expiration></Credentials></Result></R>",
		id, secret, token, expires);
	give_body(a, &t);
}

static bool has_value(
	const struct far_request *r, const char *name, const char *want)
{
	const char *value = far_header(r, name);

	return value && strcmp(value, want) == 0;
}

/* Answer a request to one of the services. Returns false if the request is to
 * another address. */
static bool service(const struct far_request *r, struct far_answer *a)
{
	static const char iam[] = "/latest/meta-data/iam/security-credentials/";
	struct text t = {0};

	if (strcmp(r->path, "/latest/api/token") == 0) {
		put(&t, "instance-token");
		give_body(a, &t);
		a->status = strcmp(r->method, "PUT") == 0 ? 200 : 405;
	} else if (strncmp(r->path, iam, strlen(iam)) == 0) {
		if (!has_value(r, "x-aws-ec2-metadata-token", "instance-token"))
			give_error(a, 401, "Unauthorized");
		else if (r->path[strlen(iam)])
			give_json(a, "json");
		else
			put(&t, "the-role"), give_body(a, &t);
	} else if (strcmp(r->path, "/container") == 0) {
		if (has_value(r, "authorization", "container-token"))
			give_json(a, "json");
		else
			give_error(a, 403, "AccessDenied");
	} else if (strcmp(r->path, "/federation/credentials") == 0) {
		if (has_value(r, "x-amz-sso_bearer_token", "sso-token"))
			give_json(a, "sso");
		else
			give_error(a, 401, "UnauthorizedException");
	} else if (strcmp(r->method, "POST") == 0 &&
		(strcmp(r->path, "/") == 0 || strcmp(r->path, "/sts/") == 0)) {
		give_sts(r, a);
	} else {
		return false;
	}
	far_count.services++;
	put_date(a);
	return true;
}

/* -- Listing --------------------------------------------------------------- */

static bool is_unreserved(unsigned char c)
{
	return isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~' ||
		c == '/';
}

static void put_encoded(struct text *t, const char *key)
{
	static const char digits[] = "0123456789ABCDEF";

	room_for(t, strlen(key) * 3);
	for (; *key; key++) {
		unsigned char c = (unsigned char)*key;

		if (is_unreserved(c)) {
			t->at[t->len++] = (char)c;
			continue;
		}
		t->at[t->len++] = '%';
		t->at[t->len++] = digits[c >> 4];
		t->at[t->len++] = digits[c & 15];
	}
	t->at[t->len] = '\0';
}

static void iso_date(int64_t s, char out[40])
{
	time_t at = (time_t)s;
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(out, 40, "%Y-%m-%dT%H:%M:%S.000Z", &tm);
}

struct lister {
	const char *bucket, *prefix, *after, *last_key;
	size_t skip; /* length of the bucket's name in stored keys */
	bool many;
	uint64_t i, end;
	char key[64];
	struct far_object now;
};

static bool lister_next(struct lister *l, const char **key)
{
	if (l->i >= l->end)
		return false;
	if (l->many) {
		far_many_key(l->i++, l->key);
		*key = l->key;
		far_many_object(l->key, &l->now);
	} else {
		l->now = *far_stored_at(l->i++);
		*key = l->now.key + l->skip;
	}
	return true;
}

static void lister_begin(struct lister *l)
{
	const char *from =
		strcmp(l->after, l->prefix) > 0 ? l->after : l->prefix;

	l->many = strcmp(l->bucket, "many") == 0;
	l->skip = strlen(l->bucket) + 1;
	if (l->many) {
		l->i = far_many_after(from, from == l->prefix);
		l->end = far_many();
	} else {
		l->end = far_stored(l->bucket, &l->i);
		l->end += l->i;
		while (l->i < l->end) {
			int order = strcmp(
				far_stored_at(l->i)->key + l->skip, from);

			if (order > 0 || (order == 0 && from == l->prefix))
				break;
			l->i++;
		}
	}
}

static void put_text(struct text *t, const char *text)
{
	size_t len = strlen(text);

	room_for(t, len);
	memcpy(t->at + t->len, text, len + 1);
	t->len += len;
}

/* Write an object of a listing. It does not use printf(), because that would
 * take most of the time for a million keys. */
static void put_object(struct text *t, const char *key,
	const struct far_object *o, const char *date)
{
	char size[24], *at = size + sizeof(size) - 1;
	uint64_t n = o->size;

	*at = '\0';
	do {
		*--at = (char)('0' + n % 10);
	} while (n /= 10);
	put_text(t, "<Contents><Key>");
	put_encoded(t, key);
	put_text(t, "</Key><LastModified>");
	put_text(t, date);
	put_text(t, "</LastModified><ETag>&quot;");
	put_text(t, o->etag);
	put_text(t, "&quot;</ETag>");
	if (far_set.no_size == 0) {
		put_text(t, "<Size>");
		put_text(t, at);
		put_text(t, "</Size>");
	}
	put_text(t, "<StorageClass>STANDARD</StorageClass></Contents>");
}

/* Returns the length of the common prefix in which the listing sums up the key;
 * 0 if the key is listed by itself. The key begins with `prefix`. */
static size_t common_length(
	const char *key, const char *prefix, const char *delimiter)
{
	const char *found;

	if (!*delimiter)
		return 0;
	found = strstr(key + strlen(prefix), delimiter);
	return found ? (size_t)(found - key) + strlen(delimiter) : 0;
}

static void put_common(struct text *t, const char *prefix)
{
	put_text(t, "<CommonPrefixes><Prefix>");
	put_encoded(t, prefix);
	put_text(t, "</Prefix></CommonPrefixes>");
}

/* Write at most a number of keys and common prefixes, and set `last` to the
 * last key. Returns true if more keys follow. */
static bool put_page(struct text *t, struct lister *l, const char *delimiter,
	int most, char last[1100])
{
	char date[40], common[1100] = "";
	const char *key;
	size_t len;
	int n = 0;

	lister_begin(l);
	iso_date(l->many ? 1000000000 : 0, date);
	while (lister_next(l, &key) &&
		strncmp(key, l->prefix, strlen(l->prefix)) == 0) {
		len = common_length(key, l->prefix, delimiter);
		if (len == 0 || strncmp(key, common, len) != 0 || common[len]) {
			if (n++ == most)
				return true;
			if (!l->many)
				iso_date(l->now.mtime_s, date);
			snprintf(common, sizeof(common), "%.*s", (int)len, key);
			if (len > 0)
				put_common(t, common);
			else
				put_object(t, key, &l->now, date);
		}
		if (!l->many || len > 0 || n == most)
			snprintf(last, 1100, "%s", key);
	}
	return false;
}

/* Write the token for the next page: a letter and the last key in hexadecimal
 * digits, which clients must not interpret. After the letter 'b' a page without
 * keys follows. */
static void put_token(struct text *t, const char *key, bool blank)
{
	put_text(t, blank ? "b" : "t");
	for (; *key; key++)
		put(t, "%02x", (unsigned char)*key);
}

static void read_token(const char *token, char *key)
{
	unsigned c;

	while (sscanf(token, "%2x", &c) == 1) {
		*key++ = (char)c;
		token += 2;
	}
	*key = '\0';
}

/* Find the key after which the page begins. Returns true if the page must have
 * no keys. */
static bool find_start(const struct far_request *r, char after[1100])
{
	char token[2200];

	far_query(r, "start-after", after, 1100);
	far_query(r, "continuation-token", token, sizeof(token));
	if (far_set.no_after > 0)
		after[0] = '\0';
	if (token[0])
		read_token(token + 1, after);
	if (far_set.endless > 0)
		after[0] = '\0';
	return token[0] != 't' || far_set.blank > 1;
}

static void give_list(
	const struct far_request *r, const char *bucket, struct far_answer *a)
{
	char prefix[1100], after[1100], delimiter[16], max[16], last[1100] = "";
	struct lister l = {.bucket = bucket, .prefix = prefix, .after = after};
	struct text t = {0};
	bool more, blank = find_start(r, after) && far_set.blank > 0;

	far_query(r, "prefix", prefix, sizeof(prefix));
	far_query(r, "delimiter", delimiter, sizeof(delimiter));
	far_query(r, "max-keys", max, sizeof(max));
	if (far_set.blank > 1)
		snprintf(last, sizeof(last), "%llu",
			(unsigned long long)far_count.lists);
	else if (far_set.blank > 0)
		snprintf(last, sizeof(last), "%s", after);
	far_count.lists++;
	a->delay_ms = far_set.list_ms;
	put(&t,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/"
		"2006-03-01/\"><Name>%s</Name><EncodingType>url</EncodingType>",
		bucket);
	more = put_page(&t, &l, delimiter,
		blank	       ? 0
			: *max ? atoi(max)
			       : 1000,
		last);
	if (far_set.endless > 0 || far_set.blank > 1)
		more = true;
	put(&t, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
	if (more) {
		put(&t, "<NextContinuationToken>");
		put_token(&t, last, far_set.blank > 0 && !blank);
		put(&t, "</NextContinuationToken>");
	}
	if (!(far_set.truncate_xml > 0))
		put(&t, "</ListBucketResult>");
	give_body(a, &t);
}

/* -- Objects --------------------------------------------------------------- */

static bool cut_range(const struct far_request *r, uint64_t size,
	uint64_t *first, uint64_t *last)
{
	const char *range = far_header(r, "range");
	unsigned long long a, b;

	*first = 0;
	*last = size - 1;
	if (!range || sscanf(range, "bytes=%llu-%llu", &a, &b) != 2)
		return false;
	*first = a;
	*last = b < size - 1 ? b : size - 1;
	return true;
}

static void give_object(const struct far_request *r, const char *key,
	const struct far_object *o, struct far_answer *a)
{
	const char *match = far_header(r, "if-match");
	char date[40], quoted[64];
	uint64_t first, last;
	bool ranged = cut_range(r, o->size, &first, &last) &&
		!happens(far_set.no_range);

	snprintf(quoted, sizeof(quoted), "\"%s\"", o->etag);
	if (match && strcmp(match, quoted) != 0) {
		give_error(a, 412, "PreconditionFailed");
		return;
	}
	if (ranged && first >= o->size) {
		give_error(a, 416, "InvalidRange");
		return;
	}
	if (!ranged) {
		first = 0;
		last = o->size - 1;
	}
	a->status = ranged ? 206 : 200;
	a->length = o->size ? last - first + 1 : 0;
	http_date(o->mtime_s, date);
	snprintf(a->headers, sizeof(a->headers),
		"ETag: \"%s%s\"\r\nLast-Modified: %s\r\n"
		"Accept-Ranges: bytes\r\n",
		o->etag, happens(far_set.bad_etag) ? "x" : "", date);
	if (ranged)
		snprintf(a->headers + strlen(a->headers), 200,
			"Content-Range: bytes %llu-%llu/%llu\r\n",
			(unsigned long long)first +
				(happens(far_set.bad_range) ? 1 : 0),
			(unsigned long long)last, (unsigned long long)o->size);
	if (o->data) {
		a->body = malloc(a->length + 1);
		memcpy(a->body, o->data + first, a->length);
	} else {
		a->pattern = far_pattern;
		a->pattern_at = (far_pattern_start(key) + first) % FAR_PATTERN;
	}
	a->object = true;
	a->unsized = happens(far_set.no_length);
	if (happens(far_set.cut)) {
		far_count.cut++;
		a->send = a->length / 2;
	}
}

/* Returns the error code that a store sends with an HTTP status. A proxy sends
 * none. */
static const char *code_of_status(unsigned status)
{
	switch (status) {
	case 403:
		return "AccessDenied";
	case 404:
		return "NoSuchKey";
	case 500:
		return "InternalError";
	default:
		return "Unknown";
	}
}

/* Answer with a fault if the settings demand one. Returns true if it did. */
static bool fault(const struct far_request *r, struct far_answer *a)
{
	if (happens(far_set.never)) {
		far_count.never++;
		a->never = true;
		return true;
	}
	if (happens(far_set.busy)) {
		far_count.busy++;
		give_error(a, 503, "SlowDown");
		if (far_set.retry_after > 0)
			snprintf(a->headers + strlen(a->headers), 64,
				"Retry-After: %.0f\r\n", far_set.retry_after);
		return true;
	}
	if (far_set.flood > 0) {
		a->status = (unsigned)far_set.flood;
		a->pattern = far_comments;
		a->length = UINT64_C(1) << 50;
		return true;
	}
	if (happens(far_set.loop)) {
		a->status = 302;
		snprintf(a->headers, sizeof(a->headers),
			"Location: http://%s%s\r\n", far_header(r, "host"),
			r->target);
		return true;
	}
	if (far_set.away > 0) {
		a->status = 307;
		snprintf(a->headers, sizeof(a->headers),
			"Location: http://localhost:%.0f%s\r\n", far_set.away,
			r->target);
		return true;
	}
	return false;
}

static void get_object(const struct far_request *r, const char *bucket,
	const char *key, struct far_answer *a)
{
	struct far_object o, *stored = far_find(bucket, key);

	a->delay_ms = far_set.delay_ms;
	if (strcmp(r->method, "HEAD") == 0)
		far_count.heads++;
	else
		far_count.gets++;
	if (fault(r, a))
		return;
	if (far_set.archived > 0 || far_set.code > 0) {
		unsigned status =
			far_set.archived > 0 ? 403 : (unsigned)far_set.code;

		give_error(a, status,
			far_set.archived > 0 ? "InvalidObjectState"
					     : code_of_status(status));
		return;
	}
	if (happens(far_set.error_doc)) {
		give_error(a, 200, "InternalError");
		return;
	}
	if (stored)
		o = *stored;
	else if (strcmp(bucket, "many") != 0 || !far_many_find(key, &o)) {
		give_error(a, 404, "NoSuchKey");
		return;
	}
	give_object(r, key, &o, a);
}

static const char *refusal(const struct far_request *r)
{
	if (far_set.payer > 0 &&
		!has_value(r, "x-amz-request-payer", "requester"))
		return "AccessDenied";
	return far_set.verify > 0 ? far_verify(r) : NULL;
}

static void put_response(struct text *t, const char *path, const char *key,
	const struct far_object *o)
{
	put_text(t, "<D:response><D:href>/");
	put_encoded(t, path);
	put_text(t, "/");
	put_encoded(t, key);
	put_text(t, "</D:href><D:propstat><D:prop>");
	if (o) {
		char date[40];

		http_date(o->mtime_s, date);
		put(t,
			"<D:getcontentlength>%llu</D:getcontentlength>"
			"<D:getlastmodified>%s</D:getlastmodified>"
			"<D:getetag>\"%s\"</D:getetag>",
			(unsigned long long)o->size, date, o->etag);
	} else
		put_text(t, "<D:resourcetype><D:collection/></D:resourcetype>");
	put_text(t, "</D:prop></D:propstat></D:response>");
}

/* Does a web server have a directory of this name, without the slash? */
static bool is_dir_of_web(const char *bucket, const char *key)
{
	uint64_t i, n = far_stored(bucket, &i);
	size_t len = strlen(bucket) + 1 + strlen(key);

	if (far_set.web <= 0 || !*key || key[strlen(key) - 1] == '/')
		return false;
	for (n += i; i < n; i++) {
		const char *full = far_stored_at(i)->key;

		if (strlen(full) > len && full[len] == '/' &&
			strncmp(full + strlen(bucket) + 1, key, strlen(key)) ==
				0)
			return true;
	}
	return false;
}

/* WebDAV: list the objects below a path, one level deep. */
static void give_dav(const char *bucket, char *below, struct far_answer *a)
{
	char path[1100], last[256] = "";
	struct text t = {0};
	uint64_t i, n = far_stored(bucket, &i);
	size_t skip;
	bool any = far_set.web <= 0;

	if (*below && below[strlen(below) - 1] == '/')
		below[strlen(below) - 1] = '\0';
	snprintf(
		path, sizeof(path), "%s%s%s", bucket, *below ? "/" : "", below);
	skip = strlen(path) + 1;
	put_text(&t, "<D:multistatus xmlns:D=\"DAV:\">");
	for (n += i; i < n; i++) {
		const struct far_object *o = far_stored_at(i);
		char name[256];

		if (strlen(o->key) < skip || o->key[skip - 1] != '/' ||
			strncmp(o->key, path, skip - 1) != 0)
			continue;
		any = true;
		snprintf(name, sizeof(name), "%.*s",
			(int)strcspn(o->key + skip, "/"), o->key + skip);
		if (o->key[skip + strlen(name)] == '\0') {
			put_response(&t, path, name, o);
		} else if (strcmp(name, last) != 0) {
			strcpy(last, name);
			strcat(name, "/");
			put_response(&t, path, name, NULL);
		}
	}
	put_text(&t, "</D:multistatus>");
	a->status = any ? 207 : 404;
	give_body(a, &t);
}

static void bucket_request(const struct far_request *r, char *bucket, char *key,
	struct far_answer *a)
{
	const char *why = refusal(r);

	if (far_header(r, "authorization") ||
		far_header(r, "x-amz-security-token"))
		far_count.authorized++;

	if (strcmp(r->method, "PUT") == 0) {
		far_count.puts++;
		far_put(bucket, key, r->body, r->body_len);
	} else if (strcmp(r->method, "DELETE") == 0) {
		far_delete(bucket, key);
	} else if (why) {
		far_count.refused++;
		a->delay_ms = far_set.delay_ms;
		put_date(a);
		if (strcmp(why, FAR_OTHER_REGION) == 0)
			strcat(a->headers, "x-amz-bucket-region: eu-far-1\r\n");
		give_error(a,
			strstr(why, "Malformed") ||
					strcmp(why, FAR_OTHER_REGION) == 0
				? 400
				: 403,
			why);
	} else if (strcmp(r->method, "PROPFIND") == 0) {
		far_count.lists++;
		give_dav(bucket, key, a);
	} else if (!far_has_bucket(bucket)) {
		give_error(a, 404, "NoSuchBucket");
	} else if (!*key && far_set.no_list > 0) {
		give_error(a, 403, "AccessDenied");
	} else if (!*key) {
		if (!fault(r, a))
			give_list(r, bucket, a);
	} else if (is_dir_of_web(bucket, key)) {
		a->status = 301;
		snprintf(a->headers, sizeof(a->headers), "Location: %s/\r\n",
			r->path);
	} else {
		get_object(r, bucket, key, a);
	}
}

void far_handle(const struct far_request *r, struct far_answer *a)
{
	char *path, *key;

	if (strncmp(r->path, "/-/", 3) == 0) {
		control(r, a);
		return;
	}
	if (service(r, a))
		return;
	path = strdup(r->path + 1);
	far_decode(path, false);
	key = strchr(path, '/');
	if (key)
		*key++ = '\0';
	bucket_request(r, path, key ? key : path + strlen(path), a);
	free(path);
	a->head_only = strcmp(r->method, "HEAD") == 0;
}
