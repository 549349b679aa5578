/* SPDX-License-Identifier: MIT */
/* Checks whether a file was created by the owner of its directory. No state. */
#include "common/base/owned.h"

#include <errno.h>
#include <sys/stat.h>

int owned_file(int dir_fd, int fd)
{
	struct stat dir, st;

	if (fstat(dir_fd, &dir) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* If the file has a second name, another user may have linked a foreign
	 * file here. */
	return S_ISREG(st.st_mode) && st.st_uid == dir.st_uid &&
			st.st_nlink <= 1 && !(st.st_mode & 0022)
		? 0
		: -EPERM;
}
