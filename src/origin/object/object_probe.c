/* SPDX-License-Identifier: MIT */
/* Questions to the store before a mount serves: whether the source can be read,
 * and the size of one file. The caller's thread waits for the answer. If the
 * store does not answer in time, the request stays until the origin is freed.
 */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "origin/object/s3_list_impl.h"
#include "origin/object/http_names_impl.h"

/* The waiting thread and the loop share this; the last one to use it frees it.
 */
struct store_question {
	union {
		/* the members that lists and stats have in common */
		struct origin_request req;
		struct origin_list list;
		struct origin_stat stat;
	};
	pthread_mutex_t lock; /* guards the next four members */
	pthread_cond_t cond;
	int status;
	bool done, left;
	uint64_t size_bytes;
	char path[];
};

static void probe_free(struct store_question *q)
{
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void probe_done(struct origin_request *req, int status)
{
	struct store_question *q =
		CONTAINER_OF(req, struct store_question, req);
	bool left;

	pthread_mutex_lock(&q->lock);
	if (req->op == ORIGIN_STAT && status == 0) {
		q->size_bytes = q->stat.attr->version.size_bytes;
		if (q->stat.attr->kind != KIND_FILE)
			status = -ENOENT;
	}
	q->status = status;
	q->done = true;
	left = q->left;
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
	if (left)
		probe_free(q);
}

static struct store_question *probe_new(const char *path)
{
	struct store_question *q = calloc(1, sizeof(*q) + strlen(path) + 1);

	if (!q)
		return NULL;
	strcpy(q->path, path);
	lock_init(&q->lock, RANK_ASKED);
	cond_init(&q->cond);
	return q;
}

/* Wait for the answer. Returns its status, or -ETIMEDOUT if none came in time.
 */
static int probe_wait(
	struct store_question *q, uint64_t until_ns, uint64_t *size_bytes)
{
	int status;
	bool done;

	pthread_mutex_lock(&q->lock);
	while (!q->done && cond_wait_until(&q->cond, &q->lock, until_ns))
		;
	done = q->done;
	q->left = !done;
	status = done ? q->status : -ETIMEDOUT;
	*size_bytes = q->size_bytes;
	pthread_mutex_unlock(&q->lock);
	if (done)
		probe_free(q);
	return status;
}

void object_reason(struct origin *o, int status, struct error *why)
{
	object_last_error(o, why);
	if (!why->msg[0])
		(void)error_set(why, status, "%s",
			status == -ETIMEDOUT ? "no answer within 4.5 s; check "
					       "the host and the network"
					     : strerror(-status));
}

static int probe_failed(struct origin *o, int status, struct error *err)
{
	bool s3 = object_of(o)->s3;
	struct error why;

	object_last_error(o, &why);
	if (status == -EBADMSG && !why.msg[0])
		return error_set(err, status,
			"the server sent a listing that cannot be parsed; "
			"check %s",
			s3 ? "that --endpoint-url is an S3 store"
			   : "the URL, or give the names with --manifest");
	if (s3 && status == -EACCES && strstr(why.msg, " AccessDenied: "))
		return error_set(err, status,
			"%s, or give the names with --manifest", why.msg);
	object_reason(o, status, &why);
	return error_set(err, status, "%s", why.msg);
}

int object_probe(struct origin *o, struct error *err)
{
	struct object_origin *r = object_of(o);
	struct store_question *q = probe_new("");
	uint64_t none;
	int status;

	if (!q)
		return error_set(err, -ENOMEM, "%m");
	q->list.path = q->path;
	q->req.op = ORIGIN_LIST;
	q->req.done = probe_done;
	object_set_flag(&r->alone, true);
	if (r->s3)
		s3_probe(r, &q->list);
	else
		names_probe(r, &q->list);
	status = probe_wait(q, clock_now_ns() + OBJECT_WAIT_NS, &none);
	object_set_flag(&r->alone, false);
	return status < 0 ? probe_failed(o, status, err) : 0;
}

int object_size(struct origin *o, const char *path, uint64_t until_ns,
	uint64_t *size_bytes, struct error *err)
{
	struct store_question *q = probe_new(path);
	struct error why;
	int status;

	if (!q)
		return error_set(err, -ENOMEM, "%m");
	q->stat.path = q->path;
	q->req.done = probe_done;
	object_set_flag(&object_of(o)->alone, true);
	origin_stat(o, &q->stat);
	status = probe_wait(q, until_ns, size_bytes);
	object_set_flag(&object_of(o)->alone, false);
	if (status == 0)
		return 0;
	object_reason(o, status, &why);
	return error_set(err, status, "cannot read '%s': %s", path, why.msg);
}
