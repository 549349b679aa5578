/* SPDX-License-Identifier: MIT */
/* A puller: its life, and the pulls of the loader's servings; see pull.h. */
#include "loader/pull/pull.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "loader/image/image.h"
#include "loader/pull/pull_impl.h"

/* -- Pulls ----------------------------------------------------------------- */

void pull_move(struct list *list, struct pull *q, enum pull_state state)
{
	struct list *before = list_prev(list);

	if (q->state != PULL_NONE)
		list_del(&q->node);
	while (before != list &&
		CONTAINER_OF(before, struct pull, node)->step > q->step)
		before = list_prev(before);
	list_add(before, &q->node);
	q->state = state;
}

/* Take a pull without an answer out of its list. */
static void pull_end(struct puller *p, struct pull *q, enum pull_state state)
{
	list_del(&q->node);
	q->state = state;
	p->waiting--;
}

void pull_miss(struct puller *p, struct pull *q)
{
	pull_end(p, q, PULL_NONE);
	p->config.missed(p->config.arg, q);
}

static const struct pull_range *pull_range_of(
	const struct puller *p, uint64_t fresh)
{
	uint64_t number = fresh / p->range_size;

	return number >= p->range_first && number < p->range_end
		? pull_range_at(p, number)
		: NULL;
}

/* Returns the state of the range of an example, as far as it is of use. */
static enum pull_range_state pull_known(const struct puller *p, uint64_t fresh)
{
	const struct pull_range *r = pull_range_of(p, fresh);
	uint32_t bit = (uint32_t)(fresh % p->range_size);

	if (!r)
		return PULL_RANGE_UNKNOWN;
	if (r->state == PULL_RANGE_DONE &&
		(!(r->mask >> bit & 1) || p->stores[r->store].resting))
		return PULL_RANGE_UNKNOWN;
	return r->state;
}

bool puller_expects(const struct puller *p, uint64_t fresh)
{
	if (!p)
		return false;
	ASSERT_TURN(p->config.turn);
	return pull_known(p, fresh) != PULL_RANGE_UNKNOWN;
}

bool puller_take(struct puller *p, struct pull *q,
	const struct schedule_slot *slot, uint64_t step)
{
	enum pull_range_state state;
	struct sample_name name;

	q->state = PULL_NONE;
	if (!p)
		return false;
	ASSERT_TURN(p->config.turn);
	state = pull_known(p, slot->fresh);
	if (state == PULL_RANGE_UNKNOWN)
		return false;
	name = service_example(&p->schedule, slot);
	*q = (struct pull){.step = step,
		.fresh = slot->fresh,
		.pass = name.pass,
		.index = name.index,
		.servings = name.servings,
		.sample = service_sample_of(&p->schedule, slot->echo)};
	if (state == PULL_RANGE_DONE)
		pull_move(&p->ready, q, PULL_READY);
	else
		pull_move(&p->waits, q, PULL_WAITS);
	p->waiting++;
	p->stirred = true;
	return true;
}

static struct pull *pull_first(const struct list *list)
{
	return list_empty(list) ? NULL : LIST_FIRST(list, struct pull, node);
}

struct pull *puller_first(
	const struct puller *p, uint64_t now_ns, uint64_t *step)
{
	struct pull *q, *ready, *sent;

	if (!p)
		return NULL;
	ASSERT_TURN(p->config.turn);
	q = pull_first(&p->waits);
	ready = pull_first(&p->ready);
	sent = pull_first(&p->sent);
	if (ready && (!q || ready->step < q->step))
		q = ready;
	if (sent && (!q || sent->step < q->step) &&
		now_ns > sent->op->sent_ns + PULL_ANSWER_MS * NS_PER_MS)
		q = sent;
	if (q)
		*step = q->step;
	return q;
}

void puller_drop(struct puller *p, struct pull *q)
{
	ASSERT_TURN(p->config.turn);
	if (q->state == PULL_SENT)
		q->op->pull = NULL;
	pull_end(p, q, PULL_NONE);
	p->counts.late++;
}

uint32_t puller_waiting(const struct puller *p)
{
	return p ? p->waiting : 0;
}

struct pull_sample pull_get(const struct pull *q)
{
	return (struct pull_sample){
		.pixels = q->op->room,
		.width = q->op->value.width,
		.height = q->op->value.height,
	};
}

void puller_done(struct puller *p, struct pull *q)
{
	ASSERT_TURN(p->config.turn);
	q->op->pull = NULL;
	list_add_tail(&p->ops, &q->op->node);
	q->state = PULL_NONE;
	p->counts.remote++;
	p->stirred |= !list_empty(&p->ready);
}

bool puller_take_stirred(struct puller *p)
{
	bool stirred = p && p->stirred && !p->ending;

	if (p)
		p->stirred = false;
	return stirred;
}

