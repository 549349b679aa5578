/* SPDX-License-Identifier: MIT */
/*
 * Reads examples that have several parts, one part after the other, into one
 * buffer. Parts that are near each other in a shard form one *run*, which is
 * read at once; a whole file is a run of its own. An example with one part is
 * one run. Called with the turn's lock held.
 */
#include <errno.h>
#include <string.h>

#include "loader/engine/reader_files_impl.h"
#include "loader/engine/volumes.h"

/* Reading up to this many bytes between two parts costs less than another
 * read. */
#define GAP_BYTES ((uint64_t)64 << 10)
#define PART_ALIGN 8

static size_t aligned_end(size_t at)
{
	return (at + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static uint32_t parts_of(const struct reader *reader)
{
	return dataset_parts(reader->parts->dataset);
}

/* -- Runs ------------------------------------------------------------------ */

/* Returns the part with the lowest offset that exists and is not in `done`, or
 * UINT32_MAX if there is none. */
static uint32_t next_in_shard(const struct reader *reader,
	const struct original *o, uint32_t done, struct example *out)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < parts_of(reader); i++) {
		struct example ex;

		if (done >> i & 1 ||
			!dataset_part(
				reader->parts->dataset, o->index, i, &ex) ||
			(best != UINT32_MAX && ex.offset >= out->offset))
			continue;
		best = i;
		*out = ex;
	}
	return best;
}

/* Get the run of a shard that follows the parts `done`. */
static bool run_of_shard(const struct reader *reader, const struct original *o,
	uint32_t done, struct part_run *out)
{
	struct example ex;
	uint32_t i = next_in_shard(reader, o, done, &ex);

	if (i == UINT32_MAX)
		return false;
	*out = (struct part_run){
		.dir = ex.dir, .file = ex.file, .offset = ex.offset};
	do {
		uint64_t end = ex.offset + ex.bytes - out->offset;

		out->part = i;
		out->bits |= UINT32_C(1) << i;
		out->bytes = end > out->bytes ? end : out->bytes;
		i = next_in_shard(reader, o, done | out->bits, &ex);
	} while (i != UINT32_MAX &&
		ex.offset <= out->offset + out->bytes + GAP_BYTES);
	return true;
}

static bool run_of_file(const struct reader *reader, const struct original *o,
	uint32_t done, struct part_run *out)
{
	struct example ex;

	for (uint32_t i = 0; i < parts_of(reader); i++) {
		if (done >> i & 1 ||
			!dataset_part(reader->parts->dataset, o->index, i, &ex))
			continue;
		*out = (struct part_run){.dir = ex.dir,
			.file = ex.file,
			.bytes = ex.bytes,
			.bits = UINT32_C(1) << i,
			.part = i};
		return true;
	}
	return false;
}

/* Get the run with the number `done` of an array. */
static bool run_of_volume(const struct reader *reader, const struct original *o,
	const struct volume *v, uint32_t done, struct part_run *out)
{
	const struct array_crops *how = settings_array(reader->parts->s);
	struct volume_runs runs;

	volume_runs(how, v, &runs);
	*out = (struct part_run){.dir = o->example.dir,
		.file = o->example.file,
		.offset = volume_run_offset(how, v, done),
		.bytes = runs.bytes,
		.bits = 1};
	return done < runs.count;
}

uint32_t parts_after(
	const struct reader *reader, uint32_t done, const struct part_run *run)
{
	return settings_array(reader->parts->s) ? done + 1 : done | run->bits;
}

bool parts_run(const struct reader *reader, const struct original *o,
	uint32_t done, struct part_run *out)
{
	struct volume v;

	if (volumes_of(reader->parts, o, &v))
		return run_of_volume(reader, o, &v, done, out);
	if (parts_of(reader) == 1) {
		*out = (struct part_run){.dir = o->example.dir,
			.file = o->example.file,
			.offset = o->example.offset,
			.bytes = o->example.bytes,
			.bits = 1};
		return !done;
	}
	return o->example.whole ? run_of_file(reader, o, done, out)
				: run_of_shard(reader, o, done, out);
}

/* -- Entries of a mount's tiers ---------------------------------------------
 */

const struct help_key *parts_key(
	const struct reader *reader, const struct original *o, uint32_t part)
{
	uint64_t index;

	return original_is_file(o, &index)
		? help_key(reader->parts->help, index, part)
		: NULL;
}

size_t parts_direct(const struct reader *reader, const struct original *o,
	uint32_t part, size_t *room)
{
	const struct help_key *key = parts_key(reader, o, part);

	*room = key ? entry_room(key->bytes) : 0;
	return key ? key->bytes : 0;
}

/* -- Sizes ----------------------------------------------------------------- */

size_t parts_hint(
	const struct reader *reader, const struct original *o, uint32_t part)
{
	const struct part_span *span = original_parts(reader->parts->pool, o);

	if (span)
		return span[part].file_bytes ? span[part].file_bytes + 1 : 0;
	return o->size_hint;
}

size_t parts_expected(const struct reader *reader, const struct original *o,
	const struct part_run *run)
{
	uint64_t most = reader->parts->s->encoded_max;
	size_t hint = parts_hint(reader, o, run->part), room, bytes;

	if (!o->example.whole)
		return run->bytes;
	if (hint)
		return hint - 1;
	bytes = parts_direct(reader, o, run->part, &room);
	if (bytes)
		return bytes;
	return run->bytes < most ? run->bytes : most - 1;
}

