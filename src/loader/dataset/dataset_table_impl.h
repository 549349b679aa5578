/* SPDX-License-Identifier: MIT */
/*
 * The tables of a dataset, with the same layout in memory and in the catalogue,
 * and the texts of labels while they are collected. There is no lock: one
 * thread fills the tables, then they are constant.
 */
#ifndef DATASET_TABLE_IMPL_H
#define DATASET_TABLE_IMPL_H

#include <stddef.h>

#include "common/base/array.h"
#include "common/base/hash.h"
#include "common/base/table.h"
#include "loader/dataset/dataset.h"

/* A file or directory. The catalogue is valid only while it is unchanged. */
struct ds_watch {
	/* offset in SECTION_TEXTS; a relative path begins at `dir` */
	uint64_t path;
	int64_t mtime_ns;
	uint64_t fingerprint; /* stat_fingerprint() */
};

struct ds_shard {
	uint64_t file; /* offset in SECTION_TEXTS */
	uint64_t bytes;
	uint64_t first; /* RAW: number of the file's first example */
};

/* A class. The table is in the order of labels. */
struct ds_class {
	uint64_t name; /* offset in SECTION_TEXTS; a NUL follows the name */
	uint32_t bytes;
	uint32_t label;
};

struct ds_whole {
	uint64_t name;	/* offset in SECTION_NAMES */
	uint32_t bytes; /* size; UINT32_MAX: at least that; 0: unknown */
	int32_t label;
};

struct ds_part {
	uint64_t name; /* offset in SECTION_NAMES */
	uint64_t offset, bytes;
	uint32_t shard;
	int32_t label;
};

/* A member of an example. It is in the shard of the example. */
struct ds_member {
	uint64_t name; /* offset in SECTION_MEMBER_NAMES, plus 1; 0: absent */
	uint64_t offset, bytes; /* set only with EXAMPLES_PART */
};

/* The tokens of a shard. */
struct ds_windows {
	uint64_t at; /* offset of the first token in the file */
	uint64_t tokens;
	uint32_t value_bytes; /* of a token */
	uint32_t shifts;      /* the windows begin at one of these tokens */
};

/* The array of a shard. */
struct ds_volume {
	uint64_t at; /* offset of the first value in the file */
	uint64_t shape[3];
};

enum ds_kind {
	EXAMPLES_WHOLE,	  /* rows are struct ds_whole */
	EXAMPLES_PART,	  /* rows are struct ds_part */
	EXAMPLES_RECORDS, /* no rows: computed from the shards */
	EXAMPLES_WINDOWS, /* rows are struct ds_windows, one for each shard */
	EXAMPLES_VOLUMES, /* rows are struct ds_volume, one for each shard */
};

enum ds_section {
	SECTION_WATCHES,
	SECTION_SHARDS,
	SECTION_CLASSES,
	SECTION_EXAMPLES,
	SECTION_MEMBERS, /* rows of struct ds_member: examples, then members */
	SECTION_TEXTS,
	SECTION_NAMES, /* names of the examples in their order, with NULs */
	SECTION_MEMBER_NAMES,
	SECTIONS,
};

/* See dataset_skipped(). A name is given by its offset in SECTION_TEXTS plus 1;
 * 0: there is none. */
struct ds_skipped {
	uint64_t files, first_file;
	uint64_t classes, first_class;
};

struct ds_joined;

struct dataset {
	int dir;
	uint32_t fs_type; /* file system of `dir`; see dataset_fs_type() */
	enum ds_kind kind;
	uint64_t count, links, fingerprint;
	/* hash of the rendition; 0: the originals. It is not in
	 * the catalogue, because recode.json may change without a new name */
	uint64_t rendition;
	struct ds_skipped skipped;
	uint32_t record_bytes, label_bytes;
	struct token_windows windows;
	uint64_t tail_tokens; /* see dataset_tail_tokens() */
	uint32_t members;     /* number of members of each example */
	struct array section[SECTIONS];
	void *map; /* mapped catalogue; NULL: tables are on the heap */
	size_t map_bytes;
	struct annotations *annotations; /* NULL: there are none */
	/* Several datasets as one: only `section` has classes, and no other
	 * tables. NULL: this is one dataset */
	struct ds_joined *joined;
	uint32_t joined_count, shard_count;
};

/* Set the kind of the examples that will be added. */
void ds_begin(struct dataset *ds, enum ds_kind kind);
void ds_begin_records(
	struct dataset *ds, uint32_t record_bytes, uint32_t label_bytes);

/* Set the rendition of the images; see common/format/rendition.h. */
void ds_set_rendition(struct dataset *ds, const char *text);

int ds_add_watch(struct dataset *ds, const char *path, int64_t mtime_ns,
	uint64_t fingerprint);
int ds_add_shard(struct dataset *ds, const char *file, uint64_t bytes);
/* Returns the array of dataset_shards() shards. Adding a shard moves it. */
struct ds_shard *ds_shards(struct dataset *ds);

/* Set the number of files that are not examples, and the first of them (may be
 * NULL). Returns 0 or -ENOMEM. */
int ds_set_skipped(struct dataset *ds, uint64_t files, const char *first);

/* Add an example with the name `dir` + `name`; `dir` is empty or ends with '/'.
 * Returns 0 or -ENOMEM. */
int ds_add_whole(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_whole *whole);
int ds_add_part(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_part *part);

/* Add the next member of the example that was added last, with the name `dir` +
 * `name`. If `name` is NULL, the example lacks this member. Returns 0 or
 * -ENOMEM. */
int ds_add_member(struct dataset *ds, const char *dir, const char *name,
	const struct ds_member *row);

/* Add the records of a shard. Returns how many bytes at its end are not a whole
 * record. */
uint64_t ds_add_records(struct dataset *ds, uint32_t shard);

/* -- dataset_windows.c ----------------------------------------------------- */

/* Get a window of this shard as it is without a shift. */
void ds_window_example(const struct dataset *ds, uint64_t index, uint32_t shard,
	struct example *out);
/* Returns a hash of the windows of all shards. */
uint64_t ds_print_windows(const struct dataset *ds, uint64_t seed);

/* Returns how many bytes the windows of a shard begin later in a pass than in
 * the file. */
uint64_t ds_shift_bytes(
	const struct dataset *ds, uint32_t shard, uint64_t seed, uint64_t pass);

/* Set the count and the fingerprint, and free unused memory of the tables. */
void ds_finish(struct dataset *ds);

size_t ds_example_bytes(enum ds_kind kind);

/* -- Labels ---------------------------------------------------------------- */

/* The texts of labels. Each text is stored once, and texts are numbered in the
 * order in which they were added. Initialise this with zeros. */
struct labels {
	struct array text;
	struct array entry; /* array of struct label_entry */
	struct table table; /* table of indexes into `entry`, plus 1 */
};

#define LABEL_MAX_BYTES 65535

/* Add a text unless it is there. Returns its number, or -ENOMEM. */
int32_t labels_add(struct labels *l, const char *text, size_t bytes);

/*
 * Create the classes, replace the number of the text in each example by a
 * label, and note the classes without an example. With `numeric`, if all texts
 * are decimal numbers, these numbers are the labels. This releases the texts,
 * also on failure.
 */
int labels_finish(struct labels *l, struct dataset *ds, bool numeric);

/* The two steps of labels_finish(): create the classes, and replace the number
 * of a text by its label; -1 stays. The first returns 0 or -ENOMEM. */
int labels_number(struct labels *l, struct dataset *ds, bool numeric);
void labels_replace(const struct labels *l, int32_t *label);
void labels_release(struct labels *l);

#endif
