/* SPDX-License-Identifier: MIT */
/*
 * The carrier: the thread that pulls samples from all stores. Each turn it
 * settles the pulls that were answered, and chooses the next ones. The number
 * of buffers bounds what is on its way from all stores together, and a store
 * that answers slowly gets fewer pulls at a time.
 */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "loader/pull/pull_impl.h"

/* A pull should not take longer than this. */
#define PULL_SLOW_NS (100 * NS_PER_MS)
#define STORE_REST_MS 1000u
#define IDLE_NS NS_PER_S
/* Pause before another look if a store's address is not known yet. */
#define LOOKUP_NS (5 * NS_PER_MS)

/* -- Answers --------------------------------------------------------------- */

/* Check a value and keep its pixels. Returns 0 or -EBADMSG. */
static int op_keep(struct pull_op *op, const uint8_t *value, size_t bytes)
{
	const struct puller *p = op->puller;
	const uint8_t *pixels =
		sample_unseal(value, bytes, p->seed, op->key, &op->value);

	if (!pixels || op->value.bytes != p->sample_bytes || !op->value.width ||
		!op->value.height)
		return -EBADMSG;
	memcpy(op->room, pixels, p->sample_bytes);
	return 0;
}

static void op_answered(struct request *q, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct pull_op *op = CONTAINER_OF(q, struct pull_op, q);

	if (status < 0)
		op->status = status == -ENOENT ? -EIO : status;
	else if (a->kind == META_VA)
		op->status = op_keep(op, value, a->value_bytes);
	else
		op->status = -ENOENT;
	op->took_ns = clock_now_ns() - op->sent_ns;
	list_add_tail(&op->puller->arrived, &op->node);
}

static void store_learn(struct puller *p, const struct pull_op *op)
{
	struct pull_store *s = op->store;

	s->flying--;
	if (op->status == -EAGAIN)
		return; /* it was not sent */
	if (op->status < 0 && op->status != -ENOENT && op->status != -EBADMSG)
		s->window = 1;
	else if (op->took_ns > PULL_SLOW_NS)
		s->window -= s->window > 1;
	else if (s->window < p->nops)
		s->window++;
}

/* Count a pull that has failed, and remember that its range lacks it. */
static void count_failure(struct puller *p, const struct pull *q, int status)
{
	struct pull_range *r = pull_range_at(p, q->fresh / p->range_size);

	if (status == -ENOENT)
		p->counts.missing++;
	else if (status == -EBADMSG)
		p->counts.bad++;
	else
		p->counts.failed++;
	if (status != -ENOENT && status != -EBADMSG)
		return;
	r->mask &= ~(UINT32_C(1) << q->fresh % p->range_size);
	r->broken = true;
}

static void op_free(struct puller *p, struct pull_op *op)
{
	op->pull = NULL;
	list_add_tail(&p->ops, &op->node);
}

static void op_settle(struct puller *p, struct pull_op *op)
{
	struct pull *q = op->pull;

	list_del(&op->node);
	store_learn(p, op);
	p->counts.bytes += op->status == 0 ? p->sample_bytes : 0;
	if (!q) {
		op_free(p, op);
	} else if (op->status == 0) {
		list_del(&q->node);
		q->state = PULL_THERE;
		p->waiting--;
		p->config.there(p->config.arg, q);
	} else if (op->status == -EAGAIN) {
		q->op = NULL;
		pull_move(&p->ready, q, PULL_READY);
		op_free(p, op);
	} else {
		q->op = NULL;
		op_free(p, op);
		count_failure(p, q, op->status);
		pull_miss(p, q);
	}
}

/* -- The next pulls -------------------------------------------------------- */

static void op_begin(struct puller *p, struct pull_op *op, struct pull *q,
	struct pull_store *s, uint64_t now_ns)
{
	const struct sample_name name = {
		.pass = q->pass, .index = q->index, .servings = q->servings};

	list_del(&op->node);
	op->pull = q;
	op->store = s;
	op->sent_ns = now_ns;
	(void)service_sample_key(op->key, p->job, &name, q->sample);
	q->op = op;
	s->flying++;
	pull_move(&p->sent, q, PULL_SENT);
}

