/* SPDX-License-Identifier: MIT */
/*
 * Fills the tables of a dataset, and turns the texts of labels into classes.
 * Called by one thread at a time, the driver of a look.
 */
#include "loader/dataset/dataset_table_impl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

void ds_begin(struct dataset *ds, enum ds_kind kind)
{
	ds->kind = kind;
}

void ds_begin_records(
	struct dataset *ds, uint32_t record_bytes, uint32_t label_bytes)
{
	ds->kind = EXAMPLES_RECORDS;
	ds->record_bytes = record_bytes;
	ds->label_bytes = label_bytes;
}

int ds_add_watch(struct dataset *ds, const char *path, int64_t mtime_ns,
	uint64_t fingerprint)
{
	int64_t at =
		array_text(&ds->section[SECTION_TEXTS], path, strlen(path));
	struct ds_watch *w;

	if (at < 0)
		return -ENOMEM;
	w = array_grow(&ds->section[SECTION_WATCHES], sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct ds_watch){(uint64_t)at, mtime_ns, fingerprint};
	return 0;
}

int ds_add_shard(struct dataset *ds, const char *file, uint64_t bytes)
{
	int64_t at =
		array_text(&ds->section[SECTION_TEXTS], file, strlen(file));
	struct ds_shard *s;

	if (at < 0)
		return -ENOMEM;
	s = array_grow(&ds->section[SECTION_SHARDS], sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct ds_shard){.file = (uint64_t)at, .bytes = bytes};
	return 0;
}

struct ds_shard *ds_shards(struct dataset *ds)
{
	return array_data(&ds->section[SECTION_SHARDS]);
}

uint64_t ds_add_records(struct dataset *ds, uint32_t shard)
{
	struct ds_shard *s = ds_shards(ds) + shard;

	s->first = ds->count;
	ds->count += s->bytes / ds->record_bytes;
	return s->bytes % ds->record_bytes;
}

int ds_set_skipped(struct dataset *ds, uint64_t files, const char *first)
{
	int64_t at = first
		? array_text(&ds->section[SECTION_TEXTS], first, strlen(first))
		: -1;

	ds->skipped.files = files;
	ds->skipped.first_file = at < 0 ? 0 : (uint64_t)at + 1;
	return first && at < 0 ? -ENOMEM : 0;
}

/* Add the name `dir` + `name`, where `dir` is empty or ends with '/'. Returns
 * its offset, or -ENOMEM. */
static int64_t add_name(struct array *names, const char *dir, size_t dir_bytes,
	const char *name)
{
	uint64_t at = array_bytes(names);
	size_t n = strlen(name) + 1;
	char *to = array_grow(names, dir_bytes + n);

	if (!to)
		return -ENOMEM;
	memcpy(to, dir, dir_bytes);
	memcpy(to + dir_bytes, name, n);
	return (int64_t)at;
}

