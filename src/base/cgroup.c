/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc/self/mountinfo for the hierarchies that control memory,
 * /proc/self/cgroup for the group of this process in each, and the limits of
 * that group and its parents. No state, callable from any thread.
 */
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mountinfo.h"

/* Version 1 reports "no limit" as the largest multiple of a page size. */
#define LIMIT_MAX (UINT64_C(1) << 62)

struct hierarchy {
	bool v2;
	const char *root;  /* the group that is mounted */
	const char *mount; /* where it is mounted */
};

static FILE *open_below(const char *root, const char *path)
{
	char full[2 * PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* Is `word` in the list `words`, which commas separate? */
static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, n) == 0 &&
			(at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
			return true;
	}
	return false;
}

/* Returns false if something else is mounted. */
static bool to_hierarchy(const struct mountinfo_entry *e, struct hierarchy *h)
{
	h->v2 = strcmp(e->type, "cgroup2") == 0;
	h->root = e->root;
	h->mount = e->path;
	return h->v2 ||
		(strcmp(e->type, "cgroup") == 0 &&
			has_word(e->options, "memory"));
}

/* Lines of /proc/self/cgroup: "ID:CONTROLLERS:GROUP"; version 2: "0::GROUP" */
static char *parse_group(char *line, bool v2)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return NULL;
	*controllers++ = '\0';
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (v2)
		return *controllers == '\0' ? group : NULL;
	return has_word(controllers, "memory") ? group : NULL;
}

/* The group of this process in a hierarchy, to be freed, or NULL. */
static char *group_of_process(const char *root, bool v2)
{
	FILE *f = open_below(root, "/proc/self/cgroup");
	CLEANUP_FREE char *line = NULL;
	char *group = NULL;
	size_t cap = 0;

	if (!f)
		return NULL;
	while (!group && getline(&line, &cap, f) > 0)
		group = parse_group(line, v2);
	group = group ? strdup(group) : NULL;
	(void)fclose(f); /* was only read */
	return group;
}

/*
 * The group's path below the mount, "" for the mounted group itself. A
 * namespace may hide where the group is: it then lies outside of the mount
 * ("/..", or another branch), and only the mounted group can be read.
 */
static const char *below_mount(const char *group, const char *mounted)
{
	size_t n = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);

	if (strncmp(group, mounted, n) != 0 ||
		(group[n] != '/' && group[n] != '\0') || strstr(group, "/.."))
		return "";
	return strcmp(group + n, "/") == 0 ? "" : group + n;
}

/* The number behind `key` at the start of a line of the file. */
static uint64_t read_limit(
	const char *root, const char *dir, const char *name, const char *key)
{
	uint64_t limit = CGROUP_NO_LIMIT;
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0, n = strlen(key);
	char path[PATH_MAX];
	FILE *f;
	int length = snprintf(path, sizeof(path), "%s/%s", dir, name);

	if (length < 0 || (size_t)length >= sizeof(path))
		return CGROUP_NO_LIMIT;
	f = open_below(root, path);
	if (!f)
		return CGROUP_NO_LIMIT;
	/* "max" is skipped, as it is not a number. */
	while (getline(&line, &cap, f) > 0)
		if (strncmp(line, key, n) == 0 &&
			sscanf(line + n, "%" SCNu64, &limit) == 1)
			break;
	(void)fclose(f); /* was only read */
	return limit < LIMIT_MAX ? limit : CGROUP_NO_LIMIT;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t limit_of_group(const char *root, const char *dir, bool v2)
{
	uint64_t limit;

	if (v2)
		return read_limit(root, dir, "memory.max", "");
	limit = read_limit(root, dir, "memory.limit_in_bytes", "");
	/* The second value also covers parents that are not mounted here. */
	return lesser(limit,
		read_limit(root, dir, "memory.stat",
			"hierarchical_memory_limit "));
}

static uint64_t hierarchy_limit(const char *root, const struct hierarchy *h)
{
	CLEANUP_FREE char *group = group_of_process(root, h->v2);
	uint64_t limit = CGROUP_NO_LIMIT;
	size_t top = strlen(h->mount);
	char dir[PATH_MAX];
	char *slash;
	int n;

	if (!group)
		return CGROUP_NO_LIMIT;
	n = snprintf(dir, sizeof(dir), "%s%s", h->mount,
		below_mount(group, h->root));
	if (n < 0 || (size_t)n >= sizeof(dir))
		return CGROUP_NO_LIMIT;
	for (;;) {
		limit = lesser(limit, limit_of_group(root, dir, h->v2));
		slash = strrchr(dir, '/');
		if (strlen(dir) <= top || !slash)
			return limit;
		*slash = '\0';
	}
}

uint64_t cgroup_memory_limit(const char *root)
{
	struct mountinfo list = {
		.file = open_below(root, "/proc/self/mountinfo")};
	uint64_t limit = CGROUP_NO_LIMIT;
	struct mountinfo_entry e;
	struct hierarchy h;

	if (!list.file)
		return CGROUP_NO_LIMIT;
	while (mountinfo_next(&list, &e))
		if (to_hierarchy(&e, &h))
			limit = lesser(limit, hierarchy_limit(root, &h));
	mountinfo_close(&list);
	return limit;
}
