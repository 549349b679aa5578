/* SPDX-License-Identifier: MIT */
/*
 * The fields of an example, as in
 *
 *	image; boxes max=100 keep=centre; text=txt max=512 optional
 *
 * one after the other, each NAME or NAME=MEMBER and then its options. NAME is
 * what the batch calls the field. MEMBER is where it comes from: a suffix in a
 * tar or a folder; without it, what the kind usually has. The kind is that
 * whose name NAME is, or else that of the option `kind`, or else what MEMBER's
 * suffix suggests. Pure functions; any thread.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define FIELDS_MAX 8
#define FIELD_NAME_MAX 32   /* with its NUL */
#define FIELD_MEMBER_MAX 64 /* likewise */
#define FIELD_POINTS_MAX 64 /* of a row */
#define FIELD_ROWS_MAX (1 << 20)
/* Room for any canonical text. */
#define FIELDS_TEXT_MAX 8192

enum field_keep {
	KEEP_CENTRE,  /* boxes whose centre is in the crop */
	KEEP_VISIBLE, /* boxes of which at least min_visible is */
};

struct field_def {
	char name[FIELD_NAME_MAX];
	char member[FIELD_MEMBER_MAX]; /* "": that of the kind */
	int kind;		       /* enum refrain_kind */
	bool optional;		       /* an example may lack it */
	uint32_t max;		       /* rows of a sample; 0: not of rows */

	/* Boxes. */
	int keep;	    /* enum field_keep */
	double min_visible; /* share of a box's area; with KEEP_VISIBLE */
	double min_side;    /* of a box, in pixels of the sample */
	bool crowd;	    /* keep boxes that are of a crowd */

	/* Points. */
	uint32_t points;		/* of a row */
	uint8_t twin[FIELD_POINTS_MAX]; /* the point's place in a mirror */

	/* Masks. */
	int type;      /* enum refrain_type: U8, U16 or I32 */
	uint32_t fill; /* outside of the image */
};

struct fields {
	unsigned count;
	struct field_def field[FIELDS_MAX];
};

/* Returns 0, or -EINVAL with a message that names the place in the text. */
int fields_parse(struct fields *out, const char *text, struct error *err);

/* Write the canonical text, which has every option that is not at its default,
 * in a fixed order. Texts that mean the same have the same one. */
void fields_text(const struct fields *f, char to[FIELDS_TEXT_MAX]);

/* The places where the member of a field may be, in the form of
 * dataset_options.members; "": an image or a class has no member. */
const char *field_places(const struct field_def *f);

#endif
