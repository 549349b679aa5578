/* SPDX-License-Identifier: MIT */
/* Calls: builds and signs a request right before it is sent, collects error
 * documents, and repeats the request if the server wants that. Runs on loop
 * threads; the origin's lock guards what its calls share. */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"

static struct call *call_of(struct transfer *t)
{
	return CONTAINER_OF(t, struct call, t);
}

/* -- The request ----------------------------------------------------------- */

static int sign_call(
	struct call *c, const char *host, struct request_text *text)
{
	struct object_origin *r = c->r;
	struct secret secret;
	struct sign_request request = {
		.method = c->method,
		.host = host,
		.path = bytes_get(&c->path),
		.query = bytes_get(&c->query),
		.payload_hash = SIGN_EMPTY_HASH,
		.payer = r->payer,
		.region = c->region,
		.service = "s3",
		.now = time(NULL) +
			atomic_load_explicit(&r->skew_s, memory_order_relaxed),
	};
	int rc;

	if (!creds_get(r->creds, &secret)) {
		object_words(r, -EAGAIN,
			"there are no valid credentials at present; check "
			"where they come from");
		return -EAGAIN;
	}
	request.access_key = secret.access_key;
	request.secret = secret.key;
	request.token = secret.token[0] ? secret.token : NULL;
	rc = sign_headers(
		web_loop_sign_key(c->t.loop), &request, &text->headers);
	c->generation = secret.generation;
	explicit_bzero(&secret, sizeof(secret));
	return rc;
}

static int call_prepare(struct transfer *t, struct request_text *text)
{
	struct call *c = call_of(t);
	struct object_origin *r = c->r;
	char host[OBJECT_HOST_MAX];
	int rc = 0;

	text->method = c->method;
	text->body = c->body;
	text->body_len = c->body_len;
	bytes_reset(&c->error);
	c->code[0] = '\0';
	if (bytes_failed(&c->path) || bytes_failed(&c->query) ||
		bytes_failed(&c->more))
		return -ENOMEM;
	if (bytes_len(&c->redirect) > 0) {
		bytes_text(&text->url, bytes_get(&c->redirect));
	} else {
		pthread_mutex_lock(&r->lock);
		strcpy(host, r->host);
		strcpy(c->region, r->region);
		pthread_mutex_unlock(&r->lock);
		bytes_printf(&text->url, "%s://%s%s%s%s", r->scheme, host,
			bytes_get(&c->path),
			bytes_len(&c->query) > 0 ? "?" : "",
			bytes_get(&c->query));
	}
	if (r->creds)
		rc = sign_call(c, host, text);
	else if (r->payer)
		bytes_text(&text->headers, "x-amz-request-payer: requester\n");
	if (bytes_len(&c->more) > 0)
		bytes_text(&text->headers, bytes_get(&c->more));
	return rc;
}

/* -- The answer ------------------------------------------------------------ */

static bool is_success(const struct head *h)
{
	return h->code >= 200 && h->code < 300;
}

/* Is the rest of the answer short? Then it is read to its end, so that the
 * connection can be used again. */
static bool is_short(const struct head *h)
{
	return h->has_length && h->length <= CALL_ERROR_MAX;
}

static int call_head(struct transfer *t, const struct head *h)
{
	struct call *c = call_of(t);
	int rc;

	if (!is_success(h))
		return 0;
	loops_answered(c->r->loops);
	rc = c->ops->head ? c->ops->head(c, h) : 0;
	return rc == 0 && c->heads_only && !is_short(h) ? -EALREADY : rc;
}

static int call_data(struct transfer *t, const void *data, size_t len)
{
	struct call *c = call_of(t);

	if (is_success(&t->head))
		return c->ops->data ? c->ops->data(c, data, len) : 0;
	/* Cut the document, which may have no end; its beginning is enough. */
	if (bytes_len(&c->error) + len > CALL_ERROR_MAX)
		return -EALREADY;
	bytes_add(&c->error, data, len);
	return 0;
}

static void call_slow(struct transfer *t)
{
	struct call *c = call_of(t);

	if (c->ops->slow)
		c->ops->slow(c);
}

static void call_done(struct transfer *t, int status)
{
	struct call *c = call_of(t);

	if (status == -EALREADY)
		status = 0; /* the caller wants only the headers */
	if (status == 0 && !is_success(&t->head)) {
		if (answer_repeats(c, &status))
			return;
	} else if (status < 0 && status != -ECANCELED) {
		if (answer_failed(c, status))
			return;
	}
	c->ops->done(c, status);
}

static const struct transfer_ops call_transfer_ops = {
	.prepare = call_prepare,
	.head = call_head,
	.data = call_data,
	.slow = call_slow,
	.done = call_done,
};

/* -- Life ------------------------------------------------------------------ */

void call_init(struct call *c, struct object_origin *r,
	const struct call_ops *ops, const char *method)
{
	memset(c, 0, sizeof(*c));
	c->t.ops = &call_transfer_ops;
	c->r = r;
	c->ops = ops;
	c->method = method;
}

void call_start(struct loop *l, struct call *c)
{
	transfer_start(l, &c->t);
}

void call_cancel(struct call *c)
{
	transfer_cancel(&c->t);
}

void call_release(struct call *c)
{
	bytes_release(&c->path);
	bytes_release(&c->query);
	bytes_release(&c->more);
	bytes_release(&c->error);
	bytes_release(&c->redirect);
}

void call_base_path(struct call *c)
{
	const struct object_origin *r = c->r;

	bytes_reset(&c->path);
	bytes_text(&c->path, r->base_path[0] ? r->base_path : "/");
}

void call_key(struct call *c, const char *key)
{
	bytes_reset(&c->path);
	bytes_printf(&c->path, "%s/", c->r->base_path);
	bytes_encode(&c->path, key, strlen(key), true);
}

void call_path(struct call *c, const char *name)
{
	const struct object_origin *r = c->r;

	bytes_reset(&c->path);
	bytes_text(&c->path, r->base_path);
	bytes_char(&c->path, '/');
	bytes_encode(&c->path, r->prefix, strlen(r->prefix), true);
	bytes_encode(&c->path, name, strlen(name), true);
}

void call_query(struct call *c, const char *name, const char *value)
{
	if (bytes_len(&c->query) > 0)
		bytes_char(&c->query, '&');
	bytes_text(&c->query, name);
	bytes_char(&c->query, '=');
	bytes_encode(&c->query, value, strlen(value), false);
}
