/* SPDX-License-Identifier: MIT */
/*
 * Distributes memory when it is scarce. First, examples are no longer read
 * ahead. Next, decoded examples are not kept (their files are kept instead).
 * Last, files are not kept either. Reads leave memory free for decoding, so
 * that no file is dropped between its read and its first use. If an image needs
 * more than that memory, data that is not needed soon is dropped.
 *
 * If that is not sufficient, the original of the image is *starved*: no new
 * read begins, and the other queued servings are made, which frees their files.
 * When no other serving is left, one worker becomes `alone`: nothing else
 * begins until it has decoded the starved original, and if necessary all other
 * data that was read is dropped for it. Therefore the oldest batch is completed
 * with any budget that can hold one file and its decoded region at a time.
 * Nothing is dropped for an image that would not fit even then.
 *
 * An example is damaged if it would not fit. This must not depend on the time,
 * so it follows from sizes alone: from `alone_bytes`, which is constant, and
 * from what the example needs if no buffer is larger than necessary and the
 * workers hold no more than at their start. A worker that is `alone` gets that
 * much, because everything else is freed. Called with the turn's lock held.
 */
#include "loader/engine/budget_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/lock.h"
#include "loader/engine/make_fields_impl.h"
#include "loader/engine/planner_impl.h"

#define SCRATCH_KEPT_MAX ((size_t)4 << 20)

struct desk {
	/* set once; they belong to the worker of the desk */
	struct sampler *sampler;
	struct field_maker *fields;
	struct buffer *scratch; /* the decoded image, if it is not kept */
	bool busy;		/* its worker is making a serving */
	uint64_t charged;	/* bytes of the worker's permanent memory */
};

struct budget {
	/* Set once. */
	const struct engine_parts *parts;
	uint64_t outstanding_max;
	/* Set by budget_open(), in bytes. */
	/* memory that was not charged when the budget was opened */
	uint64_t rest_bytes;
	/* The part of rest_bytes that one example may take. The remaining part
	 * is for the list of damaged examples. */
	uint64_t alone_bytes;
	/* All below is guarded by the lock. */
	uint64_t desks_bytes; /* bytes charged for images being decoded */
	/* The bytes that decoding an image takes; 0: unknown */
	uint64_t image_bytes;
	uint32_t working, reading;
	struct desk *desks; /* one for each worker */
	/* The desk that may take all memory, or NULL */
	const struct desk *alone;
};

uint64_t budget_rest_bytes(const struct budget *budget)
{
	return budget->rest_bytes;
}

uint32_t budget_ahead(const struct budget *budget)
{
	uint64_t file = meter_file_mean(budget->parts->meter), n;

	ASSERT_TURN(budget->parts->turn);
	/* The mount measures its fetches itself, so bursts of reads ahead are
	 * not needed. */
	if (help_plans(budget->parts->help))
		return budget->parts->c->reads_ahead;
	/* Return early if possible, because every turn of a worker calls this
	 * function. */
	if (!file ||
		budget->parts->s->ahead_least == budget->parts->s->ahead_max)
		return budget->parts->s->ahead_max;
	n = budget->rest_bytes / 4 / file;
	if (n < budget->parts->s->ahead_least)
		return budget->parts->s->ahead_least;
	return n < budget->parts->s->ahead_max ? (uint32_t)n
					       : budget->parts->s->ahead_max;
}

/*
 * Returns how many bytes decoding may take in addition to those that are
 * charged, if each image takes `image_bytes` (0: unknown). The total for all
 * workers is limited to half of the memory. But one large image may take up to
 * three quarters, and so may decoding while `image_bytes` is unknown.
 */
static uint64_t decode_images(const struct budget *budget, uint64_t image_bytes)
{
	uint64_t bytes = budget->parts->c->threads * image_bytes;
	uint64_t half = budget->rest_bytes / 2,
		 most = half + budget->rest_bytes / 4;

	if (bytes > half)
		bytes = image_bytes > half ? image_bytes : half;
	if (!image_bytes || bytes > most)
		bytes = most;
	return bytes > budget->desks_bytes ? bytes - budget->desks_bytes : 0;
}

static uint64_t decode_bytes(const struct budget *budget)
{
	return decode_images(budget, budget->image_bytes);
}

