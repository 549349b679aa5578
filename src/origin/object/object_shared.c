/* SPDX-License-Identifier: MIT */
/* What the requests of one origin have in common: attributes, keys, the
 * abilities of the server, messages for the operator, and answers when memory
 * is short. Any thread. */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* -- What its requests have in common -------------------------------------- */

struct loop *object_loop(struct object_origin *r)
{
	return loops_pick(r->loops);
}

struct file_attr object_dir_attr(const struct object_origin *r)
{
	return (struct file_attr){
		.kind = KIND_DIR,
		.mode = 0555,
		.uid = r->uid,
		.gid = r->gid,
	};
}

struct file_attr object_file_attr(const struct object_origin *r, uint64_t size,
	int64_t mtime_ns, uint64_t tag)
{
	return (struct file_attr){
		.version = {size, mtime_ns, tag},
		.kind = KIND_FILE,
		.mode = 0444,
		.uid = r->uid,
		.gid = r->gid,
	};
}

char *object_key(const struct object_origin *r, const char *path)
{
	char *key;

	return asprintf(&key, "%s%s", r->prefix, path) < 0 ? NULL : key;
}

bool object_lists_unordered(const struct object_origin *r)
{
	static const char mark[] = "--x-s3";
	size_t len = strlen(r->bucket), n = sizeof(mark) - 1;

	return len > n && strcmp(r->bucket + len - n, mark) == 0;
}

/* -- What others are told -------------------------------------------------- */

void object_words(struct object_origin *r, int status, const char *words)
{
	LOCK_SCOPE(&r->lock);

	(void)error_set(&r->last, -EIO, "%s", words);
	r->last_status = status;
}

char *object_witness(struct object_origin *r)
{
	LOCK_SCOPE(&r->lock);

	return r->witness ? strdup(r->witness) : NULL;
}

void object_set_witness(struct object_origin *r, char *path)
{
	char *old;

	pthread_mutex_lock(&r->lock);
	old = r->witness;
	r->witness = path;
	pthread_mutex_unlock(&r->lock);
	free(old);
}

void object_hidden(struct object_origin *r, const char *key, enum hidden why)
{
	static const char *const reasons[] = {
		[HIDDEN_NAME] = "its name cannot be a path",
		[HIDDEN_SIZE] = "its size is unknown",
		[HIDDEN_FAILS] = "the server answers only errors for it",
		[HIDDEN_DEEP] = "it is nested too deep",
		[HIDDEN_ORDER] = "it is listed out of order",
	};
	struct event e = {.kind = EVENT_ORIGIN_HIDDEN,
		.path = key,
		.text = reasons[why],
		.cause = reasons[why]};
	bool first;

	COUNT(r->counters, origin_hidden);
	pthread_mutex_lock(&r->lock);
	first = !(r->told_hidden & 1u << why);
	r->told_hidden |= 1u << why;
	pthread_mutex_unlock(&r->lock);
	if (first)
		event_report(r->events, &e);
}

/* -- Requests for which there is no memory --------------------------------- */

void object_answer_late(struct post *p)
{
	struct object_origin *r = CONTAINER_OF(p, struct object_origin, late);
	struct origin_request *q;

	pthread_mutex_lock(&r->lock);
	while ((q = r->no_memory)) {
		r->no_memory = steal_ptr(&q->priv);
		pthread_mutex_unlock(&r->lock);
		origin_answer(q, -ENOMEM);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
}

void object_late(struct object_origin *r, struct origin_request *q)
{
	pthread_mutex_lock(&r->lock);
	q->priv = r->no_memory;
	r->no_memory = q;
	pthread_mutex_unlock(&r->lock);
	loop_post(r->late_loop, &r->late);
}

bool object_is_late(
	const struct object_origin *r, const struct origin_request *q)
{
	ASSERT_HELD(&r->lock);
	for (const struct origin_request *at = r->no_memory; at; at = at->priv)
		if (at == q)
			return true;
	return false;
}
