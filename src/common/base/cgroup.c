/* SPDX-License-Identifier: MIT */
/* Reads the limits of the control group of this process and of its parents.
 * /proc/self/mountinfo names the hierarchies that control memory or processors,
 * /proc/self/cgroup the group of this process in each. No state, callable from
 * any thread. */
#include "common/base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"

/* Version 1 reports "no limit" as the largest multiple of a page size. */
#define LIMIT_MAX (UINT64_C(1) << 62)

/* The limits to read: those of memory or those of processors. */
struct controller {
	const char *name;
	/* Returns the limit of the group in directory `dir`; `v2`: the files
	 * are those of control groups of version 2. */
	uint64_t (*limit)(const char *root, const char *dir, bool v2);
};

struct hierarchy {
	bool v2;
	const char *root;  /* path of the group that is mounted */
	const char *mount; /* path of the mount */
};

static FILE *open_below(const char *root, const char *path)
{
	char full[2 * PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* Is `word` in `words`, a list with commas? */
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

/* Fill in the hierarchy from a mount. Returns false if the mount is not a
 * hierarchy of the controller. */
static bool to_hierarchy(const struct mountinfo_entry *e,
	const struct controller *c, struct hierarchy *h)
{
	h->v2 = strcmp(e->type, "cgroup2") == 0;
	h->root = e->root;
	h->mount = e->path;
	return h->v2 ||
		(strcmp(e->type, "cgroup") == 0 &&
			has_word(e->options, c->name));
}

/* Parse a line of /proc/self/cgroup: "ID:CONTROLLERS:GROUP" or, for version 2,
 * "0::GROUP". Returns GROUP, or NULL if the line is not for the controller. */
static char *parse_group(char *line, const struct controller *c, bool v2)
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
	return has_word(controllers, c->name) ? group : NULL;
}

/* Returns the group of this process in a hierarchy, or NULL. The caller frees
 * it. */
static char *group_of_process(
	const char *root, const struct controller *c, bool v2)
{
	FILE *f = open_below(root, "/proc/self/cgroup");
	CLEANUP_FREE char *line = NULL;
	char *group = NULL;
	size_t cap = 0;

	if (!f)
		return NULL;
	while (!group && getline(&line, &cap, f) > 0)
		group = parse_group(line, c, v2);
	group = group ? strdup(group) : NULL;
	(void)fclose(f); /* cannot lose data: the file was only read */
	return group;
}

/* Returns the path of the group below the mount, "" for the mounted group
 * itself. In a namespace, the group may be outside of the mount ("/..", or
 * another branch). Then only the mounted group can be read. */
static const char *below_mount(const char *group, const char *mounted)
{
	size_t n = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);

	if (strncmp(group, mounted, n) != 0 ||
		(group[n] != '/' && group[n] != '\0') || strstr(group, "/.."))
		return "";
	return strcmp(group + n, "/") == 0 ? "" : group + n;
}

static FILE *open_limit(const char *root, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n < 0 || (size_t)n >= sizeof(path) ? NULL
						  : open_below(root, path);
}

/* Returns the number after `key` in the line of the file that begins with
 * `key`. */
static uint64_t read_limit(
	const char *root, const char *dir, const char *name, const char *key)
{
	uint64_t limit = CGROUP_NO_LIMIT;
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0, n = strlen(key);
	FILE *f = open_limit(root, dir, name);

	if (!f)
		return CGROUP_NO_LIMIT;
	/* A line with "max" in place of a number is skipped. */
	while (getline(&line, &cap, f) > 0)
		if (strncmp(line, key, n) == 0 &&
			sscanf(line + n, "%" SCNu64, &limit) == 1)
			break;
	(void)fclose(f); /* cannot lose data: the file was only read */
	return limit < LIMIT_MAX ? limit : CGROUP_NO_LIMIT;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t memory_of_group(const char *root, const char *dir, bool v2)
{
	uint64_t limit;

	if (v2)
		return read_limit(root, dir, "memory.max", "");
	limit = read_limit(root, dir, "memory.limit_in_bytes", "");
	/* The total limit of the hierarchy counts, too, because it covers
	 * parents that are not mounted here. */
	return lesser(limit,
		read_limit(root, dir, "memory.stat",
			"hierarchical_memory_limit "));
}

/* The limit of a group is a quota of CPU time in each period. Version 2 has
 * both in one file, version 1 in two. */
static uint64_t processors_of_group(const char *root, const char *dir, bool v2)
{
	uint64_t quota = CGROUP_NO_LIMIT, period = 0;
	FILE *f;

	if (!v2) {
		quota = read_limit(root, dir, "cpu.cfs_quota_us", "");
		period = read_limit(root, dir, "cpu.cfs_period_us", "");
	} else if ((f = open_limit(root, dir, "cpu.max"))) {
		/* If the quota is "max", there is no limit. */
		if (fscanf(f, "%" SCNu64 " %" SCNu64, &quota, &period) != 2)
			period = 0;
		(void)fclose(f); /* cannot lose data: the file was only read */
	}
	return quota < LIMIT_MAX / 1000 && period > 0 && period < LIMIT_MAX
		? quota * 1000 / period
		: CGROUP_NO_LIMIT;
}

static uint64_t hierarchy_limit(
	const char *root, const struct controller *c, const struct hierarchy *h)
{
	CLEANUP_FREE char *group = group_of_process(root, c, h->v2);
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
		limit = lesser(limit, c->limit(root, dir, h->v2));
		slash = strrchr(dir, '/');
		if (strlen(dir) <= top || !slash)
			return limit;
		*slash = '\0';
	}
}

static uint64_t least_limit(const char *root, const struct controller *c)
{
	struct mountinfo list = {
		.file = open_below(root, "/proc/self/mountinfo")};
	uint64_t limit = CGROUP_NO_LIMIT;
	struct mountinfo_entry e;
	struct hierarchy h;

	if (!list.file)
		return CGROUP_NO_LIMIT;
	while (mountinfo_next(&list, &e))
		if (to_hierarchy(&e, c, &h))
			limit = lesser(limit, hierarchy_limit(root, c, &h));
	mountinfo_close(&list);
	return limit;
}

uint64_t cgroup_memory_limit(const char *root)
{
	static const struct controller memory = {"memory", memory_of_group};

	return least_limit(root, &memory);
}

uint64_t cgroup_processor_limit(const char *root)
{
	static const struct controller cpu = {"cpu", processors_of_group};

	return least_limit(root, &cpu);
}
