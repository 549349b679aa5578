/* SPDX-License-Identifier: MIT */
/* Writes the members of a tar in the GNU format; see tar(5). No state. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/write.h"
#include "loader/recode/recode_impl.h"

#define TAR_BLOCK_BYTES 512
/* The largest size that eleven octal digits can express */
#define TAR_OCTAL_MAX UINT64_C(077777777777)

struct tar_block {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8],
		type, link[100], magic[8], user[32], group[32], major[8],
		minor[8], prefix[155], end[12];
};

_Static_assert(sizeof(struct tar_block) == TAR_BLOCK_BYTES, "see tar(5)");

static int tar_put(int fd, const void *data, size_t bytes, uint64_t *written)
{
	*written += bytes;
	return write_all(fd, data, bytes);
}

int tar_put_padding(int fd, uint64_t bytes, uint64_t *written)
{
	static const char zeros[TAR_BLOCK_BYTES];

	return tar_put(fd, zeros, (size_t)(-bytes % TAR_BLOCK_BYTES), written);
}

int tar_put_end(int fd, uint64_t *written)
{
	static const char zeros[2 * TAR_BLOCK_BYTES];

	return tar_put(fd, zeros, sizeof(zeros), written);
}

/* Numbers that are too large for octal digits are binary, as GNU tar has it. */
static void tar_set_number(char field[12], uint64_t n)
{
	if (n <= TAR_OCTAL_MAX) {
		(void)snprintf(field, 12, "%011llo", (unsigned long long)n);
		return;
	}
	memset(field, 0, 12);
	field[0] = (char)0x80;
	for (int i = 11; n; i--, n >>= 8)
		field[i] = (char)(n & 0xff);
}

static int put_block(int fd, const char *name, char type, uint64_t bytes,
	uint64_t mtime_s, uint64_t *written)
{
	struct tar_block h = {.mode = "0000644",
		.uid = "0000000",
		.gid = "0000000",
		.sum = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
		.type = type,
		.magic = "ustar  "};
	const unsigned char *at = (const unsigned char *)&h;
	unsigned sum = 0;

	memcpy(h.name, name, MIN(strlen(name), sizeof(h.name)));
	tar_set_number(h.size, bytes);
	tar_set_number(h.mtime, mtime_s);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += at[i];
	(void)snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	return tar_put(fd, &h, sizeof(h), written);
}

int tar_put_header(int fd, const char *name, uint64_t bytes, int64_t mtime_s,
	uint64_t *written)
{
	size_t n = strlen(name) + 1;
	int rc = 0;

	if (n > sizeof(((struct tar_block *)0)->name) + 1) {
		rc = put_block(fd, "././@LongLink", 'L', n, 0, written);
		if (rc == 0)
			rc = tar_put(fd, name, n, written);
		if (rc == 0)
			rc = tar_put_padding(fd, n, written);
	}
	if (rc < 0)
		return rc;
	return put_block(fd, name, '0', bytes,
		mtime_s < 0 ? 0 : (uint64_t)mtime_s, written);
}