/* Returns the bytes that are reserved for examples that are read ahead. */
static uint64_t ahead_bytes(const struct budget *budget)
{
	uint64_t bytes =
		budget_ahead(budget) * meter_file_mean(budget->parts->meter);

	return bytes < budget->rest_bytes / 4 ? bytes : budget->rest_bytes / 4;
}

void budget_count_kept(struct budget *budget, uint64_t cost)
{
	struct refrain_stats *stats = meter_stats(budget->parts->meter);

	ASSERT_TURN(budget->parts->turn);
	originals_keep(budget->parts->pool, cost);
	if (originals_kept_bytes(budget->parts->pool) > stats->pool_bytes_peak)
		stats->pool_bytes_peak =
			originals_kept_bytes(budget->parts->pool);
}

static uint64_t incoming_bytes(const struct budget *budget)
{
	return originals_incoming(budget->parts->pool) *
		meter_file_mean(budget->parts->meter);
}

/*
 * Get a buffer to keep decoded data. First, memory is reserved for the encoded
 * bytes of all originals that can be outstanding or read ahead, without those
 * that are kept decoded. The decoded ones may take the other memory. A decoded
 * example may be smaller than its file, for example after a small crop. Then
 * the calculation assumes that the other outstanding examples will be kept
 * decoded, too.
 */
struct buffer *budget_to_keep(struct budget *budget, size_t bytes)
{
	uint64_t cost = memory_cost(bytes);
	uint64_t file = meter_file_mean(budget->parts->meter);
	/* If no image was decoded before, estimate from this one. */
	uint64_t desks = budget->desks_bytes +
		decode_images(budget,
			budget->image_bytes ? budget->image_bytes : cost);
	uint64_t reserve = ahead_bytes(budget);
	struct buffer *b;

	ASSERT_TURN(budget->parts->turn);
	reserve +=
		desks > budget->rest_bytes / 8 ? desks : budget->rest_bytes / 8;
	if (budget->outstanding_max > originals_kept(budget->parts->pool))
		reserve += (budget->outstanding_max -
				   originals_kept(budget->parts->pool)) *
			(cost < file ? cost : file);
	if (originals_kept_bytes(budget->parts->pool) + cost + reserve >
		budget->rest_bytes)
		return NULL;
	b = memory_get(budget->parts->memory, bytes);
	if (!b)
		return NULL;
	budget_count_kept(budget, cost);
	return b;
}

bool budget_for_encoded(const struct budget *budget, uint64_t step)
{
	uint64_t ahead = ahead_bytes(budget), incoming = incoming_bytes(budget);
	uint64_t reserve = decode_bytes(budget) +
		(ahead > incoming ? ahead - incoming : 0);

	ASSERT_TURN(budget->parts->turn);
	while (memory_room(budget->parts->memory) < reserve)
		if (!originals_reclaim_idle(budget->parts->pool, step))
			return false;
	return true;
}

/* Returns the bytes of the files of all outstanding originals. */
static uint64_t files_bytes(const struct budget *budget)
{
	return budget->outstanding_max * meter_file_mean(budget->parts->meter);
}

/* Are there echoes, while memory is too small for the files of all outstanding
 * originals? */
static bool lacks_memory(const struct budget *budget)
{
	const struct settings *s = budget->parts->s;

	return (s->changes || s->echo.p > s->echo.q) &&
		originals_kept_bytes(budget->parts->pool) +
			files_bytes(budget) + decode_bytes(budget) +
			ahead_bytes(budget) >
		budget->rest_bytes;
}

/* This adds an eighth, because files and images vary in size. */
uint64_t budget_wanted_bytes(const struct budget *budget)
{
	uint64_t decode = budget->desks_bytes + decode_bytes(budget);
	uint64_t ahead =
		budget_ahead(budget) * meter_file_mean(budget->parts->meter);
	uint64_t fixed = budget->parts->memory->limit - budget->rest_bytes;

	ASSERT_TURN(budget->parts->turn);
	return fixed + (files_bytes(budget) + decode + ahead) / 8 * 9;
}

/* May a read use memory now? If memory is scarce, workers may have only one
 * unused file each, in addition to those that were read ahead. */
static bool shares_memory(const struct budget *budget)
{
	return !lacks_memory(budget) ||
		originals_incoming(budget->parts->pool) <=
		budget->parts->c->threads ||
		incoming_bytes(budget) < ahead_bytes(budget);
}

