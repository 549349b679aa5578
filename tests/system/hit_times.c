/* SPDX-License-Identifier: MIT */
/*
 * hit_times: measures how long single reads of a mount's files take when the
 * kernel has none of their bytes, so that the daemon answers each. One thread.
 *
 * \thit_times DIR COUNT <LIST
 *
 * LIST names files below DIR, one relative path a line. Opens and reads COUNT
 * of them (up to 64 KiB from their start), drawn at random; prints the median,
 * the 99th percentile and the longest time in microseconds. After each read, an
 * fadvise() drops the pages of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define READ_BYTES 65536
#define FILES_MAX 4096

struct names {
	char *path[FILES_MAX];
	size_t n;
};

static int read_names(struct names *names)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;

	while (names->n < FILES_MAX && getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		names->path[names->n] = strdup(line);
		if (!names->path[names->n])
			return -ENOMEM;
		names->n++;
	}
	return names->n > 0 ? 0 : -ENOENT;
}

static int drop(int dir_fd, const char *path)
{
	CLEANUP_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int time_one(int dir_fd, const char *path, uint64_t *ns)
{
	static char buf[READ_BYTES];
	uint64_t start_ns = clock_now_ns();
	CLEANUP_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, buf, sizeof(buf), 0);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	*ns = clock_now_ns() - start_ns;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int measure(int dir_fd, const struct names *names, size_t count)
{
	CLEANUP_FREE uint64_t *ns = calloc(count, sizeof(*ns));
	unsigned state = 1;
	int rc = ns ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < names->n; i++)
		rc = drop(dir_fd, names->path[i]);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const char *path;

		state = state * 1103515245u + 12345u;
		path = names->path[(state >> 8) % names->n];
		rc = time_one(dir_fd, path, &ns[i]);
		if (rc < 0)
			fprintf(stderr, "hit_times: '%s': %s\n", path,
				strerror(-rc));
	}
	if (rc < 0)
		return rc;
	qsort(ns, count, sizeof(*ns), compare);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		ns[count / 2] / NS_PER_US, ns[count * 99 / 100] / NS_PER_US,
		ns[count - 1] / NS_PER_US);
	return 0;
}

int main(int argc, char **argv)
{
	static struct names names;
	CLEANUP_FD int fd = -1;
	size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	int rc;

	if (count == 0) {
		fprintf(stderr, "usage: hit_times DIR COUNT <LIST\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 ? -errno : read_names(&names);
	if (rc == 0)
		rc = measure(fd, &names, count);
	if (rc < 0)
		fprintf(stderr, "hit_times: %s\n", strerror(-rc));
	while (names.n > 0)
		free(names.path[--names.n]);
	return rc < 0;
}
