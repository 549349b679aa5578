/* SPDX-License-Identifier: MIT */
/*
 * A dataset as a table of examples: where the bytes of each example are, and
 * what its label is. The table is made by a scan of every directory or shard (a
 * *look*), then written to a file, the dataset's catalogue. Later opens map the
 * catalogue, so that 1.3 million examples are opened in milliseconds. A dataset
 * is constant after dataset_open(), so any thread may read it without a lock.
 *
 * These files are examples. FOLDER: regular files below the directory whose
 * names end in .jpg, .jpeg or .png in either case, or all regular files with
 * `any_file`. Names that begin with a dot, and lost+found in the root, are
 * skipped. Symbolic links are followed even if they lead out of the directory,
 * because links in a dataset are meant to be read. dataset_links() counts the
 * links that are broken or lead in a circle, and dataset_skipped() the files
 * that are not examples. LIST: every line of a list; in a table of `refrain
 * index`, the files that FOLDER would use. TAR: each base name (up to the first
 * dot after the last slash) that has an image: its first member NAME.jpg or
 * NAME.jpeg, else its first NAME.*.jpg; with `any_file`, its first member that
 * is not .cls, .txt or .json. RAW: each record of the file, or of the files
 * directly in the directory; or each window of the tokens in the file, or in
 * the files .bin and .npy directly in the directory.
 *
 * Examples are numbered in the bytewise order of their paths, '/' included. In
 * a LIST, equal paths are in the order of their lines. In a TAR, examples are
 * in the order of shards, then of the first members of their base names; in
 * RAW, in the order of files, then of positions. Shards and files are in the
 * bytewise order of their names.
 *
 * The label of an example is derived from its class. FOLDER: the class is the
 * first directory of the path. LIST: the class is the text after the tab; in a
 * table of `refrain index`, it is as in FOLDER. TAR: the class is the text of
 * NAME.cls, or the first directory if no example has a .cls. An example without
 * a class has the label -1. Classes are numbered in the bytewise order of their
 * names, and these numbers are the labels. But if all texts of a list, or of
 * all .cls members, are decimal numbers below 2^31 without leading zeros, these
 * numbers are the labels. FOLDER: every directory in the root is a class, even
 * if it is hidden or has no example, as in torchvision's ImageFolder; in a
 * table of `refrain index`, every such directory that contains a file is a
 * class.
 *
 * An example has *parts*. Part 0 is the file that makes it an example, such as
 * the image. The other parts are the *members* that dataset_options.members
 * selects. A file that may be a member is not an example, and a folder of
 * members is not a class.
 */
#ifndef DATASET_H
#define DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/fields/fields.h"
#include "loader/fields/volume.h"

struct annotations;
struct dataset;

#define DATASET_PARTS_MAX 8

#define DATASETS_MAX 64

struct dataset_options {
	/* Lines are the paths of several datasets, which become one: its
	 * examples are those of the first one, then those of the second, and
	 * so on, and classes of the same name are one class. */
	const char *path;
	int source; /* enum refrain_source */
	/* LIST: the directory of its paths; NULL: the directory of the list */
	const char *root;
	uint32_t record_bytes, label_bytes; /* only RAW */
	/* only RAW: the examples are windows, and records have no size; NULL:
	 * they are records */
	const struct token_windows *windows;
	/* the same for arrays: the examples are whole files, of which crops are
	 * read */
	const struct array_crops *arrays;
	bool any_file;	  /* set if there is a decode callback */
	unsigned threads; /* threads that scan the dataset; 0: 8 */
	/*
	 * The members of the examples, as in "json;png,seg.png;masks/"; NULL:
	 * no members. Members are separated by ';', and the places of one
	 * member by ',' with the preferred place first. A place is a suffix,
	 * "FOLDER/" or "FOLDER/SUFFIX". A suffix is added to the stem of the
	 * image: for the image 0001.jpg, "seg.png" means 0001.seg.png. A FOLDER
	 * contains a file with the stem of the image, and lies beside the image
	 * or beside one of the directories above it: for images/a/1.jpg or
	 * a/1.jpg, "masks/" may mean masks/a/1.png. In a tar, the stem ends at
	 * the first dot of a name, elsewhere at the last one. Not for RAW.
	 */
	const char *members;
	const char *annotations; /* a file for annotations_open(), or NULL */
	/*
	 * If not NULL, dataset_open() fails with -ECANCELED within half a
	 * second after this flag has become true. A system call that hangs then
	 * keeps its thread and that thread's memory until it returns.
	 */
	const _Atomic bool *cancel;
	/* Fail with -ETIMEDOUT if the storage has answered no call for this
	 * time; 0: never. While the storage answers, the open may take any
	 * time. */
	uint64_t timeout_ns;
};

/* The location of an example. The dataset owns the strings. */
struct example {
	int dir;	  /* descriptor of the directory of `file` */
	const char *file; /* relative to `dir`; contains no ".." */
	/* The name for messages. FOLDER and LIST: the path. TAR: the shard and
	 * the member, such as "a.tar/0001.jpg". RAW: the file. */
	const char *name;
	uint32_t shard; /* number of the file; undefined if `whole` */
	/* The example is the whole file, whatever its size is when it is
	 * read */
	bool whole;
	/* RAW: the label is in the first label_bytes */
	bool label_in_record;
	uint64_t offset; /* 0 if whole */
	/* The size. If `whole` is set, this is only a hint, or 0 if it is
	 * unknown, because a look does not call stat() for the files. */
	uint64_t bytes;
	int64_t label; /* -1: no class, or label_in_record */
};

