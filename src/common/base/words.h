/* SPDX-License-Identifier: MIT */
/*
 * Parses comma-separated lists of NAME=VALUE, such as the faults of an origin,
 * by a table of the known names. No state.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stddef.h>

#include "common/base/err.h"

enum word_kind {
	WORD_NUMBER, /* uint64_t; decimal, or hexadecimal with 0x */
	WORD_SIZE,   /* uint64_t: bytes, as in common/base/size.h */
	/* uint64_t: nanoseconds, from a text such as 500us, 20ms or 1.5s */
	WORD_TIME,
	WORD_SHARE, /* double, from 0 to 1 */
	WORD_TEXT,  /* char[WORD_TEXT_BYTES] */
};

#define WORD_TEXT_BYTES 256u

struct word_def {
	const char *name; /* name of the word; NULL ends the table */
	enum word_kind kind;
	size_t offset; /* offset of the field in *out */
};

/* Set a field of *out for each NAME=VALUE in the text. Returns 0; or -EINVAL,
 * -ERANGE or -ENOMEM with the message in err. */
int words_parse(void *out, const struct word_def *table, const char *text,
	struct error *err);

#endif
