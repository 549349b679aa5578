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
	WORD_NUMBER, /* uint64_t; decimal, or hexadecimal after 0x */
	WORD_SIZE,   /* uint64_t: bytes, as in common/base/size.h */
	WORD_TIME,   /* uint64_t: ns; 500us, 20ms, 1.5s */
	WORD_SHARE,  /* double, 0 to 1 */
	WORD_TEXT,   /* char[WORD_TEXT_BYTES] */
};

#define WORD_TEXT_BYTES 256u

struct word_def {
	const char *name; /* NULL ends the table */
	enum word_kind kind;
	size_t offset; /* offset of the field in *out */
};

/* Set the fields of the words in the text. Returns -EINVAL, -ERANGE or -ENOMEM
 * with the message in err. */
int words_parse(void *out, const struct word_def *table, const char *text,
	struct error *err);

#endif
