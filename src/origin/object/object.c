/* SPDX-License-Identifier: MIT */
/* Remote origins: construction, the table of operations, and messages for the
 * operator. Requests come from any thread and are posted to the loops. */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "origin/object/s3_list_impl.h"
#include "origin/object/http_names_impl.h"
#include "origin/object/site_impl.h"

/* The length of a GET. It is so short that other readers get their turn. */
#define REQUEST_BYTES ((size_t)8 << 20)
#define CHUNK_BYTES (UINT64_C(1) << 20)
/* With many long requests in flight, memory must remain for items that were
 * fetched but not read yet, so requests may use only 1 / MEMORY_SHARE. */
#define MEMORY_SHARE 4u
/*
 * The search for the depth begins with this number of requests. With 10 to 30
 * ms to the first byte, the best depth is one or two steps away. A search that
 * began at 4 lost half a second at full rate, and one that began at 32 could
 * end there: at a depth of 64 on a shared link, answers may come all at once,
 * followed by a pause.
 */
#define DEPTH_FIRST 64u

/* -- The table ------------------------------------------------------------- */

struct bad_path {
	struct post post;
	struct origin_request *q;
};

static void answer_bad_path(struct post *p)
{
	struct bad_path *b = CONTAINER_OF(p, struct bad_path, post);
	struct origin_request *q = b->q;

	free(b);
	origin_answer(q, -EINVAL);
}

/* A server would shorten "a/../b" and return another object, so such a path
 * fails. */
static void refuse_path(struct object_origin *r, struct origin_request *q)
{
	struct bad_path *b = calloc(1, sizeof(*b));

	if (!b) {
		object_late(r, q);
		return;
	}
	post_init(&b->post, answer_bad_path);
	b->q = q;
	loop_post(r->late_loop, &b->post);
}

static void object_start(struct origin *o, struct origin_request *q)
{
	struct object_origin *r = object_of(o);
	struct origin_stat *s = CONTAINER_OF(q, struct origin_stat, req);
	struct origin_list *l = CONTAINER_OF(q, struct origin_list, req);

	if (q->op != ORIGIN_READ &&
		beneath_check(q->op == ORIGIN_STAT ? s->path : l->path) < 0)
		refuse_path(r, q);
	else if (q->op == ORIGIN_READ)
		object_read(o, CONTAINER_OF(q, struct origin_read, req));
	else if (q->op == ORIGIN_STAT)
		r->s3 ? s3_stat(r, s) : names_stat(r, s);
	else
		r->s3 ? s3_list(r, l) : names_list(r, l);
}

static bool object_free(struct origin *o)
{
	struct object_origin *r = object_of(o);

	loops_free(r->loops);
	creds_free(r->creds);
	site_release(r);
	free(r->witness);
	pthread_mutex_destroy(&r->lock);
	MAGIC_END(r);
	free(r);
	return true;
}

static bool object_explains(struct origin *o, int status, struct error *why)
{
	struct object_origin *r = object_of(o);
	LOCK_SCOPE(&r->lock);

	if (r->last_status != status)
		return false;
	*why = r->last;
	return true;
}

static const struct origin_ops object_ops = {
	.file_new = object_file_new,
	.file_free = object_file_free,
	.start = object_start,
	.abandon = object_abandon,
	.free = object_free,
	.explain = object_explains,
};

/* -- Construction ---------------------------------------------------------- */

static const char *ca_file(void)
{
	static const char *const names[] = {
		"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *file = getenv(names[i]);

		if (file && *file)
			return file;
	}
	return NULL;
}

static void renewal_ended(void *arg, const char *why)
{
	struct object_origin *r = OBJECT(object_origin, arg);
	struct event e = {.kind = why ? EVENT_CREDENTIALS_FAILED
				      : EVENT_CREDENTIALS_RENEWED,
		.text = why,
		.cause = why};

	event_report(r->events, &e);
}

static int open_creds(struct object_origin *r,
	const struct object_config *config, struct error *err)
{
	struct creds_config creds = {
		.profile = config->profile,
		.ca_file = ca_file(),
		.region = r->region,
		.later = config->creds_later,
		.renewed = &r->counters->origin_renewed,
		.ended = renewal_ended,
		.arg = r,
	};

	if (!r->s3 || config->no_sign_request)
		return 0;
	return creds_new(&r->creds, &creds, err);
}

static int open_loops(struct object_origin *r,
	const struct object_config *config, struct error *err)
{
	struct loops_config loops = {
		.loops = config->loops,
		.depth = config->depth,
		.ca_file = ca_file(),
		.insecure = config->insecure_tls,
		.http2 = config->http2 && !r->s3,
		.counters = config->counters,
	};
	int rc = loops_new(&r->loops, &loops, err);

	if (rc == 0)
		r->late_loop = loops_pick(r->loops);
	return rc;
}

int object_new(struct origin **out, const char *source,
	const struct object_config *config, struct error *err)
{
	struct object_origin *r = calloc(1, sizeof(*r));
	struct origin_traits traits;
	int rc;

	if (!r)
		return error_set(err, -ENOMEM, "%m");
	traits = (struct origin_traits){
		.request_bytes = REQUEST_BYTES,
		.depth = config->depth ? config->depth : LOOPS_DEPTH_DEFAULT,
		.depth_first = DEPTH_FIRST,
		.chunk_bytes = CHUNK_BYTES,
		.memory_share = MEMORY_SHARE,
		.asks_whole = true,
	};
	MAGIC_BEGIN(r, object_origin);
	r->counters = config->counters;
	r->events = config->events;
	r->payer = config->requester_pays;
	r->uid = geteuid();
	r->gid = getegid();
	post_init(&r->late, object_answer_late);
	lock_init(&r->lock, RANK_REMOTE);
	rc = site_open(r, source, config, err);
	if (rc == 0)
		rc = open_creds(r, config, err);
	if (rc == 0)
		rc = open_loops(r, config, err);
	if (rc < 0) {
		object_free(&r->base);
		return error_wrap(err, rc, "cannot use '%s'", source);
	}
	traits.lists_recursively = r->s3;
	origin_init(&r->base, &object_ops, &traits);
	*out = &r->base;
	return 0;
}

void object_last_error(struct origin *o, struct error *err)
{
	struct object_origin *r = object_of(o);
	LOCK_SCOPE(&r->lock);

	*err = r->last;
}
