/* SPDX-License-Identifier: MIT */
/*
 * A dataset as a table of examples: where the bytes of each are and what its
 * label is. Made once by looking at every directory or shard, then kept as an
 * index file and mapped, so that 1.3 million examples open in milliseconds.
 * Constant after dataset_open(): any thread reads it without a lock.
 *
 * Which files are examples. FOLDER: regular files whose names end in .jpg,
 * .jpeg or .jpe in either case, or all with `any_file`, below the directory;
 * what begins with a dot and lost+found in the root are passed over. Symbolic
 * links are what they lead to, wherever that is: whoever makes a link in a
 * dataset wants it read; dataset_links() counts those that lead nowhere or in a
 * circle. LIST: every line, or of a table of `refrain index` those that FOLDER
 * would take. TAR: each base name (up to the first dot after the last slash)
 * that has an image: the first member NAME.jpg or NAME.jpeg, else the first
 * NAME.*.jpg; with `any_file` the first that is not .cls, .txt or .json. RAW:
 * each record of the file, or of the files in the directory itself.
 *
 * Examples are numbered by the bytewise order of their paths, '/' included
 * (LIST: of equal ones, by line); TAR: by shard, then the first member of the
 * base name; RAW: by file, then position. Shards and files are in the bytewise
 * order of their names.
 *
 * Labels. The class is the first directory of the path; of a list's line the
 * text after the tab; of a tar the text of NAME.cls, or the directory if no
 * member is called so. Without one the label is -1. Classes that an example has
 * are numbered by the bytewise order of their names; but if the texts of a list
 * or of all .cls are decimal numbers below 2^31, without leading zeros, then
 * they are the labels.
 */
#ifndef DATASET_DATASET_H
#define DATASET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct dataset;

struct dataset_options {
	const char *path;
	int source;			    /* enum refrain_source */
	const char *root;		    /* LIST, or NULL */
	uint32_t record_bytes, label_bytes; /* RAW */
	bool any_file;			    /* there is a decode callback */
	unsigned threads;		    /* for looking; 0: 8 */
	/* Fail with -ECANCELED within half a second of its being true; or NULL.
	 * A call that hangs keeps its thread and its memory until it returns.
	 */
	const _Atomic bool *cancel;
	/* Fail as soon with -ETIMEDOUT when nothing has come from the storage
	 * for so long; 0: never. A look that goes on is never too long. */
	uint64_t timeout_ns;
};

/* Where an example is. Strings are the dataset's. */
struct example {
	const char *file;     /* relative to dataset_dir() */
	const char *name;     /* for messages: the path, a member's after its
				 shard: "a.tar/0001.jpg"; RAW: the file */
	uint32_t shard;	      /* number of the file, if `whole` is false */
	bool whole;	      /* the whole file, whatever its size is by now */
	bool label_in_record; /* RAW: the first label_bytes are the label */
	uint64_t offset;      /* 0 if whole */
	uint64_t bytes;	      /* if whole: a hint, 0: unknown (a look asks
				 no file for its size) */
	int64_t label;	      /* -1: none, or in the record */
};

/*
 * Open and look, or map the index of an earlier look if nothing changed since:
 * every directory has the mtime that it had, every list and shard its mtime and
 * size (where it is kept: doc/formats.md). On failure *out is NULL and err says
 * what and where: -ENOENT, -ENOTDIR, -EACCES, -ENODATA (no example), -EBADMSG
 * (a list, tar or file of records that is malformed), -ENAMETOOLONG (a path
 * that no call could open), -EINVAL, -ENOMEM, -ECANCELED, -ETIMEDOUT. A
 * directory that cannot be read is a failure; an index that cannot be written
 * is none.
 */
int dataset_open(struct dataset **out, const struct dataset_options *options,
	struct error *err);
void dataset_close(struct dataset *ds); /* NULL is allowed */

uint64_t dataset_count(const struct dataset *ds);
void dataset_example(
	const struct dataset *ds, uint64_t index, struct example *out);

/* Paths are opened below this descriptor (and never escape it). */
int dataset_dir(const struct dataset *ds);

/* The kind of file system that it is on, as statfs() has it; 0: unknown. Of
 * the time when it was opened, as asking may hang. */
uint32_t dataset_fs_type(const struct dataset *ds);

/* Files that hold several examples each: shards, raw files. */
uint32_t dataset_shards(const struct dataset *ds);
const char *dataset_shard_file(const struct dataset *ds, uint32_t shard);

/* All labels are below it. The name of a class is any bytes and a NUL; NULL if
 * no example has that label. `bytes` may be NULL. */
uint64_t dataset_classes(const struct dataset *ds);
const char *dataset_class_name(
	const struct dataset *ds, uint64_t label, size_t *bytes);

/* A hash of all names, positions and labels: not of contents or mtimes. */
uint64_t dataset_fingerprint(const struct dataset *ds);

/*
 * Symbolic links that were passed over: they lead nowhere, or to a directory
 * that they are in.
 */
uint64_t dataset_links(const struct dataset *ds);

/* Memory of the process's own that it takes; what is mapped is shared. */
size_t dataset_memory_bytes(const struct dataset *ds);

/* Was it mapped from an index, not looked at? For statistics. */
bool dataset_was_indexed(const struct dataset *ds);

#endif
