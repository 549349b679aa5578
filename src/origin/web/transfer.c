/* SPDX-License-Identifier: MIT */
/* One transfer and libcurl: options, header and body callbacks, and the end. An
 * easy handle is reused with all its options except those of the request,
 * because setting options takes longer than sending. Loop thread only. */
#include "origin/web/web_loop_impl.h"

#include <errno.h>
#include <string.h>

#include <curl/curl.h>
#include <openssl/x509_vfy.h>

#include "common/base/clock.h"
#include "common/base/magic.h"

#define AGAIN_NS (20 * NS_PER_MS)
/* The size of libcurl's buffer. An object of usual size fits in one piece. */
#define BUFFER_BYTES 131072L
/* A transfer slower than this counts as stalled. The limit is very low: at full
 * depth on a slow link, each transfer gets only a small part of the rate. */
#define STALL_BYTES_S 1000L
#define USER_AGENT "refrain/" PACKAGE_VERSION

/* -- Callbacks of libcurl -------------------------------------------------- */

static size_t header_arrived(char *line, size_t size, size_t n, void *arg)
{
	struct transfer *t = OBJECT(transfer, arg);
	struct web_loop *l = web_loop_of(t->loop);

	n *= size;
	if (t->state == ARRIVING) /* the line belongs to a trailer */
		return n;
	if (n > 2 || (line[0] != '\r' && line[0] != '\n')) {
		head_line(&t->head, line, n);
		return n;
	}
	/* after a status of 1xx, another answer follows */
	if (t->head.code < 200)
		return n;
	list_del(&t->node);
	list_add_tail(&l->arriving, &t->node);
	t->state = ARRIVING;
	web_loop_note_time(l, clock_now_ns() - t->since_ns);
	t->refused = t->head.bad ? -EBADMSG : t->ops->head(t, &t->head);
	return t->refused ? 0 : n;
}

static size_t body_arrived(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = OBJECT(transfer, arg);

	n *= size;
	if (t->state == SENT) /* an answer without headers, of HTTP/0.9 */
		t->refused = -EBADMSG;
	else
		t->refused = t->ops->data(t, data, n);
	return t->refused ? n + 1 : n;
}

/* -- Failures, and names --------------------------------------------------- */

static int status_of(const struct transfer *t, CURLcode code)
{
	if (t->refused)
		return t->refused;
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return -EKEYREJECTED;
	case CURLE_SSL_CONNECT_ERROR:
		return -EPROTO;
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

static bool is_resolved(const struct transfer *t)
{
	curl_off_t us = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &us);
	return us > 0;
}

/* Called before libcurl starts a thread that looks up a name. If the name
 * server does not answer, such a thread exists much longer than its transfer.
 * So each loop starts at most one of them in the time that a connection may
 * take. Other transfers wait for that look-up, and fail if it fails. */
static int look_up(void *state, void *reserved, void *arg)
{
	struct transfer *t = OBJECT(transfer, arg);
	struct web_loop *l = web_loop_of(t->loop);
	uint64_t now = clock_now_ns();

	(void)state;
	(void)reserved;
	if (l->resolving && is_resolved(l->resolving)) {
		l->resolving = NULL;
		l->lookup_until_ns = 0;
	}
	if (t->waits && t->failed_lookups != l->failed_lookups) {
		t->refused = l->lookup_status;
	} else if (l->resolving || now < l->lookup_until_ns) {
		t->waits++;
		t->failed_lookups = l->failed_lookups;
		t->refused = -EAGAIN;
	} else {
		l->resolving = t;
		l->lookup_until_ns = now + l->e->config.connect_ms * NS_PER_MS;
	}
	return t->refused;
}

/* Note whether the look-up that this transfer has started is over. The transfer
 * leaves the loop. */
static void end_lookup(struct web_loop *l, const struct transfer *t)
{
	if (is_resolved(t) || t->why == CURLE_COULDNT_RESOLVE_HOST ||
		t->why == CURLE_COULDNT_RESOLVE_PROXY)
		l->lookup_until_ns = 0;
	if (!is_resolved(t) && t->why) {
		l->failed_lookups++;
		l->lookup_status = status_of(t, (CURLcode)t->why);
	}
	l->resolving = NULL;
}

/* Pause the transfer. The longer the look-up takes, the longer the pause is. */
static void wait_for_lookup(struct transfer *t)
{
	unsigned waits = t->waits;

	transfer_start_later(t->loop, t, waits * AGAIN_NS);
	t->waits = waits;
}

/* -- Handles --------------------------------------------------------------- */

static void set_fixed(struct web_loop *l, CURL *easy)
{
	const struct loops_config *c = &l->e->config;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
	curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
	/* With this option, the loop does not wait for a name server that does
	 * not answer. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, look_up);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES_S);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
		c->http2 ? (long)CURL_HTTP_VERSION_2TLS
			 : (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_arrived);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_arrived);
	if (!l->e->proxies)
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (l->e->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, l->e->ca_file);
	if (c->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	suites_order(easy);
}

static CURL *easy_get(struct web_loop *l)
{
	CURL *easy;

	if (l->nidle > 0)
		return l->idle[--l->nidle];
	easy = curl_easy_init();
	if (easy)
		set_fixed(l, easy);
	return easy;
}

static void easy_put(struct web_loop *l, CURL *easy)
{
	if (l->nidle == LOOP_EASY_MAX) {
		curl_easy_cleanup(easy);
		return;
	}
	/* Clear the options of the request before. */
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
	curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	l->idle[l->nidle++] = easy;
}

