/* SPDX-License-Identifier: MIT */
/*
 * The text of a mix, such as "web=9 books=1; 10: web=5 books=5". Stages are
 * separated by ';'. A stage is a list of NAME=WEIGHT, separated by blanks; each
 * stage but the first one begins with the number of its first epoch and ':'. A
 * part that a stage does not name has weight 0 there. A name with blanks or one
 * of ;:=" is written in quotes, with \" and \\ inside. The name `classes`
 * without quotes stands for each class of the dataset that the stage does not
 * name.
 */
#ifndef CORE_MIX_TEXT_H
#define CORE_MIX_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/schedule/mix.h"

#define MIX_NAMES_MAX 256 /* maximum number of names in a text */

struct mix_name {
	char *text;
	bool classes; /* the name stands for each class */
};

/* stands in place of the weight of a part that the stage does not name */
#define MIX_NOT_NAMED UINT32_MAX

struct mix_text_stage {
	uint64_t epoch;
	uint32_t weight[MIX_NAMES_MAX];
};

struct mix_text {
	struct mix_name name[MIX_NAMES_MAX];
	struct mix_text_stage stage[MIX_STAGES_MAX];
	unsigned names, stages;
};

/* Parse a text. Returns 0, -EINVAL with the place of the mistake, or -ENOMEM.
 * On success the caller frees *out. */
int mix_text_parse(struct mix_text **out, const char *text, struct error *err);
void mix_text_free(struct mix_text *mix); /* NULL is allowed */

#endif
