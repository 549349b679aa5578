/* SPDX-License-Identifier: MIT */
/*
 * Answers queries about a dataset. The dataset is constant, so any thread may
 * call these functions without a lock. They check nothing, because a look has
 * made the tables, or has checked them when it mapped the catalogue.
 */
#include "loader/dataset/dataset_several_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "loader/dataset/annotations.h"

/* A rendition changes the bits of the fingerprint from this one on. So two
 * fingerprints show whether the datasets differ in more than that. */
#define RENDITION_SHIFT 40
/* -- Several datasets as one ------------------------------------------------
 */

static void joined_close(struct dataset *ds)
{
	for (uint32_t i = 0; ds->joined && i < ds->joined_count; i++) {
		dataset_close(ds->joined[i].ds);
		free(ds->joined[i].path);
		free(ds->joined[i].label);
	}
	free(ds->joined);
}

static const struct ds_joined *joined_at(
	const struct dataset *ds, uint64_t index)
{
	uint32_t low = 0, high = ds->joined_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (ds->joined[middle].begin <= index)
			low = middle;
		else
			high = middle;
	}
	return &ds->joined[low];
}

static void joined_translate(const struct ds_joined *part, struct example *e)
{
	e->shard += part->shard;
	if (e->label >= 0)
		e->label = part->label[e->label];
}

static const char *joined_shard(const struct dataset *ds, uint32_t shard)
{
	uint32_t i = ds->joined_count - 1;

	while (ds->joined[i].shard > shard)
		i--; /* the first dataset begins at shard 0 */
	return dataset_shard_file(
		ds->joined[i].ds, shard - ds->joined[i].shard);
}

static void joined_skipped(
	const struct dataset *ds, struct dataset_skipped *out)
{
	*out = (struct dataset_skipped){0};
	for (uint32_t i = 0; i < ds->joined_count; i++) {
		struct dataset_skipped one;

		dataset_skipped(ds->joined[i].ds, &one);
		out->files += one.files;
		out->classes += one.classes;
		if (!out->first_file)
			out->first_file = one.first_file;
		if (!out->first_class)
			out->first_class = one.first_class;
	}
}

static size_t joined_memory(const struct dataset *ds)
{
	size_t bytes = ds->joined ? DATASETS_MAX * sizeof(*ds->joined) : 0;

	for (uint32_t i = 0; i < ds->joined_count; i++)
		bytes += dataset_memory_bytes(ds->joined[i].ds) +
			dataset_classes(ds->joined[i].ds) * sizeof(int32_t);
	return bytes;
}

/* -- Any dataset ------------------------------------------------------------
 */

void dataset_close(struct dataset *ds)
{
	if (!ds)
		return;
	if (ds->map)
		/* Cannot fail: this is the range that was mapped */
		(void)munmap(ds->map, ds->map_bytes);
	else
		for (unsigned i = 0; i < SECTIONS; i++)
			array_release(&ds->section[i]);
	if (ds->dir >= 0)
		/* Cannot lose data: nothing was written */
		(void)close(ds->dir);
	annotations_close(ds->annotations);
	joined_close(ds);
	free(ds);
}

static const char *text(
	const struct dataset *ds, enum ds_section section, uint64_t at)
{
	return (const char *)array_data(&ds->section[section]) + at;
}

uint64_t dataset_count(const struct dataset *ds)
{
	return ds->count;
}

/* Returns the file that contains the record, which is the last file whose first
 * record is not after it. An empty file has the same first record as the file
 * after it, so it is never that last one. */
