/* SPDX-License-Identifier: MIT */
/*
 * One serving: how it is made from what its entry holds, and what the entry
 * holds then. Where servings are to come, a decoded region (echo point before)
 * or the sample itself (after, batch) is kept if there is room; else it goes
 * through the worker's scratch memory, which stays in its cache, and the file
 * is kept if there is room for that. Echoes after augmentation, and of whole
 * batches, are copies of the sample that is kept: a copy costs a hundredth of
 * what making it does, and no batch has to be held for as long as the window.
 * Workers come here with the lock and release it meanwhile.
 */
#include "engine/make_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* -- Status of a sample ---------------------------------------------------- */

static void fill_place(struct engine *engine, struct serving *s, int status)
{
	const struct schedule_slot *slot = &s->step->slots[s->place];
	const struct entry *e = s->entry;
	struct slab *slab = s->step->slab;
	bool replaced = e->attempt && e->state != ENTRY_FAILED;
	struct example own;

	slab->indices[s->place] = slot->index;
	slab->substitutes[s->place] = replaced ? e->index : slot->index;
	slab->echoes[s->place] = slot->echo;
	slab->seeds[s->place] = slot->augment_seed;
	slab->status[s->place] = status;
	slab->labels[s->place] = e->label;
	if (e->attempt && !replaced) {
		dataset_example(engine->dataset, slot->index, &own);
		slab->labels[s->place] = own.label;
	}
	s->step->substituted += replaced;
	s->step->zero_filled += status && !replaced;
	s->step->damaged += e->error && !slot->echo;
}

static struct refrain_crop *crop_place(struct serving *s)
{
	return &s->step->slab->crops[s->place];
}

static uint8_t *place_of(const struct engine *engine, struct serving *s)
{
	return s->step->slab->data + s->place * engine->s.sample_bytes;
}

/* Zeros, in no part of an image. */
static void zero(struct engine *engine, struct serving *s)
{
	memset(place_of(engine, s), 0, engine->s.sample_bytes);
	s->step->slab->crops[s->place] = (struct refrain_crop){0};
}

/*
 * Nothing can take the place of a sample: only REFRAIN_ZERO_FILL asks for
 * zeros, all else fails. The lowest place of a batch decides what is said.
 */
static void note_failure(
	struct engine *engine, struct serving *s, int status, const char *why)
{
	struct step *st = s->step;

	if (engine->s.c.policy == REFRAIN_ZERO_FILL || !status)
		return;
	if (st->error && st->error_place < s->place)
		return;
	st->error = status;
	st->error_place = s->place;
	st->error_stage = s->entry->error_stage;
	st->error_index = s->entry->error_index;
	free(st->why);
	st->why = why ? strdup(why) : NULL; /* without it: the number */
}

/* The entry is whole, but augment() or augment_fn() failed on this serving. */
static void note_augment(struct engine *engine, struct serving *s, int status)
{
	struct error why;

	if (!status)
		return;
	(void)error_set(&why, status, "cannot augment '%s': %m",
		s->entry->example.name);
	note_failure(engine, s, status, why.msg);
	if (s->step->error_place != s->place)
		return;
	s->step->error_stage = REFRAIN_STAGE_AUGMENT;
	s->step->error_index = s->entry->index;
}

static void count_augment(struct engine *engine, const struct make *m)
{
	meter_augmented(engine->meter, engine->s.sample_bytes, m->augment_ns);
}

static void count_decode(struct engine *engine, const struct make *m)
{
	meter_decoded(engine->meter, m->e->encoded_bytes, m->decode_ns,
		m->e->was_decoded);
	m->e->was_decoded = true;
}

/* -- What an entry holds, for the sampler ---------------------------------- */

static uint64_t seed_of_serving(const void *ctx, uint32_t k)
{
	const struct make *m = ctx;

	/* The slot's seed is that of one serving; this is that of any. */
	return schedule_augment_seed(
		&m->w->engine->planner.schedule, &m->e->slot, k);
}

/* How many different crops the servings have. */
static uint32_t crops(const struct make *m)
{
	return m->w->engine->s.c.echo_point == REFRAIN_ECHO_BEFORE
		? m->e->slot.servings
		: 1;
}

static struct encoded encoded_of(const struct entry *e)
{
	return (struct encoded){
		.data = e->encoded->data,
		.bytes = e->encoded_bytes,
		.skip = e->skip,
		.name = e->example.name,
		.index = e->index,
	};
}

/* Find the layout for all later servings if they are kept, else for this one.
 */
static void find_layout(struct make *m, bool keep)
{
	struct seeds some = {keep ? m->e->low : m->s->echo,
		keep ? m->e->slot.servings : m->s->echo + 1, seed_of_serving,
		m};

	sample_layout(
		m->w->sampler, &m->e->picture, crops(m), &some, &m->layout);
}

