/* SPDX-License-Identifier: MIT */
/*
 * The record of a target (doc/formats.md): which units are on disk. Lines are
 * appended while a run is going on; a torn last line, after a crash, is ignored
 * and its unit made again. Called by the thread of recode_run().
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/write.h"
#include "loader/recode/recode_impl.h"

#define RECORD_HEAD "refrain recode record 1 "
#define RECORD_LINE_MAX 192

struct record_line {
	uint64_t key;
	struct recode_counts counts;
	uint64_t level[JPEG_DROP_BITS_MAX];
};

static int line_print(char line[RECORD_LINE_MAX], const struct recode_unit *u)
{
	const struct recode_counts *c = &u->counts;

	return snprintf(line, RECORD_LINE_MAX,
		"%016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " .\n",
		u->key, c->recoded, c->kept, c->odd, c->other, c->bytes,
		u->level[0], u->level[1]);
}

/* The dot at the end tells a whole line from a torn one. */
static bool line_parse(const char *text, struct record_line *l)
{
	struct recode_counts *c = &l->counts;
	char end;

	return sscanf(text,
		       "%16" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		       " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %c\n",
		       &l->key, &c->recoded, &c->kept, &c->odd, &c->other,
		       &c->bytes, &l->level[0], &l->level[1], &end) == 9 &&
		end == '.';
}

static int by_key(const void *a, const void *b)
{
	uint64_t one = ((const struct record_line *)a)->key;
	uint64_t other = ((const struct record_line *)b)->key;

	return one < other ? -1 : one > other;
}

/* -- Reading --------------------------------------------------------------- */

static int check_head(
	const struct recode_job *j, const char *head, struct error *err)
{
	size_t n = strlen(RECORD_HEAD), len = strlen(head);

	if (strncmp(head, RECORD_HEAD, n) != 0 || head[len - 1] != '\n')
		return error_set(err, -EBADMSG,
			"'%s/%s' is not a record of this version; give an "
			"empty directory",
			j->o->target, RECORD_FILE);
	if (strncmp(head + n, j->settings, len - n - 1) == 0 &&
		strlen(j->settings) == len - n - 1)
		return 0;
	return error_set(err, -EINVAL,
		"'%s' was made with other options: %.*s; give the same "
		"options, or an empty directory",
		j->o->target, (int)(len - n - 1), head + n);
}

/* Is the file of the unit there, with the size that it had? */
static bool unit_is_there(
	const struct recode_job *j, const struct recode_unit *u)
{
	char name[PATH_MAX];
	struct stat st;

	recode_unit_name(j, u, name);
	return fstatat(j->target_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode) && (uint64_t)st.st_size == u->counts.bytes;
}

static void mark_units(struct recode_job *j, struct array *lines)
{
	size_t n = array_count(lines, sizeof(struct record_line));

	if (n)
		qsort(array_data(lines), n, sizeof(struct record_line), by_key);
	for (size_t i = 0; n && i < j->unit_count; i++) {
		struct recode_unit *u = &j->units[i];
		struct record_line key = {.key = u->key};
		const struct record_line *l = bsearch(&key, array_data(lines),
			n, sizeof(struct record_line), by_key);

		if (!l)
			continue;
		u->counts = l->counts;
		memcpy(u->level, l->level, sizeof(u->level));
		if (!unit_is_there(j, u))
			continue;
		u->recorded = true;
		atomic_store_explicit(&u->made, true, memory_order_relaxed);
	}
}

static int read_lines(struct recode_job *j, FILE *f, struct error *err)
{
	char text[2 * RECORD_LINE_MAX];
	struct array lines = {0};
	struct record_line l, *to;
	int rc = 0;

	if (!fgets(text, sizeof(text), f))
		return 0; /* killed before the first line was there */
	rc = check_head(j, text, err);
	while (rc == 0 && fgets(text, sizeof(text), f)) {
		if (!line_parse(text, &l))
			continue;
		to = array_grow(&lines, sizeof(*to));
		if (to)
			*to = l;
		else
			rc = error_set(err, -ENOMEM, "%m");
	}
	if (rc == 0)
		mark_units(j, &lines);
	array_release(&lines);
	return rc;
}