static uint32_t shard_of(const struct dataset *ds, uint64_t record)
{
	const struct ds_shard *s = array_data(&ds->section[SECTION_SHARDS]);
	uint32_t low = 0, high = dataset_shards(ds);

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (s[middle].first <= record)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void record_example(
	const struct dataset *ds, uint64_t index, struct example *out)
{
	uint32_t shard = shard_of(ds, index);
	const struct ds_shard *s = (const struct ds_shard *)array_data(
					   &ds->section[SECTION_SHARDS]) +
		shard;

	*out = (struct example){
		.dir = ds->dir,
		.file = text(ds, SECTION_TEXTS, s->file),
		.name = text(ds, SECTION_TEXTS, s->file),
		.shard = shard,
		.label_in_record = ds->label_bytes > 0,
		.offset = (index - s->first) * ds->record_bytes,
		.bytes = ds->record_bytes,
		.label = -1,
	};
}

static void volume_example(
	const struct dataset *ds, uint64_t index, struct example *out)
{
	const char *file = dataset_shard_file(ds, (uint32_t)index);

	*out = (struct example){
		.dir = ds->dir,
		.file = file,
		.name = file,
		.shard = (uint32_t)index,
		.label = -1,
	};
}

static void part_example(
	const struct dataset *ds, uint64_t index, struct example *out)
{
	const struct ds_part *p = (const struct ds_part *)array_data(
					  &ds->section[SECTION_EXAMPLES]) +
		index;

	*out = (struct example){
		.dir = ds->dir,
		.file = dataset_shard_file(ds, p->shard),
		.name = text(ds, SECTION_NAMES, p->name),
		.shard = p->shard,
		.offset = p->offset,
		.bytes = p->bytes,
		.label = p->label,
	};
}

void dataset_example(
	const struct dataset *ds, uint64_t index, struct example *out)
{
	const struct ds_whole *w = array_data(&ds->section[SECTION_EXAMPLES]);

	if (ds->joined) {
		const struct ds_joined *j = joined_at(ds, index);

		dataset_example(j->ds, index - j->begin, out);
		joined_translate(j, out);
	} else if (ds->kind == EXAMPLES_VOLUMES) {
		volume_example(ds, index, out);
	} else if (ds->kind == EXAMPLES_RECORDS) {
		record_example(ds, index, out);
	} else if (ds->kind == EXAMPLES_WINDOWS) {
		ds_window_example(ds, index, shard_of(ds, index), out);
	} else if (ds->kind == EXAMPLES_PART) {
		part_example(ds, index, out);
	} else {
		*out = (struct example){
			.dir = ds->dir,
			.file = text(ds, SECTION_NAMES, w[index].name),
			.name = text(ds, SECTION_NAMES, w[index].name),
			.whole = true,
			.bytes = w[index].bytes,
			.label = w[index].label,
		};
	}
}

void dataset_example_in(const struct dataset *ds, uint64_t index, uint64_t seed,
	uint64_t pass, struct example *out)
{
	if (ds->joined) {
		const struct ds_joined *j = joined_at(ds, index);

		dataset_example_in(j->ds, index - j->begin, seed, pass, out);
		joined_translate(j, out);
		return;
	}
	dataset_example(ds, index, out);
	if (ds->kind == EXAMPLES_WINDOWS)
		out->offset += ds_shift_bytes(ds, out->shard, seed, pass);
}

bool dataset_volume(
	const struct dataset *ds, uint64_t index, struct volume *out)
{
	const struct ds_volume *row =
		array_data(&ds->section[SECTION_EXAMPLES]);

	if (ds->joined) {
		const struct ds_joined *part = joined_at(ds, index);

		return dataset_volume(part->ds, index - part->begin, out);
	}
	if (ds->kind != EXAMPLES_VOLUMES)
		return false;
	*out = (struct volume){.at = row[index].at};
	memcpy(out->shape, row[index].shape, sizeof(out->shape));
	return true;
}

uint64_t dataset_tail_tokens(const struct dataset *ds)
{
	uint64_t n = ds->tail_tokens;

	for (uint32_t i = 0; ds->joined && i < ds->joined_count; i++)
		n += dataset_tail_tokens(ds->joined[i].ds);
	return n;
}

uint32_t dataset_parts(const struct dataset *ds)
{
	return 1 + ds->members;
}

bool dataset_part(const struct dataset *ds, uint64_t index, uint32_t part,
	struct example *out)
{
	const struct ds_member *m = array_data(&ds->section[SECTION_MEMBERS]);

	if (ds->joined) {
		const struct ds_joined *j = joined_at(ds, index);

		if (!dataset_part(j->ds, index - j->begin, part, out))
			return false;
		joined_translate(j, out);
		return true;
	}
	dataset_example(ds, index, out);
	if (part == 0)
		return true;
	m += index * ds->members + part - 1;
	if (!m->name)
		return false;
	out->name = text(ds, SECTION_MEMBER_NAMES, m->name - 1);
	if (out->whole)
		out->file = out->name;
	out->offset = m->offset;
	out->bytes = m->bytes;
	out->label = -1;
	return true;
}

uint32_t dataset_joined_count(const struct dataset *ds)
{
	return ds->joined ? ds->joined_count : 1;
}

void dataset_joined(
	const struct dataset *ds, uint32_t i, struct dataset_joined *out)
{
	*out = (struct dataset_joined){.count = ds->count, .dir = ds->dir};
	if (ds->joined)
		*out = (struct dataset_joined){.path = ds->joined[i].path,
			.begin = ds->joined[i].begin,
			.count = dataset_count(ds->joined[i].ds),
			.dir = ds->joined[i].ds->dir};
}

uint32_t dataset_joined_at(const struct dataset *ds, uint64_t index)
{
	return ds->joined ? (uint32_t)(joined_at(ds, index) - ds->joined) : 0;
}

uint32_t dataset_fs_type(const struct dataset *ds)
{
	return ds->fs_type;
}

uint32_t dataset_shards(const struct dataset *ds)
{
	if (ds->joined)
		return ds->shard_count;
	return (uint32_t)(array_count(
		&ds->section[SECTION_SHARDS], sizeof(struct ds_shard)));
}

const char *dataset_shard_file(const struct dataset *ds, uint32_t shard)
{
	const struct ds_shard *s = array_data(&ds->section[SECTION_SHARDS]);

	return ds->joined ? joined_shard(ds, shard)
			  : text(ds, SECTION_TEXTS, s[shard].file);
}

static uint64_t class_count(const struct dataset *ds)
{
	return array_count(
		&ds->section[SECTION_CLASSES], sizeof(struct ds_class));
}

uint64_t dataset_classes(const struct dataset *ds)
{
	const struct ds_class *c = array_data(&ds->section[SECTION_CLASSES]);
	uint64_t n = class_count(ds);

	return n > 0 ? (uint64_t)c[n - 1].label + 1 : 0;
}

const char *dataset_class_name(
	const struct dataset *ds, uint64_t label, size_t *bytes)
{
	const struct ds_class *c = array_data(&ds->section[SECTION_CLASSES]);
	uint64_t low = 0, high = class_count(ds);

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (c[middle].label < label)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == class_count(ds) || c[low].label != label)
		return NULL;
	if (bytes)
		*bytes = c[low].bytes;
	return text(ds, SECTION_TEXTS, c[low].name);
}

