/* SPDX-License-Identifier: MIT */
/* The list of the files that a run of `refrain load` reads. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "load.h"

/* Returns the directory to which the paths of the dataset's files are relative;
 * the caller frees it. */
static char *base_of(const struct refrain_config *c)
{
	const char *slash = strrchr(c->dataset, '/');
	struct stat st;

	if (c->root && *c->root)
		return strdup(c->root);
	if (stat(c->dataset, &st) == 0 && S_ISDIR(st.st_mode))
		return strdup(c->dataset);
	return slash ? strndup(c->dataset, (size_t)(slash - c->dataset + 1))
		     : strdup(".");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep_name(void *name)
{
	(void)name; /* the loader owns the name */
}

/* Print a file if its name is not in the tree yet. */
static int list_file(
	const char *base, const char *file, void **seen, struct error *err)
{
	size_t n = strlen(base);

	if (strchr(file, '\n'))
		return error_set(err, -EILSEQ,
			"the name of a file has a line break, so it cannot be "
			"in a list of lines");
	if (tfind(file, seen, compare_names))
		return 0;
	if (!tsearch(file, seen, compare_names))
		return error_set(err, -ENOMEM, "%m");
	if (printf("%s%s%s\n", base, n && base[n - 1] == '/' ? "" : "/", file) <
		0)
		return error_set(err, -errno, "cannot write the list: %m");
	return 0;
}

int load_list(const struct load_options *o, struct refrain_loader *l,
	struct error *err)
{
	uint64_t n = refrain_examples(l), index;
	uint64_t left = o->config.subset ? o->config.subset : n;
	CLEANUP_FREE char *base = base_of(&o->config);
	CLEANUP_FREE unsigned char *served = calloc(n, 1);
	void *seen = NULL;
	int rc = 0;

	if (!base || !served)
		return error_set(err, -ENOMEM, "%m");
	for (uint64_t f = 0; rc == 0 && left && !refrain_fresh(l, f, &index);
		f++) {
		if (served[index])
			continue;
		served[index] = 1;
		left--;
		rc = list_file(base, refrain_file(l, index), &seen, err);
	}
	tdestroy(seen, keep_name);
	return rc;
}
