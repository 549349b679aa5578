/* SPDX-License-Identifier: MIT */
/* The list of the files that a run of `refrain load` reads. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "load.h"

/* Returns the directory to which the paths of a dataset's files are relative;
 * the caller frees it. */
static char *base_of(const struct refrain_config *c, const char *dataset)
{
	const char *slash = strrchr(dataset, '/');
	struct stat st;

	if (c->root && *c->root)
		return strdup(c->root);
	if (stat(dataset, &st) == 0 && S_ISDIR(st.st_mode))
		return strdup(dataset);
	return slash ? strndup(dataset, (size_t)(slash - dataset + 1))
		     : strdup(".");
}

/* As many datasets, and parts of an example, as the library accepts. */
#define DATASETS_MAX 64
#define PARTS_MAX 8

/* The directories of all datasets. */
struct bases {
	char *dir[DATASETS_MAX];
	uint32_t n;
};

static int bases_init(struct bases *b, const struct refrain_config *c)
{
	CLEANUP_FREE char *paths = strdup(c->dataset);
	char *rest = paths, *path;

	while ((path = strsep(&rest, "\n"))) {
		if (!*path || b->n == DATASETS_MAX)
			continue;
		b->dir[b->n] = base_of(c, path);
		if (!b->dir[b->n++])
			return -ENOMEM;
	}
	return paths ? 0 : -ENOMEM;
}

static void bases_release(struct bases *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		free(b->dir[i]);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Print a file if its path is not in the tree yet. The tree owns the paths. */
static int list_file(
	const char *base, const char *file, void **seen, struct error *err)
{
	size_t n = strlen(base);
	char *path;
	void *node;

	if (strchr(file, '\n'))
		return error_set(err, -EILSEQ,
			"the name of a file has a line break, so it cannot be "
			"in a list of lines");
	if (asprintf(&path, "%s%s%s", base, n && base[n - 1] == '/' ? "" : "/",
		    file) < 0)
		return error_set(err, -ENOMEM, "%m");
	node = tsearch(path, seen, compare_names);
	if (!node || *(char **)node != path) {
		free(path);
		return node ? 0 : error_set(err, -ENOMEM, "%m");
	}
	return printf("%s\n", path) < 0
		? error_set(err, -errno, "cannot write the list: %m")
		: 0;
}

/* Print the files of an example. */
static int list_example(struct refrain_loader *l, uint64_t index,
	const struct bases *bases, void **seen, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < PARTS_MAX; i++) {
		uint32_t dataset;
		const char *file = refrain_part_file(l, index, i, &dataset);

		if (file)
			rc = list_file(bases->dir[dataset], file, seen, err);
	}
	return rc;
}

int load_list(const struct load_options *o, struct refrain_loader *l,
	struct error *err)
{
	uint64_t n = refrain_examples(l), index;
	uint64_t left = o->config.subset ? o->config.subset : n;
	CLEANUP_FREE unsigned char *served = calloc(n, 1);
	struct bases bases = {.n = 0};
	void *seen = NULL;
	int rc = served ? bases_init(&bases, &o->config) : -ENOMEM;

	if (rc < 0)
		(void)error_set(err, rc, "%m");
	for (uint64_t f = 0; rc == 0 && left && !refrain_fresh(l, f, &index);
		f++) {
		if (served[index])
			continue;
		served[index] = 1;
		left--;
		rc = list_example(l, index, &bases, &seen, err);
	}
	tdestroy(seen, free);
	bases_release(&bases);
	return rc;
}
