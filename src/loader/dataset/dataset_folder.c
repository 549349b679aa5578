/* SPDX-License-Identifier: MIT */
/*
 * Scans a folder of images. Each directory is a job of the workers: it lists
 * the directory, sorts the names, and submits jobs for the sub-directories.
 * Then the driver adds all names to the tables, in order. In a listing, the
 * name of a directory ends with a slash, and listings are sorted bytewise.
 * Therefore whole paths are in bytewise order, too, if each directory is
 * followed by everything below it.
 */
#include "loader/dataset/dataset_members_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/format/rendition.h"

/* A directory. It belongs to its job until the job has ended, then to the
 * driver. */
struct dir {
	struct thread_job job;
	struct look *l;
	int64_t mtime_ns; /* read before the names were listed */
	/* stat_fingerprint(), read together with the mtime */
	uint64_t fingerprint;
	struct array names;   /* names of images and directories, with NULs */
	struct array classes; /* in the root: names of all directories */
	struct array others;  /* names of files that may be members */
	/* number of skipped files: those that are not examples */
	uint64_t skipped;
	/* lowest of the names of the skipped files; NULL: there is none */
	char *first_skipped;
	struct dir **child; /* sub-directories, in the order of their names */
	size_t children;
	uint64_t links;
	const struct dir *parent; /* NULL for the root */
	dev_t dev; /* dev and ino together identify the directory */
	ino_t ino;
	/* False if the directory was gone, or contains itself through a link */
	bool listed;
	size_t path_len; /* includes the final slash; 0 for the root */
	char path[];
};

/* Free the directory and all directories below it. The recursion is at most
 * PATH_MAX / 2 deep. */
static void dir_free(struct dir *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->children; i++)
		dir_free(d->child[i]);
	free(d->child);
	array_release(&d->names);
	array_release(&d->classes);
	array_release(&d->others);
	free(d->first_skipped);
	free(d);
}

static void dir_main(struct thread_job *job);

static struct dir *dir_new(
	struct look *l, const struct dir *parent, const char *name)
{
	size_t at = parent ? parent->path_len : 0, n = strlen(name);
	struct dir *d = calloc(1, sizeof(*d) + at + n + 1);

	if (!d)
		return NULL;
	thread_job_init(&d->job, dir_main);
	d->l = l;
	d->parent = parent;
	d->path_len = at + n;
	if (at > 0)
		memcpy(d->path, parent->path, at);
	memcpy(d->path + at, name, n + 1);
	return d;
}

/* -- Job of a directory ---------------------------------------------------- */

static int dir_skip(struct dir *d, const char *name)
{
	d->skipped++;
	if (d->first_skipped && strcmp(d->first_skipped, name) <= 0)
		return 0;
	free(d->first_skipped);
	d->first_skipped = strdup(name);
	return d->first_skipped ? 0 : -ENOMEM;
}

static bool is_wanted(
	const struct dir *d, const char *name, enum look_type type)
{
	if (look_is_hidden(name))
		return false;
	/* with any_file, it would be an example */
	if (d->path_len == 0 &&
		(strcmp(name, RENDITION_FILE) == 0 ||
			strcmp(name, LEVELS_INDEX) == 0))
		return false;
	if (type == LOOK_DIR)
		return d->path_len > 0 || strcmp(name, "lost+found") != 0;
	return type == LOOK_FILE && look_is_image(d->l, name);
}

static bool may_be_member(
	const struct dir *d, const char *name, enum look_type type)
{
	char path[2 * PATH_MAX];

	if (!d->l->members || type != LOOK_FILE || look_is_hidden(name))
		return false;
	(void)snprintf(path, sizeof(path), "%s%s", d->path, name);
	return ds_members_claim(d->l->members, path);
}

