/* SPDX-License-Identifier: MIT */
/* Reads the rendition of a dataset; see rendition.h. */
#include "common/format/rendition.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/json.h"

static void rendition_parse(
	const char *json, size_t bytes, char text[RENDITION_MAX])
{
	char version[8];

	text[0] = '\0';
	if (json_find(json, bytes, "refrain_recode", version, sizeof(version)) <
			0 ||
		!version[0] ||
		json_find(json, bytes, "rendition", text, RENDITION_MAX) < 0)
		text[0] = '\0';
}

int rendition_read(int dir_fd, char text[RENDITION_MAX])
{
	CLEANUP_FD int fd = openat(
		dir_fd, RENDITION_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP_FREE char *json = NULL;
	struct stat st;
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > RENDITION_FILE_MAX)
		return 0;
	json = malloc(RENDITION_FILE_MAX);
	if (!json)
		return -ENOMEM;
	n = pread(fd, json, RENDITION_FILE_MAX, 0);
	if (n < 0)
		return -errno;
	rendition_parse(json, (size_t)n, text);
	return 0;
}
