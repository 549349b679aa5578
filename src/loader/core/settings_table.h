/* SPDX-License-Identifier: MIT */
/*
 * The table of the members of struct refrain_config. For each member it has the
 * name, the form as text, the default, the limits, and how a saved state
 * depends on it. Checks, refrain_config_set(), the options of the commands, the
 * keywords of the language bindings and saved states all use this table. It is
 * constant.
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
	KIND_POINTER, /* a pointer of any other type */
};

/* How a saved state depends on a member. */
enum member_saved {
	SAVED_UNSAID = 0, /* the row does not say: a mistake in the table */
	SAVED_NOT,	  /* the stream of batches does not depend on it */
	SAVED_DATASET,	  /* it is part of the fingerprint of the dataset */
	SAVED_SCHEDULE,	  /* the schedule saves and compares it */
	SAVED_HASH, /* SAVED_HASH + n: it is in the n-th hash of a state */
};

/* The number of hashes in a state. Add a new hash at the end, because older
 * states have only the first ones. */
#define SAVED_HASHES 25

/* A type in addition to those of enum refrain_member_type. Members of this type
 * cannot be set from text: functions and arrays, for example, and members that
 * are private to the library. */
#define MEMBER_OTHER (-1)

struct member {
	const char *name, *arg, *help;
	int32_t type; /* enum refrain_member_type, or MEMBER_OTHER */
	enum member_kind kind;
	size_t offset, bytes;
	uint32_t bit; /* REFRAIN_MEMBER_FLAG: the bit in `flags` */
	int saved;    /* enum member_saved, or SAVED_HASH + n */
	/* The default, which replaces 0, and the limits, which apply after
	 * that. Used for all kinds of numbers except KIND_U64. */
	double fallback, min, max;
};

/* Returns the n-th row, or NULL. The members of the struct come first, in the
 * order of the struct, then the flags, then names that set several members,
 * such as `size`. */
const struct member *member_at(size_t n);

/* Returns the row of the member with this name, in which '-' means '_'. Returns
 * NULL if no member that can be set from text has this name. */
const struct member *member_find(const char *name);

/* Returns the row of the member in the n-th hash of a saved state, or NULL. */
const struct member *member_of_hash(size_t n);

/* Returns how many numbers a member holds, such as 3 for `mean`. */
uint32_t member_count(const struct member *m);

/* The bits that are defined for `flags`, and those of them that are hashed in a
 * saved state. */
uint32_t member_flags_known(void);
uint32_t member_flags_hashed(void);

/* Replace zeros by defaults and check limits. Returns 0, or -EINVAL with the
 * name of the wrong member in err. */
int members_check(struct refrain_config *c, struct error *err);

/* Check the numbers of one member. A 0 is accepted, because it means the
 * default. Returns 0 or -EINVAL. */
int member_check(const struct refrain_config *c, const struct member *m,
	struct error *err);

#endif
