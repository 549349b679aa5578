/* SPDX-License-Identifier: MIT */
/*
 * Reads the headers of a tar and skips the data of members. Headers are read
 * through a small window, so that several short members need only one system
 * call. An extended header describes the member after it (a long name, or pax
 * records). Its contents are stored until that member is read.
 */
#include "loader/dataset/tarfile_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* A header block. All fields are text, except for the numbers that
 * parse_number() reads. */
struct tar_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	unsigned char size[12];
	char mtime[12];
	unsigned char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char owner[32], group[32], major[8], minor[8];
	char prefix[155];
	char unused[12];
};

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "no holes");

static int damaged(struct tar_reader *t, uint64_t at, const char *why)
{
	return look_fail(t->l, -EBADMSG, "'%s' at offset %" PRIu64 ": %s",
		t->file, at, why);
}

void tar_begin(struct tar_reader *t, struct look *l, const char *file, int fd,
	uint64_t size)
{
	memset(t, 0, sizeof(*t));
	t->l = l;
	t->file = file;
	t->fd = fd;
	t->size = size;
}

void tar_release(struct tar_reader *t)
{
	free(t->name);
	t->name = NULL;
}

/* -- Bytes ----------------------------------------------------------------- */

static int read_at(struct tar_reader *t, void *buf, size_t n, uint64_t at)
{
	unsigned char *to = buf;

	while (n > 0) {
		ssize_t done = pread(t->fd, to, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return look_fail(
				t->l, -errno, "cannot read '%s': %m", t->file);
		if (done == 0)
			return damaged(t, at,
				"the file became shorter while it was read");
		look_answered(t->l);
		to += done;
		at += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

int tar_bytes(
	struct tar_reader *t, uint64_t at, size_t n, const unsigned char **out)
{
	int rc;

	if (at > t->size || t->size - at < n)
		return damaged(t, at,
			"the file ends too early; it may be "
			"truncated");
	if (at < t->window_at || at + n > t->window_at + t->window_bytes) {
		uint64_t left = t->size - at;

		t->window_bytes = 0;
		rc = read_at(t, t->window,
			left < TAR_WINDOW ? (size_t)left : TAR_WINDOW, at);
		if (rc < 0)
			return rc;
		t->window_at = at;
		t->window_bytes = left < TAR_WINDOW ? (size_t)left : TAR_WINDOW;
	}
	*out = t->window + (at - t->window_at);
	return 0;
}

/* Read the data of an extended header and append a NUL. The caller frees it. */
static int read_extra(
	struct tar_reader *t, uint64_t at, uint64_t bytes, char **out)
{
	CLEANUP_FREE char *data = NULL;
	int rc;

	if (bytes > TAR_EXTRA_MAX)
		return damaged(t, at, "a name or extended header over 1 MiB");
	data = malloc((size_t)bytes + 1);
	if (!data)
		return look_fail(t->l, -ENOMEM, "%m");
	rc = read_at(t, data, (size_t)bytes, at);
	if (rc < 0)
		return rc;
	data[bytes] = '\0';
	*out = steal_ptr(&data);
	return 0;
}

/* -- Numbers --------------------------------------------------------------- */

/* Parse octal digits, with optional spaces before them and a space or NUL after
 * them. */
static bool parse_octal(const unsigned char *field, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && field[i] == ' ')
		i++;
	if (i == n || field[i] < '0' || field[i] > '7')
		return false;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(field[i] - '0');
	*out = v;
	return i == n || field[i] == ' ' || field[i] == '\0';
}

/* Parse a number: octal digits, or base 256 if the highest bit is set. */
static bool parse_number(const unsigned char *field, size_t n, uint64_t *out)
{
	uint64_t v = field[0] & 0x7f;

	if (!(field[0] & 0x80))
		return parse_octal(field, n, out);
	for (size_t i = 1; i < n; i++) {
		if (v >> 55)
			/* the number is negative, or above 2^63 */
			return false;
		v = v << 8 | field[i];
	}
	*out = v;
	return true;
}

/* Is the checksum right? It is the sum of the bytes of the header, in which the
 * bytes of the checksum itself count as spaces. Some old programs added signed
 * bytes, so that sum is accepted, too. */
static bool checksum_right(const struct tar_header *h)
{
	const unsigned char *p = (const void *)h;
	const size_t from = offsetof(struct tar_header, checksum);
	int64_t sum = 0, as_signed = 0;
	uint64_t want;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		unsigned char c = i - from < sizeof(h->checksum) ? ' ' : p[i];

		sum += c;
		as_signed += (signed char)c;
	}
	return parse_octal(h->checksum, sizeof(h->checksum), &want) &&
		((int64_t)want == sum || (int64_t)want == as_signed);
}

static bool all_zero(const void *block)
{
	const unsigned char *p = block;

	return p[0] == 0 && memcmp(p, p + 1, TAR_BLOCK - 1) == 0;
}

/* -- Extended headers ------------------------------------------------------ */

static bool key_is(const char *key, size_t n, const char *what)
{
	return n == strlen(what) && memcmp(key, what, n) == 0;
}

static int pax_size(
	struct tar_reader *t, uint64_t at, const char *value, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		if (value[i] < '0' || value[i] > '9' || v >> 59)
			return damaged(
				t, at, "an invalid size in a pax header");
		v = v * 10 + (uint64_t)(value[i] - '0');
	}
	if (n == 0)
		return damaged(t, at, "an invalid size in a pax header");
	t->has_size = true;
	t->member_bytes = v;
	return 0;
}

