/* SPDX-License-Identifier: MIT */
/*
 * Finds the examples of each part of a mix. A part is named by one of several
 * datasets, by a class, or by a directory, shard or file of a dataset. One walk
 * over the dataset finds the examples of a class by their labels, and the
 * examples of other parts by their names. If the examples of a part have
 * consecutive numbers, as those of a directory have, only the first number is
 * kept. A mixture does not change after it was made.
 */
#include "loader/engine/engine_mix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "loader/core/mix_text.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/engine_bucket.h"

#define NO_PART UINT32_MAX

/* A part while its examples are collected. */
struct mixture_part {
	/* NULL: the examples are found by their label. "": all examples of
	 * [begin, end) */
	const char *name;
	size_t name_bytes;
	uint64_t begin, end; /* the examples that may belong to it */
	unsigned from;	     /* number of the part's name in the text */
	bool is_class;
	uint32_t *members;
	size_t count, room;
};

struct mixture {
	struct part_mix *mix; /* NULL: there are buckets */
	struct buckets *buckets;
	uint32_t *lengths; /* of all examples, for the buckets */
	struct mixture_part *parts;
	uint32_t part_count;
	size_t bytes;
};

/* What is needed only while a mixture is made. */
struct mixing {
	struct mix_text *text;
	const struct dataset *dataset;
	struct mixture *mixture;
	/* for each label, its part; NO_PART: the class is not a part */
	uint32_t *part_of_label;
	uint64_t labels;
	size_t part_room;
	/* number of parts before those that the name `classes` adds */
	uint32_t named;
	struct error *err;
};

/* --- parts --- */

static struct mixture_part *mixture_add_part(struct mixing *m, unsigned from)
{
	struct mixture *mixture = m->mixture;
	struct mixture_part *part;

	if (ARRAY_ROOM(mixture->parts, mixture->part_count, &m->part_room) < 0)
		return NULL;
	part = &mixture->parts[mixture->part_count++];
	*part = (struct mixture_part){.from = from};
	return part;
}

static uint64_t label_of_class(const struct mixing *m, const char *name)
{
	for (uint64_t label = 0; label < m->labels; label++) {
		size_t bytes;
		const char *class =
			dataset_class_name(m->dataset, label, &bytes);

		if (class && bytes == strlen(name) &&
			memcmp(class, name, bytes) == 0)
			return label;
	}
	return UINT64_MAX;
}

/* Does the name begin with the end of the path, as "b" or "b/class" does with
 * "/a/b"? Returns the rest of the name, or NULL. */
static const char *after_path(const char *path, const char *name)
{
	size_t bytes = strlen(path);

	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--; /* "/a/b/" is "/a/b" */
	for (size_t from = bytes; from-- > 0;) {
		size_t n = bytes - from;

		if ((from == 0 || path[from - 1] == '/') &&
			strncmp(name, path + from, n) == 0 &&
			(!name[n] || name[n] == '/'))
			return name + n + (name[n] == '/');
	}
	return NULL;
}

/* Find the dataset that a name means, if there are several. Returns 1, 0 if it
 * means none, or -EINVAL if it may mean two. */
static int find_dataset(
	const struct mixing *m, const char *name, struct mixture_part *part)
{
	uint32_t n = dataset_joined_count(m->dataset);
	bool found = false;

	part->end = dataset_count(m->dataset);
	for (uint32_t i = 0; n > 1 && i < n; i++) {
		struct dataset_joined one;
		const char *rest;

		dataset_joined(m->dataset, i, &one);
		rest = after_path(one.path, name);
		if (!rest)
			continue;
		if (found)
			return error_set(m->err, -EINVAL,
				"mix: '%s' may be two of the datasets: name "
				"more of the path",
				name);
		found = true;
		part->begin = one.begin;
		part->end = one.begin + one.count;
		part->name = rest;
		part->name_bytes = strlen(rest);
	}
	return found;
}

/* Add the part for a name that is not `classes`. */
static int add_named(struct mixing *m, unsigned from)
{
	const char *name = m->text->name[from].text;
	uint64_t label = label_of_class(m, name);
	struct mixture_part *part = mixture_add_part(m, from);
	int rc = part ? find_dataset(m, name, part) : -ENOMEM;

	if (rc)
		return rc < 0 ? rc : 0;
	part->is_class = label != UINT64_MAX;
	if (part->is_class) {
		m->part_of_label[label] = m->mixture->part_count - 1;
		return 0;
	}
	part->name = name;
	part->name_bytes = strlen(name);
	return 0;
}

