/* SPDX-License-Identifier: MIT */
/*
 * Makes one serving from the data of its original. If the original has more
 * servings and there is room, it keeps the decoded region (echo point before)
 * or the sample itself (after, batch). Otherwise the worker decodes into its
 * scratch memory, which stays in its processor's cache, and the file is kept if
 * there is room for it. For the echo points after and batch, echoes are copies
 * of the kept sample. A copy costs a hundredth of the time to make a sample,
 * and no whole batch must be held until it is repeated. Workers call this with
 * the lock held; it is released while they decode, augment or copy.
 */
#include "loader/engine/make_fields_impl.h"
#include "loader/engine/make_serving_impl.h"
#include "loader/engine/volumes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

/* A serving that is being made from an original. */
struct make {
	struct worker *w;
	struct serving *s;
	struct original *o;
	bool more; /* the original has more servings */
	struct sample_layout layout;
	/* Memory to decode into that the pool keeps; NULL: decode into scratch
	 * memory */
	struct buffer *keep;
	uint64_t decode_ns, augment_ns;
	/* number of bytes that the original needs; set if memory is short */
	uint64_t starved_bytes;
	size_t block_bytes; /* size of the block of fields; 0: none */
	/* memory into which the image was decoded, if `d` is set */
	uint8_t *room;
	uint64_t cut;	      /* rows without room in the batch */
	struct volume volume; /* region of the array; set for arrays */
};

/* -- The status of a sample ------------------------------------------------ */

static void describe_place(
	const struct engine_parts *parts, struct serving *s, int status)
{
	const struct schedule_slot *slot = &s->step->slots[s->place];
	const struct original *o = s->original;
	struct slab *slab = s->step->slab;
	bool replaced = o->attempt && o->state != ORIGINAL_FAILED;
	struct example own;

	slab->indices[s->place] = slot->index;
	slab->substitutes[s->place] = replaced ? o->index : slot->index;
	slab->echoes[s->place] = slot->echo;
	slab->seeds[s->place] = slot->augment_seed;
	slab->status[s->place] = status;
	slab->labels[s->place] = o->label;
	if (o->attempt && !replaced) {
		dataset_example(parts->dataset, slot->index, &own);
		slab->labels[s->place] = own.label;
	}
	s->step->substituted += replaced;
	s->step->zero_filled += status && !replaced;
	s->step->damaged += o->error && !slot->echo;
}

static struct refrain_crop *crop_place(struct serving *s)
{
	return &s->step->slab->crops[s->place];
}

static uint8_t *place_of(const struct engine_parts *parts, struct serving *s)
{
	return s->step->slab->data + s->place * parts->s->sample_bytes;
}

/* Fill the sample with zeros, and set an empty crop and empty fields. */
static void zero(const struct engine_parts *parts, struct serving *s)
{
	memset(place_of(parts, s), 0, parts->s->sample_bytes);
	s->step->slab->crops[s->place] = (struct refrain_crop){0};
	fields_clear(parts, s);
}

/*
 * Handle a sample without a substitute. With REFRAIN_ZERO_FILL it is filled
 * with zeros, otherwise the step fails. If several samples fail, the step keeps
 * the message of the one with the lowest index in the batch.
 */
static void note_failure(const struct engine_parts *parts, struct serving *s,
	int status, const char *why)
{
	struct step *st = s->step;

	if (parts->c->policy == REFRAIN_ZERO_FILL || !status)
		return;
	if (st->error && st->error_place < s->place)
		return;
	st->error = status;
	st->error_place = s->place;
	st->error_stage = s->original->error_stage;
	st->error_index = s->original->error_index;
	free(st->why);
	/* If memory has run out, only the error number is reported */
	st->why = why ? strdup(why) : NULL;
}

/*
 * Handle a failure of augment() or augment_fn() for this serving. The original
 * itself is intact.
 */
static void note_augment(
	const struct engine_parts *parts, struct serving *s, int status)
{
	struct error why;

	if (!status)
		return;
	(void)error_set(&why, status, "cannot augment '%s': %m",
		s->original->example.name);
	note_failure(parts, s, status, why.msg);
	if (s->step->error_place != s->place)
		return;
	s->step->error_stage = REFRAIN_STAGE_AUGMENT;
	s->step->error_index = s->original->index;
}

