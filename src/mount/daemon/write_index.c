/* SPDX-License-Identifier: MIT */
/*
 * Writes the index of a source, without a mount: lists the source like the
 * first scan of a mount, then writes a table of the files in bytewise order of
 * their paths, so that the number of a line is the index of its file. The walk
 * has a thread of its own. The caller's thread shows progress and writes the
 * table.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/magic.h"

#define PROGRESS_NS (200 * NS_PER_MS)

/* The parts of a mount that a listing needs. One thread creates and frees
 * them. */
struct index_job {
	uint32_t magic;
	struct stack *stack;
	struct timers *timers;
	struct counters counters;
	struct manifest *manifest;
	struct tree *tree;
	/* Set by the thread of the walk. After its end, the caller may use it
	 */
	struct tree_walk_result result;
	int status; /* set by the thread of the walk, like `result` */
};

/* -- The walk ------------------------------------------------------------ */

/* Changes of names need no action, because there are no readers. */
static void no_version(void *arg, const struct node_info *old)
{
	(void)arg;
	(void)old;
}

static void no_name(void *arg, node_id dir, const char *name)
{
	(void)arg;
	(void)dir;
	(void)name;
}

static void no_node(void *arg, node_id id)
{
	(void)arg;
	(void)id;
}

static int open_tree(struct index_job *l, struct error *err)
{
	struct tree_config config = {
		.ceased = no_version,
		.renamed = no_name,
		.changed = no_node,
	};
	int rc = timers_new(&l->timers);

	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	rc = stack_open(l->stack, l->timers, &l->counters, NULL, err);
	if (rc < 0)
		return rc;
	rc = manifest_new(&l->manifest, stack_name(l->stack));
	if (rc < 0)
		return error_set(err, rc, "%m");
	config.origin = stack_origin(l->stack);
	config.manifest = l->manifest;
	config.timers = l->timers;
	rc = tree_new(&l->tree, &config, err);
	if (rc == 0)
		rc = scan_probe(l->stack, l->manifest, err);
	return rc < 0 ? rc : tree_open_root(l->tree, err);
}

static void *walk_main(void *arg)
{
	struct index_job *l = OBJECT(index_job, arg);

	l->status = tree_walk(l->tree, NODE_ROOT, false, &l->result);
	return NULL;
}

static void index_tell(
	const struct index_job *l, const struct index_progress *progress)
{
	struct manifest_totals totals;

	manifest_totals(l->manifest, &totals);
	progress->found(progress->arg, totals.files, totals.bytes);
}

/* Wait for the end of the walk, and report its progress. */
static int walk(struct index_job *l, const struct index_progress *progress,
	struct error *err)
{
	struct timespec until;
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, walk_main, l);

	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	do {
		(void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
		until.tv_nsec += PROGRESS_NS;
		until.tv_sec += until.tv_nsec / (long)NS_PER_S;
		until.tv_nsec %= (long)NS_PER_S;
		rc = pthread_timedjoin_np(thread, NULL, &until);
		index_tell(l, progress);
	} while (rc == ETIMEDOUT);
	if (l->status < 0)
		return error_set(err, l->status, "cannot list '%s': %m",
			stack_name(l->stack));
	if (l->result.failed > 0)
		return error_wrap(err,
			tree_walk_error(l->tree, &l->result, err),
			"wrote no index of '%s'", stack_name(l->stack));
	return 0;
}

/* -- The table ----------------------------------------------------------- */

static size_t row_count(const struct array *rows)
{
	return array_count(rows, sizeof(struct index_row));
}

static void rows_release(struct array *rows)
{
	const struct index_row *row = array_data(rows);

	for (size_t i = 0; i < row_count(rows); i++)
		free(row[i].path);
	array_release(rows);
}

static int index_add_row(
	struct array *rows, const char *path, struct file_version v)
{
	struct index_row *row = array_grow(rows, sizeof(*row));

	if (!row)
		return -ENOMEM;
	*row = (struct index_row){.path = strdup(path), .version = v};
	return row->path ? 0 : -ENOMEM;
}

static int fill_rows(struct array *rows, struct manifest *m)
{
	char path[MANIFEST_PATH_MAX];
	struct node_info info;
	int rc = 0;

	for (node_id id = NODE_ROOT; rc >= 0 && id < manifest_end(m); id++) {
		if (manifest_get(m, id, &info) < 0 || info.retired ||
			info.attr.kind != KIND_FILE)
			continue;
		rc = manifest_path(m, id, path, sizeof(path));
		if (rc >= 0)
			rc = index_add_row(rows, path, info.attr.version);
	}
	return rc < 0 ? rc : 0;
}