int ds_add_whole(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_whole *whole)
{
	int64_t at =
		add_name(&ds->section[SECTION_NAMES], dir, dir_bytes, name);
	struct ds_whole *w;

	if (at < 0)
		return -ENOMEM;
	w = array_grow(&ds->section[SECTION_EXAMPLES], sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = *whole;
	w->name = (uint64_t)at;
	return 0;
}

int ds_add_part(struct dataset *ds, const char *dir, size_t dir_bytes,
	const char *name, const struct ds_part *part)
{
	int64_t at =
		add_name(&ds->section[SECTION_NAMES], dir, dir_bytes, name);
	struct ds_part *p;

	if (at < 0)
		return -ENOMEM;
	p = array_grow(&ds->section[SECTION_EXAMPLES], sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = *part;
	p->name = (uint64_t)at;
	return 0;
}

int ds_add_member(struct dataset *ds, const char *dir, const char *name,
	const struct ds_member *row)
{
	int64_t at = !name ? 0
			   : add_name(&ds->section[SECTION_MEMBER_NAMES], dir,
				     strlen(dir), name);
	struct ds_member *m = at < 0
		? NULL
		: array_grow(&ds->section[SECTION_MEMBERS], sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = *row;
	m->name = name ? (uint64_t)at + 1 : 0;
	return 0;
}

size_t ds_example_bytes(enum ds_kind kind)
{
	if (kind == EXAMPLES_WHOLE)
		return sizeof(struct ds_whole);
	return kind == EXAMPLES_PART ? sizeof(struct ds_part) : 0;
}

/* -- The fingerprint ------------------------------------------------------- */

/* The values of an example that are hashed. The names are hashed separately. */
struct print {
	uint64_t shard, offset, bytes;
	int64_t label;
};

static struct print print_of(const struct dataset *ds, uint64_t i)
{
	struct example ex;

	dataset_example(ds, i, &ex);
	if (ex.whole) /* without the size: some sources do not know it */
		return (struct print){.label = ex.label};
	return (struct print){ex.shard, ex.offset, ex.bytes, ex.label};
}

static uint64_t print_examples(const struct dataset *ds, uint64_t seed)
{
	struct print block[256];

	for (uint64_t i = 0; i < ds->count;) {
		size_t n = 0;

		while (n < 256 && i < ds->count)
			block[n++] = print_of(ds, i++);
		seed = hash64(block, n * sizeof(block[0]), seed);
	}
	return seed;
}

static uint64_t print_members(const struct dataset *ds, uint64_t seed)
{
	const struct array *rows = &ds->section[SECTION_MEMBERS];
	const struct array *names = &ds->section[SECTION_MEMBER_NAMES];

	seed = hash64(array_data(rows) ? array_data(rows) : "",
		array_bytes(rows), seed);
	return hash64(array_data(names) ? array_data(names) : "",
		array_bytes(names), seed);
}

static uint64_t fingerprint(const struct dataset *ds)
{
	const struct array *names = &ds->section[SECTION_NAMES];
	const struct array *classes = &ds->section[SECTION_CLASSES];
	const struct ds_class *c = array_data(classes);
	const char *texts = array_data(&ds->section[SECTION_TEXTS]);
	uint64_t h = hash64(array_data(names) ? array_data(names) : "",
		array_bytes(names), 1);

	for (uint64_t i = 0; i < array_count(classes, sizeof(*c)); i++)
		h = hash64(texts + c[i].name, c[i].bytes, h ^ c[i].label);
	for (uint32_t i = 0; i < dataset_shards(ds); i++) {
		const char *file = dataset_shard_file(ds, i);

		h = hash64(file, strlen(file), h);
	}
	if (ds->members)
		h = print_members(ds, h);
	if (ds->kind == EXAMPLES_VOLUMES)
		return hash64(array_data(&ds->section[SECTION_EXAMPLES]),
			array_bytes(&ds->section[SECTION_EXAMPLES]), h);
	if (ds->kind == EXAMPLES_WINDOWS)
		return ds_print_windows(ds, h);
	if (ds->kind != EXAMPLES_RECORDS)
		return print_examples(ds, h);
	return hash64(
		(uint64_t[3]){ds->count, ds->record_bytes, ds->label_bytes}, 24,
		h);
}

void ds_finish(struct dataset *ds)
{
	size_t each = ds_example_bytes(ds->kind);

	for (unsigned i = 0; i < SECTIONS; i++)
		array_trim(&ds->section[i]);
	if (each > 0)
		ds->count = array_bytes(&ds->section[SECTION_EXAMPLES]) / each;
	ds->fingerprint = fingerprint(ds);
}

/* -- Labels ---------------------------------------------------------------- */

struct label_entry {
	uint64_t at; /* offset in `text` */
	uint32_t bytes;
	uint32_t label; /* label of the class, set by labels_finish() */
	bool used;	/* an example has this label; set by labels_finish() */
};

static uint32_t labels_count(const struct labels *l)
{
	return (uint32_t)(array_count(&l->entry, sizeof(struct label_entry)));
}

static struct label_entry *label_at(const struct labels *l, uint32_t i)
{
	return (struct label_entry *)array_data(&l->entry) + i;
}

static const char *label_text(
	const struct labels *l, const struct label_entry *e)
{
	return (const char *)array_data(&l->text) + e->at;
}

static uint32_t label_hash(const void *labels, uint32_t n)
{
	const struct label_entry *e = label_at(labels, n - 1);

	return (uint32_t)hash64(label_text(labels, e), e->bytes, 0);
}

int32_t labels_add(struct labels *l, const char *text, size_t bytes)
{
	struct label_entry *e;
	int64_t at;

	TABLE_FOREACH(n, &l->table, (uint32_t)hash64(text, bytes, 0)) {
		e = label_at(l, n - 1);
		if (e->bytes == bytes &&
			memcmp(label_text(l, e), text, bytes) == 0)
			return (int32_t)n - 1;
	}
	at = array_text(&l->text, text, bytes);
	e = at < 0 ? NULL : array_grow(&l->entry, sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct label_entry){(uint64_t)at, (uint32_t)bytes, 0, false};
	if (table_add(&l->table, labels_count(l), label_hash, l) < 0)
		return -ENOMEM;
	return (int32_t)labels_count(l) - 1;
}

void labels_release(struct labels *l)
{
	array_release(&l->text);
	array_release(&l->entry);
	table_release(&l->table);
}

/* Parse a number below 2^31 without leading zeros. */
static bool parse_label(const char *text, size_t bytes, uint32_t *out)
{
	uint64_t v = 0;

	if (bytes == 0 || bytes > 10 || (bytes > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*out = (uint32_t)v;
	return v <= INT32_MAX;
}

static bool all_numbers(struct labels *l)
{
	for (uint32_t i = 0; i < labels_count(l); i++) {
		struct label_entry *e = label_at(l, i);

		if (!parse_label(label_text(l, e), e->bytes, &e->label))
			return false;
	}
	return true;
}

static int by_number(const void *a, const void *b, void *arg)
{
	const struct labels *l = arg;
	uint32_t x = label_at(l, *(const uint32_t *)a)->label;
	uint32_t y = label_at(l, *(const uint32_t *)b)->label;

	return x < y ? -1 : x > y;
}

static int by_text(const void *a, const void *b, void *arg)
{
	const struct labels *l = arg;
	const struct label_entry *x = label_at(l, *(const uint32_t *)a);
	const struct label_entry *y = label_at(l, *(const uint32_t *)b);
	int rc = memcmp(label_text(l, x), label_text(l, y),
		x->bytes < y->bytes ? x->bytes : y->bytes);

	return rc != 0 ? rc : (x->bytes < y->bytes ? -1 : x->bytes > y->bytes);
}

static int add_class(
	struct dataset *ds, const struct labels *l, const struct label_entry *e)
{
	int64_t at = array_text(
		&ds->section[SECTION_TEXTS], label_text(l, e), e->bytes);
	struct ds_class *c;

	if (at < 0)
		return -ENOMEM;
	c = array_grow(&ds->section[SECTION_CLASSES], sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct ds_class){(uint64_t)at, e->bytes, e->label};
	return 0;
}

int labels_number(struct labels *l, struct dataset *ds, bool numeric)
{
	uint32_t n = labels_count(l);
	CLEANUP_FREE uint32_t *order = calloc(n ? n : 1, sizeof(*order));
	int rc = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	numeric = numeric && all_numbers(l);
	qsort_r(order, n, sizeof(*order), numeric ? by_number : by_text, l);
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct label_entry *e = label_at(l, order[i]);

		if (!numeric)
			e->label = i;
		rc = add_class(ds, l, e);
	}
	return rc;
}

void labels_replace(const struct labels *l, int32_t *label)
{
	struct label_entry *e;

	if (*label < 0)
		return;
	e = label_at(l, (uint32_t)*label);
	e->used = true;
	*label = (int32_t)e->label;
}

static void relabel_examples(const struct labels *l, struct dataset *ds)
{
	struct array *t = &ds->section[SECTION_EXAMPLES];
	struct ds_whole *whole = array_data(t);
	struct ds_part *part = array_data(t);

	if (ds->kind == EXAMPLES_WHOLE)
		for (uint64_t i = 0; i < array_count(t, sizeof(*whole)); i++)
			labels_replace(l, &whole[i].label);
	else
		for (uint64_t i = 0; i < array_count(t, sizeof(*part)); i++)
			labels_replace(l, &part[i].label);
}

static int by_label(const void *key, const void *class)
{
	uint32_t x = *(const uint32_t *)key;
	uint32_t y = ((const struct ds_class *)class)->label;

	return x < y ? -1 : x > y;
}

static void note_unused(const struct labels *l, struct dataset *ds)
{
	const struct array *classes = &ds->section[SECTION_CLASSES];
	const struct ds_class *c;
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < labels_count(l); i++) {
		const struct label_entry *e = label_at(l, i);

		if (e->used)
			continue;
		ds->skipped.classes++;
		first = e->label < first ? e->label : first;
	}
	if (ds->skipped.classes == 0)
		return;
	c = bsearch(&first, array_data(classes),
		array_count(classes, sizeof(*c)), sizeof(*c), by_label);
	ds->skipped.first_class = c->name + 1;
}

int labels_finish(struct labels *l, struct dataset *ds, bool numeric)
{
	int rc = labels_number(l, ds, numeric);

	if (rc == 0) {
		relabel_examples(l, ds);
		note_unused(l, ds);
	}
	labels_release(l);
	return rc;
}
