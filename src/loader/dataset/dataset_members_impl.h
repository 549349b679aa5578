/* SPDX-License-Identifier: MIT */
/*
 * The members of examples: further files that belong to an image. A look first
 * collects all files that may be members in a struct known, then finds the
 * members of each example in it. dataset.h describes the text that selects
 * members.
 */
#ifndef DATASET_MEMBERS_IMPL_H
#define DATASET_MEMBERS_IMPL_H

#include "common/base/array.h"
#include "common/base/table.h"
#include "loader/dataset/dataset_look_impl.h"

#define MEMBERS_WORDS_MAX 32

/* One place where a member may be. */
struct member_word {
	const char *folder; /* "": the directory of the image */
	const char *suffix; /* "": any suffix */
	uint32_t member;
};

struct ds_members {
	uint32_t count;
	uint32_t words_n;
	/* for each member, its places, the preferred one first */
	struct member_word words[MEMBERS_WORDS_MAX];
	/* for each member, the number of examples that have it */
	uint64_t found[DATASET_PARTS_MAX];
	char text[];
};

/* Parse dataset_options.members. Returns 0, or -EINVAL or -ENOMEM with err
 * set. */
int ds_members_parse(
	struct ds_members **out, const char *text, struct error *err);

/* May a file with this path, relative to the dataset, be a member? Then it is
 * not an example. */
bool ds_members_claim(const struct ds_members *m, const char *path);
/* Is a file with this path below a folder of members? */
bool ds_members_below(const struct ds_members *m, const char *path);
/* Is there a member whose place is a folder with this name? */
bool ds_members_in_folder(const struct ds_members *m, const char *folder);
/* Returns the name of the n-th folder of members, or NULL if there are not so
 * many. */
const char *ds_members_folder(const struct ds_members *m, uint32_t n);

/* The files that may be members. Initialise this with zeros. */
struct known {
	struct array text;
	struct array files, keys;
	struct table table; /* table of indexes into `keys`, plus 1 */
};

/* A file that may be a member. */
struct known_file {
	uint64_t path; /* offset in `text` */
	uint64_t offset, bytes;
	uint32_t path_bytes, stem_bytes;
	bool used;
};

/* Add the file `dir` + `name`. Returns 0 or -ENOMEM. */
int known_add(struct known *k, const char *dir, const char *name,
	const struct known_file *file);
void known_release(struct known *k);
/* Count the files that are members of no example as skipped; `dir` is put
 * before their names. If `folders` is set, count only files in folders of
 * members. Returns 0 or -ENOMEM. */
int known_skip(
	struct look *l, const struct known *k, const char *dir, bool folders);

/* Return the length of the path without its last suffix, or without all
 * suffixes. */
size_t stem_of_file(const char *path);
size_t stem_of_key(const char *path);

/* Find the members of the example that was added last, and add them to the
 * dataset, with `dir` before their names. Returns 0 or -ENOMEM. */
int ds_members_add(struct look *l, struct known *k, const char *dir,
	const char *path, size_t stem_bytes);
/* Check that for each member, some example has it. If not, returns -ENODATA
 * with a message. */
int ds_members_check(struct look *l);

#endif
