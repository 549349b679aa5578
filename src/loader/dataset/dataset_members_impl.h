/* SPDX-License-Identifier: MIT */
/*
 * The members of examples: files that belong to an image besides it. A look
 * collects the files that may be members in a struct known, then finds those of
 * each example there. dataset.h describes the text that names them.
 */
#ifndef DATASET_MEMBERS_IMPL_H
#define DATASET_MEMBERS_IMPL_H

#include "common/base/array.h"
#include "common/base/table.h"
#include "loader/dataset/dataset_look_impl.h"

#define MEMBERS_WORDS_MAX 32

/* One way to find a member. */
struct member_word {
	const char *folder; /* "": beside the image */
	const char *suffix; /* "": any */
	uint32_t member;
};

struct ds_members {
	uint32_t count;
	uint32_t words_n;
	struct member_word words[MEMBERS_WORDS_MAX]; /* by member, best first */
	uint64_t found[DATASET_PARTS_MAX];	     /* examples that have it */
	char text[];
};

/* Parse the text. Returns -EINVAL or -ENOMEM with err set. */
int ds_members_parse(
	struct ds_members **out, const char *text, struct error *err);

/* Is a file with this path, relative to the dataset, never an example, because
 * it may be a member? */
bool ds_members_claim(const struct ds_members *m, const char *path);
/* Does a file with this path lie below a folder of members? */
bool ds_members_below(const struct ds_members *m, const char *path);
/* Do the members of the examples lie in folders of this name? */
bool ds_members_in_folder(const struct ds_members *m, const char *folder);
/* The names of the folders; NULL from the n-th on. */
const char *ds_members_folder(const struct ds_members *m, uint32_t n);

/* Files that may be members. Begin with a zeroed struct. */
struct known {
	struct array text;
	struct array files, keys;
	struct table table; /* of keys' numbers + 1 */
};

/* A file that is kept. The path without its end is that of its example. */
struct known_file {
	uint64_t path; /* in the text */
	uint64_t offset, bytes;
	uint32_t path_bytes, stem_bytes;
	bool used;
};

/* Add "DIR" + "NAME". Returns 0 or -ENOMEM. */
int known_add(struct known *k, const char *dir, const char *name,
	const struct known_file *file);
void known_release(struct known *k);
/* Count the files that no example uses; their names begin with `dir`. Those
 * beside images are left out if `folders`. Returns 0 or -ENOMEM. */
int known_skip(
	struct look *l, const struct known *k, const char *dir, bool folders);

/* Length of the path without the last suffix, or without all of them. */
size_t stem_of_file(const char *path);
size_t stem_of_key(const char *path);

/* Find the members of an example that was just added, and add them to the
 * dataset with names that begin with `dir`. Returns 0 or -ENOMEM. */
int ds_members_add(struct look *l, struct known *k, const char *dir,
	const char *path, size_t stem_bytes);
/* Returns -ENODATA with a message if no example has one of the members. */
int ds_members_check(struct look *l);

#endif
