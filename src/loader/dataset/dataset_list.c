/* SPDX-License-Identifier: MIT */
/*
 * Reads a list: a text file with one path in each line, or the table that
 * `refrain index` writes. The whole file is read into memory and divided into
 * strings there. Called by the driver of a look.
 */
#include "loader/dataset/dataset_members_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/cleanup.h"

/* The first line of a table. Version 1 has no tags, and version 3 has levels of
 * JPEGs, which a mount may show instead of the files. */
#define TABLE_LINE_1 "# refrain index 1: path, size, mtime, label"
#define TABLE_LINE_2 "# refrain index 2: path, size, mtime, tag, label"
#define TABLE_LINE_3                                                           \
	"# refrain index 3: path, size, mtime, tag, drop1, drop2, label"
#define TABLE_BEGIN "# refrain index "
#define COLUMNS_LEVELS 7u
#define READ_BYTES ((size_t)1 << 20)
/* Number of lines between two checks whether to stop. */
#define STOP_LINES 4096

struct row {
	/* The path, in the text. So the addresses of equal paths are in the
	 * order of their lines */
	char *path;
	uint32_t bytes;
	int32_t label; /* number of a text in `labels`, or -1 */
};

struct list_file {
	struct look *l;
	struct array text; /* the contents of the file, and a NUL */
	struct array rows;
	struct labels labels;
	struct known known;   /* files in the list that may be members */
	struct labels listed; /* directories already searched for members */
	uint64_t line;	      /* number of the line, from 1 */
	bool is_table, crlf;
	unsigned columns; /* of a table */
};

static int bad_line(struct list_file *t, const char *why)
{
	return look_fail(t->l, -EBADMSG, "'%s', line %" PRIu64 ": %s",
		t->l->path, t->line, why);
}

/* -- Fields ---------------------------------------------------------------- */

/* Replace escapes in place. Returns the new length, or -1 if an escape is not
 * valid. */
static ssize_t unescape(char *field, size_t bytes)
{
	char *to = field;

	for (size_t i = 0; i < bytes; i++) {
		if (field[i] != '\\') {
			*to++ = field[i];
			continue;
		}
		if (++i == bytes)
			return -1;
		if (field[i] != 't' && field[i] != 'n' && field[i] != '\\')
			return -1;
		*to++ = field[i] == 't' ? '\t'
					: (field[i] == 'n' ? '\n' : '\\');
	}
	return to - field;
}

/* Returns the next field, or NULL if no tab ends it. Moves *at to the field
 * after it. */
static char *next_field(char **at, char *end, size_t *bytes)
{
	char *field = *at, *tab = memchr(field, '\t', (size_t)(end - field));

	if (!tab)
		return NULL;
	*bytes = (size_t)(tab - field);
	*at = tab + 1;
	return field;
}

/* Parse a size in bytes. Larger sizes than UINT32_MAX become UINT32_MAX,
 * because the size is only a hint. */
