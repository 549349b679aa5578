/* SPDX-License-Identifier: MIT */
/* Handles answers other than 2xx: decides whether the call is repeated, and
 * with which status it ends otherwise. Loop threads. */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "origin/object/site_impl.h"
#include "origin/web/web.h"

#define THROTTLED_MAX 64u
#define PAUSE_MAX_NS (5 * NS_PER_S)
#define RENEWED_MAX 2u
#define MOVED_MAX 3u
#define REDIRECTS_MAX 5u
#define AGAIN_MAX 5u
#define AGAIN_PROPFIND_MAX 2u /* after this many repetitions, GET is tried */
/* first pause; it doubles each time, to 3.1 s in total */
#define AGAIN_PAUSE_NS (100 * NS_PER_MS)
#define RENEW_PAUSE_NS (20 * NS_PER_MS)

static const char *certificate_advice(const struct call *c)
{
	if (transfer_unknown_authority(&c->t))
		return "set AWS_CA_BUNDLE to its authority's file";
	if (c->t.verify)
		return "check it, and this machine's clock";
	return "check the host, and the file of AWS_CA_BUNDLE";
}

static void keep_failure(struct call *c, int status)
{
	char host[OBJECT_HOST_MAX], words[900];

	pthread_mutex_lock(&c->r->lock);
	strcpy(host, c->r->host);
	pthread_mutex_unlock(&c->r->lock);
	if (status == -EHOSTUNREACH)
		(void)snprintf(words, sizeof(words),
			"cannot resolve the host of '%s'; check its name",
			host);
	else if (status == -ECONNREFUSED)
		(void)snprintf(words, sizeof(words),
			"cannot connect to '%s'; check the host and the port",
			host);
	else if (status == -EKEYREJECTED)
		(void)snprintf(words, sizeof(words),
			"the certificate of '%s' is not valid (%s); %s", host,
			transfer_why(&c->t), certificate_advice(c));
	else if (status == -EPROTO)
		(void)snprintf(words, sizeof(words),
			"'%s' does not agree on TLS; check that its port is "
			"one for https",
			host);
	else if (status == -ETIMEDOUT)
		(void)snprintf(words, sizeof(words),
			"'%s' does not answer in time; check the host and the "
			"network",
			host);
	else if (status == -EFBIG)
		(void)snprintf(words, sizeof(words),
			"an index of '%s' is longer than 48 MiB; give the "
			"names with --manifest",
			host);
	else
		(void)snprintf(words, sizeof(words),
			"'%s' sent no usable answer (%s); check the host and "
			"the port",
			host, strerror(-status));
	object_words(c->r, status, words);
}

/* -- Repeating ------------------------------------------------------------- */

/* Returns the next pause. It doubles each time, and half of it is random. */
static uint64_t throttle_pause(struct call *c)
{
	uint64_t round = loops_round_trip_ns(c->r->loops);
	uint64_t pause = round << (c->throttled < 12 ? c->throttled - 1 : 11);
	uint64_t now = clock_now_ns();

	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	pause = pause / 2 +
		hash64(&now, sizeof(now), c->throttled) % (pause / 2 + 1);
	return pause > call_answer(c)->retry_after_ns
		? pause
		: call_answer(c)->retry_after_ns;
}

static bool repeat_throttled(struct call *c)
{
	struct event e = {.kind = EVENT_ORIGIN_THROTTLED};

	object_words(c->r, -EIO,
		"the server is busy and refuses requests; try again later");
	COUNT(c->r->counters, origin_throttled);
	if (loops_throttled(c->r->loops) && !object_flag(&c->r->alone)) {
		e.n = loops_depth(c->r->loops);
		event_report(c->r->events, &e);
	}
	if (++c->throttled > THROTTLED_MAX)
		return false;
	transfer_start_later(call_loop(c), &c->t, throttle_pause(c));
	return true;
}

static bool repeat_renewed(struct call *c)
{
	if (!c->r->creds || ++c->renewed > RENEWED_MAX)
		return false;
	creds_expired(c->r->creds, c->generation);
	transfer_start_later(call_loop(c), &c->t, RENEW_PAUSE_NS);
	return true;
}

static bool repeat_skewed(struct call *c)
{
	int64_t server_s = call_answer(c)->date_ns / (int64_t)NS_PER_S;

	if (server_s == 0 || ++c->skewed > 1)
		return false;
	atomic_store_explicit(
		&c->r->skew_s, server_s - time(NULL), memory_order_relaxed);
	transfer_start(call_loop(c), &c->t);
	return true;
}

/* Repeat the call in the region that the server names in a header or in the
 * document. */
