/* SPDX-License-Identifier: MIT */
/* Opens annotations: maps their catalogue, or parses the file; see
 * annotations.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "loader/dataset/annotations_impl.h"

static struct ann_source source_of_file(const struct stat *st)
{
	return (struct ann_source){
		.mtime_ns =
			clock_file_ns(st->st_mtim.tv_sec, st->st_mtim.tv_nsec),
		.bytes = (uint64_t)st->st_size,
		.inode = st->st_ino,
	};
}

/* Map the catalogue, or make one. */
static int fill_annotations(struct annotations *a, int fd, const char *path,
	const char *cache_dir, struct error *err)
{
	CLEANUP_FREE char *real = realpath(path, NULL);
	struct ann_source source;
	struct hash128 key;
	struct stat st;
	int rc;

	if (!real || fstat(fd, &st) < 0)
		return error_set(err, -errno, "cannot open '%s': %m", path);
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, -EINVAL, "'%s' is not a regular file", path);
	source = source_of_file(&st);
	key = hash128(real, strlen(real));
	if (cache_dir && annotations_map(a, cache_dir, key, &source) == 0)
		return 0;
	rc = annotations_parse(a, fd, path, err);
	if (rc == 0 && cache_dir)
		annotations_keep(a, cache_dir, key, &source);
	return rc;
}

int annotations_open(struct annotations **out, const char *path,
	const char *cache_dir, struct error *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct annotations *a = calloc(1, sizeof(*a));
	int rc;

	*out = NULL;
	if (!a)
		return error_set(err, -ENOMEM, "%m");
	rc = fd < 0 ? error_set(err, -errno, "cannot open '%s': %m", path)
		    : fill_annotations(a, fd, path, cache_dir, err);
	if (rc < 0) {
		annotations_close(a);
		return rc;
	}
	*out = a;
	return 0;
}
