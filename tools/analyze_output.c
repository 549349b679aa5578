/* SPDX-License-Identifier: MIT */
/* Checks and writes output files; see analyze_output.h. One thread, no state.
 */
#include "analyze_output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

static int output_failed(const char *path, int number, struct error *err)
{
	errno = number;
	return error_set(err, -number, "cannot write '%s': %m", path);
}

/* -- Before measuring ------------------------------------------------------ */

static int check_parent(const char *path, struct error *err)
{
	CLEANUP_FREE char *copy = strdup(path);

	if (!copy)
		return error_set(err, -ENOMEM, "%m");
	return access(dirname(copy), W_OK | X_OK) < 0
		? output_failed(path, errno, err)
		: 0;
}

int output_check(const char *path, struct error *err)
{
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return output_failed(path, EISDIR, err);
		return access(path, W_OK) < 0 ? output_failed(path, errno, err)
					      : 0;
	}
	if (errno != ENOENT)
		return output_failed(path, errno, err);
	/* If lstat() finds the path, it is a link to a file that does
	 * not exist yet; writing creates that file. */
	return lstat(path, &st) < 0 ? check_parent(path, err) : 0;
}

/* -- After it -------------------------------------------------------------- */

/* Create a temporary file beside `path`. It gets the permissions of `path`, or
 * those of a new file. */
static FILE *open_beside(const char *path, char **beside)
{
	mode_t mask = umask(0), mode = 0666 & ~mask;
	struct stat st;
	FILE *to = NULL;
	int fd;

	(void)umask(mask);
	if (lstat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return NULL;
		mode = st.st_mode & 0777;
	}
	if (asprintf(beside, "%s.XXXXXX", path) < 0) {
		*beside = NULL;
		return NULL;
	}
	fd = mkostemp(*beside, O_CLOEXEC);
	if (fd >= 0 && fchmod(fd, mode) == 0)
		to = fdopen(fd, "w");
	if (fd >= 0 && !to) {
		(void)unlink(*beside);
		(void)close(fd);
	}
	return to;
}

int output_write(const char *path, void (*put)(FILE *to, const void *what),
	const void *what, struct error *err)
{
	CLEANUP_FREE char *beside = NULL;
	FILE *to = open_beside(path, &beside);
	bool replace = to != NULL, bad;

	/* If no temporary file can be created, write to `path` itself. */
	if (!replace)
		to = fopen(path, "we");
	if (!to)
		return output_failed(path, errno, err);
	put(to, what);
	errno = EIO; /* errno no longer has the code of the failed write */
	bad = ferror(to);
	bad = fclose(to) != 0 || bad || (replace && rename(beside, path) < 0);
	if (!bad)
		return 0;
	(void)output_failed(path, errno, err);
	if (replace)
		/* the error of the write is reported, not of this call */
		(void)unlink(beside);
	return -EIO;
}