bool budget_may_read(const struct budget *budget, uint64_t bytes)
{
	ASSERT_TURN(budget->parts->turn);
	return memory_room(budget->parts->memory) >=
		bytes + decode_bytes(budget) &&
		shares_memory(budget);
}

/* This leaves a quarter of the memory for planned reads, or enough for a large
 * image if that is more. */
bool budget_may_read_ahead(const struct budget *budget, uint64_t bytes)
{
	uint64_t left = budget->rest_bytes / 4;

	if (left < budget->image_bytes)
		left = budget->image_bytes;
	return budget->image_bytes && budget_may_read(budget, bytes + left);
}

bool budget_may_drop(const struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	return shares_memory(budget);
}

uint64_t budget_alone_bytes(const struct budget *budget)
{
	return budget->alone_bytes;
}

bool budget_alone(const struct budget *budget, uint64_t bytes)
{
	ASSERT_TURN(budget->parts->turn);
	return bytes <= budget->alone_bytes;
}

bool budget_is_taken(const struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	return budget->alone != NULL;
}

bool budget_at_rest(const struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	return !budget->working && !budget->reading &&
		!steps_ready(budget->parts->steps);
}

void budget_begin_read(struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	budget->reading++;
}

void budget_end_read(struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	budget->reading--;
}

uint32_t budget_reading(const struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	return budget->reading;
}

uint32_t budget_working(const struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	return budget->working;
}

/* -- Desks ----------------------------------------------------------------- */

struct desk *budget_desk(struct budget *budget, uint32_t n,
	struct sampler *sampler, struct field_maker *fields)
{
	struct desk *desk = &budget->desks[n];

	desk->sampler = sampler;
	desk->fields = fields;
	budget_charge(budget, desk);
	return desk;
}

uint8_t *desk_scratch(const struct desk *desk)
{
	return desk->scratch ? desk->scratch->data : NULL;
}

void budget_begin_work(struct budget *budget, struct desk *desk)
{
	ASSERT_TURN(budget->parts->turn);
	budget->working++;
	desk->busy = true;
}

void budget_end_work(struct budget *budget, struct desk *desk)
{
	ASSERT_TURN(budget->parts->turn);
	budget->working--;
	desk->busy = false;
}

void budget_charge(struct budget *budget, struct desk *desk)
{
	uint64_t held_bytes = sampler_memory_bytes(desk->sampler) +
		field_maker_memory_bytes(desk->fields);

	ASSERT_TURN(budget->parts->turn);
	if (held_bytes > desk->charged)
		memory_charge_over(
			budget->parts->memory, held_bytes - desk->charged);
	else
		memory_uncharge(
			budget->parts->memory, desk->charged - held_bytes);
	desk->charged = held_bytes;
}

static void clear_desk(struct budget *budget, struct desk *desk)
{
	if (desk->scratch)
		budget->desks_bytes -= memory_cost(desk->scratch->bytes);
	memory_put(budget->parts->memory, desk->scratch);
	desk->scratch = NULL;
}

uint64_t need_bytes(const struct need *need)
{
	return need->extra_bytes +
		(need->scratch_bytes ? memory_cost(need->scratch_bytes) : 0);
}

/* Could the image fit if all other data was dropped? If it could not, no data
 * is dropped for it. */
static bool may_fit(const struct budget *budget, const struct need *need)
{
	return budget_alone(budget,
		need_bytes(need) - need->extra_bytes + need->new_extra_bytes +
			need->held_cost);
}

/* Note the bytes that decoding an image takes. image_bytes is the maximum of
 * recent images, and falls slowly after an unusually large one. */
static void note_image(struct budget *budget, uint64_t bytes)
{
	if (bytes < budget->image_bytes)
		bytes = budget->image_bytes -
			(budget->image_bytes - bytes) / 64;
	budget->image_bytes = bytes;
}

static bool try_to_work(
	struct budget *budget, struct desk *desk, const struct need *need)
{
	size_t bytes = need->scratch_bytes;

	if (desk->scratch && desk->scratch->bytes < bytes)
		clear_desk(budget, desk);
	if (!memory_charge(budget->parts->memory, need->extra_bytes))
		return false;
	if (bytes && !desk->scratch) {
		desk->scratch = memory_get(budget->parts->memory, bytes);
		if (desk->scratch)
			budget->desks_bytes +=
				memory_cost(desk->scratch->bytes);
	}
	if (bytes && !desk->scratch) {
		memory_uncharge(budget->parts->memory, need->extra_bytes);
		return false;
	}
	budget->desks_bytes += need->extra_bytes;
	/* The + 1 is needed because 0 means unknown */
	note_image(budget, need_bytes(need) + 1);
	return true;
}

