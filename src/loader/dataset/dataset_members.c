/* SPDX-License-Identifier: MIT */
/*
 * Finds the members of examples among the files of a dataset. Called by the
 * driver of a look, or by the worker that reads a shard.
 */
#include "loader/dataset/dataset_members_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* -- The option's text ----------------------------------------------------- */

static int bad_word(const char *word, const char *why, struct error *err)
{
	return error_set(err, -EINVAL, "the member '%s' %s", word, why);
}

/* Parse one place of a member, such as "seg.png" or "masks/png". The folder
 * must be a single name, because it lies beside the images. */
static int parse_word(struct ds_members *m, char *word, struct error *err)
{
	struct member_word *w = &m->words[m->words_n];
	char *slash = strrchr(word, '/');

	if (m->words_n == MEMBERS_WORDS_MAX)
		return bad_word(word, "is one of too many", err);
	if (!*word)
		return bad_word(word, "has no name", err);
	*w = (struct member_word){
		.folder = "", .suffix = word, .member = m->count};
	if (slash) {
		if (slash == word || strchr(word, '/') != slash ||
			word[0] == '.')
			return bad_word(word,
				"must name one folder beside the images", err);
		*slash = '\0';
		w->folder = word;
		w->suffix = slash + 1;
	}
	if (w->suffix[0] == '.')
		return bad_word(word, "must be written without a dot", err);
	m->words_n++;
	return 0;
}

static int parse_member(struct ds_members *m, char *text, struct error *err)
{
	int rc = 0;

	if (m->count == DATASET_PARTS_MAX - 1)
		return error_set(err, -EINVAL,
			"an example has at most %d members",
			DATASET_PARTS_MAX - 1);
	for (char *word = text; rc == 0 && word;) {
		char *comma = strchr(word, ',');

		if (comma)
			*comma++ = '\0';
		rc = parse_word(m, word, err);
		word = comma;
	}
	m->count++;
	return rc;
}

int ds_members_parse(
	struct ds_members **out, const char *text, struct error *err)
{
	size_t n = strlen(text) + 1;
	CLEANUP_FREE struct ds_members *m = calloc(1, sizeof(*m) + n);
	int rc = 0;

	if (!m)
		return error_set(err, -ENOMEM, "%m");
	memcpy(m->text, text, n);
	for (char *at = m->text; rc == 0 && at;) {
		char *end = strchr(at, ';');

		if (end)
			*end++ = '\0';
		rc = parse_member(m, at, err);
		at = end;
	}
	if (rc == 0)
		*out = steal_ptr(&m);
	return rc;
}

/* -- Which files may be members -------------------------------------------- */

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool lies_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);
	const char *slash;

	for (; (slash = strchr(path, '/')); path = slash + 1)
		if ((size_t)(slash - path) == n && memcmp(path, folder, n) == 0)
			return true;
	return false;
}

static bool has_suffix(const char *path, const char *suffix)
{
	const char *name = last_name(path);
	size_t n = strlen(name), m = strlen(suffix);

	return n > m + 1 && name[n - m - 1] == '.' &&
		memcmp(name + n - m, suffix, m) == 0;
}

const char *ds_members_folder(const struct ds_members *m, uint32_t n)
{
	for (uint32_t i = 0; m && i < m->words_n; i++)
		if (*m->words[i].folder && n-- == 0)
			return m->words[i].folder;
	return NULL;
}

bool ds_members_below(const struct ds_members *m, const char *path)
{
	const char *folder;

	for (uint32_t i = 0; (folder = ds_members_folder(m, i)); i++)
		if (lies_below(path, folder))
			return true;
	return false;
}

bool ds_members_claim(const struct ds_members *m, const char *path)
{
	for (uint32_t i = 0; m && i < m->words_n; i++) {
		const struct member_word *w = &m->words[i];

		if (*w->folder ? lies_below(path, w->folder)
			       : has_suffix(path, w->suffix))
			return true;
	}
	return false;
}

bool ds_members_in_folder(const struct ds_members *m, const char *folder)
{
	const char *name;

	for (uint32_t i = 0; (name = ds_members_folder(m, i)); i++)
		if (strcmp(name, folder) == 0)
			return true;
	return false;
}

/* -- The files ------------------------------------------------------------- */

size_t stem_of_file(const char *path)
{
	const char *name = last_name(path), *dot = strrchr(name, '.');

	return dot ? (size_t)(dot - path) : strlen(path);
}

size_t stem_of_key(const char *path)
{
	const char *name = last_name(path);

	return (size_t)(name - path) + strcspn(name, ".");
}

/* A key of the table. Each file has two: its path, and its stem. */
struct known_key {
	uint32_t file, bytes;
	uint64_t stem; /* 1: the key is the stem; 0: the path */
};

static struct known_file *known_file(const struct known *k, uint32_t i)
{
	return (struct known_file *)array_data(&k->files) + i;
}

static const char *known_path(const struct known *k, const struct known_file *f)
{
	return (const char *)array_data(&k->text) + f->path;
}

static struct known_key *known_key(const struct known *k, uint32_t n)
{
	return (struct known_key *)array_data(&k->keys) + (n - 1);
}

static const char *key_text(const struct known *k, const struct known_key *key)
{
	return known_path(k, known_file(k, key->file));
}

static uint32_t key_hash(const void *known, uint32_t n)
{
	const struct known_key *key = known_key(known, n);

	return (uint32_t)hash64(key_text(known, key), key->bytes, key->stem);
}