static bool parse_size(const char *field, size_t bytes, uint32_t *out)
{
	uint64_t v = 0;

	if (bytes == 0 || bytes > 19)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (field[i] < '0' || field[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(field[i] - '0');
	}
	*out = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
	return true;
}

/* -- Rows ------------------------------------------------------------------ */

/* Add a row. The byte after the path belongs to the text and is overwritten
 * with a NUL. */
static int add_row(struct list_file *t, char *path, size_t path_bytes,
	uint32_t bytes, const char *label, size_t label_bytes)
{
	struct row *r;
	int32_t id = -1;

	path[path_bytes] = '\0';
	if (strlen(path) != path_bytes)
		return bad_line(t,
			"a NUL in the path, so this is not a list of paths; "
			"for records set source to raw, and record_bytes");
	if (path[0] == '/')
		return bad_line(t,
			"the path is absolute; write it relative to the "
			"directory of the list, or to the one given as root");
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (path[0] == '\0' || beneath_check(path) < 0)
		return bad_line(t,
			"the path must be relative, without '..' or empty "
			"parts, and shorter than 4096 bytes");
	if (label_bytes > LABEL_MAX_BYTES)
		return bad_line(t, "the label is over 65535 bytes");
	if (label_bytes > 0)
		id = labels_add(&t->labels, label, label_bytes);
	r = id == -ENOMEM ? NULL : array_grow(&t->rows, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct row){path, bytes, id};
	return 0;
}

static bool is_text(const char *at, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(at, text, n) == 0;
}

static bool is_hidden(const char *path, size_t bytes)
{
	return path[0] == '.' || memmem(path, bytes, "/.", 2) ||
		strncmp(path, "lost+found/", 11) == 0;
}

static int add_candidate(struct list_file *t, const char *dir, const char *name)
{
	const struct known_file f = {
		.stem_bytes = (uint32_t)stem_of_file(name)};

	return known_add(&t->known, dir, name, &f);
}

static bool is_members_folder(
	const struct list_file *t, const char *label, size_t bytes)
{
	const char *folder;

	for (uint32_t i = 0; (folder = ds_members_folder(t->l->members, i));
		i++)
		if (is_text(label, bytes, folder))
			return true;
	return false;
}

static int bad_columns(struct list_file *t)
{
	char why[64];

	(void)snprintf(why, sizeof(why),
		"a line of this index must have %u fields", t->columns);
	return bad_line(t, why);
}

/* Add a line "PATH\tSIZE\tMTIME\tTAG\tDROP1\tDROP2\tLABEL" of a table. A file
 * that a scan of the folder would not use as an example is counted as skipped.
 */
static int table_line(struct list_file *t, char *at, char *end)
{
	size_t path_bytes, size_bytes, skip_bytes;
	char *path = next_field(&at, end, &path_bytes);
	char *size = path ? next_field(&at, end, &size_bytes) : NULL;
	char *skip = size;
	ssize_t path_n, label_n;
	uint32_t bytes;

	for (unsigned i = 3; skip && i < t->columns; i++)
		skip = next_field(&at, end, &skip_bytes);
	if (!skip || memchr(at, '\t', (size_t)(end - at)))
		return bad_columns(t);
	if (!parse_size(size, size_bytes, &bytes))
		return bad_line(t, "the second field is not a valid size");
	if (t->columns == COLUMNS_LEVELS)
		bytes = 0; /* a mount may show fewer */
	path_n = unescape(path, path_bytes);
	label_n = unescape(at, (size_t)(end - at));
	if (path_n < 0 || label_n < 0)
		return bad_line(t,
			"a backslash that is not followed by t, n "
			"or a backslash");
	path[path_n] = '\0';
	/* The directory of every file is a class, as in a scan of the
	 * folder. */
	if (label_n > 0 && label_n <= LABEL_MAX_BYTES &&
		!is_members_folder(t, at, (size_t)label_n) &&
		labels_add(&t->labels, at, (size_t)label_n) == -ENOMEM)
		return -ENOMEM;
	if (!is_hidden(path, (size_t)path_n) &&
		ds_members_claim(t->l->members, path))
		return add_candidate(t, "", path);
	if (is_hidden(path, (size_t)path_n) || !look_is_image(t->l, path))
		return look_skip(t->l, 1, "", path);
	return add_row(t, path, (size_t)path_n, bytes, at, (size_t)label_n);
}

/* Add a line "PATH" or "PATH\tLABEL" of a list. */
static int plain_line(struct list_file *t, char *at, char *end)
{
	char *tab = memchr(at, '\t', (size_t)(end - at));

	if (at == end || *at == '#')
		return 0;
	if (!tab)
		return add_row(t, at, (size_t)(end - at), 0, "", 0);
	return add_row(
		t, at, (size_t)(tab - at), 0, tab + 1, (size_t)(end - tab - 1));
}

/* Find out from the first line whether the file is a table. An unknown version
 * is an error. */
static int first_line(struct list_file *t, const char *at, const char *end)
{
	size_t n = (size_t)(end - at);

	if (n < strlen(TABLE_BEGIN) ||
		memcmp(at, TABLE_BEGIN, strlen(TABLE_BEGIN)) != 0)
		return 0;
	t->crlf = end[-1] == '\r';
	n -= t->crlf;
	t->is_table = true;
	t->columns = is_text(at, n, TABLE_LINE_1) ? 4
		: is_text(at, n, TABLE_LINE_2)	  ? 5
		: is_text(at, n, TABLE_LINE_3)	  ? COLUMNS_LEVELS
						  : 0;
	return t->columns ? 0 : bad_line(t, "an index of an unknown version");
}

static int take_line(struct list_file *t, char *at, char *end)
{
	int rc;

	if (++t->line % STOP_LINES == 0 && look_stopped(t->l))
		return -ECANCELED;
	if (t->line == 1) {
		rc = first_line(t, at, end);
		if (rc < 0 || t->is_table)
			return rc;
	}
	/* In a table, the last name of a line may end with '\r'. */
	if (end > at && end[-1] == '\r' && (t->crlf || !t->is_table))
		end--;
	return t->is_table ? table_line(t, at, end) : plain_line(t, at, end);
}

/* Refuse encodings other than UTF-8 without a byte order mark; some editors
 * write one at the beginning of a text. */
static int check_encoding(struct list_file *t, const char *at, size_t n)
{
	t->line = 1;
	if (n >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		return bad_line(t,
			"the file begins with a byte order mark; save it as "
			"UTF-8 without one");
	if (n >= 2 &&
		(memcmp(at, "\xff\xfe", 2) == 0 ||
			memcmp(at, "\xfe\xff", 2) == 0))
		return bad_line(t, "the file is UTF-16; save it as UTF-8");
	t->line = 0;
	return 0;
}

static int take_lines(struct list_file *t)
{
	char *at = array_data(&t->text), *end = at + array_bytes(&t->text) - 1;
	int rc = check_encoding(t, at, (size_t)(end - at));

	while (rc == 0 && at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		char *line_end = newline ? newline : end;

		rc = take_line(t, at, line_end);
		at = line_end + 1;
	}
	return rc;
}

/* -- The file -------------------------------------------------------------- */

static int read_text(struct list_file *t, int fd)
{
	for (;;) {
		char *to = array_grow(&t->text, READ_BYTES);
		ssize_t n;

		if (!to)
			return -ENOMEM;
		if (look_stopped(t->l))
			return -ECANCELED;
		do
			n = read(fd, to, READ_BYTES);
		while (n < 0 && errno == EINTR);
		look_answered(t->l);
		(void)array_pop(&t->text, READ_BYTES - (n > 0 ? (size_t)n : 0));
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
	}
	return array_text(&t->text, "", 0) < 0 ? -ENOMEM : 0;
}

static int read_list(struct list_file *t)
{
	CLEANUP_FD int fd = open(t->l->real, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return look_fail(t->l, -EINVAL,
			"'%s' is not a regular file; a list must be one",
			t->l->path);
	if (ds_add_watch(t->l->ds, t->l->real, stat_mtime_ns(&st),
		    stat_fingerprint(&st)) < 0)
		return -ENOMEM;
	return read_text(t, fd);
}

/* -- The tables ------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int rc = strcmp(x->path, y->path);

	return rc != 0 ? rc : (x->path < y->path ? -1 : x->path > y->path);
}

static void sort_rows(struct row *row, size_t n)
{
	/* Do not sort paths that are already in order. */
	for (size_t i = 1; i < n; i++) {
		if (by_path(&row[i - 1], &row[i]) > 0) {
			qsort(row, n, sizeof(*row), by_path);
			return;
		}
	}
}

/* -- Members, which a list does not name ----------------------------------- */

struct looking {
	struct list_file *t;
	const char *dir; /* "", or ends with a slash */
};

static int member_seen(void *arg, const char *name, enum look_type type)
{
	const struct looking *at = arg;
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", at->dir, name);
	if (type != LOOK_FILE || look_is_hidden(name) ||
		!ds_members_claim(at->t->l->members, path))
		return 0;
	return add_candidate(at->t, at->dir, name);
}

/* List a directory, unless it was listed before. Returns 0, -ENOENT if the
 * directory does not exist, or another -errno. */
static int list_once(struct list_file *t, const char *dir)
{
	uint64_t before = array_bytes(&t->listed.entry);
	struct looking at = {t, dir};
	char path[2 * PATH_MAX];
	struct stat st;
	int fd, n = (int)strlen(dir);

	if (labels_add(&t->listed, dir, (size_t)n) < 0)
		return -ENOMEM;
	if (array_bytes(&t->listed.entry) == before)
		return 0;
	(void)snprintf(path, sizeof(path), "%.*s", n > 0 ? n - 1 : 1,
		n > 0 ? dir : ".");
	fd = openat(t->l->ds->dir, path,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	look_answered(t->l);
	if (fd < 0)
		return errno == ENOTDIR || errno == ENAMETOOLONG ? -ENOENT
								 : -errno;
	if (fstat(fd, &st) < 0 ||
		ds_add_watch(t->l->ds, path, stat_mtime_ns(&st),
			stat_fingerprint(&st)) < 0) {
		/* Cannot lose data: nothing was written */
		(void)close(fd);
		return -ENOMEM;
	}
	return look_list(t->l, fd, member_seen, &at);
}

/* List a directory. If it does not exist, list the nearest directory above it
 * that exists, because the mtime of that one will change when the missing
 * directory is created. */
static int look_in_dir(struct list_file *t, const char *dir)
{
	char path[2 * PATH_MAX];
	size_t n = strlen(dir);
	int rc = list_once(t, dir);

	memcpy(path, dir, n + 1);
	while (rc == -ENOENT && n > 0) {
		n--;
		while (n > 0 && path[n - 1] != '/')
			n--;
		path[n] = '\0';
		rc = list_once(t, path);
	}
	return rc;
}

/* List all places where a folder may contain members of the images in `dir`. */
static int list_folder(struct list_file *t, const char *dir, const char *folder)
{
	char path[2 * PATH_MAX];
	size_t end = strlen(dir);
	int rc;

	(void)snprintf(path, sizeof(path), "%s%s/", dir, folder);
	rc = look_in_dir(t, path);
	while (rc == 0 && end > 0) {
		size_t tail = end--;

		while (end > 0 && dir[end - 1] != '/')
			end--;
		(void)snprintf(path, sizeof(path), "%.*s%s/%s", (int)end, dir,
			folder, dir + tail);
		rc = look_in_dir(t, path);
		(void)snprintf(path, sizeof(path), "%.*s%s/%s", (int)end, dir,
			folder, dir + end);
		if (rc == 0)
			rc = look_in_dir(t, path);
	}
	return rc;
}

static int list_members_in(struct list_file *t, const char *dir)
{
	const char *folder;
	int rc = look_in_dir(t, dir);

	for (uint32_t i = 0;
		rc == 0 && (folder = ds_members_folder(t->l->members, i)); i++)
		rc = list_folder(t, dir, folder);
	return rc;
}

/* List the directories that may contain members. Rows are sorted by path, so
 * those of one directory are mostly next to each other. */
static int list_members(struct list_file *t, const struct row *row, size_t n)
{
	char dir[PATH_MAX] = "/";
	int rc = 0;

	for (size_t i = 0; rc == 0 && t->l->members && i < n; i++) {
		const char *slash = strrchr(row[i].path, '/');
		size_t m = slash ? (size_t)(slash + 1 - row[i].path) : 0;

		if (strlen(dir) == m && memcmp(dir, row[i].path, m) == 0)
			continue;
		memcpy(dir, row[i].path, m);
		dir[m] = '\0';
		rc = list_members_in(t, dir);
	}
	return rc;
}

static int fill(struct list_file *t)
{
	size_t n = array_count(&t->rows, sizeof(struct row));
	struct row *row = array_data(&t->rows);
	int rc = 0;

	sort_rows(row, n);
	if (!t->is_table)
		rc = list_members(t, row, n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct ds_whole w = {
			.bytes = row[i].bytes, .label = row[i].label};

		rc = ds_add_whole(t->l->ds, "", 0, row[i].path, &w);
		if (rc == 0)
			rc = ds_members_add(t->l, &t->known, "", row[i].path,
				stem_of_file(row[i].path));
	}
	if (rc == 0 && t->is_table)
		rc = known_skip(t->l, &t->known, "", false);
	/* In a table, classes are directories, so numbers are not labels. */
	return rc < 0 ? rc : labels_finish(&t->labels, t->l->ds, !t->is_table);
}

int look_list_file(struct look *l)
{
	struct list_file t = {.l = l};
	int rc;

	ds_begin(l->ds, EXAMPLES_WHOLE);
	rc = read_list(&t);
	if (rc == 0)
		rc = take_lines(&t);
	if (rc == 0)
		rc = fill(&t);
	labels_release(&t.labels);
	labels_release(&t.listed);
	known_release(&t.known);
	array_release(&t.rows);
	array_release(&t.text);
	return rc < 0 ? look_fail(l, rc, "cannot read '%s': %m", l->path) : 0;
}