/* Add a part for each class that no other name stands for. */
static int add_class_parts(struct mixing *m, unsigned from)
{
	for (uint64_t label = 0; label < m->labels; label++) {
		if (m->part_of_label[label] != NO_PART ||
			!dataset_class_name(m->dataset, label, NULL))
			continue;
		if (!mixture_add_part(m, from))
			return -ENOMEM;
		m->part_of_label[label] = m->mixture->part_count - 1;
	}
	return 0;
}

static int add_parts(struct mixing *m)
{
	const struct mix_name *name = m->text->name;
	unsigned n = m->text->names;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = name[i].classes ? 0 : add_named(m, i);
	m->named = m->mixture->part_count;
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = name[i].classes ? add_class_parts(m, i) : 0;
	return rc;
}

/* --- examples --- */

static int add_example(struct mixture_part *part, uint64_t index)
{
	if (ARRAY_ROOM(part->members, part->count, &part->room) < 0)
		return -ENOMEM;
	part->members[part->count++] = (uint32_t)index;
	return 0;
}

/* Is this the name of the part itself, or of something in it? */
static bool is_in_part(
	const struct mixture_part *part, uint64_t index, const char *name)
{
	if (!part->name || index < part->begin || index >= part->end)
		return false;
	return !*part->name ||
		(strncmp(name, part->name, part->name_bytes) == 0 &&
			(!name[part->name_bytes] ||
				name[part->name_bytes] == '/'));
}

static int add_to_parts(
	const struct mixing *m, uint64_t index, const struct example *e)
{
	struct mixture *mixture = m->mixture;
	uint32_t part = NO_PART;
	int rc = 0;

	if (e->label >= 0 && (uint64_t)e->label < m->labels)
		part = m->part_of_label[e->label];
	if (part != NO_PART)
		rc = add_example(&mixture->parts[part], index);
	for (uint32_t j = 0; rc == 0 && j < m->named; j++)
		if (is_in_part(&mixture->parts[j], index, e->name))
			rc = add_example(&mixture->parts[j], index);
	return rc;
}

/* Remove the classes without examples that `classes` has added. */
static void remove_empty_classes(struct mixing *m)
{
	struct mixture *mixture = m->mixture;
	uint32_t kept = 0;

	for (uint32_t j = 0; j < mixture->part_count; j++) {
		struct mixture_part *part = &mixture->parts[j];

		if (part->count || !m->text->name[part->from].classes)
			mixture->parts[kept++] = *part;
	}
	mixture->part_count = kept;
}

static int collect_examples(struct mixing *m)
{
	uint64_t n = dataset_count(m->dataset);
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct example e;

		dataset_example(m->dataset, i, &e);
		rc = add_to_parts(m, i, &e);
	}
	if (rc < 0)
		return rc;
	remove_empty_classes(m);
	for (uint32_t j = 0; j < m->mixture->part_count; j++) {
		const struct mixture_part *part = &m->mixture->parts[j];

		if (!part->count)
			return error_set(m->err, -EINVAL,
				"mix: no example belongs to '%s': it must be a "
				"class, or a directory, shard or file in the "
				"dataset, or one of several datasets",
				m->text->name[part->from].text);
	}
	return 0;
}

/* --- the mix --- */

/* If the examples have consecutive numbers, keep only the first number. */
static void describe_part(struct mixture *mixture, struct mixture_part *part,
	struct mix_part *out)
{
	uint32_t first = part->members[0];

	*out = (struct mix_part){.examples = part->count, .first = first};
	if (part->members[part->count - 1] - first + 1 == part->count) {
		free(part->members);
		part->members = NULL;
		return;
	}
	out->members = part->members;
	mixture->bytes += part->room * sizeof(*part->members);
}

/* Returns the weight of a part in a stage. A class that the stage does not name
 * has the weight of `classes`. */
static uint32_t weight_of(const struct mixing *m,
	const struct mix_text_stage *stage, const struct mixture_part *part)
{
	uint32_t weight = stage->weight[part->from];

	for (unsigned i = 0;
		weight == MIX_NOT_NAMED && part->is_class && i < m->text->names;
		i++)
		if (m->text->name[i].classes)
			weight = stage->weight[i];
	return weight == MIX_NOT_NAMED ? 0 : weight;
}

static uint32_t *weights_of(
	const struct mixing *m, const struct mix_text_stage *stage)
{
	const struct mixture *mixture = m->mixture;
	uint32_t *weights = calloc(mixture->part_count, sizeof(*weights));

	for (uint32_t j = 0; weights && j < mixture->part_count; j++)
		weights[j] = weight_of(m, stage, &mixture->parts[j]);
	return weights;
}

