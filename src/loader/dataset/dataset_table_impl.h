/* SPDX-License-Identifier: MIT */
/*
 * The tables of a dataset, as they are in memory and in its catalogue, and
 * the texts of labels while they are collected. No lock: one thread fills
 * them, then they are constant.
 */
#ifndef DATASET_TABLE_IMPL_H
#define DATASET_TABLE_IMPL_H

#include <stddef.h>

#include "common/base/array.h"
#include "common/base/hash.h"
#include "common/base/table.h"
#include "loader/dataset/dataset.h"

/* A file or directory that must be unchanged for a catalogue to be valid. */
struct ds_watch {
	uint64_t path; /* in SECTION_TEXTS; absolute, or below the directory */
	int64_t mtime_ns;
	uint64_t fingerprint; /* stat_fingerprint() */
};

struct ds_shard {
	uint64_t file; /* in SECTION_TEXTS */
	uint64_t bytes;
	uint64_t first; /* RAW: number of its first record */
};

/* A class; the table has them in the order of their labels. */
struct ds_class {
	uint64_t name; /* in SECTION_TEXTS, a NUL after its bytes */
	uint32_t bytes;
	uint32_t label;
};

struct ds_whole {
	uint64_t name;	/* in SECTION_NAMES */
	uint32_t bytes; /* or UINT32_MAX if more; 0: unknown */
	int32_t label;
};

struct ds_part {
	uint64_t name; /* in SECTION_NAMES */
	uint64_t offset, bytes;
	uint32_t shard;
	int32_t label;
};

/* A member of an example; its shard is that of the example. */
struct ds_member {
	uint64_t name; /* in SECTION_MEMBER_NAMES, plus 1; 0: it lacks it */
	uint64_t offset, bytes; /* EXAMPLES_PART */
};

enum ds_kind {
	EXAMPLES_WHOLE,	  /* struct ds_whole */
	EXAMPLES_PART,	  /* struct ds_part */
	EXAMPLES_RECORDS, /* no table: computed from the shards */
};

enum ds_section {
	SECTION_WATCHES,
	SECTION_SHARDS,
	SECTION_CLASSES,
	SECTION_EXAMPLES,
	SECTION_MEMBERS, /* struct ds_member, by example, then member */
	SECTION_TEXTS,
	SECTION_NAMES, /* of the examples, in their order, a NUL after each */
	SECTION_MEMBER_NAMES,
	SECTIONS,
};

/* See dataset_skipped(). A name is its offset in SECTION_TEXTS plus 1; 0:
 * none. */
struct ds_skipped {
	uint64_t files, first_file;
	uint64_t classes, first_class;
};

struct dataset {
	int dir;
	uint32_t fs_type; /* of it */
	enum ds_kind kind;
	uint64_t count, links, fingerprint;
	struct ds_skipped skipped;
	uint32_t record_bytes, label_bytes;
	uint32_t members; /* of each example */
	struct array section[SECTIONS];
	void *map; /* of a catalogue; NULL: the tables are its own */
	size_t map_bytes;
};

/* Set the kind of the examples that will be added. */
void ds_begin(struct dataset *ds, enum ds_kind kind);
void ds_begin_records(
	struct dataset *ds, uint32_t record_bytes, uint32_t label_bytes);

int ds_add_watch(struct dataset *ds, const char *path, int64_t mtime_ns,
	uint64_t fingerprint);
int ds_add_shard(struct dataset *ds, const char *file, uint64_t bytes);
/* All shards, dataset_shards() of them. The table moves when one is added. */
struct ds_shard *ds_shards(struct dataset *ds);

/* Set the files that are not examples; `first` may be NULL. -ENOMEM. */
int ds_set_skipped(struct dataset *ds, uint64_t files, const char *first);

/* Add an example with the name `dir` + `name`; `dir` is empty or ends with '/'.
 * Returns 0 or -ENOMEM. */
int ds_add_whole(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_whole *whole);
int ds_add_part(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_part *part);

/* Add the next member of the example that was added last, with the name `dir` +
 * `name`; NULL: the example lacks it. Returns 0 or -ENOMEM. */
int ds_add_member(struct dataset *ds, const char *dir, const char *name,
	const struct ds_member *row);

/* Add the records of a shard; returns how many bytes are left over. */
uint64_t ds_add_records(struct dataset *ds, uint32_t shard);

/* Set the count and the fingerprint, and give back what is not needed. */
void ds_finish(struct dataset *ds);

size_t ds_example_bytes(enum ds_kind kind);

/* -- Labels ---------------------------------------------------------------- */

/* Texts of labels, each once, numbered in the order in which they were added.
 * Begin with a zeroed struct. */
struct labels {
	struct array text;
	struct array entry; /* struct label_entry */
	struct table table; /* of numbers + 1 */
};

#define LABEL_MAX_BYTES 65535

/* Add a text and return its number, or -ENOMEM. */
int32_t labels_add(struct labels *l, const char *text, size_t bytes);

/*
 * Build the classes, replace the number of its text by a label in each example,
 * and note the classes without an example. With `numeric`, the texts themselves
 * are the labels if all of them are decimal numbers. Releases the labels, also
 * on failure.
 */
int labels_finish(struct labels *l, struct dataset *ds, bool numeric);
void labels_release(struct labels *l);

#endif
