/* SPDX-License-Identifier: MIT */
/*
 * Fuzz targets: the sources of datasets. Tars and lists are files that the
 * loader reads; the index is a file that it maps. The targets correct the
 * checksums unless the first byte says otherwise, so that mutated input is not
 * rejected for its checksum. A dataset that opens must answer each question
 * from its own tables.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/dataset/dataset_catalogue_impl.h"
#include "fuzz.h"
#include "refrain/loader.h"

#define BLOCK 512
#define INDEX_NAME "index"
#define MEMBERS "seg.jpg,json;d/"
#define HEADER_WORDS ((size_t)104) /* length of a header before its sizes */

static const struct hash128 key = {1, 2};
static char path[80];
static int dir = -1;

static void open_dir(void)
{
	if (dir >= 0)
		return;
	dir = fuzz_dir(path);
	/* No run may find an index that an earlier run has stored. */
	FUZZ_MUST(setenv("XDG_CACHE_HOME", "/dev/null", 1) == 0);
}

static size_t text_bytes(const char *text)
{
	FUZZ_MUST(text);
	return strlen(text);
}

/* Ask for the members of example number i. */
static void ask_parts(
	const struct dataset *ds, uint64_t i, uint64_t shard_bytes)
{
	struct example ex;

	for (uint32_t part = 1; part < dataset_parts(ds); part++) {
		if (!dataset_part(ds, i, part, &ex))
			continue;
		FUZZ_MUST(text_bytes(ex.name) + text_bytes(ex.file) < 8192);
		FUZZ_MUST(ex.whole ||
			(ex.offset <= shard_bytes &&
				ex.bytes <= shard_bytes - ex.offset));
	}
}

/* Ask all questions. `shard_bytes` is the size of the file that has the shards,
 * or UINT64_MAX. */
static void ask(const struct dataset *ds, uint64_t shard_bytes)
{
	uint64_t classes = dataset_classes(ds);
	struct example ex;
	size_t n;

	FUZZ_MUST(dataset_count(ds) > 0);
	for (uint64_t i = 0; i < dataset_count(ds); i++) {
		dataset_example(ds, i, &ex);
		FUZZ_MUST(text_bytes(ex.name) + text_bytes(ex.file) < 8192);
		FUZZ_MUST(ex.label >= -1);
		FUZZ_MUST(ex.whole || ex.shard < dataset_shards(ds));
		FUZZ_MUST(ex.whole ||
			(ex.offset <= shard_bytes &&
				ex.bytes <= shard_bytes - ex.offset));
		ask_parts(ds, i, shard_bytes);
	}
	for (uint32_t i = 0; i < dataset_shards(ds); i++)
		(void)text_bytes(dataset_shard_file(ds, i));
	for (uint64_t i = 0; i < classes && i < 4096; i++) {
		const char *name = dataset_class_name(ds, i, &n);

		FUZZ_MUST(!name || name[n] == '\0');
	}
	(void)dataset_class_name(ds, classes, NULL);
}

static void look(
	const char *name, int source, const char *members, uint64_t bytes)
{
	char full[128];
	struct dataset_options o = {
		.path = full, .source = source, .members = members};
	struct dataset *ds;
	struct error err;
	int rc;

	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	rc = dataset_open(&ds, &o, &err);
	if (rc == 0) {
		FUZZ_MUST(!ds->map);
		ask(ds, bytes);
	}
	/* -EINVAL: a list that begins like an image is treated as an image */
	FUZZ_MUST(rc == 0 || rc == -EBADMSG || rc == -ENODATA ||
		(rc == -EINVAL && source == REFRAIN_SOURCE_LIST));
	dataset_close(ds);
}

static size_t read_back(const char *name, uint8_t *buf)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	FUZZ_MUST(fd >= 0);
	buf[0] = 0;
	n = read(fd, buf + 1, FUZZ_MAX_BYTES - 1);
	FUZZ_MUST(n > 0);
	(void)close(fd);
	return (size_t)n + 1;
}

/* -- Tars ------------------------------------------------------------------ */

static void set_checksum(uint8_t *block)
{
	unsigned sum = 8 * ' ';
	char digits[16];

	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? 0 : block[i];
	(void)snprintf(digits, sizeof(digits), "%06o", sum);
	memcpy(block + 148, digits, 7);
	block[155] = ' ';
}

