/* SPDX-License-Identifier: MIT */
/*
 * Scans tar shards. For each shard, a worker reads the headers and groups the
 * members by their base names, as WebDataset does. Then the driver adds the
 * examples of all shards to the tables, in order.
 */
#include "loader/dataset/dataset_members_impl.h"
#include "loader/dataset/tarfile_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

#define LABEL_FILE_MAX 255 /* maximum size of a .cls member, in bytes */

/* How well a member is suited as the image of its sample. */
enum fit {
	FIT_NOT,
	FIT_SUFFIX, /* NAME.seg.jpg */
	FIT_EXACT,  /* NAME.jpg */
};

/* The members with one base name. */
struct sample {
	uint64_t base, label; /* offsets in the shard's text */
	/* offset of the name of the image or, without one, of the first member
	 */
	uint64_t name;
	uint32_t base_bytes, label_bytes;
	enum fit fit; /* how well the member at `offset` is suited */
	uint64_t offset, bytes;
	bool has_label; /* there is a .cls, which may be empty */
};

struct shard {
	int64_t mtime_ns;
	uint64_t size;
	struct array text, samples;
	struct table table; /* table of indexes into `samples`, plus 1 */
	struct known known; /* files that may be members of samples */
};

struct shards {
	struct shard *shard;
	uint32_t n;
	bool has_labels; /* at least one sample has a .cls */
};

/* -- Base names ------------------------------------------------------------ */

static uint64_t sample_count(const struct shard *s)
{
	return array_count(&s->samples, sizeof(struct sample));
}

static struct sample *sample_at(const struct shard *s, uint32_t n)
{
	return (struct sample *)array_data(&s->samples) + (n - 1);
}

static const char *base_name(const struct shard *s, const struct sample *sample)
{
	return (const char *)array_data(&s->text) + sample->base;
}

static uint32_t sample_hash(const void *shard, uint32_t n)
{
	const struct sample *sample = sample_at(shard, n);

	return (uint32_t)hash64(
		base_name(shard, sample), sample->base_bytes, 0);
}

/* Find the sample with this base name, or add one, whose first member is
 * `name`. The pointer is valid until the next call. Returns NULL if memory has
 * run out. */
static struct sample *sample_of(
	struct shard *s, const char *base, size_t n, const char *name)
{
	struct sample *sample;
	int64_t at, name_at;

	TABLE_FOREACH(i, &s->table, (uint32_t)hash64(base, n, 0)) {
		sample = sample_at(s, i);
		if (sample->base_bytes == n &&
			memcmp(base_name(s, sample), base, n) == 0)
			return sample;
	}
	at = array_text(&s->text, base, n);
	name_at = array_text(&s->text, name, strlen(name));
	sample = at < 0 || name_at < 0
		? NULL
		: array_grow(&s->samples, sizeof(*sample));
	if (!sample)
		return NULL;
	*sample = (struct sample){.base = (uint64_t)at,
		.base_bytes = (uint32_t)n,
		.name = (uint64_t)name_at};
	if (table_add(&s->table, (uint32_t)sample_count(s), sample_hash, s) < 0)
		return NULL;
	return sample;
}

/* -- Members --------------------------------------------------------------- */

/* Returns the part of a name after the first dot, or "". */
static const char *extension(const char *last)
{
	const char *dot = strchr(last, '.');

	return dot ? dot + 1 : "";
}

static bool is_jpeg(const char *ext)
{
	return strcasecmp(ext, "jpg") == 0 || strcasecmp(ext, "jpeg") == 0;
}

static enum fit fit_of(const struct look *l, const char *ext)
{
	const char *dot = strrchr(ext, '.');

	if (l->any_file)
		return strcmp(ext, "cls") != 0 && strcmp(ext, "txt") != 0 &&
				strcmp(ext, "json") != 0
			? FIT_EXACT
			: FIT_NOT;
	if (is_jpeg(ext))
		return FIT_EXACT;
	return dot && is_jpeg(dot + 1) ? FIT_SUFFIX : FIT_NOT;
}