/* The key of this path or stem; NULL: there is none. */
static struct known_key *find_key(
	const struct known *k, const char *text, size_t n, bool stem)
{
	TABLE_FOREACH(i, &k->table, (uint32_t)hash64(text, n, stem)) {
		struct known_key *key = known_key(k, i);

		if (key->bytes == n && key->stem == stem &&
			memcmp(key_text(k, key), text, n) == 0)
			return key;
	}
	return NULL;
}

/* If several files have the same stem, the key belongs to the file with the
 * lowest path, so the order in which they are added does not matter. */
static int add_key(struct known *k, uint32_t file, uint32_t bytes, bool stem)
{
	const char *path = known_path(k, known_file(k, file));
	struct known_key *key = find_key(k, path, bytes, stem);
	uint64_t n;

	if (key) {
		if (strcmp(path, key_text(k, key)) < 0)
			key->file = file;
		return 0;
	}
	key = array_grow(&k->keys, sizeof(*key));
	n = array_count(&k->keys, sizeof(*key));
	if (!key || n > UINT32_MAX)
		return -ENOMEM;
	*key = (struct known_key){file, bytes, stem};
	return table_add(&k->table, (uint32_t)n, key_hash, k);
}

int known_add(struct known *k, const char *dir, const char *name,
	const struct known_file *file)
{
	CLEANUP_FREE char *path = NULL;
	struct known_file *f;
	uint32_t i;
	int64_t at;
	int rc;

	if (asprintf(&path, "%s%s", dir, name) < 0)
		return -ENOMEM;
	at = array_text(&k->text, path, strlen(path));
	f = at < 0 ? NULL : array_grow(&k->files, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = *file;
	f->path = (uint64_t)at;
	f->path_bytes = (uint32_t)strlen(path);
	i = (uint32_t)array_count(&k->files, sizeof(*f)) - 1;
	rc = add_key(k, i, f->path_bytes, false);
	if (rc == 0 && strchr(path, '/'))
		rc = add_key(k, i, f->stem_bytes + (uint32_t)strlen(dir), true);
	return rc;
}

void known_release(struct known *k)
{
	array_release(&k->text);
	array_release(&k->files);
	array_release(&k->keys);
	table_release(&k->table);
}

int known_skip(
	struct look *l, const struct known *k, const char *dir, bool folders)
{
	uint64_t n = array_count(&k->files, sizeof(struct known_file));
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const struct known_file *f = known_file(k, i);
		const char *path = known_path(k, f);

		if (!f->used &&
			!(folders && !ds_members_below(l->members, path)))
			rc = look_skip(l, 1, dir, path);
	}
	return rc;
}

/* Returns the file with this path or stem. If several files have this stem,
 * returns the one with the lowest path. */
static struct known_file *find_file(
	const struct known *k, const char *text, bool stem)
{
	const struct known_key *key = find_key(k, text, strlen(text), stem);

	return key ? known_file(k, key->file) : NULL;
}

/* -- The members of an example --------------------------------------------- */

struct find {
	const struct known *known;
	const struct member_word *word;
	const char *path; /* path of the image */
	size_t stem;	  /* length of this path without the suffix */
};

/* Look for the member at the path of the image, with the bytes from `head` to
 * `tail` replaced by the folder. */
static struct known_file *find_there(
	const struct find *f, size_t head, size_t tail)
{
	const char *suffix = f->word->suffix, *folder = f->word->folder;
	char path[3 * PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s%s%s%.*s%s%s", (int)head,
		f->path, folder, *folder ? "/" : "", (int)(f->stem - tail),
		f->path + tail, *suffix ? "." : "", suffix);

	if (n < 0 || (size_t)n >= sizeof(path))
		return NULL;
	return find_file(f->known, path, !*suffix);
}

/* Look for the member at one place. The folder may be beside the image, or
 * beside any of the directories above the image. In the latter case, the path
 * within the folder may or may not repeat the name of the directory beside
 * which the folder lies: for images/a/1.jpg, both masks/a/1.png and
 * masks/images/a/1.png are found. Only a hostile tar has names longer than
 * PATH_MAX, with thousands of directories: a folder beside one of these
 * directories is not looked for. */
static struct known_file *find_by_word(const struct find *f)
{
	size_t end = (size_t)(last_name(f->path) - f->path);
	struct known_file *found = find_there(f, end, end);

	if (!*f->word->folder || f->stem >= PATH_MAX)
		return found;
	while (!found && end > 0) {
		size_t tail = end--;

		while (end > 0 && f->path[end - 1] != '/')
			end--;
		found = find_there(f, end, tail);
		if (!found)
			found = find_there(f, end, end);
	}
	return found;
}

static struct known_file *find_member(
	const struct ds_members *m, uint32_t member, struct find *f)
{
	struct known_file *found = NULL;

	for (uint32_t i = 0; !found && i < m->words_n; i++) {
		f->word = &m->words[i];
		if (f->word->member == member)
			found = find_by_word(f);
	}
	return found;
}

int ds_members_add(struct look *l, struct known *k, const char *dir,
	const char *path, size_t stem_bytes)
{
	struct find f = {.known = k, .path = path, .stem = stem_bytes};
	struct ds_members *m = l->members;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && m && i < m->count; i++) {
		struct known_file *found = find_member(m, i, &f);
		struct ds_member row = {.name = 0};

		if (found) {
			found->used = true;
			m->found[i]++;
			row.offset = found->offset;
			row.bytes = found->bytes;
		}
		rc = ds_add_member(
			l->ds, dir, found ? known_path(k, found) : NULL, &row);
	}
	return rc;
}