/* Correct the checksums of the tar's headers, as far as the sizes in the
 * headers lead from one to the next. */
static void set_checksums(uint8_t *tar, size_t size)
{
	for (size_t at = 0; at + BLOCK <= size;) {
		char digits[13] = "";
		size_t bytes;

		if (tar[at] == 0)
			return;
		set_checksum(tar + at);
		memcpy(digits, tar + at + 124, 12);
		bytes = (size_t)strtoul(digits, NULL, 8);
		if (bytes > size)
			return;
		at += BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
	}
}

static void one_tar(const uint8_t *data, size_t size)
{
	uint8_t file[FUZZ_MAX_BYTES];

	open_dir();
	if (size == 0 || size > sizeof(file))
		return;
	memcpy(file, data + 1, --size);
	if (data[0] % 8 != 7)
		set_checksums(file, size);
	fuzz_file(dir, "x.tar", file, size);
	look("x.tar", REFRAIN_SOURCE_TAR, NULL, size);
	look("x.tar", REFRAIN_SOURCE_TAR, MEMBERS, size);
}

struct made_member {
	char type;
	const char *name, *data;
};

static size_t put_member(uint8_t *to, const struct made_member *m)
{
	size_t n = strlen(m->data);
	char digits[32];

	memset(to, 0, 2 * BLOCK);
	memcpy(to, m->name, strlen(m->name));
	(void)snprintf(digits, sizeof(digits), "%011zo", n);
	memcpy(to + 124, digits, 12);
	to[156] = (uint8_t)m->type;
	memcpy(to + 257, "ustar\00000", 8);
	memcpy(to + BLOCK, m->data, n);
	set_checksum(to);
	return n > 0 ? 2 * BLOCK : BLOCK;
}

static size_t seed_tar(unsigned i, uint8_t *buf)
{
	static const struct made_member made[][3] = {
		{{'0', "a/1.jpg", "image"}, {'0', "a/1.cls", "3\n"}},
		{{'L', "././@LongLink", "dir/long name.jpg"},
			{'0', "dir/long", "image"}, {'2', "link", ""}},
		{{'x', "pax", "17 path=b/2.jpeg\n10 size=3\n"},
			{'0', "b", "abc"}, {'\0', "c.jpg", "x"}},
		{{'g', "pax", "11 path=zz\n"}, {'5', "d/", ""},
			{'0', "d/1.seg.jpg", "x"}},
		{{'0', "1.json", "[]"}, {'0', "1.jpg", "x"},
			{'0', "d/1.png", "image"}},
	};
	size_t n = 1;

	if (i >= sizeof(made) / sizeof(made[0]))
		return 0;
	buf[0] = 0;
	for (unsigned k = 0; k < 3 && made[i][k].name; k++)
		n += put_member(buf + n, &made[i][k]);
	memset(buf + n, 0,
		(size_t)2 * BLOCK < FUZZ_MAX_BYTES - n ? (size_t)2 * BLOCK
						       : FUZZ_MAX_BYTES - n);
	return n + BLOCK <= FUZZ_MAX_BYTES ? n + BLOCK : FUZZ_MAX_BYTES;
}

/* -- Lists ----------------------------------------------------------------- */

static void one_list(const uint8_t *data, size_t size)
{
	open_dir();
	fuzz_file(dir, "list", data, size);
	look("list", REFRAIN_SOURCE_LIST, NULL, 0);
	look("list", REFRAIN_SOURCE_LIST, MEMBERS, 0);
}