void puller_wake(struct puller *p)
{
	loop_wake(&p->loop);
}

void puller_counts(const struct puller *p, struct pull_counts *out)
{
	*out = p ? p->counts : (struct pull_counts){.live = false};
}

/* -- Life ------------------------------------------------------------------ */

static int make_ops(struct puller *p, struct error *err)
{
	uint64_t room = memory_room(p->config.memory) / 8;
	size_t bytes = p->sample_bytes + AUGMENT_SLACK_BYTES;
	uint64_t n;

	if (room > PULL_OPS_BYTES)
		room = PULL_OPS_BYTES;
	n = room / bytes;
	p->nops = n > PULL_OPS_MAX ? PULL_OPS_MAX : n < 2 ? 2 : (uint32_t)n;
	p->op_table = calloc(p->nops, sizeof(*p->op_table));
	if (!memory_charge(p->config.memory, p->nops * bytes))
		return error_set(err, -ENOMEM,
			"memory_bytes is %" PRIu64
			": it is too small to pull samples",
			p->config.s->c.memory_bytes);
	for (uint32_t i = 0; p->op_table && i < p->nops; i++) {
		struct pull_op *op = &p->op_table[i];

		op->puller = p;
		op->room = malloc(bytes);
		if (!op->room)
			return error_set(err, -ENOMEM, "service: %m");
		list_add_tail(&p->ops, &op->node);
	}
	return p->op_table ? 0 : error_set(err, -ENOMEM, "service: %m");
}

/* The table of ranges has room for examples with outstanding servings, and for
 * what workers make ahead. */
static int make_ranges(struct puller *p, struct error *err)
{
	p->ahead_max = PULL_AHEAD_BYTES / p->sample_bytes;
	if (p->ahead_max < 4 * (uint64_t)p->range_size)
		p->ahead_max = 4 * (uint64_t)p->range_size;
	p->ranges_room = 8 +
		(p->config.outstanding_max + p->config.s->ahead_max +
			2 * p->ahead_max) /
			p->range_size;
	if (!memory_charge(p->config.memory,
		    p->ranges_room * sizeof(*p->ranges) + sizeof(*p)))
		return error_set(err, -ENOMEM,
			"memory_bytes is too small for a service");
	p->ranges = calloc(p->ranges_room, sizeof(*p->ranges));
	return p->ranges ? 0 : error_set(err, -ENOMEM, "service: %m");
}

static void puller_init(struct puller *p, const struct pull_config *config)
{
	MAGIC_BEGIN(p, puller);
	p->config = *config;
	p->schedule = *config->schedule;
	p->sample_bytes = config->s->image_sample
		? (uint64_t)config->s->augment.width *
			config->s->augment.height * 3
		: config->s->sample_bytes;
	p->range_size =
		service_range_size(schedule_settings(&p->schedule)->echo);
	list_init(&p->waits);
	list_init(&p->ready);
	list_init(&p->sent);
	list_init(&p->ops);
	list_init(&p->arrived);
}

int puller_new(struct puller **out, const struct pull_config *config,
	struct error *err)
{
	struct puller *p;
	int rc;

	*out = NULL;
	if (!config->s->c.service)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "service: %m");
	*out = p;
	puller_init(p, config);
	rc = loop_init(&p->loop);
	if (rc < 0)
		return error_set(err, rc, "service: %m");
	rc = pull_open_job(p, err);
	if (rc == 0)
		rc = make_ranges(p, err);
	if (rc == 0)
		rc = make_ops(p, err);
	return rc;
}

int puller_start(struct puller *p)
{
	int rc = 0;

	if (!p)
		return 0;
	rc = -pthread_create(&p->clerk, NULL, pull_clerk_main, p);
	p->clerk_started = rc == 0;
	if (rc == 0)
		rc = -pthread_create(&p->carrier, NULL, pull_carrier_main, p);
	p->carrier_started = p->clerk_started && rc == 0;
	return rc;
}

void puller_stop(struct puller *p)
{
	if (!p)
		return;
	turn_lock(p->config.turn);
	p->ending = true;
	turn_mark(p->config.turn, TURN_PULLER);
	turn_unlock(p->config.turn);
	loop_stop(&p->loop);
	if (p->carrier_started)
		pthread_join(p->carrier, NULL);
	if (p->clerk_started)
		pthread_join(p->clerk, NULL);
	p->carrier_started = p->clerk_started = false;
}

void puller_free(struct puller *p)
{
	if (!p)
		return;
	pull_carrier_release(p);
	for (uint32_t i = 0; p->op_table && i < p->nops; i++)
		free(p->op_table[i].room);
	free(p->op_table);
	free(p->ranges);
	asker_free(p->board);
	loop_release(&p->loop);
	MAGIC_END(p);
	free(p);
}
