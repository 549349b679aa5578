/* SPDX-License-Identifier: MIT */
/*
 * A dataset as a table of examples: where the bytes of each are and what its
 * label is. Examples are numbered by the bytewise order of their relative
 * paths (RAW: by file, then position; TAR: by shard, then base name's first
 * position). Made once by looking at every directory or shard, then kept as an
 * index file and mapped, so that 1.3 million examples open in milliseconds.
 * Constant after dataset_open(): any thread reads it without a lock.
 */
#ifndef LOADER_DATASET_H
#define LOADER_DATASET_H

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
	unsigned threads;		    /* for looking; 0: 8 */
	/* Stop looking soon and fail with -ECANCELED once it is true; or NULL.
	 */
	const _Atomic bool *cancel;
};

/* Where an example is. Strings are the dataset's. */
struct example {
	const char *file; /* relative to dataset_dir() */
	const char *name; /* for messages: the path, a member's after its
			     shard: "a.tar/0001.jpg" */
	uint32_t shard;	  /* number of the file, if `whole` is false */
	bool whole;	  /* the whole file, whatever its size is by now */
	uint64_t offset;  /* 0 if whole */
	uint64_t bytes;	  /* if whole: when it was looked at */
	int64_t label;	  /* -1: none */
};

/*
 * Open and look, or map the index of an earlier look if nothing changed since
 * (every directory and shard has the mtime it had; where it is kept:
 * doc/formats.md). On failure err says what and where: -ENOENT, -ENOTDIR,
 * -EACCES, -ENODATA (no example), -EBADMSG (a list or tar that is malformed),
 * -EINVAL, -ENOMEM, -ECANCELED. An index that cannot be written is no error.
 */
int dataset_open(struct dataset **out, const struct dataset_options *options,
	struct error *err);
void dataset_close(struct dataset *ds);

uint64_t dataset_count(const struct dataset *ds);
void dataset_example(
	const struct dataset *ds, uint64_t index, struct example *out);

/* Paths are opened below this descriptor (and never escape it). */
int dataset_dir(const struct dataset *ds);

/* Files that hold several examples each: shards, raw files. */
uint32_t dataset_shards(const struct dataset *ds);
const char *dataset_shard_file(const struct dataset *ds, uint32_t shard);

uint64_t dataset_classes(const struct dataset *ds);
const char *dataset_class_name(
	const struct dataset *ds, uint64_t label, size_t *bytes);

/* A hash of all names, positions and labels: not of contents or mtimes. */
uint64_t dataset_fingerprint(const struct dataset *ds);

/* Was it mapped from an index, not looked at? For statistics. */
bool dataset_was_indexed(const struct dataset *ds);

#endif