/* Free the scratch memory of an idle worker. */
static bool reclaim_scratch(struct budget *budget)
{
	for (uint32_t i = 0; i < budget->parts->c->threads; i++) {
		struct desk *desk = &budget->desks[i];

		if (desk->busy || !desk->scratch)
			continue;
		clear_desk(budget, desk);
		return true;
	}
	return false;
}

int budget_to_work(
	struct budget *budget, struct desk *desk, const struct need *need)
{
	ASSERT_TURN(budget->parts->turn);
	if (!may_fit(budget, need))
		return -E2BIG;
	while (!try_to_work(budget, desk, need)) {
		if (reclaim_scratch(budget) ||
			originals_reclaim_idle(budget->parts->pool, 0))
			continue;
		if (budget->alone != desk)
			return -EAGAIN;
		if (!originals_reclaim_unused(budget->parts->pool))
			return -ENOMEM;
	}
	return 0;
}

/* May all other data be dropped now, for one example? Not while a worker plans:
 * it may plan servings of kept examples, which must not be dropped then. */
static bool may_be_alone(const struct budget *budget)
{
	return budget_at_rest(budget) &&
		!planner_is_busy(budget->parts->planner);
}

void budget_trim(struct budget *budget)
{
	ASSERT_TURN(budget->parts->turn);
	for (uint32_t i = 0; i < budget->parts->c->threads; i++) {
		struct desk *desk = &budget->desks[i];

		clear_desk(budget, desk);
		sampler_trim(desk->sampler);
		field_maker_trim(desk->fields);
		budget_charge(budget, desk);
	}
}

bool budget_feeds(const struct budget *budget)
{
	uint64_t bytes;
	const struct original *o =
		originals_first_starved(budget->parts->pool, &bytes);

	ASSERT_TURN(budget->parts->turn);
	return o && !budget->alone &&
		(bytes <= memory_room(budget->parts->memory) ||
			may_be_alone(budget));
}

void budget_feed(struct budget *budget, const struct desk *desk)
{
	if (may_be_alone(budget)) {
		budget->alone = desk;
		budget_trim(budget);
	}
	original_feed(budget->parts->pool,
		originals_first_starved(budget->parts->pool, NULL));
}

void budget_done(struct budget *budget, struct desk *desk, uint64_t extra_bytes)
{
	ASSERT_TURN(budget->parts->turn);
	memory_uncharge(budget->parts->memory, extra_bytes);
	budget->desks_bytes -= extra_bytes;
	if (desk->scratch && desk->scratch->bytes > SCRATCH_KEPT_MAX)
		clear_desk(budget, desk);
}

void budget_give_back(struct budget *budget, const struct desk *desk)
{
	ASSERT_TURN(budget->parts->turn);
	if (budget->alone == desk)
		budget->alone = NULL;
}

/* -- Life ------------------------------------------------------------------ */

int budget_new(struct budget **out, const struct engine_parts *parts,
	uint64_t outstanding_max)
{
	struct budget *budget = calloc(1, sizeof(*budget));

	*out = budget;
	if (!budget)
		return -ENOMEM;
	budget->parts = parts;
	budget->outstanding_max = outstanding_max;
	budget->desks = calloc(parts->c->threads, sizeof(*budget->desks));
	return budget->desks ? 0 : -ENOMEM;
}

void budget_open(struct budget *budget)
{
	uint64_t listed =
		meter_damaged_bytes(dataset_count(budget->parts->dataset));

	budget->rest_bytes = memory_room(budget->parts->memory);
	budget->alone_bytes = budget->rest_bytes;
	if (listed < budget->rest_bytes)
		budget->alone_bytes -= listed;
}

void budget_clear(struct budget *budget)
{
	for (uint32_t i = 0; i < budget->parts->c->threads; i++)
		clear_desk(budget, &budget->desks[i]);
}

void budget_free(struct budget *budget)
{
	if (budget && budget->desks)
		budget_clear(budget);
	if (budget)
		free(budget->desks);
	free(budget);
}