static struct decoded kept_of(
	const struct engine *engine, const struct entry *e)
{
	struct decoded d = {
		.data = e->kept->data + (engine->s.plain ? e->skip : 0),
		.bytes = e->kept_bytes,
		.width = e->width,
		.height = e->height,
		.channels = e->channels,
	};

	if (sample_is_jpeg(&engine->s, &e->picture))
		d.image = e->image;
	else
		sample_take_shape(&d);
	return d;
}

/* -- From what is kept ----------------------------------------------------- */

static int copy_kept(struct make *m)
{
	struct engine *engine = m->w->engine;
	const struct schedule_slot *slot = &m->s->step->slots[m->s->place];
	uint64_t now_ns = clock_now_ns();
	struct decoded d = kept_of(engine, m->e);
	int rc = 0;

	if (engine->s.c.echo_point == REFRAIN_ECHO_BEFORE || engine->s.plain)
		rc = sample_augment(m->w->sampler, &m->e->picture, &d,
			slot->augment_seed, place_of(engine, m->s));
	else
		memcpy(place_of(engine, m->s), m->e->kept->data,
			engine->s.sample_bytes);
	if (rc < 0)
		zero(engine, m->s);
	else
		sample_crop(&engine->s, &m->e->picture, &d, slot->augment_seed,
			crop_place(m->s));
	m->augment_ns = clock_now_ns() - now_ns;
	return rc;
}

static void make_from_kept(struct make *m)
{
	struct engine *engine = m->w->engine;
	int rc;

	m->e->users++;
	turn_unlock(&engine->turn);
	rc = copy_kept(m);
	turn_lock(&engine->turn);
	m->e->users--;
	count_augment(engine, m);
	note_augment(engine, m->s, rc);
	if (!rc && m->e->attempt)
		rc = m->e->error;
	fill_place(engine, m->s, rc);
}

static void make_nothing(struct make *m)
{
	struct engine *engine = m->w->engine;

	m->e->users++;
	turn_unlock(&engine->turn);
	zero(engine, m->s);
	turn_lock(&engine->turn);
	m->e->users--;
	fill_place(engine, m->s, m->e->error);
	note_failure(engine, m->s, m->e->error, m->e->why);
}

/* -- From the file --------------------------------------------------------- */

/* The region is decoded and the sample made; the lock is not held. 0, -errno,
 * or REFRAIN_DECLINE. */
static int decode_and_make(
	struct make *m, struct decoded *d, int *status, struct error *err)
{
	const struct schedule_slot *slot = &m->s->step->slots[m->s->place];
	struct engine *engine = m->w->engine;
	uint64_t now_ns = clock_now_ns(), then_ns;
	struct encoded in = encoded_of(m->e);
	uint8_t *room = m->keep ? m->keep->data
		: m->w->scratch ? m->w->scratch->data
				: NULL;
	int rc = sample_decode(
		m->w->sampler, &m->e->picture, &in, &m->layout, room, d, err);

	then_ns = clock_now_ns();
	m->decode_ns = then_ns - now_ns;
	if (rc)
		return rc;
	rc = sample_augment(m->w->sampler, &m->e->picture, d,
		slot->augment_seed, place_of(engine, m->s));
	*status = rc < 0 ? rc : 0;
	if (rc < 0)
		zero(engine, m->s);
	else
		sample_crop(&engine->s, &m->e->picture, d, slot->augment_seed,
			crop_place(m->s));
	m->augment_ns = clock_now_ns() - then_ns;
	return 0;
}

/* Move the memory that the entry keeps to the entry. */
static void adopt(
	struct make *m, const struct decoded *d, struct buffer *b, size_t bytes)
{
	struct engine *engine = m->w->engine;
	struct entry *e = m->e;

	e->kept = b;
	e->kept_bytes = bytes;
	e->image = d->image;
	e->width = d->width;
	e->height = d->height;
	e->channels = d->channels;
	entry_drop_encoded(engine, e);
	entry_state(engine, e, ENTRY_KEPT);
}

/* Keep `bytes` bytes at `from` if there is room. Lock held, not meanwhile. */
static void keep_copy(struct make *m, const struct decoded *d,
	const uint8_t *from, size_t bytes)
{
	struct engine *engine = m->w->engine;
	struct buffer *b = room_to_keep(engine, bytes);

	if (!b)
		return;
	turn_unlock(&engine->turn);
	memcpy(b->data, from, bytes);
	turn_lock(&engine->turn);
	adopt(m, d, b, bytes);
}

/* A record is kept as it is: its file is what was decoded. */
static void keep_encoded(struct make *m, const struct decoded *d)
{
	struct engine *engine = m->w->engine;
	struct buffer *b = m->e->encoded;

	m->e->encoded = NULL;
	room_count_kept(engine, memory_cost(d->bytes));
	adopt(m, d, b, d->bytes);
}

