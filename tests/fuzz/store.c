/* SPDX-License-Identifier: MIT */
/* Fuzz targets: the identity file of a tier, the names of entries, and the
 * files of entries. A damaged entry must never be served: the store may return
 * only what was published, unless the target has corrected the checksums. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/store.h"

/* -- The identity file ----------------------------------------------------- */

static int identity_dir = -1;

static void identity_one(const uint8_t *data, size_t size)
{
	char path[64], *encoded = NULL;
	struct error err;
	int rc;

	if (identity_dir < 0)
		identity_dir = fuzz_dir(path);
	fuzz_file(identity_dir, IDENTITY_NAME, data, size);
	rc = identity_read(identity_dir, "dir", &encoded, &err);
	FUZZ_MUST(rc == 0 || rc == -EBADMSG);
	FUZZ_MUST((rc == 0) == (encoded != NULL));
	/* Check that the text is printable, because messages contain it. */
	for (const char *p = encoded; p && *p; p++)
		FUZZ_MUST(*p > ' ' && *p < 127);
	free(encoded);
}

static size_t identity_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"refrain tier 1\ndataset /data/set\n",
		"refrain tier 1\ndataset /da%20ta/%FFset\n",
		"refrain tier 2\ndataset /x\nmore\n",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_identity = {
	"identity", identity_one, identity_seed};

/* -- The name of an entry -------------------------------------------------- */

static void name_one(const uint8_t *data, size_t size)
{
	char *name = fuzz_text(data, size), buf[ENTRY_PATH_MAX];
	uint64_t item_bytes;
	struct hash128 key;

	if (entry_parse_name(name, 0xa1, &key, &item_bytes)) {
		const char *path = entry_path(buf, key, item_bytes);

		FUZZ_MUST(item_bytes > 0 && item_bytes <= ENTRY_ITEM_MAX_BYTES);
		/* Check that no other name leads to the same entry. */
		FUZZ_MUST(strcmp(path + 3, name) == 0);
	}
	free(name);
}

static size_t name_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"a1000000000000000000000000000002-1",
		"a1ffffffffffffffffffffffffffffff-1073741824",
		"a10123456789abcdef0123456789abcd-123456",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_name = {"name", name_one, name_seed};

/* -- The file of an entry -------------------------------------------------- */

#define ITEM_BYTES ((size_t)1000)
/* the trailer: the hash of the only block, and the footer */
#define TRAILER_BYTES (8 + ENTRY_FOOTER_BYTES)
#define ENTRY_BYTES (ITEM_BYTES + TRAILER_BYTES)

static const struct hash128 key = {
	UINT64_C(0xa100000000000001), UINT64_C(0x1234567812345678)};
static struct store *store;
static struct store_scratch *scratch;
static struct counters counters;
static unsigned char item[ITEM_BYTES];
static char entry_file[128];

static void close_store(void)
{
	store_close(store);
	store_scratch_free(scratch);
}

static void open_store(void)
{
	struct store_config config = {
		.dataset = "/data", .ntiers = 1, .verify = true};
	char path[64], buf[ENTRY_PATH_MAX];
	struct error err;

	(void)close(fuzz_dir(path));
	config.tiers[0] = (struct tier_config){.dir = path, .size = "1M"};
	FUZZ_MUST(store_open(&store, &config, &counters, &err) == 0);
	store_wait_ready(store);
	scratch = store_scratch_new();
	FUZZ_MUST(scratch);
	/* close_store() must run before fuzz_dir() removes the directory */
	(void)atexit(close_store);
	for (size_t i = 0; i < ITEM_BYTES; i++)
		item[i] = (unsigned char)(i * 7);
	(void)snprintf(entry_file, sizeof(entry_file), "%s/%s", path,
		entry_path(buf, key, ITEM_BYTES));
}

static void publish(void)
{
	struct reservation r;

	if (!store)
		open_store();
	store_invalidate(store, key, ITEM_BYTES);
	FUZZ_MUST(store_reserve(store, ITEM_BYTES, &r) == 0);
	FUZZ_MUST(store_publish(store, &r, key, item, ITEM_BYTES) == 0);
}

/* Correct the whole trailer of a file, or only its checksum. */
static bool set_right(unsigned char *file, unsigned how)
{
	uint64_t sum;

	if (how == 1)
		entry_make_trailer(file + ITEM_BYTES, key, file, ITEM_BYTES);
	if (how == 2) {
		sum = hash64(
			file + ITEM_BYTES, TRAILER_BYTES - 8, key.hi ^ key.lo);
		memcpy(file + ENTRY_BYTES - 8, &sum, 8);
	}
	return how == 1;
}

/* The first byte of the input selects what is corrected. */
static void entry_one(const uint8_t *data, size_t size)
{
	unsigned char file[FUZZ_MAX_BYTES];
	const unsigned char *want = item;
	const void *got = NULL;
	ssize_t n;

	if (size == 0 || size > sizeof(file))
		return;
	memcpy(file, data + 1, --size);
	publish();
	if (size == ENTRY_BYTES && set_right(file, data[0] % 4))
		want = file;
	fuzz_file(AT_FDCWD, entry_file, file, size);
	n = store_read(store, scratch, key, ITEM_BYTES, 10, 500, &got);
	FUZZ_MUST(n == 500 || n == -ENOENT);
	FUZZ_MUST(n < 0 || memcmp(got, want + 10, 500) == 0);
	FUZZ_MUST(n > 0 || !store_has(store, key, ITEM_BYTES));
	FUZZ_MUST(n > 0 || want == item);
}

static size_t entry_seed_file(unsigned i, uint8_t *buf)
{
	int fd;
	ssize_t n;

	if (i > 2)
		return 0;
	publish();
	buf[0] = (uint8_t)i;
	fd = open(entry_file, O_RDONLY | O_CLOEXEC);
	FUZZ_MUST(fd >= 0);
	n = read(fd, buf + 1, FUZZ_MAX_BYTES - 1);
	FUZZ_MUST(n == (ssize_t)ENTRY_BYTES);
	(void)close(fd);
	return (size_t)n + 1;
}

const struct fuzz_target fuzz_entry = {"entry", entry_one, entry_seed_file};