static void count_augment(
	const struct engine_parts *parts, const struct make *m)
{
	meter_augmented(parts->meter, parts->s->sample_bytes, m->augment_ns);
	meter_stats(parts->meter)->rows_cut += m->cut;
}

/* Count a decode that has produced so many bytes. */
static void count_decode(
	const struct engine_parts *parts, const struct make *m, size_t bytes)
{
	meter_decoded(parts->meter, m->o->encoded_bytes, m->decode_ns,
		m->o->was_decoded);
	meter_stats(parts->meter)->decoded_bytes += bytes;
	m->o->was_decoded = true;
}

/* -- The data of an original, for the sampler ------------------------------ */

static uint64_t seed_of_serving(const void *ctx, uint32_t k)
{
	const struct make *m = ctx;

	/* The seed in a slot is only for the slot's own serving, so compute the
	 * seed of serving k. */
	return schedule_augment_seed(m->w->parts->schedule, &m->o->slot, k);
}

/* Returns how many different crops the servings have. */
static uint32_t crops(const struct make *m)
{
	return m->w->parts->c->echo_point == REFRAIN_ECHO_BEFORE
		? m->o->slot.servings
		: 1;
}

static struct encoded encoded_of(const struct make *m)
{
	const struct part_span *span = original_parts(m->w->parts->pool, m->o);
	const struct original *o = m->o;

	return (struct encoded){
		.data = o->encoded->data + (span ? span[0].at : 0),
		.bytes = o->encoded_bytes,
		.skip = o->skip,
		.name = o->example.name,
		.index = o->index,
	};
}

/* Compute the layout for this serving or, with `keep`, for all remaining
 * servings. */
static void find_layout(struct make *m, bool keep)
{
	struct seeds some = {keep ? m->o->low : m->s->echo,
		keep ? m->o->slot.servings : m->s->echo + 1, seed_of_serving,
		m};

	struct field_extra extra = fields_extra(m->w->fields);

	sample_layout(
		m->w->sampler, &m->o->picture, crops(m), &some, &m->layout);
	m->block_bytes = fields_block_bytes(m->w->fields, &m->layout.region);
	/* Image and masks are decoded one after the other */
	if (m->layout.extra_bytes < extra.bytes)
		m->layout.extra_bytes = extra.bytes;
	if (m->layout.new_extra_bytes < extra.new_bytes)
		m->layout.new_extra_bytes = extra.new_bytes;
	m->layout.extra_bytes += extra.rows_bytes;
	m->layout.new_extra_bytes += extra.new_rows_bytes;
}

/* Returns the bytes that are decoded: the image, and a block behind it. */
static size_t decoded_bytes(const struct make *m)
{
	return fields_behind(m->layout.bytes, m->block_bytes);
}

static struct decoded kept_of(const struct make *m)
{
	const struct engine_parts *parts = m->w->parts;
	const struct part_span *span = original_parts(m->w->parts->pool, m->o);
	const struct original *o = m->o;
	struct decoded d = {
		.data = o->kept->data + (parts->s->plain ? o->skip : 0),
		.bytes = span ? span[0].bytes : o->kept_bytes,
		.width = o->width,
		.height = o->height,
		.channels = o->channels,
	};

	if (sample_by_library(parts->s, &o->picture))
		d.image = o->image;
	else
		sample_take_shape(&d);
	return d;
}

/* -- Making a sample from kept data ---------------------------------------- */

/* Set the crop of the serving, and map its fields. */
static int finish_serving(struct make *m, const struct picture *pic,
	const struct decoded *d, const uint8_t *block)
{
	const struct engine_parts *parts = m->w->parts;
	const struct schedule_slot *slot = &m->s->step->slots[m->s->place];

	sample_crop(parts->s, pic, d, slot->augment_seed, crop_place(m->s));
	return fields_map(parts, m->s, block, &m->cut);
}