static int name_seen(void *arg, const char *name, enum look_type type)
{
	struct dir *d = arg;
	size_t n = strlen(name);
	char *to;

	d->links += type == LOOK_LINK;
	if (type == LOOK_DIR && d->path_len == 0 &&
		!ds_members_in_folder(d->l->members, name) &&
		array_text(&d->classes, name, n) < 0)
		return -ENOMEM;
	if (may_be_member(d, name, type))
		return array_text(&d->others, name, n) < 0 ? -ENOMEM : 0;
	if (!is_wanted(d, name, type))
		return dir_skip(d, name);
	if (d->path_len + n + (type == LOOK_DIR) >= PATH_MAX)
		return -ENAMETOOLONG;
	to = array_grow(&d->names, n + 1 + (type == LOOK_DIR));
	if (!to)
		return -ENOMEM;
	memcpy(to, name, n + 1);
	if (type == LOOK_DIR) {
		memcpy(to + n, "/", 2);
		d->children++;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the *count names of an array as a sorted array of strings. */
static const char **sorted(const struct array *names, size_t *count)
{
	const char *p = array_data(names), *end = p + array_bytes(names);
	size_t n = 0;
	const char **name;

	for (const char *q = p; q < end; q += strlen(q) + 1)
		n++;
	name = malloc((n + 1) * sizeof(*name));
	if (!name)
		return NULL;
	*count = n;
	for (n = 0; p < end; p += strlen(p) + 1)
		name[n++] = p;
	qsort(name, n, sizeof(*name), by_name);
	return name;
}

static int dir_sort(struct dir *d)
{
	size_t n = 0, bytes = array_bytes(&d->names);
	CLEANUP_FREE const char **name = NULL;
	CLEANUP_FREE char *copy = NULL;
	char *to;

	if (bytes == 0)
		return 0;
	name = sorted(&d->names, &n);
	copy = to = malloc(bytes);
	if (!name || !copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		to = stpcpy(to, name[i]) + 1;
	array_release(&d->names);
	d->names = array_of(steal_ptr(&copy), bytes);
	return 0;
}

static bool is_dir(const char *name)
{
	return name[strlen(name) - 1] == '/';
}

static int make_children(struct dir *d)
{
	const char *p = array_data(&d->names);
	size_t n = 0, want = d->children;

	d->children = 0;
	if (want == 0)
		return 0;
	d->child = calloc(want, sizeof(struct dir *));
	if (!d->child)
		return -ENOMEM;
	for (; n < want; p += strlen(p) + 1) {
		if (!is_dir(p))
			continue;
		d->child[n] = dir_new(d->l, d, p);
		if (!d->child[n++])
			return -ENOMEM;
		d->children = n;
	}
	return 0;
}

static int dir_open(const struct dir *d)
{
	char path[PATH_MAX] = "";

	if (d->path_len > 0)
		memcpy(path, d->path, d->path_len - 1);
	return openat(d->l->ds->dir, d->path_len > 0 ? path : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Did a link lead back to a directory that contains this one? */
static bool is_loop(const struct dir *d)
{
	for (const struct dir *up = d->parent; up; up = up->parent)
		if (up->dev == d->dev && up->ino == d->ino)
			return true;
	return false;
}

/* Does the error mean that the directory was removed or replaced after its
 * parent was listed? Then the mtime of the parent has changed, so that the next
 * open scans the dataset again. */
static bool is_gone(const struct dir *d, int error)
{
	return d->path_len > 0 &&
		(error == ENOENT || error == ENOTDIR || error == ELOOP);
}

static int dir_read(struct dir *d)
{
	struct stat st;
	int fd = dir_open(d), rc;

	look_answered(d->l);
	if (fd < 0)
		return is_gone(d, errno) ? 0 : -errno;
	rc = fstat(fd, &st) < 0 ? -errno : 0;
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	if (rc < 0 || is_loop(d)) {
		d->links += rc == 0;
		/* Cannot lose data: nothing was written */
		(void)close(fd);
		return rc;
	}
	d->listed = true;
	d->mtime_ns = stat_mtime_ns(&st);
	d->fingerprint = stat_fingerprint(&st);
	rc = look_list(d->l, fd, name_seen, d);
	if (rc == 0)
		rc = dir_sort(d);
	return rc;
}

static void dir_main(struct thread_job *job)
{
	struct dir *d = CONTAINER_OF(job, struct dir, job);
	struct look *l = d->l;
	int rc = look_stopped(l) ? -ECANCELED : dir_read(d);

	if (rc == 0)
		rc = make_children(d);
	else
		d->children = 0; /* the children were counted but not created */
	if (rc < 0)
		(void)look_fail(
			l, rc, "cannot list '%s/%s': %m", l->path, d->path);
	else
		for (size_t i = 0; i < d->children; i++)
			look_submit(l, &d->child[i]->job);
	look_ended(l);
}

/* -- The tables ------------------------------------------------------------ */

/* The tables that are being filled. */
struct filling {
	struct labels labels;
	struct known known;
};

/* Collect the files of this directory and all directories below it that may be
 * members. */
static int add_others(const struct dir *d, struct known *known)
{
	const char *p = array_data(&d->others),
		   *end = p ? p + array_bytes(&d->others) : p;
	int rc = 0;

	for (; rc == 0 && p < end; p += strlen(p) + 1) {
		const struct known_file f = {
			.stem_bytes = (uint32_t)stem_of_file(p)};

		rc = known_add(known, d->path, p, &f);
	}
	for (size_t i = 0; rc == 0 && i < d->children; i++)
		rc = add_others(d->child[i], known);
	return rc;
}

static int add_file(const struct dir *d, const char *name, int32_t label,
	struct filling *to)
{
	const struct ds_whole w = {.label = label};
	char path[2 * PATH_MAX];
	int rc = ds_add_whole(d->l->ds, d->path, d->path_len, name, &w);

	if (rc < 0 || !d->l->members)
		return rc;
	(void)snprintf(path, sizeof(path), "%s%s", d->path, name);
	return ds_members_add(d->l, &to->known, "", path, stem_of_file(path));
}

static int add_files(struct dir *d, struct filling *to);

static int add_child(struct dir *d, size_t i, struct filling *to)
{
	int rc = add_files(d->child[i], to);

	dir_free(d->child[i]);
	d->child[i] = NULL;
	return rc;
}

/* Returns the label of the files in a directory. Their class is the first
 * directory of the path. */
static int32_t label_of(const struct dir *d, struct labels *labels)
{
	if (d->path_len == 0)
		return -1;
	return labels_add(labels, d->path, strcspn(d->path, "/"));
}

static int watch_dir(const struct dir *d)
{
	char path[PATH_MAX];

	d->l->ds->links += d->links;
	if (!d->listed || d->path_len == 0) /* the root is already watched */
		return 0;
	memcpy(path, d->path, d->path_len - 1);
	path[d->path_len - 1] = '\0';
	return ds_add_watch(d->l->ds, path, d->mtime_ns, d->fingerprint);
}

/* Add the files of a directory and all directories below it, in order. A label
 * is created when the first file needs it. */
static int add_files(struct dir *d, struct filling *to)
{
	const char *p = array_data(&d->names),
		   *end = p ? p + array_bytes(&d->names) : p;
	int32_t label = -1;
	size_t child = 0;
	int rc = watch_dir(d);

	if (rc == 0)
		rc = look_skip(d->l, d->skipped, d->path, d->first_skipped);
	if (rc == 0 && look_stopped(d->l))
		rc = -ECANCELED;
	for (; rc == 0 && p < end; p += strlen(p) + 1) {
		if (is_dir(p)) {
			rc = add_child(d, child++, to);
			continue;
		}
		if (label < 0 && d->path_len > 0)
			label = label_of(d, &to->labels);
		rc = label == -ENOMEM ? -ENOMEM : add_file(d, p, label, to);
	}
	return rc;
}

/* Every directory in the root is a class, even if it has no example. */
static int add_classes(const struct dir *root, struct labels *labels)
{
	const char *p = array_data(&root->classes),
		   *end = p ? p + array_bytes(&root->classes) : p;

	for (; p < end; p += strlen(p) + 1)
		if (labels_add(labels, p, strlen(p)) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

int look_folder(struct look *l)
{
	struct filling to = {.labels = {.table = {NULL, 0, 0}}};
	struct dir *root = dir_new(l, NULL, "");
	int rc = root ? look_workers(l) : -ENOMEM;

	ds_begin(l->ds, EXAMPLES_WHOLE);
	if (rc == 0) {
		look_submit(l, &root->job);
		rc = look_wait(l);
	}
	if (rc == 0)
		rc = add_classes(root, &to.labels);
	if (rc == 0)
		rc = add_others(root, &to.known);
	if (rc == 0)
		rc = add_files(root, &to);
	if (rc == 0)
		rc = known_skip(l, &to.known, "", false);
	if (rc == 0)
		rc = labels_finish(&to.labels, l->ds, false);
	labels_release(&to.labels);
	known_release(&to.known);
	dir_free(root);
	return rc < 0 ? look_fail(l, rc, "%m") : 0;
}
