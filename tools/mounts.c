/* SPDX-License-Identifier: MIT */
/* /proc/self/mountinfo, read for one mount. No state. */
#include "mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define REFRAIN_TYPE "fuse.refrain"

/*
 * As realpath(), but without looking at the last component, for that fails
 * on a mount whose daemon is dead.
 */
static char *parent_realpath(const char *path)
{
	CLEANUP_FREE char *copy = strdup(path);
	CLEANUP_FREE char *parent = NULL;
	char *slash, *joined = NULL;
	size_t len = copy ? strlen(copy) : 0;

	if (!copy)
		return NULL;
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	slash = strrchr(copy, '/');
	if (slash)
		*slash = '\0';
	parent = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (!parent ||
		asprintf(&joined, "%s/%s",
			strcmp(parent, "/") == 0 ? "" : parent,
			slash ? slash + 1 : copy) < 0)
		return NULL;
	return joined;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undo \040 and the like, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; to++) {
		if (text[0] == '\\' && is_octal(text[1]) && is_octal(text[2]) &&
			is_octal(text[3])) {
			*to = (char)((text[1] - '0') << 6 |
				(text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/*
 * "ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAG ...] - TYPE SOURCE ...":
 * the type, if the line is of this mountpoint; cuts the line up.
 */
static const char *type_at(char *line, const char *mountpoint)
{
	char *field = NULL, *save = NULL, *rest = strstr(line, " - ");

	if (!rest)
		return NULL;
	*rest = '\0';
	rest += 3;
	rest[strcspn(rest, " ")] = '\0';
	for (int i = 0; i < 5; i++) {
		field = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (!field)
			return NULL;
	}
	unescape(field);
	return strcmp(field, mountpoint) == 0 ? rest : NULL;
}

/* 1: a refrain mount, 0: another, -ENOENT: none. The last one is on top. */
static int find_type(const char *mountpoint)
{
	FILE *list = fopen("/proc/self/mountinfo", "re");
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	int found = -ENOENT;

	if (!list)
		return -errno;
	while (getline(&line, &room, list) > 0) {
		const char *type = type_at(line, mountpoint);

		if (type)
			found = strcmp(type, REFRAIN_TYPE) == 0;
	}
	(void)fclose(list); /* was only read */
	return found;
}

int mounts_find(const char *path, char **canonical, struct error *err)
{
	CLEANUP_FREE char *real = realpath(path, NULL);
	int rc;

	if (!real && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, -errno, "cannot find '%s': %m", path);
	if (!real)
		real = parent_realpath(path);
	if (!real)
		return error_set(err, -errno, "cannot find '%s': %m", path);
	rc = find_type(real);
	if (rc == -ENOENT)
		return error_set(
			err, -EINVAL, "nothing is mounted at '%s'", path);
	if (rc < 0)
		return error_set(err, rc, "cannot read the list of mounts: %m");
	if (rc == 0)
		return error_set(err, -EINVAL,
			"'%s' is not a refrain mount: use umount(8)", path);
	*canonical = steal_ptr(&real);
	return 0;
}