static int pax_name(
	struct tar_reader *t, uint64_t at, const char *value, size_t n)
{
	if (memchr(value, '\0', n))
		return damaged(t, at, "a NUL in a pax path");
	free(t->name);
	t->name = strndup(value, n);
	return t->name ? 0 : look_fail(t->l, -ENOMEM, "%m");
}

/* Parse one record "KEY=VALUE". */
static int pax_record(
	struct tar_reader *t, uint64_t at, const char *record, size_t n)
{
	const char *equals = memchr(record, '=', n);
	size_t key = equals ? (size_t)(equals - record) : 0;

	if (!equals)
		return damaged(t, at, "a pax record without '='");
	if (key_is(record, key, "path"))
		return pax_name(t, at, equals + 1, n - key - 1);
	if (key_is(record, key, "size"))
		return pax_size(t, at, equals + 1, n - key - 1);
	if (key >= 10 && memcmp(record, "GNU.sparse", 10) == 0)
		return damaged(t, at,
			"a sparse member, which is not "
			"supported; pack it without -S");
	return 0;
}

/* Parse the records "LENGTH KEY=VALUE\n" of a pax header. LENGTH is the size of
 * the whole record in bytes. */
static int pax_records(
	struct tar_reader *t, uint64_t at, const char *p, size_t left)
{
	int rc = 0;

	while (rc == 0 && left > 0) {
		size_t n = 0, digits = 0;

		while (digits < left && digits < 8 && p[digits] >= '0' &&
			p[digits] <= '9')
			n = n * 10 + (size_t)(p[digits++] - '0');
		if (digits == 0 || digits == left || p[digits] != ' ' ||
			n > left || n < digits + 2 || p[n - 1] != '\n')
			return damaged(t, at, "a damaged pax record");
		rc = pax_record(t, at, p + digits + 1, n - digits - 2);
		p += n;
		left -= n;
	}
	return rc;
}

static int take_extra(
	struct tar_reader *t, char type, uint64_t at, uint64_t bytes)
{
	CLEANUP_FREE char *data = NULL;
	int rc;

	if (type != 'L' && type != 'x')
		return 0;
	rc = read_extra(t, at, bytes, &data);
	if (rc < 0)
		return rc;
	if (type == 'x')
		return pax_records(t, at, data, (size_t)bytes);
	free(t->name);
	t->name = steal_ptr(&data);
	return 0;
}

/* -- Members --------------------------------------------------------------- */