static int copy_kept(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;
	const struct schedule_slot *slot = &m->s->step->slots[m->s->place];
	uint64_t now_ns = clock_now_ns();
	struct decoded d = kept_of(m);
	const uint8_t *block = fields_block(parts, m->o->kept->data, d.bytes);
	/* other threads use the original's picture, too, so copy it */
	struct picture pic = m->o->picture;
	int rc = 0;

	fields_boxes(parts, m->o, block, &pic);
	pic.volume = volumes_of(parts, m->o, &m->volume) ? &m->volume : NULL;
	if (parts->c->echo_point == REFRAIN_ECHO_BEFORE || parts->s->plain)
		rc = sample_augment(m->w->sampler, &pic, &d, slot->augment_seed,
			place_of(parts, m->s));
	else
		memcpy(place_of(parts, m->s), m->o->kept->data,
			parts->s->sample_bytes);
	if (rc == 0)
		rc = finish_serving(m, &pic, &d, block);
	if (rc < 0)
		zero(parts, m->s);
	m->augment_ns = clock_now_ns() - now_ns;
	return rc;
}

static void make_from_kept(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;
	int rc;

	m->o->users++;
	turn_unlock(parts->turn);
	rc = copy_kept(m);
	turn_lock(parts->turn);
	m->o->users--;
	count_augment(parts, m);
	note_augment(parts, m->s, rc);
	if (!rc && m->o->attempt)
		rc = m->o->error;
	describe_place(parts, m->s, rc);
}

static void make_nothing(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;

	m->o->users++;
	turn_unlock(parts->turn);
	zero(parts, m->s);
	turn_lock(parts->turn);
	m->o->users--;
	describe_place(parts, m->s, m->o->error);
	note_failure(parts, m->s, m->o->error, m->o->why);
}

/* -- Making a sample from the file ----------------------------------------- */

/* Decode the region and make the sample, without the lock. Returns 0, -errno,
 * or REFRAIN_DECLINE if the user's decode() has declined the example. */
static int decode_and_make(
	struct make *m, struct decoded *d, int *status, struct error *err)
{
	const struct schedule_slot *slot = &m->s->step->slots[m->s->place];
	const struct engine_parts *parts = m->w->parts;
	uint64_t now_ns = clock_now_ns(), then_ns;
	struct encoded in = encoded_of(m);
	uint8_t *block;
	int rc;

	if (volumes_of(parts, m->o, &m->volume))
		m->o->picture.volume = &m->volume;
	m->room = m->keep ? m->keep->data : desk_scratch(m->w->desk);
	block = fields_block(parts, m->room, m->layout.bytes);
	rc = sample_decode(m->w->sampler, &m->o->picture, &in, &m->layout,
		m->room, d, err);
	if (rc == 0)
		rc = fields_sized(m->w->fields, m->o, d->width, d->height, err);
	if (rc == 0)
		rc = fields_fill(m->w->fields, &m->layout.region, block, err);
	then_ns = clock_now_ns();
	m->decode_ns = then_ns - now_ns;
	if (rc)
		return rc;
	rc = sample_augment(m->w->sampler, &m->o->picture, d,
		slot->augment_seed, place_of(parts, m->s));
	if (rc == 0)
		rc = finish_serving(m, &m->o->picture, d, block);
	*status = rc < 0 ? rc : 0;
	if (rc < 0)
		zero(parts, m->s);
	m->augment_ns = clock_now_ns() - then_ns;
	return 0;
}

/* Pass the memory with the data to keep to the original. */
static void adopt(
	struct make *m, const struct decoded *d, struct buffer *b, size_t bytes)
{
	const struct engine_parts *parts = m->w->parts;
	struct original *o = m->o;
	struct part_span *span = original_parts(parts->pool, o);

	o->kept = b;
	o->kept_bytes = fields_behind(bytes, m->block_bytes);
	if (span)
		span[0] = (struct part_span){
			.bytes = bytes, .file_bytes = span[0].file_bytes};
	o->image = d->image;
	o->width = d->width;
	o->height = d->height;
	o->channels = d->channels;
	original_drop_encoded(parts->pool, o);
	original_state(parts->pool, o, ORIGINAL_KEPT);
}

/* Keep a copy of the data at `from` if there is room. The caller holds the
 * lock, which is released during the copy. */
static void keep_copy(struct make *m, const struct decoded *d,
	const uint8_t *from, size_t bytes)
{
	const struct engine_parts *parts = m->w->parts;
	struct buffer *b = budget_to_keep(
		parts->budget, fields_behind(bytes, m->block_bytes));

	ASSERT_TURN(parts->turn);
	if (!b)
		return;
	turn_unlock(parts->turn);
	memcpy(b->data, from, bytes);
	if (m->block_bytes)
		memcpy(fields_block(parts, b->data, bytes),
			fields_block(parts, m->room, m->layout.bytes),
			m->block_bytes);
	turn_lock(parts->turn);
	adopt(m, d, b, bytes);
}