/*
 * Open a dataset. If nothing has changed since an earlier look, its catalogue
 * is mapped: every directory has its old mtime, and every list and shard its
 * old mtime and size. Otherwise the dataset is scanned. doc/formats.md says
 * where the catalogue is stored. On failure *out is NULL, and err says what
 * failed and where: -ENOENT, -ENOTDIR, -EACCES, -ENODATA (there is no example,
 * or no example has one of the members), -EBADMSG (a malformed list, tar or
 * file of records), -ENAMETOOLONG (a path is too long to open), -EINVAL,
 * -ENOMEM, -ECANCELED, -ETIMEDOUT. It is an error if a directory cannot be
 * read, but not if a catalogue cannot be written.
 */
int dataset_open(struct dataset **out, const struct dataset_options *options,
	struct error *err);
void dataset_close(struct dataset *ds); /* NULL is allowed */

uint64_t dataset_count(const struct dataset *ds);
void dataset_example(
	const struct dataset *ds, uint64_t index, struct example *out);

/* Like dataset_example(), but as the example is in a pass of a run with this
 * seed: in each pass, the windows of a file of tokens are shifted. */
void dataset_example_in(const struct dataset *ds, uint64_t index, uint64_t seed,
	uint64_t pass, struct example *out);

/* Set the place and shape of the array that is an example. Returns false if the
 * examples are not arrays. */
bool dataset_volume(
	const struct dataset *ds, uint64_t index, struct volume *out);

/* Returns the number of tokens that are in no window of a pass: the rest of
 * each file, and the files that are too short. */
uint64_t dataset_tail_tokens(const struct dataset *ds);

/* Returns the number of parts of an example, including those that it may
 * lack. */
uint32_t dataset_parts(const struct dataset *ds);
/* Get the location of a part. Returns false if the example lacks this part.
 * Either all parts of an example are in one shard, or each part is a whole
 * file. */
bool dataset_part(const struct dataset *ds, uint64_t index, uint32_t part,
	struct example *out);

/* The datasets of which this one consists: their number, which is 1 unless
 * there were several paths, and one of them. `begin` is the number of its first
 * example; `dir` is a descriptor of the directory to which its paths are
 * relative. Returns the number of the dataset of an example. */
struct dataset_joined {
	const char *path; /* NULL if there is only one */
	uint64_t begin, count;
	int dir;
};
uint32_t dataset_joined_count(const struct dataset *ds);
void dataset_joined(
	const struct dataset *ds, uint32_t i, struct dataset_joined *out);
uint32_t dataset_joined_at(const struct dataset *ds, uint64_t index);

/* Returns the annotations, or NULL. annotations_find() finds an example there
 * by its name. */
const struct annotations *dataset_annotations(const struct dataset *ds);

/* Returns the type of the dataset's file system, as in statfs(), or 0 if it is
 * unknown. It is read when the dataset is opened, because statfs() may hang
 * later. */
uint32_t dataset_fs_type(const struct dataset *ds);

/* Shards are files that contain several examples each: tar files and files of
 * raw records. */
uint32_t dataset_shards(const struct dataset *ds);
const char *dataset_shard_file(const struct dataset *ds, uint32_t shard);

/* Returns the number of classes; all labels are below it. dataset_class_name()
 * returns NULL if no class has that label. A name may contain any bytes, and a
 * NUL follows it. Its length is stored in *bytes unless `bytes` is NULL. */
uint64_t dataset_classes(const struct dataset *ds);
const char *dataset_class_name(
	const struct dataset *ds, uint64_t label, size_t *bytes);

/* Returns a hash of all names, positions, labels and annotations. It does not
 * depend on contents or mtimes, but on the rendition of the images
 * (common/format/rendition.h). */
uint64_t dataset_fingerprint(const struct dataset *ds);
/* Do two fingerprints differ only in the rendition? */
bool dataset_other_rendition(uint64_t one, uint64_t other);

/*
 * Returns the number of symbolic links that were skipped because their target
 * does not exist or is a directory that contains them.
 */
uint64_t dataset_links(const struct dataset *ds);

/*
 * What a dataset contains besides examples. `files` counts other files, hidden
 * names and broken links; in a tar, base names without an image. A directory
 * that was not searched counts as one file. first_file is the lowest of their
 * paths. `classes` counts classes without an example. A name is NULL if its
 * count is 0; the dataset owns the names.
 */
struct dataset_skipped {
	uint64_t files, classes;
	const char *first_file, *first_class;
};
void dataset_skipped(const struct dataset *ds, struct dataset_skipped *out);

/* Returns the bytes of private memory that the dataset uses. A mapped catalogue
 * is not counted, because its pages are shared. */
size_t dataset_memory_bytes(const struct dataset *ds);

#endif
