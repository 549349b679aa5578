/* SPDX-License-Identifier: MIT */
/* Fuzz target: the manifest file. Its checksums and lengths are corrected
 * unless the first byte says otherwise, so that mutated input is not rejected
 * for them. A manifest that loads is walked as a mount walks it, and must stay
 * the same when it is saved and loaded again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "fuzz.h"
#include "mount/names/manifest.h"

#define HEADER_BYTES ((size_t)96)
#define OLD_HEADER_BYTES ((size_t)64)
#define DATASET "/data"
static int dir = -1;

static void open_dir(void)
{
	char path[64];

	if (dir < 0)
		dir = fuzz_dir(path);
}

static void set_right(uint8_t *file, size_t size)
{
	uint64_t head, body, hash;
	uint32_t seed; /* the format version of the manifest */

	memcpy(&seed, file + 8, sizeof(seed));
	head = seed == 3 ? HEADER_BYTES : OLD_HEADER_BYTES;
	body = size - head;
	hash = hash64(file + head, body, seed);
	memcpy(file + 40, &body, 8);
	memcpy(file + 48, &hash, 8);
	hash = hash64(file, head - 8, seed);
	memcpy(file + head - 8, &hash, 8);
}

static bool name_seen(void *arg, const char *name, const struct node_info *info,
	uint64_t next_pos)
{
	(void)arg, (void)next_pos;
	FUZZ_MUST(name[0] != '\0' && !strchr(name, '/'));
	FUZZ_MUST(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
	FUZZ_MUST(info->attr.version.size_bytes <= INT64_MAX);
	return true;
}

static void look_at(struct manifest *m, node_id id)
{
	struct node_info info, found;
	char path[PATH_MAX];

	if (manifest_get(m, id, &info) < 0 || info.retired)
		return;
	FUZZ_MUST(manifest_is_under(m, id, NODE_ROOT));
	if (manifest_path(m, id, path, sizeof(path)) >= 0) {
		FUZZ_MUST(manifest_resolve(m, path, &found) == 0);
		FUZZ_MUST(found.id == id);
	}
	(void)manifest_target(m, id, path, sizeof(path));
	if (info.attr.kind == KIND_DIR)
		FUZZ_MUST(manifest_readdir(m, id, 0, false, name_seen, NULL) ==
			0);
}

static void again(struct manifest *m)
{
	struct manifest_totals before, after;
	struct manifest *copy;

	manifest_totals(m, &before);
	FUZZ_MUST(manifest_save(m, dir) == 0);
	FUZZ_MUST(manifest_new(&copy, DATASET) == 0);
	FUZZ_MUST(manifest_load(copy, dir) == 0);
	manifest_totals(copy, &after);
	FUZZ_MUST(memcmp(&before, &after, sizeof(before)) == 0);
	manifest_free(copy);
}

static void one(const uint8_t *data, size_t size)
{
	uint8_t file[FUZZ_MAX_BYTES];
	struct manifest *m;

	open_dir();
	if (size == 0 || size > sizeof(file))
		return;
	memcpy(file, data + 1, --size);
	if (data[0] % 8 != 7 && size >= HEADER_BYTES)
		set_right(file, size);
	fuzz_file(dir, MANIFEST_FILE, file, size);
	FUZZ_MUST(manifest_new(&m, DATASET) == 0);
	if (manifest_load(m, dir) == 0) {
		for (node_id id = NODE_ROOT; id < manifest_end(m); id++)
			look_at(m, id);
		again(m);
	}
	manifest_free(m);
}

static void put(struct manifest *m, node_id parent, const char *name,
	enum file_kind kind, uint64_t tag, struct node_info *info)
{
	struct file_entry e = {
		.name = name,
		.target = kind == KIND_LINK ? "over/there" : NULL,
		.attr =
			{
				.kind = kind,
				.mode = 0644,
				.version = {.size_bytes = 1000,
					.mtime_ns = -5,
					.tag = tag},
			},
	};

	FUZZ_MUST(manifest_put(m, parent, &e, 1, false, info, NULL, NULL) == 0);
}

static size_t seed(unsigned i, uint8_t *buf)
{
	struct node_info info = {.id = NODE_ROOT};
	struct manifest *m;
	ssize_t n;
	int fd;

	if (i > 3)
		return 0;
	open_dir();
	FUZZ_MUST(manifest_new(&m, DATASET) == 0);
	for (unsigned k = 0; k < 4 * i; k++) {
		node_id parent = info.id;
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", k);
		put(m, parent, name, KIND_FILE, i > 2, &info);
		put(m, parent, "link", KIND_LINK, 0, &info);
		put(m, parent, "d", KIND_DIR, 0, &info);
	}
	FUZZ_MUST(manifest_save(m, dir) == 0);
	manifest_free(m);
	fd = openat(dir, MANIFEST_FILE, O_RDONLY | O_CLOEXEC);
	FUZZ_MUST(fd >= 0);
	buf[0] = 0;
	n = read(fd, buf + 1, FUZZ_MAX_BYTES - 1);
	FUZZ_MUST(n > 0);
	(void)close(fd);
	return (size_t)n + 1;
}

const struct fuzz_target fuzz_manifest = {"manifest", one, seed};