/* Keep the encoded bytes of a record. They are also its decoded form. */
static void keep_encoded(struct make *m, const struct decoded *d)
{
	const struct engine_parts *parts = m->w->parts;
	struct buffer *b = m->o->encoded;

	m->o->encoded = NULL;
	budget_count_kept(parts->budget, memory_cost(d->bytes));
	adopt(m, d, b, d->bytes);
}

/* Update the original after a successful decode. The caller holds the lock,
 * which may be released during the call. */
static void settle_decoded(struct make *m, const struct decoded *d)
{
	const struct engine_parts *parts = m->w->parts;
	struct original *o = m->o;

	ASSERT_TURN(parts->turn);
	o->picture.verified = true;
	if (!m->more)
		original_drop_encoded(parts->pool, o);
	else if (parts->s->plain)
		keep_encoded(m, d);
	else if (m->keep)
		adopt(m, d, m->keep, m->layout.bytes);
	else if (parts->c->echo_point != REFRAIN_ECHO_BEFORE)
		keep_copy(m, d, place_of(parts, m->s), parts->s->sample_bytes);
	else if (!sample_by_library(parts->s, &o->picture))
		keep_copy(m, d, d->data, d->bytes);
	if (o->state == ORIGINAL_KEPT)
		return;
	if (m->more &&
		budget_for_encoded(
			parts->budget, original_next_step(parts->pool, o))) {
		original_used(parts->pool, o);
		original_state(parts->pool, o, ORIGINAL_ENCODED);
		return;
	}
	original_drop_encoded(parts->pool, o);
	original_state(parts->pool, o, ORIGINAL_ABSENT);
}

static void give_back_keep(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;

	if (!m->keep)
		return;
	originals_drop(parts->pool, memory_cost(m->keep->bytes));
	memory_put(parts->memory, m->keep);
	m->keep = NULL;
}

/* Call budget_to_work() with the sizes that find_layout() has set. If it
 * returns -EAGAIN, starved_bytes is set to the memory that the original
 * needs. */
static int take_room(struct make *m)
{
	int rc;
	struct need need = {
		.scratch_bytes = m->keep ? 0 : decoded_bytes(m),
		.extra_bytes = m->layout.extra_bytes,
		.new_extra_bytes = m->layout.new_extra_bytes,
		.held_cost = memory_cost(m->o->size_hint),
	};

	if (m->keep)
		need.held_cost += memory_cost(m->keep->bytes);
	rc = budget_to_work(m->w->parts->budget, m->w->desk, &need);
	if (rc == -EAGAIN)
		m->starved_bytes = need_bytes(&need);
	return rc;
}

/* Get memory for the layout: in the pool if the data will be kept, otherwise
 * scratch memory. */
static int find_room(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;
	bool pool = m->more && sample_by_library(parts->s, &m->o->picture) &&
		parts->c->echo_point == REFRAIN_ECHO_BEFORE;
	int rc;

	if (pool)
		m->keep = budget_to_keep(parts->budget, decoded_bytes(m));
	if (!m->keep)
		/* Decode only the region of this serving */
		find_layout(m, false);
	rc = take_room(m);
	if (rc < 0 && m->keep) {
		/* The buffer to keep may have taken the memory that decoding
		 * needs. */
		give_back_keep(m);
		find_layout(m, false);
		rc = take_room(m);
	}
	return rc;
}

static int probe(struct make *m, struct error *err)
{
	const struct engine_parts *parts = m->w->parts;
	struct encoded in = encoded_of(m);
	struct seeds every = {0, crops(m), seed_of_serving, m};
	int rc;

	turn_unlock(parts->turn);
	rc = sample_probe(m->w->sampler, &m->o->picture, &in, err);
	if (rc == 0)
		rc = fields_load(m->w->fields, m->o, err);
	if (rc == 0) {
		sample_find_region(m->w->sampler, &m->o->picture, &every);
		find_layout(m, true);
	}
	turn_lock(parts->turn);
	return rc;
}

/* Decode into the memory that find_room() got. Returns like
 * decode_and_make(). */
