/* SPDX-License-Identifier: MIT */
/* Recognises the formats of files, which contain one sample or several; see
 * sample_unit_impl.h. */
#include "analysis/study/sample_unit_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* Maximum numbers of files that are read, and of levels of directories. */
#define LOOKS_MAX 16
#define LEVELS_MAX 8

/* A TFRecord consists of a length, the checksum of the length, the bytes, and
 * their checksum. */
#define RECORD_LENGTH_BYTES 8
#define RECORD_EXTRA_BYTES 16

/* -- Formats --------------------------------------------------------------- */

struct magic {
	const char *bytes;
	size_t off, n;
	/* name of a format with several samples; NULL: one sample in a file */
	const char *format;
};

static const struct magic magics[] = {
	{"\xff\xd8\xff", 0, 3, NULL}, /* JPEG */
	{"\x89PNG", 0, 4, NULL},
	{"RIFF", 0, 4, NULL}, /* WebP, WAV */
	{"fLaC", 0, 4, NULL},
	{"ustar", 257, 5, "tar"},
	{"\x89HDF\r\n\x1a\n", 0, 8, "HDF5"},
	{"PAR1", 0, 4, "Parquet"},
	{"ARROW1", 0, 6, "Arrow"},
	{"PK\x03\x04", 0, 4, "zip"},
	{"\x0a\x23\xd7\xce", 0, 4, "RecordIO"},
	{"\xde\xc0\xef\xbe", 16, 4, "LMDB"},
};

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static uint64_t little_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

/* Does the file begin with a TFRecord? Sets *bytes to the length of this
 * record. */
static bool is_tfrecord(const uint8_t *head, size_t n, uint64_t *bytes)
{
	uint32_t crc;

	if (n < RECORD_LENGTH_BYTES + 4)
		return false;
	crc = crc32c(head, RECORD_LENGTH_BYTES);
	/* TensorFlow masks checksums in this way */
	crc = (crc >> 15 | crc << 17) + 0xa282ead8;
	*bytes = little_endian(head, RECORD_LENGTH_BYTES);
	return crc == little_endian(head + RECORD_LENGTH_BYTES, 4);
}

struct file_unit unit_of(const void *head, size_t n, uint64_t file_bytes)
{
	const struct file_unit one = {UNIT_SAMPLES, NULL};
	uint64_t record;

	if (is_tfrecord(head, n, &record)) {
		if (record + RECORD_EXTRA_BYTES == file_bytes)
			return one;
		return (struct file_unit){UNIT_MB, "TFRecord"};
	}
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		const struct magic *m = &magics[i];

		if (n < m->off + m->n ||
			memcmp((const char *)head + m->off, m->bytes, m->n) !=
				0)
			continue;
		return m->format ? (struct file_unit){UNIT_MB, m->format} : one;
	}
	return (struct file_unit){UNIT_FILES, NULL};
}

/* -- Files ----------------------------------------------------------------- */

struct unit_looks {
	unsigned files;
	uint64_t bytes[UNITS]; /* number of bytes in files of each unit */
	const char *format;
};

static void look_at_file(struct unit_looks *l, int fd, uint64_t file_bytes)
{
	uint8_t head[UNIT_HEAD_BYTES];
	struct file_unit u;
	ssize_t n;

	/* Have the kernel read only one page; it is dropped afterwards. The
	 * trainer's reads are counted, so the kernel must not answer them from
	 * pages of this read. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	n = pread(fd, head, sizeof(head), 0);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (n <= 0)
		return;
	u = unit_of(head, (size_t)n, file_bytes);
	l->files++;
	l->bytes[u.unit] += file_bytes;
	if (u.format)
		l->format = u.format;
}

/* Look at files below a directory. Closes `fd`. */
static void look_below(struct unit_looks *l, int fd, unsigned levels)
{
	CLEANUP_DIR DIR *dir = fdopendir(fd);
	const struct dirent *d;

	if (!dir)
		(void)close(fd);
	while (dir && l->files < LOOKS_MAX && (d = readdir(dir))) {
		CLEANUP_FD int at = -1;
		struct stat st;

		if (d->d_name[0] == '.')
			continue;
		at = openat(dirfd(dir), d->d_name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (at < 0 || fstat(at, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			look_at_file(l, at, (uint64_t)st.st_size);
		else if (S_ISDIR(st.st_mode) && levels > 0)
			look_below(l, steal_fd(&at), levels - 1);
	}
}

/* Returns the unit that has the most bytes, because a shard says more than a
 * list of files beside it. */
struct file_unit unit_find(const char *top)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct unit_looks l = {.files = 0};
	enum profile_unit most = UNIT_SAMPLES;

	if (fd >= 0)
		look_below(&l, fd, LEVELS_MAX);
	for (enum profile_unit u = 0; u < UNITS; u++)
		if (l.bytes[u] > l.bytes[most])
			most = u;
	return (struct file_unit){most, most == UNIT_MB ? l.format : NULL};
}
