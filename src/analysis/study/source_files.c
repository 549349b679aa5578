/* SPDX-License-Identifier: MIT */
/* Looks at the names of a dataset; see source_files_impl.h. */
#include "analysis/study/source_files_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "analysis/subject/stand_in.h"

/* Limits: NAMES_MAX names in all; a number of names in one directory, because
 * other directories may hold other kinds of files; levels of directories. */
#define NAMES_MAX 20000
#define NAMES_DIR_MAX 256
#define NAMES_LEVELS_MAX 8

/* If this share of the files are of one kind, the others may be lists of them.
 */
#define NEARLY_ALL 0.95

/* If fewer than this many other files are beside images, they may be lists,
 * too. */
#define OTHERS_LEAST 10

/* Endings of files that are one sample each; see sample_unit.c. */
static const char *const sample_ends[] = {"jpg", "jpeg", "png", "webp", "bmp",
	"gif", "tif", "tiff", "ppm", "wav", "flac"};

/* Hashes of the parts of a name before and after its last dot. */
struct name {
	uint64_t stem, end;
};

struct names {
	/* images: number of files that can stand in for others; others: number
	 * of files that are not samples */
	unsigned looks, images, others;
	struct name *name;
	size_t files, room;
};

static bool ends_as_sample(const char *end)
{
	for (size_t i = 0; i < sizeof(sample_ends) / sizeof(sample_ends[0]);
		i++)
		if (strcasecmp(end, sample_ends[i]) == 0)
			return true;
	return false;
}

/* Look at a name. If memory is short, leave it out. */
static void look_at_name(struct names *n, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t length = dot ? (size_t)(dot - name) : strlen(name);
	const char *end = dot ? dot + 1 : "";

	if (ARRAY_ROOM(n->name, n->files, &n->room) < 0)
		return;
	n->name[n->files++] = (struct name){
		hash64(name, length, 0), hash64(end, strlen(end), 0)};
	n->images += stand_in_is_image(name);
	n->others += !ends_as_sample(end);
}

/* Look at the names below a directory. Closes `fd`. */
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
			look_at_name(n, d->d_name);
		if (!S_ISDIR(st.st_mode) || levels == 0)
			continue;
		below = openat(dirfd(dir), d->d_name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below >= 0)
			names_below(n, below, levels - 1);
	}
}

/* Look at all names. The caller frees n->name. */
static void look_at_names(struct names *n, const char *top)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		names_below(n, fd, NAMES_LEVELS_MAX);
}

bool names_are_images(const char *top)
{
	struct names n = {.files = 0};

	look_at_names(&n, top);
	free(n.name);
	return n.files > 0 && n.images >= NEARLY_ALL * (double)n.files;
}

static int by_stem(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return (x->stem > y->stem) - (x->stem < y->stem);
}

/* Count the files that have another file whose name differs only in its ending.
 */
static size_t count_pairs(struct names *n)
{
	size_t pairs = 0;

	if (n->files > 0)
		qsort(n->name, n->files, sizeof(n->name[0]), by_stem);
	for (size_t i = 1; i < n->files; i++)
		pairs += n->name[i].stem == n->name[i - 1].stem &&
			n->name[i].end != n->name[i - 1].end;
	return pairs;
}

bool names_are_mixed(const char *top)
{
	struct names n = {.files = 0};
	double few;
	size_t pairs;

	look_at_names(&n, top);
	pairs = count_pairs(&n);
	free(n.name);
	few = (1 - NEARLY_ALL) * (double)n.files;
	return pairs > few ||
		(n.others >= OTHERS_LEAST && n.others > few &&
			(double)(n.files - n.others) > few);
}