static int make_mix(struct mixing *m, const struct settings *s)
{
	struct mixture *mixture = m->mixture;
	struct mix_stage stages[MIX_STAGES_MAX];
	uint32_t *weights[MIX_STAGES_MAX] = {NULL};
	struct mix_part *parts = calloc(mixture->part_count, sizeof(*parts));
	struct mix_config config = {
		.parts = parts,
		.stages = stages,
		.part_count = mixture->part_count,
		.stage_count = m->text->stages,
		.epoch_examples = s->c.epoch_examples,
		.seed = s->c.seed,
	};
	int rc = parts ? 0 : -ENOMEM;

	for (uint32_t j = 0; rc == 0 && j < mixture->part_count; j++) {
		describe_part(mixture, &mixture->parts[j], &parts[j]);
		if (!s->c.epoch_examples)
			config.epoch_examples += parts[j].examples;
	}
	for (unsigned i = 0; rc == 0 && i < m->text->stages; i++) {
		weights[i] = weights_of(m, &m->text->stage[i]);
		stages[i] =
			(struct mix_stage){m->text->stage[i].epoch, weights[i]};
		rc = weights[i] ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = mix_new(&mixture->mix, &config, m->err);
	for (unsigned i = 0; i < m->text->stages; i++)
		free(weights[i]);
	free(parts);
	mixture->bytes += mixture->part_count * 64 * m->text->stages;
	return rc;
}

static int fill_mixture(struct mixing *m, const struct settings *s)
{
	int rc = mix_text_parse(&m->text, s->c.mix, m->err);

	if (rc < 0)
		return rc;
	if (dataset_count(m->dataset) > UINT32_MAX)
		return error_set(m->err, -E2BIG,
			"mix: the dataset has %" PRIu64
			" examples; a mix can have %" PRIu32,
			dataset_count(m->dataset), UINT32_MAX);
	m->labels = dataset_classes(m->dataset);
	m->part_of_label = malloc((m->labels + 1) * sizeof(uint32_t));
	if (!m->part_of_label)
		return -ENOMEM;
	for (uint64_t i = 0; i < m->labels; i++)
		m->part_of_label[i] = NO_PART;
	rc = add_parts(m);
	if (rc == 0 && !m->mixture->part_count)
		rc = error_set(m->err, -EINVAL,
			"mix: 'classes' stands for each class, but the dataset "
			"has none");
	if (rc == 0)
		rc = collect_examples(m);
	return rc == 0 ? make_mix(m, s) : rc;
}

static int fill_buckets(struct mixture *mixture, const struct settings *s,
	const struct dataset *dataset, struct error *err)
{
	int rc = bucket_new(
		s, dataset, &mixture->lengths, &mixture->buckets, err);

	if (rc == 0)
		mixture->bytes = buckets_bytes(mixture->buckets) +
			dataset_count(dataset) * sizeof(*mixture->lengths);
	return rc;
}

static int mixture_new(struct mixture **out, const struct settings *s,
	const struct dataset *dataset, struct error *err)
{
	struct mixing m = {.dataset = dataset, .err = err};
	int rc = -ENOMEM;

	m.mixture = calloc(1, sizeof(*m.mixture));
	if (m.mixture)
		rc = s->c.mix ? fill_mixture(&m, s)
			      : fill_buckets(m.mixture, s, dataset, err);
	if (rc == -ENOMEM)
		rc = error_set(err, rc, "no memory for the %s",
			s->c.mix ? "mix" : "buckets");
	if (rc == 0)
		*out = m.mixture;
	else
		mixture_free(m.mixture);
	mix_text_free(m.text);
	free(m.part_of_label);
	return rc;
}

int mixture_schedule(const struct settings *s, const struct dataset *dataset,
	struct mixture **mixture, struct schedule_config *out,
	struct error *err)
{
	int rc = 0;

	if ((s->c.mix || s->c.bucket) && !*mixture)
		rc = mixture_new(mixture, s, dataset, err);
	if (rc < 0)
		return rc;
	settings_schedule(s, dataset_count(dataset),
		*mixture ? (*mixture)->mix : NULL, out);
	out->buckets = *mixture ? (*mixture)->buckets : NULL;
	return 0;
}

void mixture_free(struct mixture *mixture)
{
	if (!mixture)
		return;
	mix_free(mixture->mix);
	buckets_free(mixture->buckets);
	free(mixture->lengths);
	for (uint32_t j = 0; j < mixture->part_count; j++)
		free(mixture->parts[j].members);
	free(mixture->parts);
	free(mixture);
}

size_t mixture_memory_bytes(const struct mixture *mixture)
{
	return mixture ? mixture->bytes : 0;
}