static size_t seed_list(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"a/1.jpg\tcat\nb/2.jpg\tdog\n# no\n\na/1.jpg\tdog\r\n",
		"./1\t0\n2\t17\n3\t2147483647\n4\n",
		"# refrain index 1: path, size, mtime, label\n"
		"a/1.jpg\t10\t1.000000000\ta\n"
		"a/\\t\\n\\\\.jpg\t0\t-1.000000000\ta\n",
		"# refrain index 2: path, size, mtime, tag, label\n"
		"a/1.jpg\t10\t1.000000000\t0123456789abcdef\ta\n"
		"a/1.json\t10\t1.000000000\t0123456789abcdef\ta\n"
		"d/1.png\t10\t1.000000000\t0123456789abcdef\td\n",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

/* -- Indexes --------------------------------------------------------------- */

/* Returns the number of sections of a version; 0 if there is no such version.
 */
static size_t sections_of(uint32_t version)
{
	return version == 5 ? SECTIONS : (version == 4 ? SECTIONS - 2 : 0);
}

static void set_hashes(uint8_t *file, size_t size)
{
	uint32_t version;
	size_t sections, hashes, at;
	uint64_t hash;

	memcpy(&version, file + 8, sizeof(version));
	sections = sections_of(version);
	hashes = HEADER_WORDS + 8 * sections;
	at = hashes + 8 * sections + 8;
	if (sections == 0 || size < at)
		return;
	memcpy(file + 16, &key, sizeof(key));
	for (size_t i = 0; i < sections; i++) {
		uint64_t n;

		memcpy(&n, file + HEADER_WORDS + 8 * i, 8);
		if (n > size - at)
			break;
		hash = hash64(file + at, (size_t)n, i);
		memcpy(file + hashes + 8 * i, &hash, 8);
		at += (size_t)n;
	}
	at = hashes + 8 * sections;
	hash = hash64(file, at, version);
	memcpy(file + at, &hash, 8);
}

static int map_index(struct dataset *ds, const uint8_t *file, size_t size)
{
	uint32_t version = 0;

	if (size >= 12)
		memcpy(&version, file + 8, sizeof(version));
	*ds = (struct dataset){.dir = -1, .members = version == 5 ? 2 : 0};
	/* Make a new file, because the pages of the old one may still be
	 * mapped. */
	(void)unlinkat(dir, INDEX_NAME, 0);
	fuzz_file(dir, INDEX_NAME, file, size);
	return ds_catalogue_map(ds, dir, INDEX_NAME, key);
}

static void one_index(const uint8_t *data, size_t size)
{
	struct dataset ds;
	uint8_t file[FUZZ_MAX_BYTES];

	open_dir();
	if (size == 0 || size > sizeof(file))
		return;
	memcpy(file, data + 1, --size);
	if (data[0] % 8 != 7)
		set_hashes(file, size);
	if (map_index(&ds, file, size) == 0) {
		struct dataset *copy = malloc(sizeof(*copy));

		FUZZ_MUST(copy);
		*copy = ds;
		ask(copy, UINT64_MAX);
		dataset_close(copy);
	}
}

/* Make an index of a dataset from the seeds of the other targets, with or
 * without members. Its hash must be right, because otherwise no mutation gets
 * past the check of the hash. */
static size_t seed_index(unsigned i, uint8_t *buf)
{
	char full[128];
	struct dataset_options o = {
		.path = full, .members = i > 1 ? MEMBERS : NULL};
	bool list = i % 2 == 0;
	struct dataset *ds, mapped;
	size_t n;

	if (i > 3)
		return 0;
	open_dir();
	n = list ? seed_list(3, buf) : seed_tar(4, buf);
	fuzz_file(dir, "x", list ? buf : buf + 1, list ? n : n - 1);
	o.source = list ? REFRAIN_SOURCE_LIST : REFRAIN_SOURCE_TAR;
	(void)snprintf(full, sizeof(full), "%s/x", path);
	FUZZ_MUST(dataset_open(&ds, &o, NULL) == 0);
	FUZZ_MUST(ds_catalogue_write(ds, dir, INDEX_NAME, key) == 0);
	dataset_close(ds);
	n = read_back(INDEX_NAME, buf);
	buf[1 + HEADER_WORDS + 8 * sections_of(i > 1 ? 5 : 4)] ^= 1;
	set_hashes(buf + 1, n - 1);
	FUZZ_MUST(map_index(&mapped, buf + 1, n - 1) == 0);
	FUZZ_MUST(munmap(mapped.map, mapped.map_bytes) == 0);
	return n;
}

const struct fuzz_target fuzz_tar = {"tar", one_tar, seed_tar};
const struct fuzz_target fuzz_list = {"list", one_list, seed_list};
const struct fuzz_target fuzz_index = {"index", one_index, seed_index};
