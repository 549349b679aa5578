/* SPDX-License-Identifier: MIT */
/*
 * The saved state of an echo stage (doc/formats.md): its epoch, and its
 * position in the schedule of that epoch. All numbers are little-endian. Called
 * by the thread that uses the stage.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/magic.h"
#include "loader/api/echo_stage_impl.h"

#define MAGIC UINT32_C(0x45464552) /* the bytes "REFE" */
#define STATE_VERSION 1
#define HEAD_BYTES 52
#define SUM_BYTES 8

_Static_assert(
	HEAD_BYTES + SCHEDULE_STATE_BYTES + SUM_BYTES <= REFRAIN_STATE_MAX,
	"a state is too large");

/* The header, without magic number, version and size. */
struct stage_head {
	uint64_t seed, epoch, steps_before;
	uint64_t changes; /* number of changes of the echo factor */
	uint64_t rank;
	uint64_t skip; /* number of finished servings in the present step */
	struct schedule_echo first, newest;
};

/* Reads or writes a header. One function does both, so that the fields are
 * listed only once. */
struct stage_codec {
	uint8_t *out;
	const uint8_t *in;
	size_t at;
};

static void number(struct stage_codec *c, uint64_t *value, unsigned bytes)
{
	if (c->in)
		*value = 0;
	for (unsigned i = 0; i < bytes; i++, c->at++) {
		if (c->in)
			*value |= (uint64_t)c->in[c->at] << (8 * i);
		else if (c->out)
			c->out[c->at] = (uint8_t)(*value >> (8 * i));
	}
}

static void factor(struct stage_codec *c, struct schedule_echo *echo)
{
	uint64_t p = echo->p, q = echo->q;

	number(c, &p, 2);
	number(c, &q, 2);
	*echo = (struct schedule_echo){(uint32_t)p, (uint32_t)q};
}

static void head_code(struct stage_codec *c, struct stage_head *h)
{
	number(c, &h->seed, 8);
	number(c, &h->epoch, 8);
	number(c, &h->steps_before, 8);
	number(c, &h->changes, 4);
	number(c, &h->rank, 4);
	number(c, &h->skip, 4);
	factor(c, &h->first);
	factor(c, &h->newest);
}

static void state_code(struct stage_codec *c, uint64_t *magic,
	uint64_t *version, uint64_t *size)
{
	number(c, magic, 4);
	number(c, version, 2);
	number(c, size, 2);
}

int refrain_echo_save(struct refrain_echo *e, void *buf, size_t room)
{
	uint64_t magic = MAGIC, version = STATE_VERSION, size, sum, batch;
	struct stage_codec c = {.out = buf};
	uint8_t saved[SCHEDULE_STATE_BYTES];
	struct stage_head h;
	size_t n;

	if (!e || !buf)
		return error_set(settings_error(), -EINVAL,
			"%s must not be NULL", e ? "buf" : "the stage");
	batch = OBJECT(refrain_echo, e)->s.c.batch;
	h = (struct stage_head){e->s.c.seed, e->epoch, e->steps_before, e->made,
		e->s.c.rank, e->served % batch, e->first, e->newest};
	n = schedule_save(&e->schedule, e->served / batch, saved);
	if (!n)
		return error_set(settings_error(), -EAGAIN,
			"the echo factor has changed too often to save this "
			"position; try again after the next batch");
	size = HEAD_BYTES + n + SUM_BYTES;
	if (size > room)
		return error_set(settings_error(), -ENOSPC,
			"the state needs %" PRIu64 " bytes", size);
	state_code(&c, &magic, &version, &size);
	head_code(&c, &h);
	memcpy(c.out + c.at, saved, n);
	c.at += n;
	sum = hash64(buf, c.at, 0);
	number(&c, &sum, SUM_BYTES);
	return (int)size;
}

/* -- Restoring a state ----------------------------------------------------- */

static int stage_parse(struct stage_codec *c, size_t room, uint64_t *size,
	struct stage_head *h, struct error *err)
{
	struct stage_codec sum_at = {.in = c->in};
	uint64_t magic, version, sum;

	if (room < HEAD_BYTES + SUM_BYTES)
		return error_set(err, -EBADMSG,
			"this is not the state of an echo stage");
	state_code(c, &magic, &version, size);
	if (magic != MAGIC)
		return error_set(err, -EBADMSG,
			"this is not the state of an echo stage");
	if (version != STATE_VERSION)
		return error_set(err, -EBADMSG,
			"the state has version %" PRIu64
			": this library reads version %d",
			version, STATE_VERSION);
	if (*size > room || *size < HEAD_BYTES + SUM_BYTES)
		return error_set(err, -EBADMSG, "the state is truncated");
	sum_at.at = *size - SUM_BYTES;
	number(&sum_at, &sum, SUM_BYTES);
	if (hash64(c->in, *size - SUM_BYTES, 0) != sum)
		return error_set(err, -EBADMSG, "the state is damaged");
	head_code(c, h);
	return 0;
}

static int stage_compare(const struct refrain_echo *e,
	const struct stage_head *h, struct error *err)
{
	const struct schedule_echo *fixed = &e->s.echo;

	if (h->seed != e->s.c.seed || h->rank != e->s.c.rank)
		return error_set(err, -ESTALE,
			"the state belongs to another configuration: %s "
			"differs",
			h->seed != e->s.c.seed ? "seed" : "rank");
	if (!e->s.changes && (h->first.p != fixed->p || h->first.q != fixed->q))
		return error_set(err, -ESTALE,
			"the state belongs to another configuration: echo "
			"differs");
	return 0;
}

/* Move to a position within a batch: skip the servings that were finished. */
static int go_to(struct refrain_echo *e, uint64_t step, uint64_t skip)
{
	struct schedule_slot slot;

	if (skip >= e->s.c.batch ||
		schedule_seek(&e->schedule, &e->at, step) < 0)
		return -EBADMSG;
	for (uint64_t i = 0; i < skip; i++) {
		if (!schedule_peek(&e->schedule, &e->at, &slot))
			return -EBADMSG;
		schedule_advance(&e->schedule, &e->at);
	}
	e->served = step * e->s.c.batch + skip;
	return 0;
}

/* Returns the number of fresh examples before the position of the stage. */
static uint64_t fresh_so_far(const struct refrain_echo *e)
{
	uint64_t all = schedule_fresh_count(&e->schedule);
	uint64_t f = e->at.tick + (e->at.offset > 0);

	return f < all ? f : all;
}

int stage_restore(struct refrain_echo *e, const void *state, size_t room,
	struct error *err)
{
	struct stage_codec codec = {.in = state};
	struct schedule_restored restored;
	struct schedule_config c;
	struct stage_head h;
	uint64_t size = 0;
	int rc = stage_parse(&codec, room, &size, &h, err);

	if (rc == 0)
		rc = stage_compare(e, &h, err);
	if (rc < 0)
		return rc;
	e->epoch = h.epoch;
	e->steps_before = h.steps_before;
	e->made = h.changes;
	e->first = h.first;
	e->newest = h.newest;
	stage_schedule(e, &c);
	rc = schedule_restore(&e->schedule, &c, codec.in + codec.at,
		size - codec.at - SUM_BYTES, &restored, err);
	if (rc == -EINVAL)
		return error_wrap(err, -ESTALE,
			"the state belongs to another configuration");
	if (rc == 0 && go_to(e, restored.step, h.skip) < 0)
		rc = error_set(err, -EBADMSG, "the state is damaged");
	e->resumed = fresh_so_far(e);
	return rc;
}