static bool is_space(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int take_member_label(struct shard *s, struct tar_reader *t,
	struct sample *to, const struct tar_member *m)
{
	const unsigned char *text;
	size_t n = (size_t)m->bytes;
	int64_t at;
	int rc;

	if (m->bytes > LABEL_FILE_MAX)
		return look_fail(t->l, -EBADMSG,
			"'%s': the label '%s' is over 255 bytes", t->file,
			m->name);
	rc = tar_bytes(t, m->offset, n, &text);
	if (rc < 0)
		return rc;
	while (n > 0 && is_space(text[n - 1]))
		n--;
	while (n > 0 && is_space(text[0]))
		text++, n--;
	at = array_text(&s->text, (const char *)text, n);
	if (at < 0)
		return -ENOMEM;
	to->label = (uint64_t)at;
	to->label_bytes = (uint32_t)n;
	to->has_label = true;
	return 0;
}

static int take_image(struct shard *s, struct sample *to,
	const struct tar_member *m, enum fit fit)
{
	int64_t at = array_text(&s->text, m->name, strlen(m->name));

	if (at < 0)
		return -ENOMEM;
	to->name = (uint64_t)at;
	to->offset = m->offset;
	to->bytes = m->bytes;
	to->fit = fit;
	return 0;
}

static bool is_hidden_member(const char *name)
{
	return name[0] == '.' || strstr(name, "/.");
}

/* Skip slashes and the "./" that `tar c .` writes at the beginning of a name. A
 * "/./" within a name was chosen by the user and stays. */
static const char *plain_name(const char *name)
{
	for (;;) {
		if (strncmp(name, "./", 2) == 0)
			name += 2;
		else if (name[0] == '/')
			name++;
		else
			return name;
	}
}

static int take_part(struct shard *s, const struct tar_member *m)
{
	const struct known_file f = {.offset = m->offset,
		.bytes = m->bytes,
		.stem_bytes = (uint32_t)stem_of_key(m->name)};

	return known_add(&s->known, "", m->name, &f);
}

static int take_member(
	struct shard *s, struct tar_reader *t, struct tar_member *m)
{
	const char *last, *ext;
	enum fit fit;
	struct sample *sample;
	bool part;

	m->name = plain_name(m->name);
	if (m->name[0] == '\0' || is_hidden_member(m->name))
		return 0;
	last = strrchr(m->name, '/');
	last = last ? last + 1 : m->name;
	ext = extension(last);
	part = ds_members_claim(t->l->members, m->name);
	fit = part ? FIT_NOT : fit_of(t->l, ext);
	if (part && take_part(s, m) < 0)
		return -ENOMEM;
	if (ds_members_below(t->l->members, m->name))
		return 0; /* a file in a folder of members is not a sample */
	sample = sample_of(s, m->name,
		(size_t)(last - m->name) + strcspn(last, "."), m->name);
	if (!sample)
		return -ENOMEM;
	if (fit == FIT_NOT)
		return strcmp(ext, "cls") == 0
			? take_member_label(s, t, sample, m)
			: 0;
	return fit > sample->fit ? take_image(s, sample, m, fit) : 0;
}

static int read_shard(struct look *l, struct shard *s, const char *file, int fd)
{
	struct tar_reader t;
	struct tar_member m;
	int rc;

	tar_begin(&t, l, file, fd, s->size);
	while ((rc = tar_next(&t, &m)) > 0) {
		rc = take_member(s, &t, &m);
		if (rc < 0)
			break;
	}
	tar_release(&t);
	return rc;
}

static int shard_main(struct look *l, void *arg, uint64_t i)
{
	struct shard *s = &((struct shards *)arg)->shard[i];
	const char *file = dataset_shard_file(l->ds, (uint32_t)i);
	CLEANUP_FD int fd = openat(l->ds->dir, file,
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return look_fail(l, -errno, "cannot open '%s' of '%s': %m",
			file, l->path);
	if (!S_ISREG(st.st_mode))
		return look_fail(l, -EINVAL,
			"'%s' of '%s' is not a regular file", file, l->path);
	s->size = (uint64_t)st.st_size;
	s->mtime_ns = stat_mtime_ns(&st);
	/* Turn off read-ahead, which would fetch the data between headers. This
	 * is only a hint, so errors are ignored. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	rc = read_shard(l, s, file, fd);
	table_release(&s->table);
	return rc < 0 ? look_fail(l, rc, "cannot read '%s': %m", file) : 0;
}

/* -- The tables ------------------------------------------------------------ */

/* Returns the number of the label's text, -1 if there is no label, or
 * -ENOMEM. */
static int32_t label_of_member(const struct shards *all, const struct shard *s,
	const struct sample *sample, struct labels *labels)
{
	const char *text = array_data(&s->text), *slash;

	if (all->has_labels) {
		if (sample->label_bytes == 0)
			return -1;
		return labels_add(
			labels, text + sample->label, sample->label_bytes);
	}
	text += sample->name;
	slash = strchr(text, '/');
	return slash ? labels_add(labels, text, (size_t)(slash - text)) : -1;
}

/* Add a sample with the name "SHARD/MEMBER". */
static int add_sample(struct look *l, const struct shards *all, uint32_t shard,
	const char *dir, const struct sample *sample, struct labels *labels)
{
	const struct shard *s = &all->shard[shard];
	int32_t label = label_of_member(all, s, sample, labels);
	const char *name = (const char *)array_data(&s->text) + sample->name;
	const struct ds_part part = {.offset = sample->offset,
		.bytes = sample->bytes,
		.shard = shard,
		.label = label};
	int rc;

	if (label == -ENOMEM)
		return -ENOMEM;
	rc = ds_add_part(l->ds, dir, strlen(dir), name, &part);
	return rc < 0 ? rc
		      : ds_members_add(l, &all->shard[shard].known, dir, name,
				stem_of_key(name));
}

static int add_shard(struct look *l, const struct shards *all, uint32_t i,
	struct labels *labels)
{
	struct shard *s = &all->shard[i];
	const struct sample *sample = array_data(&s->samples);
	CLEANUP_FREE char *file = strdup(dataset_shard_file(l->ds, i));
	CLEANUP_FREE char *dir = NULL;
	int rc;

	if (!file || asprintf(&dir, "%s/", file) < 0)
		return -ENOMEM;
	ds_shards(l->ds)[i].bytes = s->size;
	rc = ds_add_watch(l->ds, file, s->mtime_ns, s->size);
	for (uint64_t k = 0; rc == 0 && k < sample_count(s); k++)
		rc = sample[k].fit != FIT_NOT
			? add_sample(l, all, i, dir, &sample[k], labels)
			: look_skip(l, 1, dir,
				  (char *)array_data(&s->text) +
					  sample[k].name);
	if (rc == 0)
		rc = known_skip(l, &s->known, dir, true);
	known_release(&s->known);
	array_release(&s->samples);
	array_release(&s->text);
	return rc;
}

static bool has_labels(const struct shards *all)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct sample *s = array_data(&all->shard[i].samples);

		for (uint64_t k = 0; k < sample_count(&all->shard[i]); k++)
			if (s[k].has_label)
				return true;
	}
	return false;
}

static int fill_from_shards(struct look *l, struct shards *all)
{
	struct labels labels = {.table = {NULL, 0, 0}};
	int rc = 0;

	all->has_labels = has_labels(all);
	for (uint32_t i = 0; rc == 0 && i < all->n; i++)
		rc = look_stopped(l) ? -ECANCELED
				     : add_shard(l, all, i, &labels);
	if (rc == 0)
		rc = labels_finish(&labels, l->ds, all->has_labels);
	labels_release(&labels);
	return rc;
}

int look_tar(struct look *l)
{
	static const char *const tars[] = {".tar", NULL};
	struct shards all = {.n = 0};
	int rc = 0;

	ds_begin(l->ds, EXAMPLES_PART);
	if (dataset_shards(l->ds) == 0)
		rc = look_list_shards(l, tars);
	if (rc < 0)
		return rc;
	all.n = dataset_shards(l->ds);
	all.shard = calloc((size_t)all.n + 1, sizeof(*all.shard));
	rc = all.shard ? look_each(l, all.n, shard_main, &all) : -ENOMEM;
	if (rc == 0)
		rc = fill_from_shards(l, &all);
	for (uint32_t i = 0; all.shard && i < all.n; i++) {
		table_release(&all.shard[i].table);
		known_release(&all.shard[i].known);
		array_release(&all.shard[i].samples);
		array_release(&all.shard[i].text);
	}
	free(all.shard);
	return rc < 0 ? look_fail(l, rc, "%m") : 0;
}
