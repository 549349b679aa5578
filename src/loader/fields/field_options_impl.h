/* SPDX-License-Identifier: MIT */
/*
 * The tables of kinds and of options of fields. The parser, the canonical text
 * and the messages come from them. Constant.
 */
#ifndef FIELDS_FIELD_OPTIONS_IMPL_H
#define FIELDS_FIELD_OPTIONS_IMPL_H

#include "loader/fields/fields.h"

struct field_kind {
	int kind; /* enum refrain_kind */
	const char *name;
	const char *suffixes; /* of members that are of this kind: " a b " */
	uint32_t max;	      /* the default; 0: has no rows */
	/* Where members are by default, as in dataset_options.members. They
	 * must not claim all PNGs, which may be the images. */
	const char *places;
};

enum option_type {
	OPTION_FLAG,  /* bool */
	OPTION_COUNT, /* uint32_t */
	OPTION_REAL,  /* double */
	OPTION_WORD,  /* int: the number in `words` */
	OPTION_PAIRS, /* twin[] */
};

struct field_option {
	const char *name;
	uint32_t kinds; /* bits, 1 << kind; 0: all */
	enum option_type type;
	size_t offset;	   /* in struct field_def */
	const char *words; /* "a|b" */
	double least, most;
	double fallback; /* the default, but for `max` */
};

/* NULL behind the last one. */
const struct field_kind *field_kind_at(unsigned i);
const struct field_kind *field_kind_of(int kind);
const struct field_option *field_option_at(unsigned i);

bool field_option_fits(const struct field_option *o, int kind);

/* Set the defaults of a kind. */
void field_defaults(struct field_def *f, int kind);

/* The number of a word in "a|b", or -1; and the n-th word. */
int field_word_find(const char *words, const char *word, size_t bytes);
const char *field_word_at(const char *words, int n, size_t *bytes);

#endif
