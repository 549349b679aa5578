/* SPDX-License-Identifier: MIT */
/* Fetches one whole object, for small files beside a dataset. The object is
 * read like a file of a dataset, through an origin created for it. The caller's
 * thread waits, and gives up if no byte comes for a while. */
#include "origin/object/object.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "origin/object/object_impl.h"

struct fetching {
	union {
		/* the members that stats and reads have in common */
		struct origin_request req;
		struct origin_stat stat;
		struct origin_read read;
	};
	char *text;
	struct file_version version;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t cond;
	uint64_t until_ns; /* time until which to wait for more bytes */
	bool done;
	int status;
};

static void fetching_done(struct origin_request *q, int status)
{
	struct fetching *f = CONTAINER_OF(q, struct fetching, req);
	LOCK_SCOPE(&f->lock);

	if (q->op == ORIGIN_STAT && status == 0) {
		f->version = f->stat.attr->version;
		if (f->stat.attr->kind != KIND_FILE)
			status = -EISDIR;
	}
	f->status = status;
	f->done = true;
	pthread_cond_signal(&f->cond);
}

static void fetching_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct fetching *f = CONTAINER_OF(r, struct fetching, read);

	memcpy(f->text + off, bytes, len);
	LOCK_SCOPE(&f->lock);
	f->until_ns = clock_now_ns() + OBJECT_WAIT_NS;
}

/* Wait for the end of the request. After -ETIMEDOUT, no other request may be
 * started; freeing the origin ends this one. */
static int fetching_wait(struct fetching *f)
{
	LOCK_SCOPE(&f->lock);

	while (!f->done)
		if (!cond_wait_until(&f->cond, &f->lock, f->until_ns) &&
			clock_now_ns() >= f->until_ns)
			return -ETIMEDOUT;
	f->done = false;
	return f->status;
}

static int fetch_bytes(struct origin *o, struct fetching *f, const char *name)
{
	size_t most = origin_traits(o)->request_bytes;
	struct origin_file *file = origin_file_new(o, name);
	int rc = file ? 0 : -ENOMEM;

	for (uint64_t at = 0; rc == 0 && at < f->version.size_bytes;) {
		uint64_t left = f->version.size_bytes - at;

		f->read = (struct origin_read){
			.req.done = fetching_done,
			.file = file,
			.want = f->version,
			.off = at,
			.len = left < most ? (size_t)left : most,
			.data = fetching_data,
		};
		at += f->read.len;
		origin_read(o, &f->read);
		rc = fetching_wait(f);
	}
	if (file)
		origin_file_free(o, file);
	return rc;
}

/* Fetch an object into f->text. If that fails, the origin may still write to
 * f->text: free the origin before the text. */
static int fetch_object(
	struct origin *o, struct fetching *f, const char *name, size_t most)
{
	int rc;

	f->until_ns = clock_now_ns() + OBJECT_WAIT_NS;
	f->stat = (struct origin_stat){.req.done = fetching_done, .path = name};
	origin_stat(o, &f->stat);
	rc = fetching_wait(f);
	if (rc == 0 && f->version.size_bytes > most)
		rc = -EFBIG;
	if (rc < 0)
		return rc;
	f->text = calloc(1, (size_t)f->version.size_bytes + 1);
	return f->text ? fetch_bytes(o, f, name) : -ENOMEM;
}

int object_fetch(const char *url, const struct object_config *config,
	size_t most, char **text, size_t *bytes, struct error *err)
{
	struct fetching f = {.lock = LOCK_INIT(RANK_FETCHING)};
	CLEANUP_FREE char *source = NULL;
	struct origin *o;
	struct error why;
	char *name;
	int rc = object_resolve(url, &source, err);

	if (rc < 0)
		return rc;
	name = strrchr(source, '/');
	/* In a URL the name is percent-encoded, in a key of S3 it is not. */
	if (name < strstr(source, "://") + 3 ||
		(strncmp(source, "s3:", 3) != 0 &&
			bytes_decode(name + 1, false) < 0))
		return error_set(
			err, -EINVAL, "'%s' does not name a file", url);
	*name++ = '\0';
	rc = object_new(&o, source, config, err);
	if (rc < 0)
		return rc;
	object_set_flag(&object_of(o)->alone, true);
	cond_init(&f.cond);
	rc = fetch_object(o, &f, name, most);
	if (rc < 0)
		object_reason(o, rc, &why);
	(void)origin_free(o); /* cannot fail; ends the requests in flight */
	pthread_cond_destroy(&f.cond);
	if (rc < 0) {
		free(f.text);
		return error_set(err, rc, "cannot read '%s': %s", url, why.msg);
	}
	*text = f.text;
	*bytes = (size_t)f.version.size_bytes;
	return 0;
}
