/* SPDX-License-Identifier: MIT */
/*
 * Data that the requests of one origin share: attributes, keys, the abilities
 * of the server, messages for the operator, and answers to requests without
 * memory. Any thread.
 */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* -- What its requests have in common -------------------------------------- */

struct loop *remote_loop(struct remote *r)
{
	return loops_pick(r->loops);
}

struct file_attr remote_dir_attr(const struct remote *r)
{
	return (struct file_attr){
		.kind = KIND_DIR,
		.mode = 0555,
		.uid = r->uid,
		.gid = r->gid,
	};
}

struct file_attr remote_file_attr(
	const struct remote *r, uint64_t size, int64_t mtime_ns, uint64_t tag)
{
	return (struct file_attr){
		.version = {size, mtime_ns, tag},
		.kind = KIND_FILE,
		.mode = 0444,
		.uid = r->uid,
		.gid = r->gid,
	};
}

char *remote_key(const struct remote *r, const char *path)
{
	char *key;

	return asprintf(&key, "%s%s", r->prefix, path) < 0 ? NULL : key;
}

bool remote_lists_unordered(const struct remote *r)
{
	static const char mark[] = "--x-s3";
	size_t len = strlen(r->bucket), n = sizeof(mark) - 1;

	return len > n && strcmp(r->bucket + len - n, mark) == 0;
}

/* -- What others are told -------------------------------------------------- */

void remote_words(struct remote *r, int status, const char *words)
{
	LOCK_SCOPE(&r->lock);

	(void)error_set(&r->last, -EIO, "%s", words);
	r->last_status = status;
}

char *remote_witness(struct remote *r)
{
	LOCK_SCOPE(&r->lock);

	return r->witness ? strdup(r->witness) : NULL;
}

void remote_set_witness(struct remote *r, char *path)
{
	char *old;

	pthread_mutex_lock(&r->lock);
	old = r->witness;
	r->witness = path;
	pthread_mutex_unlock(&r->lock);
	free(old);
}

void remote_hidden(struct remote *r, const char *key, enum hidden why)
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

/* -- Requests for which there is no memory ----------------------------------
 */

void remote_answer_late(struct post *p)
{
	struct remote *r = CONTAINER_OF(p, struct remote, late);
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

void remote_late(struct remote *r, struct origin_request *q)
{
	pthread_mutex_lock(&r->lock);
	q->priv = r->no_memory;
	r->no_memory = q;
	pthread_mutex_unlock(&r->lock);
	loop_post(r->late_loop, &r->late);
}

bool remote_is_late(const struct remote *r, const struct origin_request *q)
{
	ASSERT_HELD(&r->lock);
	for (const struct origin_request *at = r->no_memory; at; at = at->priv)
		if (at == q)
			return true;
	return false;
}
