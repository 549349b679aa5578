/* SPDX-License-Identifier: MIT */
/* The tables of the kinds and the options of fields. The parser, the canonical
 * text and the messages use them. Constant. */
#ifndef FIELDS_FIELD_OPTIONS_IMPL_H
#define FIELDS_FIELD_OPTIONS_IMPL_H

#include "loader/fields/fields.h"

struct field_kind {
	int kind; /* enum refrain_kind */
	const char *name;
	/* suffixes of the members that have this kind, in the form " a b " */
	const char *suffixes;
	uint32_t max; /* default of the option `max`; 0: the kind has no rows */
	/* Default places of the member, in the form of dataset_options.members.
	 * They must not include all PNGs, because the images may be PNGs. */
	const char *places;
};

enum option_type {
	OPTION_FLAG,  /* stored as bool */
	OPTION_COUNT, /* stored as uint32_t */
	OPTION_REAL,  /* stored as double */
	OPTION_WORD,  /* stored as int, the number of the word in `words` */
	OPTION_SIDES, /* stored in the array `array.crop` */
	OPTION_PAIRS, /* stored in the array `twin` */
};

struct field_option {
	const char *name;
	/* kinds that have the option, as bits 1 << kind; 0: all kinds */
	uint32_t kinds;
	enum option_type type;
	/* offset of the option's value in struct field_def */
	size_t offset;
	const char *words; /* allowed words, in the form "a|b" */
	double least, most;
	/* default value; the default of `max` depends on the kind */
	double fallback;
};

/* Returns the n-th kind; NULL after the last one. */
const struct field_kind *field_kind_at(unsigned i);
const struct field_kind *field_kind_of(int kind);
const struct field_option *field_option_at(unsigned i);

bool field_option_fits(const struct field_option *o, int kind);

/* Set all options to the defaults of a kind. */
void field_defaults(struct field_def *f, int kind);

/* The first returns the number of a word in "a|b", or -1; the second writes the
 * n-th word. */
int field_word_find(const char *words, const char *word, size_t bytes);
const char *field_word_at(const char *words, int n, size_t *bytes);

#endif
