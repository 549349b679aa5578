/* SPDX-License-Identifier: MIT */
/*
 * The slots of a share's host, and which members hold them. Runs on the host's
 * thread.
 */
#include "loader/share/share_host_impl.h"

#include "common/base/lock.h"

int host_watch(struct share_host *h, int fd, uint32_t events,
	enum host_event what, uint32_t number)
{
	return loop_watch(&h->loop, fd, events, (uint64_t)what << 32 | number);
}

void host_free_slot(struct share_host *h, struct host_slot *s)
{
	batch_release(s->lent);
	s->lent = NULL;
	h->held--;
}

struct host_slot *host_slot_of(struct share_host *h, uint64_t step)
{
	for (uint32_t i = 0; i < host_slots(h) && h->held; i++)
		if (h->slots[i].lent && h->slots[i].announced.step == step)
			return &h->slots[i];
	return NULL;
}

uint64_t host_oldest(struct share_host *h)
{
	uint64_t oldest = h->end;

	while (oldest > h->first && host_slot_of(h, oldest - 1))
		oldest--;
	return oldest;
}

void host_drop(struct share_host *h, uint32_t member, bool taken)
{
	uint64_t bit = UINT64_C(1) << member;

	for (uint32_t i = 0; h->slots && i < host_slots(h); i++) {
		struct host_slot *s = &h->slots[i];

		if (!s->lent || !(s->refs & bit) ||
			(!taken && (s->taken & bit)))
			continue;
		s->refs &= ~bit;
		s->taken &= ~bit;
		if (!s->refs)
			host_free_slot(h, s);
	}
}

bool host_follows(const struct share_host *h, uint32_t member)
{
	const struct host_member *m = &h->members[member];

	return m->state == MEMBER_FOLLOWS;
}

uint64_t host_wanted_by(const struct share_host *h, uint64_t step)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (host_follows(h, i) && h->members[i].next <= step)
			mask |= UINT64_C(1) << i;
	return mask;
}

void host_member_ref(struct share_host *h, uint32_t n)
{
	for (uint32_t i = 0; h->slots && i < host_slots(h); i++)
		if (h->slots[i].lent &&
			h->slots[i].announced.step >= h->members[n].next)
			h->slots[i].refs |= UINT64_C(1) << n;
}

uint64_t host_demand_ns(const struct share_host *h)
{
	uint64_t since_ns = 0;

	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++) {
		const struct host_member *m = &h->members[i];

		if (!host_follows(h, i) || !m->waiting_ns || m->next < h->end)
			continue;
		if (!since_ns || m->waiting_ns < since_ns)
			since_ns = m->waiting_ns;
	}
	return since_ns;
}

void host_fail(struct share_host *h, int error, const struct error *why)
{
	h->failure = error;
	h->why = *why;
	h->state = HOST_OVER;
	pthread_mutex_lock(&h->lock);
	h->ended = error;
	h->said = *why;
	pthread_mutex_unlock(&h->lock);
}
