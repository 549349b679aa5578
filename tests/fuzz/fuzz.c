/* SPDX-License-Identifier: MIT */
/* The list of fuzz targets and their common functions. One thread. */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct fuzz_target *const fuzz_targets[] = {
	&fuzz_tar,
	&fuzz_list,
	&fuzz_index,
	&fuzz_manifest,
	&fuzz_identity,
	&fuzz_entry,
	&fuzz_name,
	&fuzz_ctl,
	&fuzz_plan,
	&fuzz_fault,
	&fuzz_synthetic,
	&fuzz_size,
	&fuzz_json,
	&fuzz_option,
	&fuzz_decode,
	&fuzz_levels,
	&fuzz_transcode,
	&fuzz_png,
	&fuzz_yolo,
	&fuzz_npy,
	&fuzz_rows,
	&fuzz_coco,
	&fuzz_fields,
	&fuzz_share,
	&fuzz_memcached,
	&fuzz_service,
#ifdef HAVE_REMOTE
	&fuzz_answer,
#endif
	NULL,
};

static char paths[8][64];
static unsigned npaths;

static int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_dirs(void)
{
	while (npaths > 0)
		(void)nftw(
			paths[--npaths], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int fuzz_dir(char path[64])
{
	int fd;

	FUZZ_MUST(npaths < sizeof(paths) / sizeof(paths[0]));
	strcpy(path, "/dev/shm/refrain-fuzz-XXXXXX");
	if (!mkdtemp(path)) {
		strcpy(path, "/tmp/refrain-fuzz-XXXXXX");
		FUZZ_MUST(mkdtemp(path));
	}
	if (npaths == 0)
		(void)atexit(remove_dirs);
	strcpy(paths[npaths++], path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_MUST(fd >= 0);
	return fd;
}

void fuzz_file(int dir_fd, const char *name, const void *data, size_t size)
{
	int fd = openat(
		dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)close(fd);
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	FUZZ_MUST(text);
	return text;
}

size_t fuzz_seed_text(const char *const *texts, unsigned i, uint8_t *buf)
{
	while (i > 0 && *texts) {
		texts++;
		i--;
	}
	if (!*texts)
		return 0;
	memcpy(buf, *texts, strlen(*texts));
	return strlen(*texts);
}
