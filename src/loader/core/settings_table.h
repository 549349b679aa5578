/* SPDX-License-Identifier: MIT */
/*
 * The table of the members of struct refrain_config: for each of them its
 * name, how it is written as text, its default and limits, and whether a saved
 * state depends on it. Checks, refrain_config_set(), the options of the
 * commands, the keywords of other languages and saved states all come from it.
 * Constant, no state.
 */
#ifndef CORE_SETTINGS_TABLE_H
#define CORE_SETTINGS_TABLE_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* How a member is stored. */
enum member_kind {
	KIND_U32 = 1,
	KIND_I32,
	KIND_U64,
	KIND_F32,
	KIND_F64,
	KIND_TEXT,    /* const char * */
	KIND_POINTER, /* any other */
};

/* How a saved state depends on a member. */
enum member_saved {
	SAVED_UNSAID = 0, /* not set: a mistake in the table */
	SAVED_NOT,	  /* the stream is the same with any value */
	SAVED_DATASET,	  /* part of the fingerprint of the dataset */
	SAVED_SCHEDULE,	  /* the schedule saves and compares it */
	SAVED_HASH,	  /* + n: the n-th hash of a state */
};

/* The hashes in a state. A new one goes to the end: old states lack it. */
#define SAVED_HASHES 21

/* A type in addition to those of enum refrain_member_type. It is used for
 * members that cannot be set from text, such as functions, and for members that
 * are private to the library. */
#define MEMBER_OTHER (-1)

struct member {
	const char *name, *arg, *help;
	int32_t type; /* enum refrain_member_type, or MEMBER_OTHER */
	enum member_kind kind;
	size_t offset, bytes;
	uint32_t bit; /* REFRAIN_MEMBER_FLAG: in `flags` */
	int saved;    /* enum member_saved */
	/* For numbers of all kinds but KIND_U64: the value that 0 stands for,
	 * and the limits, which apply after 0 has been replaced. */
	double fallback, min, max;
};

/* The n-th row, or NULL. The members of the struct come first, in its order,
 * then the flags, then the names that stand for several members. */
const struct member *member_at(size_t n);

/* The row of the member with this name ('-' stands for '_'). NULL: no member
 * that can be set from text has it. */
const struct member *member_find(const char *name);

/* The row of the n-th hash of a saved state, or NULL. */
const struct member *member_of_hash(size_t n);

/* The count of numbers in a member, such as 3 for `mean`. */
uint32_t member_count(const struct member *m);

/* The bits that flags may have, and those that the hash of flags is made of. */
uint32_t member_flags_known(void);
uint32_t member_flags_hashed(void);

/* Replace zeros by defaults and check limits. Returns 0, or -EINVAL with the
 * name of the member that is wrong. */
int members_check(struct refrain_config *c, struct error *err);

/* Check the numbers of one member; 0 stands for the default. -EINVAL. */
int member_check(const struct refrain_config *c, const struct member *m,
	struct error *err);

#endif
