/* SPDX-License-Identifier: MIT */
/* The names of a dataset; see names_impl.h. */
#include "analyze/names_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "stand_in/stand_in.h"

/* Names that are looked at, in all and in one directory, as others may hold
 * other files; and levels of directories. */
#define NAMES_MAX 20000
#define NAMES_DIR_MAX 256
#define NAMES_LEVELS_MAX 8

/* The rest is lists and the like. */
#define NEARLY_ALL 0.95

struct names {
	unsigned looks, files, images;
};

static void names_look(struct names *n, const char *name)
{
	n->files++;
	n->images += stand_in_is_image(name);
}

/* Takes over `fd`. */
static void names_below(struct names *n, int fd, unsigned levels)
{
	CLEANUP_DIR DIR *dir = fdopendir(fd);
	unsigned here = 0;
	const struct dirent *d;

	if (!dir)
		(void)close(fd);
	while (dir && n->looks < NAMES_MAX && (d = readdir(dir))) {
		struct stat st;
		int below;

		if (d->d_name[0] == '.')
			continue;
		n->looks++;
		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) <
			0)
			continue;
		if (S_ISREG(st.st_mode) && here++ < NAMES_DIR_MAX)
			names_look(n, d->d_name);
		if (!S_ISDIR(st.st_mode) || levels == 0)
			continue;
		below = openat(dirfd(dir), d->d_name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below >= 0)
			names_below(n, below, levels - 1);
	}
}

bool names_are_images(const char *top)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct names n = {.files = 0};

	if (fd >= 0)
		names_below(&n, fd, NAMES_LEVELS_MAX);
	return n.files > 0 && n.images >= NEARLY_ALL * n.files;
}