uint64_t dataset_fingerprint(const struct dataset *ds)
{
	return ds->fingerprint ^ ds->rendition << RENDITION_SHIFT;
}

void ds_set_rendition(struct dataset *ds, const char *text)
{
	ds->rendition = 0;
	if (!text[0])
		return;
	ds->rendition = hash64(text, strlen(text), 0) >> RENDITION_SHIFT;
	if (!ds->rendition)
		ds->rendition = 1; /* 0 stands for the originals */
}

bool dataset_other_rendition(uint64_t one, uint64_t other)
{
	return one != other && (one ^ other) << (64 - RENDITION_SHIFT) == 0;
}

uint64_t dataset_links(const struct dataset *ds)
{
	return ds->links;
}

static const char *text_or_null(const struct dataset *ds, uint64_t at_1)
{
	return at_1 ? text(ds, SECTION_TEXTS, at_1 - 1) : NULL;
}

void dataset_skipped(const struct dataset *ds, struct dataset_skipped *out)
{
	if (ds->joined) {
		joined_skipped(ds, out);
		return;
	}
	*out = (struct dataset_skipped){
		.files = ds->skipped.files,
		.classes = ds->skipped.classes,
		.first_file = text_or_null(ds, ds->skipped.first_file),
		.first_class = text_or_null(ds, ds->skipped.first_class),
	};
}

size_t dataset_memory_bytes(const struct dataset *ds)
{
	struct annotations_totals totals = {0};
	size_t bytes = sizeof(*ds) + joined_memory(ds);

	if (ds->annotations)
		annotations_totals(ds->annotations, &totals);
	bytes += totals.private_bytes;
	for (unsigned i = 0; !ds->map && i < SECTIONS; i++)
		bytes += array_room_bytes(&ds->section[i]);
	return bytes;
}
