/* SPDX-License-Identifier: MIT */
/*
 * The saved state of a loader (doc/formats.md): the position in the schedule,
 * and a hash of each other member of the configuration that affects the stream,
 * so that an error message can name the member that differs. The table in
 * settings_table.c lists these members. All numbers are little-endian. Called
 * by the user's threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "loader/engine/engine_impl.h"
#include "loader/core/settings.h"

#define MAGIC UINT32_C(0x53464552) /* the bytes "REFS" */
#define STATE_VERSION 1
/* Magic number, version, size, fingerprint, three counts */
#define HEAD_BYTES 24
#define SUM_BYTES 8

_Static_assert(
	HEAD_BYTES + 2 * SAVED_HASHES + SCHEDULE_STATE_BYTES + SUM_BYTES <=
		REFRAIN_STATE_MAX,
	"a state is too large");

/* Clear flags that are not hashed; they are compared as parts of the
 * schedule. */
static void normalise(struct refrain_config *c)
{
	c->flags &= member_flags_hashed();
}

/* Returns the n-th hash. The hash of a callback only depends on whether it is
 * set. */
static uint16_t member_hash(
	const struct settings *s, const struct refrain_config *c, size_t n)
{
	static const char none[sizeof(c->decode)];
	const struct member *m = member_of_hash(n);
	const char *at = (const char *)c + m->offset;

	if (m->kind == KIND_POINTER)
		return memcmp(at, none, sizeof(none)) != 0;
	if (m->kind == KIND_TEXT)
		return (uint16_t)settings_text_hash(s, m);
	return (uint16_t)hash64(at, m->bytes, STATE_VERSION);
}

static void put(uint8_t **at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*at)++ = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t **at, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t) * (*at)++ << (8 * i);
	return v;
}

int state_save(const struct state_of *of, const struct schedule *schedule,
	uint64_t step, void *buf, size_t room, struct error *err)
{
	struct refrain_config c = of->s->c;
	uint8_t saved[SCHEDULE_STATE_BYTES], *out = buf, *at = out;
	size_t n = schedule_save(schedule, step, saved);
	size_t size = HEAD_BYTES + 2 * SAVED_HASHES + n + SUM_BYTES;

	if (!n && step != of->step)
		return error_set(err, -ERANGE,
			"step %" PRIu64
			" is outside the run, or too old to save",
			step);
	if (!n)
		return error_set(err, -EAGAIN,
			"the echo factor has changed too often to save this "
			"step; try again after the next batch");
	if (size > room)
		return error_set(
			err, -ENOSPC, "the state needs %zu bytes", size);
	normalise(&c);
	put(&at, MAGIC, 4);
	put(&at, STATE_VERSION, 2);
	put(&at, size, 2);
	put(&at, of->fingerprint, 8);
	put(&at, SAVED_HASHES, 2);
	put(&at, n, 2);
	put(&at, of->changes, 4);
	for (size_t i = 0; i < SAVED_HASHES; i++)
		put(&at, member_hash(of->s, &c, i), 2);
	memcpy(at, saved, n);
	at += n;
	put(&at, hash64(out, (size_t)(at - out), 0), SUM_BYTES);
	return (int)size;
}

static struct state_of state_of_engine(const struct engine *engine)
{
	return (struct state_of){
		.s = &engine->s,
		.fingerprint = dataset_fingerprint(engine->parts.dataset),
		.changes = engine->parts.echoes
			? echo_changes(engine->parts.echoes)
			: 0,
		.step = engine->parts.steps ? steps_first(engine->parts.steps)
					    : 0,
	};
}

int engine_save_at(
	struct batch_source *source, uint64_t step, void *buf, size_t size)
{
	struct engine *engine = engine_of(source);
	struct state_of of;

	TURN_LOOK_SCOPE(&engine->turn);
	of = state_of_engine(engine);
	return state_save(&of, &engine->schedule, step, buf, size,
		outcome_message(engine->parts.outcome));
}

int engine_save(struct batch_source *source, void *buf, size_t size)
{
	struct engine *engine = engine_of(source);
	struct state_of of;

	TURN_LOOK_SCOPE(&engine->turn);
	of = state_of_engine(engine);
	return state_save(&of, &engine->schedule, of.step, buf, size,
		outcome_message(engine->parts.outcome));
}

/* -- Restoring a state ----------------------------------------------------- */

/* The header of a state, after it was checked. */
struct state_head {
	uint64_t fingerprint;
	size_t members, schedule;
	uint64_t changes; /* number of changes of the echo factor */
	const uint8_t *rest;
};