static bool repeat_moved(struct call *c)
{
	char region[OBJECT_REGION_MAX] = "";

	if (call_answer(c)->region[0])
		strcpy(region, call_answer(c)->region);
	else
		xml_find(bytes_get(&c->error), bytes_len(&c->error), "Region",
			region, sizeof(region));
	if (!region[0] || ++c->moved > MOVED_MAX)
		return false;
	site_set_region(c->r, region);
	transfer_start(call_loop(c), &c->t);
	return true;
}

/* Follow a redirect of http. This is safe, because the request contains no
 * secret. */
static bool repeat_elsewhere(struct call *c)
{
	struct bytes from = {0};
	int rc;

	if (!call_answer(c)->location[0] || ++c->moved > REDIRECTS_MAX)
		return false;
	if (bytes_len(&c->redirect) > 0)
		bytes_text(&from, bytes_get(&c->redirect));
	else
		bytes_printf(&from, "%s://%s%s", c->r->scheme, c->r->host,
			bytes_get(&c->path));
	bytes_reset(&c->redirect);
	rc = url_resolve(
		bytes_get(&from), call_answer(c)->location, &c->redirect);
	bytes_release(&from);
	if (rc < 0)
		return false;
	transfer_start(call_loop(c), &c->t);
	return true;
}

static bool is_propfind(const struct call *c)
{
	return strcmp(c->method, "PROPFIND") == 0;
}

/* Repeat two kinds of calls that no layer above repeats: the one request at the
 * start of a mount, and a PROPFIND that may show that a server has no WebDAV.
 */
static bool repeat_alone(struct call *c)
{
	bool is_trial = is_propfind(c) && !object_flag(&c->r->dav);

	if ((!is_trial && !object_flag(&c->r->alone)) ||
		++c->again > (is_trial ? AGAIN_PROPFIND_MAX : AGAIN_MAX))
		return false;
	COUNT(c->r->counters, origin_retries);
	transfer_start_later(
		call_loop(c), &c->t, AGAIN_PAUSE_NS << (c->again - 1));
	return true;
}

static bool is_passing_code(const struct call *c)
{
	unsigned code = call_status(c);

	return code == 500 || code == 502 || code == 504;
}

/* -- S3 -------------------------------------------------------------------- */

struct meaning {
	const char *code;
	int status;
	const char *words; /* the text after "the server says CODE: " */
};

static const struct meaning meanings[] = {
	{"NoSuchKey", -ENOENT, NULL},
	{"NoSuchBucket", -EIO, "there is no such bucket; check its name"},
	{"AccessDenied", -EACCES,
		"these credentials do not permit this request; check the "
		"bucket's policy and --profile"},
	{"AllAccessDisabled", -EACCES, "the bucket is disabled"},
	{"InvalidObjectState", -EACCES,
		"the object is archived; restore it first"},
	{"InvalidAccessKeyId", -EACCES,
		"the server does not know the access key; check the "
		"credentials and --endpoint-url"},
	{"SignatureDoesNotMatch", -EACCES,
		"the secret key does not match the access key; check the "
		"credentials"},
	{"AuthorizationHeaderMalformed", -EACCES,
		"the region is wrong; give it with --region"},
	{"InvalidToken", -EACCES, "the session token is not valid"},
	{"ExpiredToken", -EACCES, "the credentials have expired; renew them"},
	{"RequestTimeTooSkewed", -EACCES,
		"this machine's clock is wrong; set it"},
	{"PermanentRedirect", -ELOOP,
		"the bucket is in another region or store; check "
		"--endpoint-url and --region"},
	{"TemporaryRedirect", -EIO,
		"the bucket is new or elsewhere for a while; try again later"},
	{"PreconditionFailed", -ESTALE, NULL},
	{"InvalidRange", -ESTALE, NULL},
	{"InvalidBucketName", -EIO, "the bucket's name is not valid"},
	{NULL, 0, NULL},
};

static bool is_redirect(unsigned code)
{
	return code == 301 || code == 302 || code == 303 || code == 307 ||
		code == 308;
}

/* A redirect that is not followed is final, because the same request would get
 * the same redirect. Temporary redirects of a store are an exception: for a
 * while, S3 redirects requests for a new bucket, and a gateway may redirect to
 * another gateway that takes its place. */
static int redirect_status(const struct call *c)
{
	unsigned code = call_status(c);

	return c->r->s3 && code != 301 && code != 308 ? -EIO : -ELOOP;
}

static int status_of_code(const struct call *c)
{
	unsigned code = call_status(c);

	if (is_redirect(code))
		return redirect_status(c);
	switch (code) {
	case 404:
	case 410:
		return -ENOENT;
	case 401:
	case 403:
		return -EACCES;
	case 412:
	case 416:
		return -ESTALE;
	default:
		return -EIO;
	}
}