static int index_by_path(const void *a, const void *b)
{
	const struct index_row *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Write a field. Tabs and newlines are escaped, because they separate fields
 * and lines. */
static void put_text(const char *text, size_t len, FILE *out)
{
	char shown[MANIFEST_PATH_MAX];

	if (isatty(fileno(out)) == 1) {
		(void)snprintf(shown, sizeof(shown), "%.*s", (int)len, text);
		escape_print(out, shown);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\t')
			(void)fputs("\\t", out);
		else if (text[i] == '\n')
			(void)fputs("\\n", out);
		else if (text[i] == '\\')
			(void)fputs("\\\\", out);
		else
			(void)putc(text[i], out);
	}
}

/* Write a line of the table. Errors of the stream are checked at the end. */
static void index_put_row(const struct index_row *r, bool levels, FILE *out)
{
	const char *slash = strchr(r->path, '/');
	int64_t mtime_ns = r->version.mtime_ns;
	/* The most negative number has no positive counterpart, so use unsigned
	 * numbers. */
	uint64_t ns = mtime_ns < 0 ? -(uint64_t)mtime_ns : (uint64_t)mtime_ns;

	put_text(r->path, strlen(r->path), out);
	(void)fprintf(out, "\t%" PRIu64 "\t%s%" PRIu64 ".%09" PRIu64 "\t",
		r->version.size_bytes, mtime_ns < 0 ? "-" : "", ns / NS_PER_S,
		ns % NS_PER_S);
	if (r->version.tag)
		(void)fprintf(out, "%016" PRIx64, r->version.tag);
	(void)putc('\t', out);
	for (size_t b = 0; levels && b < JPEG_DROP_BITS_MAX; b++) {
		if (r->level[b])
			(void)fprintf(out, "%" PRIu64, r->level[b]);
		(void)putc('\t', out);
	}
	put_text(r->path, slash ? (size_t)(slash - r->path) : 0, out);
	(void)putc('\n', out);
}

static int index_put_rows(const struct index_row *row, size_t n, bool levels,
	FILE *out, struct error *err)
{
	(void)fprintf(out, "# refrain index %s, label\n",
		levels ? "3: path, size, mtime, tag, drop1, drop2"
		       : "2: path, size, mtime, tag");
	for (size_t i = 0; i < n; i++)
		index_put_row(&row[i], levels, out);
	if (fflush(out) != 0 || ferror(out))
		return error_set(err, -EIO, "cannot write the index: %m");
	return 0;
}

static int write_table(struct index_job *l, FILE *out,
	const struct index_progress *progress, struct error *err)
{
	struct array rows = {0};
	int rc = fill_rows(&rows, l->manifest);
	struct index_row *row = array_data(&rows);
	size_t n = row_count(&rows);

	if (rc < 0)
		(void)error_set(err, rc, "cannot write the index: %m");
	if (rc == 0 && n > 0)
		qsort(row, n, sizeof(*row), index_by_path);
	if (rc == 0 && progress->read)
		rc = index_levels(stack_origin(l->stack), row, n,
			progress->read, progress->arg, err);
	if (rc == 0)
		rc = index_put_rows(row, n, progress->read != NULL, out, err);
	rows_release(&rows);
	return rc;
}

/* -- The whole command ----------------------------------------------------- */

static void index_job_free(struct index_job *l)
{
	/* If the origin hangs, free nothing: parts that wait for it still use
	 * the memory. */
	if (l->tree && !tree_stop(l->tree))
		return;
	tree_free(l->tree);
	if (l->manifest)
		manifest_free(l->manifest);
	if (l->stack && !stack_close(l->stack))
		return;
	if (l->timers)
		timers_free(l->timers);
	stack_free(l->stack);
	MAGIC_END(l);
	free(l);
}

int daemon_index(const struct stack_config *source, FILE *out,
	const struct index_progress *progress, struct error *err)
{
	struct index_job *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return error_set(err, -ENOMEM, "%m");
	MAGIC_BEGIN(l, index_job);
	rc = stack_new(&l->stack, source, false, err);
	if (rc == 0)
		rc = open_tree(l, err);
	if (rc == 0)
		rc = walk(l, progress, err);
	if (rc == 0)
		rc = write_table(l, out, progress, err);
	index_job_free(l);
	return rc;
}