static int parse(
	struct state_head *h, const uint8_t *in, size_t size, struct error *err)
{
	const uint8_t *at = in, *sum;
	uint64_t version, bytes;

	if (size < HEAD_BYTES + SUM_BYTES || get(&at, 4) != MAGIC)
		return error_set(err, -EBADMSG, "this is not a saved state");
	version = get(&at, 2);
	bytes = get(&at, 2);
	if (version != STATE_VERSION)
		return error_set(err, -EBADMSG,
			"the state has version %" PRIu64
			": this library reads version %d",
			version, STATE_VERSION);
	if (bytes > size || bytes < HEAD_BYTES + SUM_BYTES)
		return error_set(err, -EBADMSG,
			"the state is truncated: %zu bytes of %" PRIu64, size,
			bytes);
	sum = in + bytes - SUM_BYTES;
	if (hash64(in, bytes - SUM_BYTES, 0) != get(&sum, SUM_BYTES))
		return error_set(err, -EBADMSG, "the state is damaged");
	h->fingerprint = get(&at, 8);
	h->members = get(&at, 2);
	h->schedule = get(&at, 2);
	h->changes = get(&at, 4);
	h->rest = at;
	if (HEAD_BYTES + 2 * h->members + h->schedule + SUM_BYTES != bytes)
		return error_set(err, -EBADMSG, "the state is damaged");
	return 0;
}

/* Does this member only affect what replaces a damaged example? Then a
 * different value does not change the positions in the stream. */
static bool is_free(const struct member *m)
{
	return m->offset == offsetof(struct refrain_config, policy) ||
		m->offset == offsetof(struct refrain_config, max_pixels);
}

/* Returns the n-th hash of a configuration that does not set the member. */
static uint16_t hash_of_none(size_t n)
{
	static const struct settings none;

	return member_hash(&none, &none.c, n);
}

/* Compare the hashes. A state of an older version has only the first ones; no
 * run that it saved had set the members of the others. */
static int compare(
	const struct state_of *of, struct state_head *h, struct error *err)
{
	struct refrain_config c = of->s->c;

	normalise(&c);
	if (dataset_other_rendition(h->fingerprint, of->fingerprint))
		return error_set(err, -ESTALE,
			"the state belongs to another rendition of the "
			"dataset: its images were re-coded with loss "
			"(recode.json); use the dataset of the state, or "
			"begin anew");
	if (h->fingerprint != of->fingerprint)
		return error_set(err, -ESTALE,
			"the state belongs to another dataset: names, "
			"positions or labels differ");
	if (h->members > SAVED_HASHES)
		return error_set(
			err, -ESTALE, "the state was saved by a newer library");
	for (size_t i = 0; i < SAVED_HASHES; i++) {
		uint16_t hash = i < h->members ? (uint16_t)get(&h->rest, 2)
					       : hash_of_none(i);

		if (hash != member_hash(of->s, &c, i) &&
			!is_free(member_of_hash(i)))
			return error_set(err, -ESTALE,
				"the state belongs to another configuration: "
				"%s differs",
				member_of_hash(i)->name);
	}
	return 0;
}

int state_begin(const struct state_of *of, const struct schedule_config *config,
	struct schedule *schedule, struct state_begun *begun, struct error *err)
{
	struct schedule_restored restored;
	struct state_head h = {0};
	int rc;

	*begun = (struct state_begun){0};
	if (!of->s->c.state)
		return schedule_init(schedule, config, err);
	rc = parse(&h, of->s->c.state, of->s->c.state_bytes, err);
	if (rc == 0)
		rc = compare(of, &h, err);
	if (rc < 0)
		return rc;
	rc = schedule_restore(
		schedule, config, h.rest, h.schedule, &restored, err);
	if (rc == -EINVAL)
		return error_wrap(err, -ESTALE,
			"the state belongs to another configuration");
	if (rc < 0)
		return rc;
	begun->step = restored.step;
	begun->changes = h.changes;
	begun->echoes_dropped = restored.echoes_dropped;
	return 0;
}

int state_restore(struct engine *engine, const struct schedule_config *config,
	uint64_t *step, uint64_t *changes, struct error *err)
{
	struct state_of of = state_of_engine(engine);
	struct state_begun begun;
	int rc = state_begin(&of, config, &engine->schedule, &begun, err);

	if (rc < 0)
		return rc;
	*step = begun.step;
	*changes = begun.changes;
	TURN_LOOK_SCOPE(&engine->turn);
	meter_stats(engine->parts.meter)->dropped_echoes = begun.echoes_dropped;
	return 0;
}
