/* SPDX-License-Identifier: MIT */
/* Reads, sorts and shuffles a list of files; see file_list.h. No threads, no
 * globals. */
#include "file_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"

static int list_add(struct file_list *l, const char *path, uint64_t size_bytes)
{
	char *copy = strdup(path);

	if (!copy || ARRAY_ROOM(l->items, l->n, &l->room) < 0) {
		free(copy);
		return -ENOMEM;
	}
	l->items[l->n++] =
		(struct file_item){.path = copy, .size_bytes = size_bytes};
	l->bytes += size_bytes;
	return 0;
}

static int walk(struct file_list *l, int parent, const char *path,
	const char *name, struct error *err);

static int walk_entry(struct file_list *l, int dir_fd, const char *path,
	const char *name, struct error *err)
{
	CLEANUP_FREE char *child = NULL;
	struct stat st;
	int rc;

	if (asprintf(&child, "%s%s%s", path, *path ? "/" : "", name) < 0) {
		child = NULL; /* its value is undefined after a failure */
		return error_set(err, -ENOMEM, "%m");
	}
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, -errno, "cannot stat '%s': %m", child);
	if (S_ISDIR(st.st_mode))
		return walk(l, dir_fd, child, name, err);
	if (!S_ISREG(st.st_mode))
		return 0;
	rc = list_add(l, child, (uint64_t)st.st_size);
	return rc < 0 ? error_set(err, rc, "%m") : 0;
}

static int walk(struct file_list *l, int parent, const char *path,
	const char *name, struct error *err)
{
	CLEANUP_FD int fd =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = 0;

	if (!dir)
		return error_set(err, -errno, "cannot list '%s': %m",
			*path ? path : ".");
	(void)steal_fd(&fd); /* fdopendir() has taken the descriptor */
	while (rc == 0) {
		errno = 0;
		e = readdir(dir);
		if (!e)
			return errno ? error_set(err, -errno,
					       "cannot list '%s': %m", path)
				     : 0;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = walk_entry(l, dirfd(dir), path, e->d_name, err);
	}
	return rc;
}

static int by_path(const void *a, const void *b)
{
	const struct file_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int file_list_walk(struct file_list *l, int dir_fd, struct error *err)
{
	int rc = walk(l, dir_fd, "", ".", err);

	/* Sort, because a directory's entries have no defined order. */
	if (l->n)
		qsort(l->items, l->n, sizeof(*l->items), by_path);
	return rc;
}

static void chomp(char *line)
{
	line[strcspn(line, "\n")] = '\0';
}

int file_list_load(
	struct file_list *l, int dir_fd, const char *names, struct error *err)
{
	CLEANUP_FREE char *line = NULL;
	FILE *in = fopen(names, "re");
	size_t room = 0;
	struct stat st;
	int rc = 0;

	if (!in)
		return error_set(err, -errno, "cannot open '%s': %m", names);
	while (rc == 0 && getline(&line, &room, in) > 0) {
		chomp(line);
		if (fstatat(dir_fd, line, &st, 0) < 0)
			rc = error_set(
				err, -errno, "cannot stat '%s': %m", line);
		else if (list_add(l, line, (uint64_t)st.st_size) < 0)
			rc = error_set(err, -ENOMEM, "%m");
	}
	(void)fclose(in); /* cannot lose data: the file was only read */
	return rc;
}

void file_list_release(struct file_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct file_list){.items = NULL};
}

int file_list_save_sums(
	const struct file_list *l, const char *to, struct error *err)
{
	FILE *out = fopen(to, "we");
	bool bad;

	if (!out)
		return error_set(err, -errno, "cannot write '%s': %m", to);
	for (size_t i = 0; i < l->n; i++)
		fprintf(out, "%016" PRIx64 " %" PRIu64 " %s\n", l->items[i].sum,
			l->items[i].size_bytes, l->items[i].path);
	bad = ferror(out);
	bad = fclose(out) != 0 || bad;
	return bad ? error_set(err, -EIO, "cannot write '%s': %m", to) : 0;
}

static int take_sum(struct file_list *l, size_t i, const char *line)
{
	struct file_item *item = &l->items[i];
	uint64_t sum, size;
	int at = 0;

	if (i >= l->n ||
		sscanf(line, "%" SCNx64 " %" SCNu64 " %n", &sum, &size, &at) <
			2 ||
		at == 0)
		return -EBADMSG;
	if (strcmp(line + at, item->path) != 0 || size != item->size_bytes)
		return -EBADMSG;
	item->sum = sum;
	return 0;
}

int file_list_load_sums(
	struct file_list *l, const char *from, struct error *err)
{
	CLEANUP_FREE char *line = NULL;
	FILE *in = fopen(from, "re");
	size_t room = 0, i = 0;
	int rc = 0;

	if (!in)
		return error_set(err, -errno, "cannot open '%s': %m", from);
	while (rc == 0 && getline(&line, &room, in) > 0) {
		chomp(line);
		rc = take_sum(l, i++, line);
	}
	(void)fclose(in); /* cannot lose data: the file was only read */
	if (rc < 0)
		return error_set(err, rc,
			"'%s', line %zu: does not match the "
			"files",
			from, i);
	if (i != l->n)
		return error_set(err, -EBADMSG, "'%s' has %zu of %zu files",
			from, i, l->n);
	return 0;
}

void file_list_shuffle(size_t *order, size_t n, uint64_t seed, unsigned epoch)
{
	uint64_t text[2] = {epoch, 0};

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t j, tmp = order[i - 1];

		text[1] = i;
		j = (size_t)(hash64(text, sizeof(text), seed) % i);
		order[i - 1] = order[j];
		order[j] = tmp;
	}
}