/* Is this header an extended one? It describes the next member or the whole
 * archive and is not a member itself. */
static bool is_extra(char type)
{
	return type && strchr("LKxgVX", type);
}

/* Do members of this type never have data, even if their size is not 0? */
static bool has_no_data(char type)
{
	return type >= '1' && type <= '6';
}

/* Returns the name in the header. A field that is full has no NUL at its
 * end. */
static const char *header_name(struct tar_reader *t, const struct tar_header *h)
{
	bool ustar = memcmp(h->magic, "ustar", 6) == 0;
	size_t n = ustar ? strnlen(h->prefix, sizeof(h->prefix)) : 0;
	char *to = t->field;

	if (n > 0) {
		memcpy(to, h->prefix, n);
		to += n;
		*to++ = '/';
	}
	n = strnlen(h->name, sizeof(h->name));
	memcpy(to, h->name, n);
	to[n] = '\0';
	return t->field;
}

static int check_size(struct tar_reader *t, uint64_t at, uint64_t bytes)
{
	uint64_t data_at = at + TAR_BLOCK;

	if (bytes <= t->size - data_at)
		return 0;
	return damaged(t, at,
		"a member runs past the end of the file, which may be "
		"truncated");
}

/* Read the header at `at` and check the size of its member. Returns 1, 0 at the
 * end-of-archive mark, or -errno. */
static int read_header(struct tar_reader *t, uint64_t at, struct tar_header *h,
	uint64_t *bytes)
{
	const unsigned char *block;
	int rc;

	if (at == t->size)
		return damaged(
			t, at, "the file has no end mark; it may be truncated");
	rc = tar_bytes(t, at, TAR_BLOCK, &block);
	if (rc < 0)
		return rc;
	if (all_zero(block))
		return 0;
	memcpy(h, block, TAR_BLOCK);
	if (!checksum_right(h))
		return damaged(t, at, "not a tar header, or a damaged one");
	if (!parse_number(h->size, sizeof(h->size), bytes))
		return damaged(t, at, "a size that is not a number");
	if (t->has_size && !is_extra(h->type))
		*bytes = t->member_bytes;
	if (has_no_data(h->type))
		*bytes = 0;
	if (h->type == 'S' || h->type == 'M')
		return damaged(t, at,
			"a sparse or multi-volume member, which is not "
			"supported; pack it without -S and -M");
	rc = check_size(t, at, *bytes);
	return rc < 0 ? rc : 1;
}

/* Is this member a regular file? In old tars only the final slash of its name
 * shows that a member is a directory. */
static bool is_file(char type, const char *name)
{
	size_t n = strlen(name);

	return (type == '0' || type == '\0' || type == '7') && n > 0 &&
		name[n - 1] != '/';
}

/* Forget what extended headers have said about a member, because it was
 * read. */
static void forget_member(struct tar_reader *t)
{
	free(t->name);
	t->name = NULL;
	t->has_size = false;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

int tar_next(struct tar_reader *t, struct tar_member *m)
{
	struct tar_header h;
	/* The last call returned a member, and the caller may have used its
	 * name until now */
	bool used = true;
	uint64_t bytes;
	int rc;

	for (;;) {
		uint64_t at = t->at;

		if (look_stopped(t->l))
			return -ECANCELED;
		if (used)
			forget_member(t);
		rc = read_header(t, at, &h, &bytes);
		if (rc <= 0)
			return rc;
		/* This cannot overflow, because check_size() has found the end
		 * of the member, without its padding, to be within the file. */
		t->at = at + TAR_BLOCK + rounded(bytes);
		used = !is_extra(h.type);
		if (!used) {
			rc = take_extra(t, h.type, at + TAR_BLOCK, bytes);
			if (rc < 0)
				return rc;
			continue;
		}
		m->name = t->name ? t->name : header_name(t, &h);
		m->offset = at + TAR_BLOCK;
		m->bytes = bytes;
		if (is_file(h.type, m->name))
			return 1;
	}
}
