/* SPDX-License-Identifier: MIT */
/* Writes whole buffers to files. */
#include "common/base/write.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	while (bytes > 0) {
		ssize_t done = write(fd, p, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		bytes -= (size_t)done;
	}
	return 0;
}
