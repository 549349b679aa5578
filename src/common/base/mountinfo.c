/* SPDX-License-Identifier: MIT */
/* Reads the kernel's list of mounts, and finds out whether a directory is the
 * root of a refrain mount. No state; any thread. */
#include "common/base/mountinfo.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/path.h"

/* The words at the beginning of a line, up to its optional tags. */
enum { WORD_ID, WORD_PARENT, WORD_DEVICE, WORD_ROOT, WORD_PATH, WORDS };

int mountinfo_open(struct mountinfo *m, pid_t pid)
{
	char path[64] = "/proc/self/mountinfo";

	if (pid > 0)
		(void)snprintf(
			path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	*m = (struct mountinfo){.file = fopen(path, "re")};
	return m->file ? 0 : -errno;
}

void mountinfo_close(struct mountinfo *m)
{
	if (m->file)
		/* cannot lose data: the file was only read */
		(void)fclose(m->file);
	free(m->line);
	*m = (struct mountinfo){.file = NULL};
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Replace octal escapes such as \040 by their characters, in place. */
static void undo_octal(char *text)
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

/* Is there a tag "master:N" among the optional words of a line? */
static bool has_master(char **words)
{
	const char *word;
	bool found = false;

	while ((word = strtok_r(NULL, " ", words)))
		found |= strncmp(word, "master:", strlen("master:")) == 0;
	return found;
}

/*
 * Split "ID PARENT MAJ:MIN ROOT PATH OPTIONS [TAG ...] - TYPE SOURCE SUPER".
 * Returns false for a line in another form.
 */
static bool parse_mount(char *line, struct mountinfo_entry *e)
{
	char *tail = strstr(line, " - "), *save = NULL, *word[WORDS];

	line[strcspn(line, "\n")] = '\0';
	if (!tail)
		return false;
	*tail = '\0';
	for (int i = 0; i < WORDS; i++) {
		word[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (!word[i])
			return false;
	}
	e->follows = has_master(&save);
	undo_octal(word[WORD_ROOT]);
	undo_octal(word[WORD_PATH]);
	e->root = word[WORD_ROOT];
	e->path = word[WORD_PATH];
	e->type = strtok_r(tail + 3, " ", &save);
	e->source = strtok_r(NULL, " ", &save);
	if (!e->source)
		e->source = "";
	e->options = strtok_r(NULL, " ", &save);
	if (!e->options)
		e->options = "";
	return e->type && sscanf(word[WORD_ID], "%u", &e->id) == 1 &&
		sscanf(word[WORD_PARENT], "%u", &e->parent) == 1 &&
		sscanf(word[WORD_DEVICE], "%u:%u", &e->major, &e->minor) == 2;
}

bool mountinfo_next(struct mountinfo *m, struct mountinfo_entry *e)
{
	while (getline(&m->line, &m->room, m->file) > 0)
		if (parse_mount(m->line, e))
			return true;
	return false;
}

int mountinfo_find(const char *path, struct mountinfo_device *out)
{
	struct mountinfo_entry e;
	struct mountinfo m;
	int rc = mountinfo_open(&m, 0);

	if (rc < 0)
		return rc;
	rc = -ENOENT;
	while (mountinfo_next(&m, &e)) {
		if (strcmp(e.path, path) != 0)
			continue;
		*out = (struct mountinfo_device){e.major, e.minor,
			strcmp(e.type, MOUNTINFO_REFRAIN) == 0};
		/* go on: later mounts are above earlier ones, so the last one
		 * counts */
		rc = 0;
	}
	mountinfo_close(&m);
	return rc;
}

/* -- Places ---------------------------------------------------------------- */

/* Where a file is in its file system. Different mounts of the file system show
 * the same file at different paths. */
struct mountinfo_place {
	unsigned major, minor;
	/* the source, because some file systems report the same root for two
	 * sources */
	char source[PATH_MAX];
	/* path relative to the root of the file system */
	char path[2 * PATH_MAX];
};

static void place_set(struct mountinfo_place *p,
	const struct mountinfo_entry *e, const char *path)
{
	size_t skip = strcmp(e->path, "/") == 0 ? 0 : strlen(e->path);
	const char *root = strcmp(e->root, "/") == 0 ? "" : e->root;

	p->major = e->major;
	p->minor = e->minor;
	(void)snprintf(p->source, sizeof(p->source), "%s", e->source);
	(void)snprintf(p->path, sizeof(p->path), "%s%s", root, path + skip);
	if (!p->path[0])
		strcpy(p->path, "/");
}

/* Find where a path is in its file system. It belongs to the mount with the
 * longest mountpoint. */
static int place_find(const char *path, struct mountinfo_place *p)
{
	struct mountinfo_entry e;
	struct mountinfo m;
	size_t longest = 0;
	int rc = mountinfo_open(&m, 0);

	if (rc < 0)
		return rc;
	rc = -ENOENT;
	while (mountinfo_next(&m, &e)) {
		if (!path_is_inside(path, e.path) || strlen(e.path) < longest)
			continue;
		longest = strlen(e.path);
		place_set(p, &e, path);
		rc = 0;
	}
	mountinfo_close(&m);
	return rc;
}

bool mountinfo_is_inside(const char *path, const char *top)
{
	struct mountinfo_place a, b;

	return place_find(path, &a) == 0 && place_find(top, &b) == 0 &&
		a.major == b.major && a.minor == b.minor &&
		strcmp(a.source, b.source) == 0 &&
		path_is_inside(a.path, b.path);
}

/* -- The root of a refrain mount ------------------------------------------ */

/* Get the ID of the mount to which an open file belongs. */
static int mount_id_of(int fd, unsigned *id)
{
	CLEANUP_FREE char *line = NULL;
	char path[64];
	size_t room = 0;
	int rc = -ENODATA;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (rc < 0 && getline(&line, &room, f) > 0)
		if (sscanf(line, "mnt_id: %u", id) == 1)
			rc = 0;
	(void)fclose(f); /* cannot lose data: the file was only read */
	return rc;
}

/* Get the number of an option such as "user_id=0". */
static int number_of(const char *options, const char *key, unsigned *out)
{
	const char *at = strstr(options, key);
	unsigned long n;
	char *end;

	if (!at || (at != options && at[-1] != ','))
		return -ENODATA;
	errno = 0;
	n = strtoul(at + strlen(key), &end, 10);
	if (errno || n > UINT_MAX || (*end && *end != ','))
		return -ENODATA;
	*out = (unsigned)n;
	return 0;
}

int mountinfo_owner(const struct mountinfo_entry *e, uid_t *uid, gid_t *gid)
{
	int rc = number_of(e->options, "user_id=", uid);

	return rc < 0 ? rc : number_of(e->options, "group_id=", gid);
}

/* Check that the entry is a refrain mount and that `path` is its root. */
static int check_root(
	const struct mountinfo_entry *e, const char *path, uid_t *owner)
{
	gid_t gid;

	if (strcmp(e->type, MOUNTINFO_REFRAIN) != 0 ||
		strcmp(e->root, "/") != 0 || strcmp(e->path, path) != 0)
		return -ENODATA;
	return mountinfo_owner(e, owner, &gid);
}

int mountinfo_refrain_root(int dir_fd, uid_t *owner, char *path, size_t size)
{
	struct mountinfo_entry e;
	struct mountinfo m;
	char own[PATH_MAX];
	unsigned id;
	int rc = mount_id_of(dir_fd, &id);

	if (rc == 0)
		rc = path_of_fd(dir_fd, own);
	if (rc == 0)
		rc = mountinfo_open(&m, 0);
	if (rc < 0)
		return rc;
	rc = -ENODATA;
	while (mountinfo_next(&m, &e))
		if (e.id == id) {
			rc = check_root(&e, own, owner);
			break;
		}
	mountinfo_close(&m);
	if (rc == 0 && path && snprintf(path, size, "%s", own) >= (int)size)
		rc = -ENAMETOOLONG;
	return rc;
}
