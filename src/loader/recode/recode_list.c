/* SPDX-License-Identifier: MIT */
/* Lists the files of a source; see recode_impl.h. Called by the thread of
 * recode_run(). */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "loader/recode/recode_impl.h"

static int64_t stat_mtime(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int list_add_file(
	struct recode_list *l, const char *path, const struct stat *st)
{
	struct recode_file *f = array_grow(&l->files, sizeof(*f));
	int64_t at = f ? array_text(&l->text, path, strlen(path)) : -ENOMEM;

	if (at < 0)
		return (int)at;
	*f = (struct recode_file){
		(size_t)at, (uint64_t)st->st_size, stat_mtime(st)};
	l->bytes += f->bytes;
	return 0;
}

static int list_add_dir(struct recode_list *l, const char *path)
{
	size_t *dir = array_grow(&l->dirs, sizeof(*dir));
	int64_t at = dir ? array_text(&l->text, path, strlen(path)) : -ENOMEM;

	if (at < 0)
		return (int)at;
	*dir = (size_t)at;
	return 0;
}

/* Names in the root that are not of the dataset. */
static bool is_ours(const FTSENT *e)
{
	return e->fts_level == 1 &&
		(strcmp(e->fts_name, RENDITION_FILE) == 0 ||
			strcmp(e->fts_name, LEVELS_INDEX) == 0 ||
			strcmp(e->fts_name, "lost+found") == 0 ||
			strncmp(e->fts_name, RECORD_FILE,
				strlen(RECORD_FILE)) == 0);
}

static int take_entry(struct recode_list *l, FTS *fts, FTSENT *e,
	const char *path, struct error *err)
{
	switch (e->fts_info) {
	case FTS_F:
		return list_add_file(l, path, e->fts_statp);
	case FTS_D:
		return list_add_dir(l, path);
	case FTS_SLNONE:
	case FTS_DC:
		l->links++;
		return 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return error_set(err, -e->fts_errno, "cannot read '%s': %m",
			e->fts_path);
	default:
		(void)fts; /* the end of a directory, or a device */
		return 0;
	}
}

static int walk_tree(
	struct recode_list *l, FTS *fts, size_t root, struct error *err)
{
	FTSENT *e;
	int rc = 0;

	while (rc == 0 && (errno = 0, e = fts_read(fts))) {
		const char *path = e->fts_path + root;

		if (is_ours(e)) {
			(void)fts_set(fts, e, FTS_SKIP); /* cannot fail */
			continue;
		}
		while (*path == '/')
			path++;
		/* The root must be readable, but it is not listed. */
		if (e->fts_level > 0 || e->fts_info != FTS_D)
			rc = take_entry(l, fts, e, path, err);
		if (rc == -ENOMEM)
			return error_set(err, rc, "%m");
	}
	return rc == 0 && errno ? error_set(err, -errno, "%m") : rc;
}

static int by_listed_path(const void *a, const void *b, void *arg)
{
	const char *text = arg;

	return strcmp(text + ((const struct recode_file *)a)->path,
		text + ((const struct recode_file *)b)->path);
}

int recode_list_make(
	struct recode_list *l, const char *source, struct error *err)
{
	CLEANUP_FREE char *path = strdup(source);
	char *paths[] = {path, NULL};
	FTS *fts =
		path ? fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL) : NULL;
	int rc;

	if (!fts)
		return error_set(err, -errno, "cannot read '%s': %m", source);
	rc = walk_tree(l, fts, strlen(source), err);
	(void)fts_close(fts); /* only frees memory */
	if (rc == 0 && recode_list_count(l) == 0)
		return error_set(err, -ENODATA, "'%s' has no files", source);
	if (rc == 0)
		qsort_r(array_data(&l->files), recode_list_count(l),
			sizeof(struct recode_file), by_listed_path,
			array_data(&l->text));
	return rc;
}

void recode_list_release(struct recode_list *l)
{
	array_release(&l->files);
	array_release(&l->dirs);
	array_release(&l->text);
}
