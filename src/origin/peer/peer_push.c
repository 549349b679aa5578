/* SPDX-License-Identifier: MIT */
/* Sends units to their owners; see peer_push_impl.h. */
#include "origin/peer/peer_push_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"

static void push_end(struct push_job *j, int status)
{
	j->p->done(j->p, status);
	free(j);
}

/* Note that the server has no memory for the unit. */
static void push_refuse(struct push_job *j)
{
	leases_refused(j->all->leases, j->unit.item);
	push_end(j, -ENOSPC);
}

/* Delete the key, because a failed ms may have left an older value. */
static void push_delete(const struct push_job *j)
{
	char key[UNIT_KEY_MAX];

	(void)unit_key(key, j->unit.item, j->unit.n);
	peer_host_delete(j->host, HOST_PUSHES, key);
}

static void push_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct push_job *j = CONTAINER_OF(q, struct push_job, q);

	(void)value;
	if (status < 0) {
		host_count(j->host, HOST_DROPPED, 1);
		push_end(j, status);
	} else if (a->kind == META_HD) {
		host_count(j->host, HOST_FILLS, 1);
		host_count(j->host, HOST_FILL_BYTES, j->unit.bytes);
		peer_host_full(j->host, false);
		push_end(j, 0);
	} else if (a->kind == META_FULL) {
		host_count(j->host, HOST_REFUSED, 1);
		peer_host_full(j->host, true);
		push_delete(j);
		push_refuse(j);
	} else if (a->kind == META_NS) {
		/* If some mounts have another dataset, the stored unit may be
		 * theirs, so this push counts as refused. */
		push_end(j, trusts_any_foreign(j->all->trusts) ? -ENOSPC : 0);
	} else {
		host_count(j->host, HOST_ERRORS, 1);
		push_delete(j);
		push_end(j, -EIO);
	}
}

static void push_send(struct push_job *j, uint64_t now_ns)
{
	char key[UNIT_KEY_MAX];

	(void)unit_key(key, j->unit.item, j->unit.n);
	j->unit.writer = trusts_own(j->all->trusts);
	unit_seal(j->q.head, j->all->seed, &j->unit, j->p->data);
	j->q.head_bytes = UNIT_HEAD_BYTES;
	j->q.body = j->p->data;
	j->q.body_bytes = j->unit.bytes;
	j->q.answered = push_answered;
	/* The command only adds a unit and never replaces one, because other
	 * hosts may be using the stored unit. */
	request_line(&j->q, "ms %s %zu ME T%d", key,
		(size_t)UNIT_HEAD_BYTES + j->unit.bytes, UNIT_TTL_S);
	if (peer_host_send(j->host, HOST_PUSHES, &j->q, now_ns) < 0)
		push_answered(&j->q, -EHOSTDOWN, NULL, NULL);
}

void pushes_step(struct pushes *all, uint64_t now_ns)
{
	LIST_FOREACH_SAFE(l, next, &all->waiting) {
		struct push_job *j = CONTAINER_OF(l, struct push_job, link);

		if (peer_host_is_up(j->host) &&
			!peer_host_has_room(j->host, HOST_PUSHES))
			continue;
		list_del(&j->link);
		if (!peer_host_is_up(j->host)) {
			push_answered(&j->q, -EHOSTDOWN, NULL, NULL);
		} else if (!trusts_may_push(j->all->trusts)) {
			host_count(j->host, HOST_DROPPED, 1);
			push_end(j, -ENOSPC);
		} else if (!peer_host_may_push(j->host)) {
			host_count(j->host, HOST_DROPPED, 1);
			push_refuse(j);
		} else {
			push_send(j, now_ns);
		}
	}
}