static bool is_temporary(const char *name)
{
	return strncmp(name, RECORD_FILE ".", strlen(RECORD_FILE ".")) == 0;
}

/* Remove files that a killed run had not completed. `empty`: without a record,
 * the target must have nothing else. */
static int clean_target(
	const struct recode_job *j, bool empty, struct error *err)
{
	int fd = openat(j->target_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir)
		return error_set(
			err, -errno, "cannot read '%s': %m", j->o->target);
	while ((e = readdir(dir))) {
		if (is_temporary(e->d_name))
			/* if it stays, it is overwritten */
			(void)unlinkat(j->target_fd, e->d_name, 0);
		else if (empty && strcmp(e->d_name, ".") != 0 &&
			strcmp(e->d_name, "..") != 0 &&
			strcmp(e->d_name, "lost+found") != 0)
			return error_set(err, -ENOTEMPTY,
				"'%s' is not empty, and not of an earlier run; "
				"give an empty directory or one that does not "
				"exist",
				j->o->target);
	}
	return 0;
}

int record_load(struct recode_job *j, struct error *err)
{
	int fd = openat(
		j->target_fd, RECORD_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *f;
	int rc;

	if (fd < 0 && errno == ENOENT)
		return clean_target(j, true, err);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return error_set(err, -errno, "cannot read '%s/%s': %m",
			j->o->target, RECORD_FILE);
	rc = read_lines(j, f, err);
	if (rc == 0)
		rc = clean_target(j, false, err);
	(void)fclose(f); /* nothing was written */
	return rc;
}

/* -- Writing --------------------------------------------------------------- */

static int append_lines(struct recode_job *j, const struct array *text)
{
	CLEANUP_FD int fd = openat(j->target_fd, RECORD_FILE,
		O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 ? -errno : 0;

	/* A torn line of an earlier run ends here. */
	if (rc == 0)
		rc = write_all(fd, "\n", 1);
	if (rc == 0)
		rc = write_all(fd, array_data(text), array_bytes(text));
	return rc;
}

/* Collect the lines of units. Returns 0 or -ENOMEM. */
static int append_line(struct array *text, const struct recode_unit *u)
{
	char line[RECORD_LINE_MAX];
	int n = line_print(line, u);
	char *to = array_grow(text, (size_t)n);

	if (!to)
		return -ENOMEM;
	memcpy(to, line, (size_t)n);
	return 0;
}

static int record_failed(const struct recode_job *j, int rc, struct error *err)
{
	return error_set(
		err, rc, "cannot write '%s/%s': %m", j->o->target, RECORD_FILE);
}

int record_append(struct recode_job *j, struct error *err)
{
	struct array text = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < j->unit_count; i++) {
		struct recode_unit *u = &j->units[i];

		if (u->recorded ||
			!atomic_load_explicit(&u->made, memory_order_acquire))
			continue;
		u->recorded = true;
		rc = append_line(&text, u);
	}
	if (rc == 0 && array_bytes(&text) > 0) {
		/* all files of these units, before they are believed */
		rc = syncfs(j->target_fd) < 0 ? -errno : append_lines(j, &text);
	}
	array_release(&text);
	return rc == 0 ? 0 : record_failed(j, rc, err);
}

int record_finish(struct recode_job *j, struct error *err)
{
	struct array text = {0};
	char head[2 * RECORD_LINE_MAX];
	int rc = 0, n;

	n = snprintf(head, sizeof(head), RECORD_HEAD "%s\n", j->settings);
	if (array_text(&text, head, (size_t)n) < 0)
		rc = -ENOMEM;
	else
		(void)array_pop(&text, 1); /* the NUL */
	for (size_t i = 0; rc == 0 && i < j->unit_count; i++)
		if (j->units[i].recorded)
			rc = append_line(&text, &j->units[i]);
	if (rc < 0)
		(void)record_failed(j, rc, err);
	else
		rc = recode_write_file(j, RECORD_FILE, array_data(&text),
			array_bytes(&text), err);
	array_release(&text);
	return rc;
}
