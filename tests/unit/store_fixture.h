/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of the store: directories that are removed afterwards,
 * stores in them, and items whose bytes are computed from their key.
 */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/counters.h"
#include "mount/store/store.h"
#include "suite.h"

struct fixture {
	char root[64]; /* deleted by fixture_release() */
	/* directories of tiers in `root`; tests create them */
	char dirs[3][80];
	struct counters counters;
	struct store_scratch *scratch;
	struct store *store;
	struct error err;
};

static inline int fixture_unlink(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	(void)snprintf(f->root, sizeof(f->root), "%s/refrain-test-XXXXXX",
		test_memory_dir());
	ck_assert_ptr_nonnull(mkdtemp(f->root));
	for (size_t i = 0; i < 3; i++)
		(void)snprintf(
			f->dirs[i], sizeof(f->dirs[i]), "%s/t%zu", f->root, i);
	f->scratch = store_scratch_new();
	ck_assert_ptr_nonnull(f->scratch);
}

static inline void fixture_close(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

static inline void fixture_release(struct fixture *f)
{
	fixture_close(f);
	store_scratch_free(f->scratch);
	(void)nftw(f->root, fixture_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* Open n tiers of these sizes. Returns the result of store_open(). */
static inline int fixture_open(
	struct fixture *f, size_t n, const char *const *sizes)
{
	struct store_config config = {
		.dataset = "/data/set", .ntiers = n, .verify = true};

	for (size_t i = 0; i < n; i++)
		config.tiers[i] = (struct tier_config){
			.dir = f->dirs[i], .size = sizes[i]};
	return store_open(&f->store, &config, &f->counters, &f->err);
}

/* Open one tier, and wait until it is ready. */
static inline void fixture_open_one(struct fixture *f, const char *size)
{
	int rc = fixture_open(f, 1, &size);

	ck_assert_msg(rc == 0, "%s", f->err.msg);
	store_wait_ready(f->store);
}

/* Returns a key for a test. Keys are spread over shards and directories, and
 * are never random. */
static inline struct hash128 fixture_key(uint64_t i)
{
	return hash128(&i, sizeof(i));
}

/* Returns the bytes of an item, from malloc(). */
static inline unsigned char *fixture_bytes(struct hash128 key, uint64_t size)
{
	unsigned char *p = malloc(size + 8);
	uint64_t x = key.lo | 1;

	ck_assert_ptr_nonnull(p);
	for (uint64_t i = 0; i < size; i += 8) {
		x = x * UINT64_C(6364136223846793005) + key.hi;
		memcpy(p + i, &x, 8);
	}
	return p;
}

/* Reserve and publish an item. Returns 0 or the first failure. */
static inline int fixture_put(
	struct fixture *f, struct hash128 key, uint64_t size)
{
	struct reservation r;
	unsigned char *p;
	int rc = store_reserve(f->store, size, &r);

	if (rc)
		return rc;
	p = fixture_bytes(key, size);
	rc = store_publish(f->store, &r, key, p, size);
	ck_assert_uint_eq(r.charged_bytes, 0);
	free(p);
	return rc;
}

/* Read a range and compare every byte. Returns 0 or the store's failure. */
static inline int fixture_get(struct fixture *f, struct hash128 key,
	uint64_t size, uint64_t off, size_t len)
{
	const void *data = NULL;
	unsigned char *want;
	ssize_t n =
		store_read(f->store, f->scratch, key, size, off, len, &data);

	if (n < 0)
		return (int)n;
	ck_assert_int_eq(n, (ssize_t)len);
	want = fixture_bytes(key, size);
	ck_assert_msg(memcmp(data, want + off, len) == 0, "wrong bytes");
	free(want);
	return 0;
}

/* Returns the path of an entry in tier t. */
static inline const char *fixture_path(const struct fixture *f, size_t t,
	struct hash128 key, uint64_t size, char buf[256])
{
	(void)snprintf(buf, 256,
		"%.79s/%02x/%016" PRIx64 "%016" PRIx64 "-%" PRIu64, f->dirs[t],
		(unsigned int)(key.hi >> 56), key.hi, key.lo, size);
	return buf;
}

/* Flip one bit of a file. */
static inline void fixture_flip(const char *path, off_t off, unsigned int bit)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char c;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &c, 1, off), 1);
	c ^= (unsigned char)(1U << bit % 8);
	ck_assert_int_eq(pwrite(fd, &c, 1, off), 1);
	close(fd);
}

static inline uint64_t fixture_count(const _Atomic uint64_t *counter)
{
	return atomic_load(counter);
}

#endif