static int decode_in_room(struct make *m, int *status, struct error *err)
{
	const struct engine_parts *parts = m->w->parts;
	struct decoded d;
	int rc;

	turn_unlock(parts->turn);
	rc = decode_and_make(m, &d, status, err);
	turn_lock(parts->turn);
	if (rc) {
		give_back_keep(m);
	} else {
		count_decode(parts, m, d.bytes);
		settle_decoded(m, &d);
	}
	budget_done(parts->budget, m->w->desk, m->layout.extra_bytes);
	m->layout.extra_bytes = 0;
	return rc;
}

static int make_once(struct make *m, int *status, struct error *err)
{
	int rc = probe(m, err);

	if (rc == 0)
		rc = find_room(m);
	if (rc == -E2BIG && !err->msg[0])
		(void)error_set(
			err, rc, "it is larger than the memory of the loader");
	else if (rc == -ENOMEM && !err->msg[0])
		(void)error_set(err, rc, "%m");
	if (rc == 0)
		rc = decode_in_room(m, status, err);
	fields_done(m->w->fields);
	return rc;
}

/* Make a serving from the file. Returns false if the original failed, or if the
 * serving waits for memory; both cases were then handled. */
static bool make_from_file(struct make *m)
{
	const struct engine_parts *parts = m->w->parts;
	struct error err = {""};
	int status = 0, rc = make_once(m, &status, &err);

	if (rc == REFRAIN_DECLINE) {
		m->o->picture.declined = true;
		rc = make_once(m, &status, &err);
	}
	/* the boxes were in memory of this worker */
	m->o->picture.boxes = NULL;
	m->o->picture.box_count = 0;
	m->o->picture.volume = NULL;
	budget_give_back(parts->budget, m->w->desk);
	if (rc == -EAGAIN) {
		m->o->encoded = memory_shrink(
			parts->memory, m->o->encoded, m->o->size_hint);
		original_starve(parts->pool, m->o, m->s, m->starved_bytes);
		return false;
	}
	if (rc < 0) {
		original_wait(m->o, m->s);
		damage_fail(parts, m->o, rc, "decode", err.msg);
		return false;
	}
	count_augment(parts, m);
	note_augment(parts, m->s, status);
	describe_place(
		parts, m->s, status || !m->o->attempt ? status : m->o->error);
	return true;
}

/* -- Making a sample from one that was pulled ------------------------------ */

/* A pulled sample is that of the example itself, even if another serving of the
 * original has found it damaged here. */
static void describe_pulled(const struct engine_parts *parts, struct serving *s)
{
	const struct schedule_slot *slot = &s->step->slots[s->place];
	struct slab *slab = s->step->slab;
	struct example own;

	dataset_example(parts->dataset, slot->index, &own);
	slab->indices[s->place] = slot->index;
	slab->substitutes[s->place] = slot->index;
	slab->echoes[s->place] = slot->echo;
	slab->seeds[s->place] = slot->augment_seed;
	slab->status[s->place] = 0;
	slab->labels[s->place] = own.label;
}

void serving_finish(struct worker *w, struct serving *s)
{
	const struct engine_parts *parts = w->parts;
	const struct schedule_slot *slot = &s->step->slots[s->place];
	const struct pull_sample pulled = pull_get(&s->pull);
	const struct decoded none = {.width = 0};
	const struct picture pic = {.probed = true,
		.info = {.width = pulled.width, .height = pulled.height}};

	ASSERT_TURN(parts->turn);
	turn_unlock(parts->turn);
	sample_finish(w->sampler, &pic, slot->augment_seed, pulled.pixels,
		place_of(parts, s));
	sample_crop(parts->s, &pic, &none, slot->augment_seed, crop_place(s));
	describe_pulled(parts, s);
	turn_lock(parts->turn);
	puller_done(parts->puller, &s->pull);
	original_pulled(parts->pool, s);
}

bool serving_make(
	struct worker *w, struct serving *s, enum original_state state)
{
	struct make m = {.w = w, .s = s, .o = s->original};

	ASSERT_TURN(w->parts->turn);
	m.more = m.o->left - m.o->pulled > 1;
	switch (state) {
	case ORIGINAL_KEPT:
		make_from_kept(&m);
		return true;
	case ORIGINAL_FAILED:
		make_nothing(&m);
		return true;
	default:
		return make_from_file(&m);
	}
}
