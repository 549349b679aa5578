/* SPDX-License-Identifier: MIT */
/*
 * The fields of an example: parses texts such as
 *
 * 	image; boxes max=100 keep=centre; text=txt max=512 optional
 *
 * Each field is NAME or NAME=MEMBER, followed by options. NAME is the name of
 * the field in the batch. MEMBER is the suffix of the field's member in a tar
 * or a folder; the default depends on the kind. If a kind is called NAME, the
 * field has that kind. Otherwise the option `kind` gives the kind; without that
 * option, the suffix of MEMBER suggests it. Pure functions; any thread.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define FIELDS_MAX 8
#define FIELD_NAME_MAX 32   /* size of a name, with its NUL */
#define FIELD_MEMBER_MAX 64 /* size of a member, with its NUL */
#define FIELD_POINTS_MAX 64 /* maximum number of points of a row */
#define FIELD_ROWS_MAX (1 << 20)
#define FIELD_TOKENS_MAX (1 << 24)
/* Enough room for any canonical text. */
#define FIELDS_TEXT_MAX 8192

enum field_keep {
	KEEP_CENTRE, /* keep boxes whose centre is in the crop */
	/* keep boxes of which at least min_visible is in the crop */
	KEEP_VISIBLE,
};

/* How files of tokens are cut into windows, which are the examples. */
struct token_windows {
	/* tokens from the beginning of a window to that of the next one of its
	 * file; 0: the dataset has no tokens */
	uint32_t length;
	uint32_t overlap; /* tokens that a window has beyond `length` */
	int from;	  /* type in a .bin: 0 for u8, 1 for u16, 2 for u32 */
	int type;	  /* enum refrain_type in a batch: I32 or I64 */
	bool fixed;	  /* the windows are the same in every pass */
};

/* The crops of arrays, which are the examples. */
struct array_crops {
	/* size of a dimension before the three of the crop; 0: there is none */
	uint32_t channels;
	uint32_t crop[3]; /* depth, height, width */
	int type;	  /* enum refrain_type of the values in the files */
	char kind;	  /* that type as NumPy names it: 'u', 'i' or 'f' */
	uint32_t value_bytes;
};

struct field_def {
	char name[FIELD_NAME_MAX];
	/* suffix of the member; "": the default of the kind */
	char member[FIELD_MEMBER_MAX];
	int kind;      /* enum refrain_kind */
	bool optional; /* an example may lack this field */
	/* maximum number of rows of a sample; 0: the kind has no rows */
	uint32_t max;

	/* Boxes. */
	int keep; /* enum field_keep */
	/* with KEEP_VISIBLE: minimum share of a box's area that is in the crop
	 */
	double min_visible;
	double min_side; /* minimum side of a box, in pixels of the sample */
	bool crowd;	 /* keep boxes that stand for a crowd of objects */

	/* Points. */
	uint32_t points; /* number of points of a row */
	/* for each point, the number of the point that a flip exchanges with it
	 */
	uint8_t twin[FIELD_POINTS_MAX];

	struct token_windows tokens;
	struct array_crops array;

	/* Masks. */
	int type;      /* enum refrain_type: U8, U16 or I32 */
	uint32_t fill; /* id of pixels outside of the image */
};

struct fields {
	unsigned count;
	struct field_def field[FIELDS_MAX];
};

/* Parse a text. Returns 0, or -EINVAL with a message that has the position of
 * the mistake. */
int fields_parse(struct fields *out, const char *text, struct error *err);

/* Write the canonical text, which has all options that differ from their
 * default, in a fixed order. Texts with the same meaning have the same
 * canonical text. */
void fields_text(const struct fields *f, char to[FIELDS_TEXT_MAX]);

/* Returns the possible places of a field's member, in the form of
 * dataset_options.members; "" for an image, tokens, an array or a class, which
 * have no member. */
const char *field_places(const struct field_def *f);

#endif
