/* SPDX-License-Identifier: MIT */
/*
 * Composes the error message for a member that no example has: it lists the
 * members that the dataset does contain. This happens only after a failure, so
 * it simply reads the first directory or shard again. Called by the driver of a
 * look.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "loader/dataset/dataset_members_impl.h"
#include "loader/dataset/tarfile_impl.h"

#define THERE_MAX 12
#define THERE_MEMBERS_MAX 4096 /* maximum number of tar members to read */

/* The suffixes or folders that were found, each once. */
struct there {
	struct look *l;
	bool folders;
	uint32_t n;
	char text[THERE_MAX][32];
};

static void note_there(struct there *t, const char *name, const char *end)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%s%s", name, end);

	if (n <= 0 || (size_t)n >= sizeof(text) || t->n == THERE_MAX)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->text[i], text) == 0)
			return;
	memcpy(t->text[t->n++], text, sizeof(text));
}

static int there_seen(void *arg, const char *name, enum look_type type)
{
	const char *dot = strrchr(name, '.');
	struct there *t = arg;

	if (look_is_hidden(name))
		return 0;
	if (type == LOOK_DIR && t->folders)
		note_there(t, name, "/");
	if (type == LOOK_FILE && dot && !t->folders)
		note_there(t, dot + 1, "");
	return 0;
}

/* List a directory. Errors are ignored, because they only make the message
 * shorter. */
static void list_there(struct there *t, const char *dir)
{
	int fd = openat(t->l->ds->dir, *dir ? dir : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)look_list(t->l, fd, there_seen, t);
}

static void read_there(struct there *t)
{
	const char *file = dataset_shard_file(t->l->ds, 0);
	CLEANUP_FD int fd = openat(t->l->ds->dir, file,
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct tar_reader tar;
	struct tar_member m;

	if (fd < 0)
		return;
	tar_begin(&tar, t->l, file, fd, ds_shards(t->l->ds)[0].bytes);
	for (uint32_t i = 0; i < THERE_MEMBERS_MAX && tar_next(&tar, &m) > 0;
		i++) {
		size_t stem = stem_of_key(m.name);

		if (m.name[stem] == '.')
			note_there(t, m.name + stem + 1, "");
	}
	tar_release(&tar);
}

static void look_there(struct there *t)
{
	struct example first;
	CLEANUP_FREE char *dir = NULL;
	char *slash;

	dataset_example(t->l->ds, 0, &first);
	if (!first.whole) {
		read_there(t);
		return;
	}
	dir = strdup(first.file);
	if (!dir)
		return;
	slash = strrchr(dir, '/');
	*(slash ? slash : dir) = '\0';
	list_there(t, dir);
	t->folders = ds_members_folder(t->l->members, 0) != NULL;
	if (t->folders)
		list_there(t, "");
}

static void put_words(
	const struct ds_members *m, uint32_t member, char *at, size_t room)
{
	const char * or = "";

	*at = '\0';
	for (uint32_t i = 0; i < m->words_n; i++) {
		const struct member_word *w = &m->words[i];
		int n;

		if (w->member != member)
			continue;
		n = snprintf(at, room, "%s'%s%s%s'", or, w->folder,
			*w->folder ? "/" : "", w->suffix);
		if (n < 0 || (size_t)n >= room)
			return;
		at += n;
		room -= (size_t)n;
		or = " or ";
	}
}

static void put_there(const struct there *t, char *at, size_t room)
{
	(void)snprintf(at, room, "none");
	for (uint32_t i = 0; i < t->n; i++) {
		int n = snprintf(at, room, "%s%s", i ? ", " : "", t->text[i]);

		if (n < 0 || (size_t)n >= room)
			return;
		at += n;
		room -= (size_t)n;
	}
}

int ds_members_check(struct look *l)
{
	struct there t = {.l = l};
	char words[256], there[THERE_MAX * 34];
	uint32_t i = 0;

	while (l->members && i < l->members->count && l->members->found[i])
		i++;
	if (!l->members || i == l->members->count)
		return 0;
	look_there(&t);
	put_words(l->members, i, words, sizeof(words));
	put_there(&t, there, sizeof(there));
	return look_fail(l, -ENODATA,
		"no example of '%s' has the member %s; there are: %s", l->path,
		words, there);
}