static const struct meaning *find_meaning(const char *code)
{
	for (const struct meaning *m = meanings; m->code; m++)
		if (strcmp(m->code, code) == 0)
			return m;
	return NULL;
}

/* Does the answer say that the key of the request does not exist? While a store
 * is away, a proxy may also answer 404, but without the error code of S3. The
 * answer to HEAD has no document and so no code. A listing has no key. */
static bool misses_key(const struct call *c, const struct meaning *m)
{
	return bytes_len(&c->query) == 0 &&
		(m || strcmp(c->method, "HEAD") == 0);
}

/* Returns the status for an answer of S3. The document is not trusted, because
 * anybody on the network path may have sent it: messages contain only known
 * codes of it. */
static int s3_status(struct call *c)
{
	const struct meaning *m = find_meaning(c->code);
	int status = m ? m->status : status_of_code(c);
	char words[300];

	c->words = m ? m->words : NULL;
	if (m && m->words) {
		(void)snprintf(words, sizeof(words), "the server says %s: %s",
			m->code, m->words);
		object_words(c->r, status, words);
	} else if (!m) {
		(void)snprintf(words, sizeof(words),
			"the server answers with HTTP status %u%s",
			call_status(c),
			status == -ELOOP ? ", a redirect; check --endpoint-url"
					 : "");
		object_words(c->r, status, words);
	}
	return status == -ENOENT && !misses_key(c, m) ? -EIO : status;
}

static bool is_code(const struct call *c, const char *code)
{
	return strcmp(c->code, code) == 0;
}

/* Did the answer name another region than that of the call? The origin's region
 * may already be that one, if another call has got such an answer. */
static bool names_other_region(const struct call *c)
{
	const char *region = call_answer(c)->region;

	return region[0] && strcmp(region, c->region) != 0;
}

static bool s3_repeats(struct call *c)
{
	unsigned code = call_status(c);

	xml_find(bytes_get(&c->error), bytes_len(&c->error), "Code", c->code,
		sizeof(c->code));
	if (code == 503 || code == 429 || is_code(c, "SlowDown"))
		return repeat_throttled(c);
	if (is_code(c, "ExpiredToken") || is_code(c, "TokenRefreshRequired"))
		return repeat_renewed(c);
	if (is_code(c, "RequestTimeTooSkewed"))
		return repeat_skewed(c);
	if (code == 301 || code == 307 ||
		is_code(c, "AuthorizationHeaderMalformed"))
		return repeat_moved(c);
	/* The status is enough: the code in the document varies, and the answer
	 * to HEAD has no document. */
	return code == 400 && names_other_region(c) && repeat_moved(c);
}

/* -- Both ------------------------------------------------------------------ */

static int http_status(struct call *c)
{
	int status = status_of_code(c);
	char words[200];

	c->words = NULL;
	(void)snprintf(words, sizeof(words),
		"the server answers with HTTP status %u", call_status(c));
	object_words(c->r, status, words);
	return status;
}

/* Keep the host of a redirect for messages. Leave out the path and the query,
 * because they may contain a secret. */
static void keep_redirect(const struct call *c, int status)
{
	char host[OBJECT_HOST_MAX], words[900];

	pthread_mutex_lock(&c->r->lock);
	strcpy(host, c->r->host);
	pthread_mutex_unlock(&c->r->lock);
	if (c->moved > REDIRECTS_MAX)
		(void)snprintf(words, sizeof(words),
			"redirect loop at '%s': more than %u redirects for one "
			"request; mount the final address, or mend the "
			"server's redirects",
			host, REDIRECTS_MAX);
	else
		(void)snprintf(words, sizeof(words),
			"'%s' redirects to an address that cannot be used; "
			"mount the final address, or mend the server's "
			"redirects",
			host);
	object_words(c->r, status, words);
}

bool answer_repeats(struct call *c, int *status)
{
	unsigned code = call_status(c);

	if (c->r->s3) {
		if (s3_repeats(c))
			return true;
		*status = s3_status(c);
		return is_passing_code(c) && repeat_alone(c);
	}
	if ((code == 503 || code == 429) && repeat_throttled(c))
		return true;
	if (is_redirect(code)) {
		if (repeat_elsewhere(c))
			return true;
		*status = redirect_status(c);
		keep_redirect(c, *status);
		return false;
	}
	*status = http_status(c);
	return is_passing_code(c) && repeat_alone(c);
}

bool answer_failed(struct call *c, int status)
{
	keep_failure(c, status);
	return status == -ECONNRESET && call_status(c) == 0 && repeat_alone(c);
}
