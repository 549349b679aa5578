/* SPDX-License-Identifier: MIT */
/* The table of causes; see log_cause_impl.h. */
#include "mount/daemon/log_cause_impl.h"

#include <string.h>

#include "common/base/hash.h"

struct log_cause *log_cause_at(struct log_causes *all, size_t i)
{
	return i < EVENT_KINDS ? &all->of_kind[i] : &all->own[i - EVENT_KINDS];
}

uint64_t log_cause_refill_ns(size_t limit)
{
	return limit == LIMIT_TURN ? LOG_TURN_REFILL_NS : LOG_REFILL_NS;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return text ? hash64(text, strlen(text), hash) : hash;
}

/* Compute the hash of a cause. It does not depend on paths, because there can
 * be millions of them. */
static uint64_t hash_of_cause(const struct event *e)
{
	const uint64_t numbers[] = {e->kind, (uint64_t)e->status};
	uint64_t hash = hash64(numbers, sizeof(numbers), 0);

	return mix_text(mix_text(hash, e->dir), e->cause) | 1;
}

/* Is the cause below all its limits, without a suppressed event? */
static bool is_idle(const struct log_cause *c, uint64_t now_ns)
{
	for (size_t i = 0; i < LIMITS; i++)
		if (c->limit[i].suppressed > 0 || c->limit[i].free_ns > now_ns)
			return false;
	return true;
}

/* Find the element of the cause. If there is none, returns the idle element
 * that has been unused for longest, which the caller replaces. NULL: no element
 * is idle. */
static struct log_cause *find_cause(
	struct log_causes *all, uint64_t hash, uint64_t now_ns)
{
	struct log_cause *oldest = NULL;

	for (size_t i = 0; i < LOG_CAUSES_MAX; i++) {
		struct log_cause *c = &all->own[i];

		if (c->hash == hash)
			return c;
		if (is_idle(c, now_ns) &&
			(!oldest || c->last_ns < oldest->last_ns))
			oldest = c;
	}
	return oldest;
}

struct log_cause *log_cause_note(struct log_causes *all, const struct event *e,
	const struct log_record *r, uint64_t now_ns)
{
	uint64_t hash = hash_of_cause(e);
	struct log_cause *c = find_cause(all, hash, now_ns);

	if (!c)
		c = &all->of_kind[e->kind];
	else if (c->hash != hash)
		*c = (struct log_cause){.hash = hash};
	c->last = *r;
	c->last_ns = now_ns;
	c->events++;
	return c;
}