/* Choose pulls, and put their ops into `chosen`. */
static void carrier_choose(
	struct puller *p, struct list *chosen, uint64_t now_ns)
{
	struct list *l = list_next(&p->ready), *next;

	for (; l != &p->ready && !list_empty(&p->ops); l = next) {
		struct pull *q = CONTAINER_OF(l, struct pull, node);
		const struct pull_range *r =
			pull_range_at(p, q->fresh / p->range_size);
		struct pull_store *s = &p->stores[r->store];
		struct pull_op *op = LIST_FIRST(&p->ops, struct pull_op, node);

		next = list_next(l);
		if (s->resting) {
			p->counts.failed++;
			pull_miss(p, q);
		} else if (s->flying < s->window) {
			op_begin(p, op, q, s, now_ns);
			list_add_tail(chosen, &op->node);
		}
	}
}

/* A turn: settle what has come, and choose what comes next. Returns true if
 * pulls are without an answer. */
static bool carry(struct puller *p, struct list *chosen)
{
	uint64_t now_ns = clock_now_ns();
	bool waiting;

	turn_lock(p->config.turn);
	while (!list_empty(&p->arrived))
		op_settle(p, LIST_FIRST(&p->arrived, struct pull_op, node));
	for (uint32_t i = 0; i < p->nstores; i++)
		p->stores[i].resting = p->stores[i].remote &&
			remote_rests(p->stores[i].remote, now_ns);
	if (!p->ending)
		carrier_choose(p, chosen, now_ns);
	waiting = p->waiting > 0;
	turn_unlock(p->config.turn);
	return waiting;
}

/* -- Sending --------------------------------------------------------------- */

static int store_open(struct puller *p, struct pull_store *s, uint64_t now_ns)
{
	const struct remote_config c = {.loop = &p->loop,
		.host = s->host,
		.value_max_bytes =
			(uint32_t)(p->sample_bytes + SAMPLE_HEAD_BYTES),
		.answer_ms = PULL_ANSWER_MS,
		.rest_ms = STORE_REST_MS};
	int rc = s->remote ? 0 : remote_new(&s->remote, &c);

	return rc < 0 ? rc : remote_open(s->remote, now_ns);
}

static void send_op(struct puller *p, struct pull_op *op, uint64_t now_ns)
{
	int rc = store_open(p, op->store, now_ns);

	op->q = (struct request){.answered = op_answered,
		.cost_bytes = p->sample_bytes + SAMPLE_HEAD_BYTES};
	request_line(&op->q, "mg %s v", op->key);
	if (rc == 0)
		remote_queue(op->store->remote, &op->q, now_ns);
	else
		op_answered(&op->q, rc, NULL, NULL);
}

/* Send the chosen ops, and close connections whose answers are overdue. Only
 * the carrier opens stores, so it may look at its own without the lock. */
static void send_all(struct puller *p, struct list *chosen, uint32_t nstores)
{
	uint64_t now_ns = clock_now_ns();

	while (!list_empty(chosen)) {
		struct pull_op *op = LIST_FIRST(chosen, struct pull_op, node);

		list_del(&op->node);
		send_op(p, op, now_ns);
	}
	for (uint32_t i = 0; i < nstores; i++)
		if (p->stores[i].remote) {
			remote_flush(p->stores[i].remote, now_ns);
			remote_check(p->stores[i].remote, now_ns);
		}
}

/* -- The thread ------------------------------------------------------------ */

void *pull_carrier_main(void *arg)
{
	struct puller *p = OBJECT(puller, arg);
	struct list chosen;

	list_init(&chosen);
	while (loop_run_posts(&p->loop)) {
		bool waiting = carry(p, &chosen);
		uint64_t pause_ns = waiting ? PULL_LOOK_NS : IDLE_NS;

		send_all(p, &chosen, PULL_STORES_MAX);
		if (!list_empty(&p->arrived))
			pause_ns = LOOKUP_NS;
		loop_wait(&p->loop, clock_now_ns() + pause_ns, remote_ready);
	}
	return NULL;
}

void pull_carrier_release(struct puller *p)
{
	for (uint32_t i = 0; i < PULL_STORES_MAX; i++)
		remote_free(p->stores[i].remote);
}
