/* SPDX-License-Identifier: MIT */
/* Parses the text of a mix. No state; any thread. */
#include "loader/core/mix_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* State of a parse. */
struct mix_parse {
	const char *start, *at;
	struct mix_text *mix;
	struct error *err;
};

static int mix_wrong(struct mix_parse *p, const char *at, const char *what)
{
	size_t bytes = strcspn(at, BLANKS ";");

	return error_set(p->err, -EINVAL, "mix, at byte %zu ('%.*s'): %s",
		(size_t)(at - p->start) + 1, bytes < 64 ? (int)bytes : 64, at,
		what);
}

/* Read digits. Returns false if there are none, or if the number is above
 * `max`. */
static bool take_whole(const char **at, uint64_t max, uint64_t *value)
{
	const char *begin = *at;

	for (*value = 0; **at >= '0' && **at <= '9'; ++*at) {
		*value = *value * 10 + (uint64_t)(**at - '0');
		if (*value > max)
			return false;
	}
	return *at > begin;
}

/* Copy a quoted name, which begins at p->at. Returns NULL if its end is
 * missing, or if there is no memory. */
static char *take_quoted(struct mix_parse *p)
{
	char *name = malloc(strlen(p->at)), *to = name;
	const char *from = p->at + 1;

	if (!name)
		return NULL;
	for (; *from && *from != '"'; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
	if (!*from) {
		free(name);
		return NULL;
	}
	p->at = from + 1;
	return name;
}

/* "web/" is the directory "web". */
static void trim_slashes(char *name)
{
	size_t n = strlen(name);

	while (n > 1 && name[n - 1] == '/')
		name[--n] = '\0';
}

/* Returns the number of this name, or -1 if there are too many names. Takes
 * `name`. */
static int name_number(struct mix_text *mix, char *name, bool classes)
{
	for (unsigned i = 0; i < mix->names; i++)
		if (mix->name[i].classes == classes &&
			strcmp(mix->name[i].text, name) == 0) {
			free(name);
			return (int)i;
		}
	if (mix->names == MIX_NAMES_MAX) {
		free(name);
		return -1;
	}
	mix->name[mix->names] =
		(struct mix_name){.text = name, .classes = classes};
	return (int)mix->names++;
}

/* Parse NAME=WEIGHT. */
static int take_item(struct mix_parse *p, struct mix_text_stage *stage)
{
	const char *begin = p->at;
	bool quoted = *p->at == '"';
	uint64_t weight;
	char *name;
	int n;

	if (quoted) {
		name = take_quoted(p);
	} else {
		size_t bytes = strcspn(p->at, BLANKS ";:=\"");

		name = strndup(p->at, bytes);
		p->at += bytes;
	}
	if (!name)
		return mix_wrong(p, begin, "this name has no closing quote");
	trim_slashes(name);
	if (!*name || *p->at != '=') {
		free(name);
		return mix_wrong(p, begin, "this is not NAME=WEIGHT");
	}
	n = name_number(p->mix, name, !quoted && strcmp(name, "classes") == 0);
	if (n < 0)
		return mix_wrong(p, begin, "there are too many names");
	if (stage->weight[n] != MIX_NOT_NAMED)
		return mix_wrong(p, begin, "the stage has this name already");
	p->at++;
	if (!take_whole(&p->at, MIX_BLOCK_MAX, &weight) ||
		!strchr(BLANKS ";", *p->at))
		return mix_wrong(
			p, begin, "a weight is a whole number from 0 to 4096");
	stage->weight[n] = (uint32_t)weight;
	return 0;
}

/* Skip blanks. Returns false at the end of the stage. */
static bool in_stage(struct mix_parse *p)
{
	p->at += strspn(p->at, BLANKS);
	return *p->at && *p->at != ';';
}

static int take_epoch(struct mix_parse *p, struct mix_text_stage *stage)
{
	const char *begin;

	(void)in_stage(p);
	begin = p->at;
	if (!take_whole(&p->at, UINT32_MAX, &stage->epoch) || *p->at != ':') {
		p->at = begin;
		stage->epoch = 0;
		if (p->mix->stages > 0)
			return mix_wrong(p, begin,
				"a further stage begins with its first epoch "
				"and ':'");
		return 0;
	}
	p->at++;
	if (p->mix->stages == 0 && stage->epoch)
		return mix_wrong(p, begin, "the first stage begins at epoch 0");
	if (p->mix->stages > 0 && stage->epoch <= stage[-1].epoch)
		return mix_wrong(p, begin,
			"a stage must begin at a later epoch than the stage "
			"before it");
	return 0;
}

static int take_stage_text(struct mix_parse *p)
{
	struct mix_text *mix = p->mix;
	struct mix_text_stage *stage = &mix->stage[mix->stages];
	uint64_t sum = 0;
	const char *begin = p->at;
	int rc;

	if (mix->stages == MIX_STAGES_MAX)
		return mix_wrong(p, begin, "there are too many stages");
	/* no part of this stage is named yet */
	memset(stage->weight, 0xff, sizeof(stage->weight));
	rc = take_epoch(p, stage);
	while (rc == 0 && in_stage(p))
		rc = take_item(p, stage);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < mix->names; i++)
		sum += stage->weight[i] == MIX_NOT_NAMED ? 0 : stage->weight[i];
	if (!sum || sum > MIX_BLOCK_MAX)
		return mix_wrong(p, begin,
			"the weights of a stage must add up to 1 to 4096");
	mix->stages++;
	return 0;
}

int mix_text_parse(struct mix_text **out, const char *text, struct error *err)
{
	struct mix_text *mix = calloc(1, sizeof(*mix));
	struct mix_parse p = {
		.start = text, .at = text, .mix = mix, .err = err};
	int rc;

	if (!mix)
		return error_set(err, -ENOMEM, "no memory for the mix");
	do {
		rc = take_stage_text(&p);
	} while (rc == 0 && *p.at++ == ';');
	if (rc == 0)
		*out = mix;
	else
		mix_text_free(mix);
	return rc;
}

void mix_text_free(struct mix_text *mix)
{
	for (unsigned i = 0; mix && i < mix->names; i++)
		free(mix->name[i].text);
	free(mix);
}
