/* SPDX-License-Identifier: MIT */
/* The grants of a cache root; see grants.h. No state. */
#include "mount/store/grants.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/owned.h"

#define GRANTS_NAME "refrain-grants"
#define GRANTS_NEW_NAME "refrain-grants.new"
#define GRANTS_LOCK_NAME "refrain-grants.lock"
#define GRANTS_BYTES ((size_t)128 << 10)
#define GRANTS_TRY_MS 5

static const char grants_first[] = "refrain grants 1\n";

void grant_name(const char *dataset, char name[GRANT_NAME_MAX])
{
	struct hash128 h = hash128(dataset, strlen(dataset));

	(void)snprintf(name, GRANT_NAME_MAX, "%012" PRIx64, h.hi >> 16);
}

int grants_lock(int root_fd)
{
	const struct timespec wait = {.tv_nsec = GRANTS_TRY_MS * 1000000L};
	CLEANUP_FD int fd = openat(root_fd, GRANTS_LOCK_NAME,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	int rc = fd < 0 ? -errno : owned_file(root_fd, fd);

	if (rc < 0)
		return rc;
	for (int i = 0; i <= GRANTS_WAIT_MS / GRANTS_TRY_MS; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return steal_fd(&fd);
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		(void)nanosleep(&wait, NULL); /* an early return is harmless */
	}
	return -EBUSY;
}

static int grants_parse(char *text, struct grants *g)
{
	char *line, *rest = text + strlen(grants_first);

	if (strncmp(text, grants_first, strlen(grants_first)) != 0)
		return -EBADMSG;
	line = strsep(&rest, "\n");
	if (sscanf(line, "root %" SCNu64 " %" SCNu64, &g->bytes, &g->inodes) !=
		2)
		return -EBADMSG;
	while (rest && *rest && (line = strsep(&rest, "\n"))) {
		struct grant *one = &g->grant[g->n];

		if (g->n == GRANTS_DATASETS_MAX ||
			sscanf(line, "%31[0-9a-z-] %" SCNu64 " %" SCNu64,
				one->name, &one->bytes, &one->inodes) != 3)
			return -EBADMSG;
		g->n++;
	}
	return 0;
}

int grants_read(int root_fd, struct grants *g)
{
	CLEANUP_FREE char *text = malloc(GRANTS_BYTES + 1);
	CLEANUP_FD int fd = openat(root_fd, GRANTS_NAME,
		O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;
	int rc;

	memset(g, 0, sizeof(*g));
	if (!text)
		return -ENOMEM;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = owned_file(root_fd, fd);
	if (rc < 0)
		return rc;
	n = read(fd, text, GRANTS_BYTES);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return grants_parse(text, g);
}

int grants_write(int root_fd, const struct grants *g)
{
	CLEANUP_FD int fd = openat(root_fd, GRANTS_NEW_NAME,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int n;

	if (fd < 0)
		return -errno;
	n = dprintf(fd, "%sroot %" PRIu64 " %" PRIu64 "\n", grants_first,
		g->bytes, g->inodes);
	for (unsigned i = 0; n > 0 && i < g->n; i++)
		n = dprintf(fd, "%s %" PRIu64 " %" PRIu64 "\n",
			g->grant[i].name, g->grant[i].bytes,
			g->grant[i].inodes);
	if (n < 0 || fsync(fd) < 0)
		return errno ? -errno : -EIO;
	if (renameat(root_fd, GRANTS_NEW_NAME, root_fd, GRANTS_NAME) < 0)
		return -errno;
	return 0;
}

struct grant *grants_find(struct grants *g, const char *name)
{
	for (unsigned i = 0; i < g->n; i++)
		if (strcmp(g->grant[i].name, name) == 0)
			return &g->grant[i];
	return NULL;
}

struct grant *grants_add(struct grants *g, const char *name)
{
	struct grant *one;

	if (g->n == GRANTS_DATASETS_MAX)
		return NULL;
	one = &g->grant[g->n++];
	memset(one, 0, sizeof(*one));
	(void)snprintf(one->name, sizeof(one->name), "%s", name);
	return one;
}

void grants_remove(struct grants *g, struct grant *grant)
{
	*grant = g->grant[--g->n];
}

bool grant_is_dropping(const char *name)
{
	return strncmp(name, GRANT_DROP_PREFIX, strlen(GRANT_DROP_PREFIX)) == 0;
}

uint64_t grants_file(int root_fd)
{
	struct stat st;

	if (fstatat(root_fd, GRANTS_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_ino ^ (uint64_t)st.st_mtim.tv_nsec << 32;
}

struct grants_sum grants_sum(const struct grants *g)
{
	struct grants_sum sum = {0, 0};

	for (unsigned i = 0; i < g->n; i++) {
		sum.bytes += g->grant[i].bytes;
		sum.inodes += g->grant[i].inodes;
	}
	return sum;
}

uint64_t grants_left_bytes(const struct grants *g)
{
	uint64_t sum = grants_sum(g).bytes;

	return sum < g->bytes ? g->bytes - sum : 0;
}

uint64_t grants_left_inodes(const struct grants *g)
{
	uint64_t sum = grants_sum(g).inodes;

	if (g->inodes == 0)
		return UINT64_MAX;
	return sum < g->inodes ? g->inodes - sum : 0;
}
