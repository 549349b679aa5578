/* SPDX-License-Identifier: MIT */
/*
 * A dataset as a table of examples: where the bytes of each are and what its
 * label is. It is made once by a scan of every directory or shard (a *look*),
 * then kept in a file, its catalogue, and mapped, so that 1.3 million examples
 * open in milliseconds. Constant after dataset_open(): any thread reads it
 * without a lock.
 *
 * These files are examples. FOLDER: regular files whose names end in .jpg,
 * .jpeg or .png in either case, or all with `any_file`, below the directory;
 * names that begin with a dot, and lost+found in the root, are skipped.
 * Symbolic links are followed, wherever they lead: links in a dataset are meant
 * to be read. dataset_links() counts those that are broken or lead in a circle.
 * dataset_skipped() counts all that is not an example. LIST: every line of a
 * list; of a table of `refrain index`, the files that FOLDER would take. TAR:
 * each base name (up to the first dot after the last slash) that has an image:
 * the first member NAME.jpg or NAME.jpeg, else the first NAME.*.jpg; with
 * `any_file` the first that is not .cls, .txt or .json. RAW: each record of the
 * file, or of the files in the directory itself.
 *
 * Examples are numbered by the bytewise order of their paths, '/' included
 * (LIST: equal paths by their lines); TAR: by shard, then the first member of
 * the base name; RAW: by file, then position. Shards and files are in the
 * bytewise order of their names.
 *
 * An example gets its label from its class. FOLDER: the class is the first
 * directory of the path. LIST: the text after the tab; in a table of `refrain
 * index`, as FOLDER. TAR: the text of NAME.cls, or the first directory if there
 * is no such member. An example without a class has the label -1. The classes
 * of examples are numbered by the bytewise order of their names, and the number
 * is the label. But if all texts of a list, or of all .cls members, are decimal
 * numbers below 2^31 without leading zeros, these numbers are the labels.
 * FOLDER: every directory in the root is a class, also a hidden one or one
 * without an example, as in torchvision's ImageFolder; in a table of `refrain
 * index`, every such directory that contains a file.
 *
 * An example has *parts*: part 0 is the file that makes it an example, and the
 * others are its *members*, which dataset_options.members asks for. Files that
 * may be members are no examples, and their folders no classes.
 */
#ifndef DATASET_H
#define DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct dataset;

#define DATASET_PARTS_MAX 8

struct dataset_options {
	const char *path;
	int source;			    /* enum refrain_source */
	const char *root;		    /* LIST, or NULL */
	uint32_t record_bytes, label_bytes; /* RAW */
	bool any_file;			    /* there is a decode callback */
	unsigned threads;		    /* threads for looking; 0: 8 */
	/*
	 * The members of the examples, as in "json;png,seg.png;masks/"; NULL:
	 * none. Members are separated by ';', and the places to look for one by
	 * ',' with the best first. A place is a suffix, as of 0001.seg.png for
	 * the image 0001.jpg, or "FOLDER/", or "FOLDER/SUFFIX": a file with the
	 * stem of the image in a folder beside it, or beside one of the
	 * directories above it, as masks/a/1.png for images/a/1.jpg and for
	 * a/1.jpg. In a tar, the stem ends at the first dot of a name, else at
	 * the last. Not for RAW.
	 */
	const char *members;
	/*
	 * If not NULL, dataset_open() fails with -ECANCELED within half a
	 * second after this becomes true. A system call that hangs keeps its
	 * thread and its memory until it returns.
	 */
	const _Atomic bool *cancel;
	/* Fail with -ETIMEDOUT if the storage has not answered any call for
	 * this time; 0: never. There is no limit while it answers. */
	uint64_t timeout_ns;
};

/* The location of an example. The dataset owns the strings. */
struct example {
	const char *file; /* relative to dataset_dir() */
	/* For messages: the path. TAR: the shard, then the member, as in
	 * "a.tar/0001.jpg". RAW: the file. */
	const char *name;
	uint32_t shard;	      /* number of the file, if `whole` is false */
	bool whole;	      /* the whole file, whatever its size is by now */
	bool label_in_record; /* RAW: the first label_bytes are the label */
	uint64_t offset;      /* 0 if whole */
	/* Only a hint if `whole` is set; 0: unknown, because a look does not
	 * stat() the files. */
	uint64_t bytes;
	int64_t label; /* -1: none, or in the record */
};

/*
 * Open and look, or map the catalogue of an earlier look if nothing has changed
 * since: every directory has its old mtime, every list and shard its old mtime
 * and size. doc/formats.md says where the catalogue is kept. On failure *out is
 * NULL and err says what and where: -ENOENT, -ENOTDIR, -EACCES, -ENODATA (no
 * example, or none has one of the members), -EBADMSG (a malformed list, tar or
 * file of records), -ENAMETOOLONG (a path too long to open), -EINVAL, -ENOMEM,
 * -ECANCELED, -ETIMEDOUT. A directory that cannot be read is a failure; a
 * catalogue that cannot be written is not.
 */
int dataset_open(struct dataset **out, const struct dataset_options *options,
	struct error *err);
void dataset_close(struct dataset *ds); /* NULL is allowed */

uint64_t dataset_count(const struct dataset *ds);
void dataset_example(
	const struct dataset *ds, uint64_t index, struct example *out);

/* The number of parts that an example may have. */
uint32_t dataset_parts(const struct dataset *ds);
/* Get the location of a part. Returns false if the example lacks it. The parts
 * of an example lie in one shard, or each is a whole file. */
bool dataset_part(const struct dataset *ds, uint64_t index, uint32_t part,
	struct example *out);

/* Paths are opened below this descriptor (and never escape it). */
int dataset_dir(const struct dataset *ds);

/* The type of the dataset's file system, as in statfs(); 0: unknown. It is
 * determined when the dataset is opened, because statfs() may hang later. */
uint32_t dataset_fs_type(const struct dataset *ds);

/* Shards are the files that hold several examples each, raw files included. */
uint32_t dataset_shards(const struct dataset *ds);
const char *dataset_shard_file(const struct dataset *ds, uint32_t shard);

/* The number of classes; all labels are below it. dataset_class_name() returns
 * NULL if no class has that label; a name may be any bytes, and ends with a
 * NUL. `bytes` may be NULL. */
uint64_t dataset_classes(const struct dataset *ds);
const char *dataset_class_name(
	const struct dataset *ds, uint64_t label, size_t *bytes);

/* A hash of all names, positions and labels, but not of contents or mtimes. */
uint64_t dataset_fingerprint(const struct dataset *ds);

/*
 * The number of symbolic links skipped because they lead nowhere or to a
 * directory that contains them.
 */
uint64_t dataset_links(const struct dataset *ds);

/*
 * The numbers of things in a dataset that are not examples. Files: other files,
 * hidden names and broken links; in a tar, base names without an image; the
 * first one has the lowest path. A directory that was not searched counts as
 * one file. Classes: those without an example. A name is NULL if its number is
 * 0; the dataset owns the names.
 */
struct dataset_skipped {
	uint64_t files, classes;
	const char *first_file, *first_class;
};
void dataset_skipped(const struct dataset *ds, struct dataset_skipped *out);

/* The private memory that the dataset uses; mapped memory is shared and not
 * counted. */
size_t dataset_memory_bytes(const struct dataset *ds);

#endif