/* The entry after a decode that went well. Lock held, not meanwhile. */
static void settle_decoded(struct make *m, const struct decoded *d)
{
	struct engine *engine = m->w->engine;
	struct entry *e = m->e;

	e->picture.verified = true;
	if (!m->more)
		entry_drop_encoded(engine, e);
	else if (engine->s.plain)
		keep_encoded(m, d);
	else if (m->keep)
		adopt(m, d, m->keep, m->layout.bytes);
	else if (engine->s.c.echo_point != REFRAIN_ECHO_BEFORE)
		keep_copy(m, d, place_of(engine, m->s), engine->s.sample_bytes);
	else if (!sample_is_jpeg(&engine->s, &e->picture))
		keep_copy(m, d, d->data, d->bytes);
	if (e->state == ENTRY_KEPT)
		return;
	if (m->more && room_for_encoded(engine)) {
		entry_state(engine, e, ENTRY_ENCODED);
		return;
	}
	entry_drop_encoded(engine, e);
	entry_state(engine, e, ENTRY_ABSENT);
}

static void give_back_keep(struct make *m, size_t bytes)
{
	struct engine *engine = m->w->engine;

	if (!m->keep)
		return;
	entries_drop(engine->entries, memory_cost(bytes));
	memory_put(&engine->memory, m->keep);
	m->keep = NULL;
}

/* Memory for what find_layout() says, in the pool or in scratch. */
static int find_room(struct make *m)
{
	struct engine *engine = m->w->engine;
	bool pool = m->more && sample_is_jpeg(&engine->s, &m->e->picture) &&
		engine->s.c.echo_point == REFRAIN_ECHO_BEFORE;
	size_t bytes = m->layout.bytes;
	int rc;

	if (pool)
		m->keep = room_to_keep(engine, bytes);
	if (!m->keep)
		find_layout(m, false); /* this serving's part alone will do */
	rc = room_to_work(m);
	if (rc == -E2BIG && m->keep) {
		give_back_keep(m, bytes);
		find_layout(m, false);
		rc = room_to_work(m);
	}
	if (rc < 0)
		give_back_keep(m, bytes);
	return rc;
}

static int probe(struct make *m, struct error *err)
{
	struct engine *engine = m->w->engine;
	struct encoded in = encoded_of(m->e);
	struct seeds all = {0, crops(m), seed_of_serving, m};
	int rc;

	turn_unlock(&engine->turn);
	rc = sample_probe(m->w->sampler, &m->e->picture, &in, &all, err);
	if (rc == 0)
		find_layout(m, true);
	turn_lock(&engine->turn);
	return rc;
}

static void wait_on(struct make *m)
{
	m->s->state = SERVING_WAITS;
	list_add_tail(&m->e->waiting, &m->s->node);
}

/* Decode in the room that there is now: as decode_and_make(). */
static int decode_in_room(struct make *m, int *status, struct error *err)
{
	struct engine *engine = m->w->engine;
	struct decoded d;
	int rc;

	turn_unlock(&engine->turn);
	rc = decode_and_make(m, &d, status, err);
	turn_lock(&engine->turn);
	if (rc) {
		give_back_keep(m, m->layout.bytes);
	} else {
		count_decode(engine, m);
		settle_decoded(m, &d);
	}
	room_done(m);
	return rc;
}

static int make_once(struct make *m, int *status, struct error *err)
{
	int rc = probe(m, err);

	if (rc == 0)
		rc = find_room(m);
	if (rc == -E2BIG && !err->msg[0])
		(void)error_set(err, rc, "it is larger than the memory");
	return rc == 0 ? decode_in_room(m, status, err) : rc;
}

/* False: it failed, or waits; what is to be done then is done. */
static bool make_from_file(struct make *m)
{
	struct engine *engine = m->w->engine;
	struct error err = {""};
	int status = 0, rc = make_once(m, &status, &err);

	if (rc == REFRAIN_DECLINE) {
		m->e->picture.declined = true;
		rc = make_once(m, &status, &err);
	}
	if (rc == -EAGAIN || rc == -ECANCELED) {
		wait_on(m);
		entry_state(engine, m->e, ENTRY_ENCODED);
		entry_settle(engine, m->e);
		return false;
	}
	if (engine->alone == m->w)
		engine->alone = NULL;
	if (rc < 0) {
		wait_on(m);
		entry_fail(engine, m->e, rc, "decode", err.msg);
		return false;
	}
	count_augment(engine, m);
	note_augment(engine, m->s, status);
	fill_place(
		engine, m->s, status || !m->e->attempt ? status : m->e->error);
	return true;
}

bool serving_make(struct worker *w, struct serving *s, enum entry_state state)
{
	struct make m = {.w = w, .s = s, .e = s->entry};

	m.more = m.e->left > 1;
	switch (state) {
	case ENTRY_KEPT:
		make_from_kept(&m);
		return true;
	case ENTRY_FAILED:
		make_nothing(&m);
		return true;
	default:
		return make_from_file(&m);
	}
}