void web_loop_release_handles(struct web_loop *l)
{
	while (l->nidle > 0)
		curl_easy_cleanup(l->idle[--l->nidle]);
}

/* -- One request ----------------------------------------------------------- */

/* Convert the lines to a list. The text is divided in place. */
static int make_lines(struct transfer *t, char *text)
{
	struct curl_slist *lines = NULL, *more;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		more = curl_slist_append(lines, line);
		if (!more) {
			curl_slist_free_all(lines);
			return -ENOMEM;
		}
		lines = more;
	}
	t->lines = lines;
	return 0;
}

static void set_method(CURL *easy, const struct request_text *text)
{
	if (strcmp(text->method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (text->body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
			(curl_off_t)text->body_len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, text->body);
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, text->method);
	} else if (strcmp(text->method, "GET") != 0) {
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, text->method);
	}
}

static int set_request(struct transfer *t, struct request_text *text)
{
	CURL *easy = t->easy;
	int rc;

	bytes_text(&text->headers, "Expect:\n");
	if (bytes_failed(&text->url) || bytes_failed(&text->headers))
		return -ENOMEM;
	rc = make_lines(t, bytes_edit(&text->headers));
	if (rc < 0)
		return rc;
	set_method(easy, text);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->lines);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)t->fresh);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
		(long)(t->stall_s ? t->stall_s
				  : web_loop_of(t->loop)->e->config.stall_s));
	MAGIC_BEGIN(t, transfer);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, t);
	if (curl_easy_setopt(easy, CURLOPT_URL, bytes_get(&text->url)) !=
		CURLE_OK)
		return -ENOMEM;
	return 0;
}

/* Remove the transfer from libcurl and all lists. */
void transfer_drop(struct transfer *t)
{
	struct web_loop *l = web_loop_of(t->loop);

	list_del(&t->node);
	if (t->state == SENT || t->state == ARRIVING)
		l->active--;
	t->state = TRANSFER_IDLE;
	if (l->resolving == t)
		end_lookup(l, t);
	if (t->easy) {
		(void)curl_multi_remove_handle(l->multi, t->easy);
		easy_put(l, t->easy);
		t->easy = NULL;
	}
	curl_slist_free_all(t->lines);
	t->lines = NULL;
	MAGIC_END(t);
}

static int send_now(struct web_loop *l, struct transfer *t)
{
	struct request_text *text = &l->text;
	int rc;

	bytes_reset(&text->url);
	bytes_reset(&text->headers);
	text->method = "GET";
	text->body = NULL;
	text->body_len = 0;
	if (!l->multi)
		return -ENOMEM;
	rc = t->ops->prepare(t, text);
	if (rc < 0)
		return rc;
	t->easy = easy_get(l);
	if (!t->easy)
		return -ENOMEM;
	rc = set_request(t, text);
	if (rc < 0)
		return rc;
	return curl_multi_add_handle(l->multi, t->easy) == CURLM_OK ? 0
								    : -ENOMEM;
}

void transfer_send(struct web_loop *l, struct transfer *t)
{
	int rc;

	list_del(&t->node);
	t->state = SENT;
	l->active++;
	memset(&t->head, 0, sizeof(t->head));
	rc = send_now(l, t);
	if (rc == 0) {
		t->since_ns = clock_now_ns();
		list_add_tail(&l->sent, &t->node);
		if (t->waits) /* `waits` was counted already */
			return;
		atomic_fetch_add_explicit(
			&l->e->requests, 1, memory_order_relaxed);
		COUNT(l->e->config.counters, origin_requests);
		return;
	}
	transfer_drop(t);
	if (rc == -EAGAIN)
		transfer_start_later(&l->loop, t, AGAIN_NS);
	else
		t->ops->done(t, rc);
}

/* -- The end --------------------------------------------------------------- */

static void reap_one(CURL *easy, CURLcode code)
{
	struct transfer *t = NULL;
	char *private = NULL;
	int status;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	t = OBJECT(transfer, private);
	status = status_of(t, code);
	/* libcurl considers the answer complete, but its headers were not
	 * valid. */
	if (status == 0 && t->state != ARRIVING)
		status = -EBADMSG;
	t->why = (int)code;
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		(void)curl_easy_getinfo(
			easy, CURLINFO_SSL_VERIFYRESULT, &t->verify);
	/* this value means that libcurl has checked no certificate */
	if (t->verify == X509_V_ERR_UNSPECIFIED)
		t->verify = X509_V_OK;
	transfer_drop(t);
	if (t->refused == -EAGAIN)
		wait_for_lookup(t);
	else
		t->ops->done(t, status);
}

void transfer_reap(struct web_loop *l)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(l->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			reap_one(message->easy_handle, message->data.result);
}

const char *transfer_why(const struct transfer *t)
{
	if (t->why != CURLE_PEER_FAILED_VERIFICATION)
		return curl_easy_strerror((CURLcode)t->why);
	return t->verify ? X509_verify_cert_error_string(t->verify)
			 : "it is for another host";
}

bool transfer_unknown_authority(const struct transfer *t)
{
	return t->verify == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
		t->verify == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
		t->verify == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
		t->verify == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}