/* Returns the bytes of memory to read a run into, or 0 if they are unknown.
 * With one more byte than a file has, a single read also finds its end. */
static size_t run_room(const struct reader *reader, const struct original *o,
	const struct part_run *run, bool direct)
{
	size_t bytes = parts_expected(reader, o, run), room;

	if (direct && parts_direct(reader, o, run->part, &room))
		return room;
	if (!o->example.whole)
		return bytes + !bytes;
	return bytes || parts_hint(reader, o, run->part) ? bytes + 1 : 0;
}

size_t parts_bytes(
	const struct reader *reader, const struct original *o, bool direct)
{
	size_t at = 0, need = 0;
	struct part_run run;
	struct volume v;
	struct volume_runs runs;

	if (volumes_of(reader->parts, o, &v)) {
		volume_runs(settings_array(reader->parts->s), &v, &runs);
		return runs.count * runs.apart;
	}
	for (uint32_t done = 0; parts_run(reader, o, done, &run);
		done = parts_after(reader, done, &run)) {
		size_t room = run_room(reader, o, &run, direct);

		if (!room)
			return 0;
		need = at + room > need ? at + room : need;
		at = aligned_end(at + parts_expected(reader, o, &run));
	}
	return need;
}

void parts_note_size(struct reader *reader, struct read_op *r, size_t bytes)
{
	struct original *o = r->original;
	struct part_span *span = original_parts(reader->parts->pool, o);
	size_t hint = r->base + bytes + 1;

	if (span)
		span[r->part].file_bytes = bytes;
	if (!span || o->size_hint < hint)
		o->size_hint = hint;
}

bool parts_too_large(const struct reader *reader, const struct original *o)
{
	uint64_t most = reader->parts->s->encoded_max;
	struct example ex;
	size_t room;

	for (uint32_t i = 0; i < parts_of(reader); i++) {
		uint64_t bytes = parts_direct(reader, o, i, &room);

		if (!dataset_part(reader->parts->dataset, o->index, i, &ex))
			continue;
		if (!bytes && !ex.whole)
			bytes = ex.bytes;
		if (bytes > most)
			return true;
	}
	return false;
}

bool parts_room(struct reader *reader, struct read_op *r, size_t bytes)
{
	struct buffer *more;

	if (r->buffer->bytes >= r->base + bytes)
		return true;
	more = reader_buffer(reader, r->base + bytes);
	if (!more)
		return false;
	memcpy(more->data, r->buffer->data, r->base + r->got);
	memory_put(reader->parts->memory, r->buffer);
	r->buffer = more;
	return true;
}

/* -- Missing members ------------------------------------------------------- */

bool parts_may_lack(const struct reader *reader, uint32_t part)
{
	return part && reader->parts->s->members.optional >> (part - 1) & 1;
}

/* Add the name of the missing member to the message, as it is written in
 * settings_members.text. */
static void say_lack(
	const struct reader *reader, uint32_t part, struct error *err)
{
	const char *text = reader->parts->s->members.text;

	for (uint32_t i = 1; i < part; i++)
		text = strchr(text, ';') + 1;
	(void)error_set(err, -ENOENT, "it has no member '%.*s'",
		(int)strcspn(text, ";"), text);
}

bool parts_lack(const struct reader *reader, const struct original *o,
	struct error *err)
{
	struct example ex;

	for (uint32_t i = 1; i < parts_of(reader); i++) {
		if (parts_may_lack(reader, i) ||
			dataset_part(reader->parts->dataset, o->index, i, &ex))
			continue;
		say_lack(reader, i, err);
		return true;
	}
	return false;
}

void parts_say(
	const struct reader *reader, const struct read_op *r, struct error *err)
{
	struct example ex;
	struct error why = *err;

	if (!r->part ||
		!dataset_part(reader->parts->dataset, r->original->index,
			r->part, &ex))
		return;
	(void)error_set(err, -EIO, "its member '%s': %s", ex.name, why.msg);
}

/* -- The parts of a read --------------------------------------------------- */

void parts_begin(struct reader *reader, struct original *o)
{
	struct part_span *span = original_parts(reader->parts->pool, o);

	for (uint32_t i = 0; span && i < parts_of(reader); i++)
		span[i].at = PART_ABSENT;
}

void parts_take(struct reader *reader, struct read_op *r)
{
	struct original *o = r->original;
	struct part_span *span = original_parts(reader->parts->pool, o);
	struct example ex;

	for (uint32_t i = 0; span && i < parts_of(reader); i++) {
		if (!(r->bits >> i & 1) ||
			!dataset_part(reader->parts->dataset, o->index, i, &ex))
			continue;
		span[i] = r->whole
			? (struct part_span){r->base, r->got, r->got}
			: (struct part_span){
				  r->base + (size_t)(ex.offset - r->offset),
				  ex.bytes, ex.bytes};
		r->files++;
	}
	r->end = r->base + r->got;
	r->base = aligned_end(r->end);
}

/* Count the files of a read, and their bytes. */
void parts_count(const struct reader *reader, const struct read_op *r,
	struct read_count *out)
{
	const struct part_span *span =
		original_parts(reader->parts->pool, r->original);

	*out = (struct read_count){1, r->end, r->end};
	if (!span)
		return;
	*out = (struct read_count){r->files, 0, span[0].bytes};
	for (uint32_t i = 0; i < parts_of(reader); i++)
		if (span[i].at != PART_ABSENT)
			out->bytes += span[i].bytes;
}
