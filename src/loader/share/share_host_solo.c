/* SPDX-License-Identifier: MIT */
/*
 * Parts members that make the others wait, so that they continue alone
 * (share_slow = solo). Such a member may follow the share again when the batch
 * of its next step is in a slot or soon will be. share_host_impl.h has the
 * table of a member's states. Runs on the host's thread.
 *
 * A member is blamed while all slots are held, another member waits for a
 * batch, and this member holds the oldest slot but does not wait itself. This
 * time is added to its account, and time in which it is not blamed is
 * subtracted. So a member is parted only if others wait for it more than half
 * of the time, and two equally fast members are never parted. Trainers pause
 * before the first batch, to compile, and at the end of an epoch, to evaluate;
 * such pauses have a limit of their own.
 *
 * A member that is parted keeps the slots that it has taken until it releases
 * them.
 */
#include <stdatomic.h>

#include "common/base/clock.h"
#include "loader/share/share_host_impl.h"

#define SLOW_NS NS_PER_S
#define SLOW_STEPS 10
#define LOOK_NS (60 * NS_PER_S)

/* -- Blame ----------------------------------------------------------------- */

/* Returns the bits of the blamed members: of those that do not wait themselves,
 * the ones that hold the oldest batch. */
static uint64_t host_blamed(const struct share_host *h)
{
	uint64_t may = 0, found = 0, oldest = NO_STEP;

	if (!h->solos || h->state != HOST_RUNS || !h->slots ||
		h->held < host_slots(h) || !host_demand_ns(h))
		return 0;
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (host_follows(h, i) && !h->members[i].waiting_ns)
			may |= UINT64_C(1) << i;
	for (uint32_t i = 0; i < host_slots(h); i++) {
		const struct host_slot *s = &h->slots[i];

		if (!s->lent || !(s->refs & may) || s->announced.step > oldest)
			continue;
		oldest = s->announced.step;
		found = s->refs & may;
	}
	return found;
}

/* May the member pause now? Members may pause before they have released their
 * first batch, and while the oldest batch that they hold is the last one of an
 * epoch or the first one of the next. */
static bool host_pauses(const struct share_host *h, uint32_t n)
{
	const struct host_slot *found = NULL;

	for (uint32_t i = 0; i < host_slots(h); i++) {
		const struct host_slot *s = &h->slots[i];

		if (s->lent && (s->refs >> n & 1) &&
			(!found || s->announced.step < found->announced.step))
			found = s;
	}
	return !h->members[n].released ||
		(found && (found->begins_epoch || found->announced.ends_epoch));
}

static uint64_t host_slow_limit_ns(const struct share_host *h)
{
	uint64_t steps = h->end - h->first;
	uint64_t ns = steps ? h->free_ns / steps * SLOW_STEPS : 0;

	return ns > SLOW_NS ? ns : SLOW_NS;
}

/* Returns how much longer others may wait for the member before it is
 * parted. */
static uint64_t host_patience_ns(const struct share_host *h, uint32_t n)
{
	const struct host_member *m = &h->members[n];
	bool pauses = host_pauses(h, n);
	uint64_t limit_ns = pauses ? m->grace_s * (uint64_t)NS_PER_S
				   : host_slow_limit_ns(h);
	uint64_t used_ns = pauses ? m->paused_ns : m->slow_ns;

	return used_ns < limit_ns ? limit_ns - used_ns : 0;
}

/* -- Accounts -------------------------------------------------------------- */

static void host_count_wait(struct share_host *h, uint32_t n, uint64_t ns)
{
	struct host_member *m = &h->members[n];

	if (!(h->blamed >> n & 1)) {
		m->paused_ns = 0;
		m->slow_ns -= ns < m->slow_ns ? ns : m->slow_ns;
	} else if (host_pauses(h, n)) {
		m->paused_ns += ns;
	} else {
		m->slow_ns += ns;
	}
}

static bool host_may_part(const struct share_host *h, uint32_t n)
{
	return host_follows(h, n) && h->members[n].grace_s;
}

bool host_judge(struct share_host *h)
{
	uint64_t now_ns, ns;
	bool parted = false;

	if (!h->solos || !host_has_begun(h) || !h->slots)
		return false;
	now_ns = clock_now_ns();
	ns = now_ns - h->judged_ns;
	h->judged_ns = now_ns;
	if (!h->blamed)
		h->free_ns += ns;
	for (uint32_t i = 0; i < SHARE_MEMBERS_MAX; i++)
		if (host_may_part(h, i))
			host_count_wait(h, i, ns);
	h->blamed = host_blamed(h);
	for (uint32_t i = 0; h->blamed && i < SHARE_MEMBERS_MAX; i++)
		if (host_may_part(h, i) && (h->blamed >> i & 1) &&
			!host_patience_ns(h, i)) {
			host_part(h, i);
			parted = true;
		}
	return parted;
}

uint64_t host_judge_wait_ns(const struct share_host *h)
{
	uint64_t least_ns = LOOP_NEVER;

	for (uint32_t i = 0; h->blamed && i < SHARE_MEMBERS_MAX; i++)
		if (host_may_part(h, i) && (h->blamed >> i & 1) &&
			host_patience_ns(h, i) < least_ns)
			least_ns = host_patience_ns(h, i);
	return least_ns == LOOP_NEVER || least_ns < LOOK_NS ? least_ns
							    : LOOK_NS;
}

/* -- Parting --------------------------------------------------------------- */

void host_part(struct share_host *h, uint32_t n)
{
	struct host_member *m = &h->members[n];
	uint64_t bit = UINT64_C(1) << n;

	m->state = MEMBER_PARTING;
	m->waiting_ns = m->slow_ns = m->paused_ns = 0;
	/* A member reads its word after it has sent TAKE. So either it sees the
	 * new word, or host_member_read() below reads its TAKE. */
	share_area_set_parted(host_area(h), n, true);
	atomic_thread_fence(memory_order_seq_cst);
	host_member_read(h, n);
	h->blamed &= ~bit;
	if (!member_is_alone(m))
		return;
	for (uint32_t i = 0; i < host_slots(h); i++) {
		const struct host_slot *s = &h->slots[i];

		if (s->lent && (s->refs & bit) && !(s->taken & bit) &&
			s->announced.step < m->next)
			m->next = s->announced.step;
	}
	host_drop(h, n, false);
	host_member_flush(h, n);
	host_tell_view(h);
}
