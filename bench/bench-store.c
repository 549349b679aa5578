/* SPDX-License-Identifier: MIT */
/*
 * Measures how fast entries are read, with and without verifying, compared with
 * plain files of the same size in the same directory; and how soon a tier of
 * many entries is ready. One thread; reads are from the kernel's page cache.
 *
 *   bench-store DIR            110 KB items: reads a second, median of 7 rounds
 *   bench-store DIR ENTRIES    ENTRIES entries of one byte: time from opening
 *                              to the first hit and to admission; then again
 *                              with the kernel's caches dropped, as after a
 *                              reboot, if this user may drop them
 *
 * DIR must not exist; it is cleared and removed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "mount/store/store.h"

#define ITEMS 500
#define ITEM_BYTES ((size_t)110000)
#define ROUNDS 7
#define PASSES 8

static void die(const char *what)
{
	fprintf(stderr, "bench-store: %s\n", what);
	exit(EXIT_FAILURE);
}

static struct store *open_store(const char *dir, bool verify)
{
	static struct counters counters;
	struct store_config config = {
		.dataset = "bench", .ntiers = 1, .verify = verify};
	struct store *s;
	struct error err;

	config.tiers[0] = (struct tier_config){.dir = dir, .size = "50%"};
	if (store_open(&s, &config, &counters, &err))
		die(err.msg);
	return s;
}

static void put(struct store *s, uint64_t i, const void *data, size_t bytes)
{
	struct reservation r;

	if (store_reserve(s, bytes, &r) ||
		store_publish(s, &r, hash128(&i, sizeof(i)), data, bytes))
		die("cannot publish");
}

/* Returns the rate at which items are read from the store, per second. */
static double read_store(const char *dir, bool verify)
{
	struct store_scratch *scratch = store_scratch_new();
	struct store *s = open_store(dir, verify);
	const void *data;
	uint64_t begin;

	if (!scratch)
		die("out of memory");
	store_wait_ready(s);
	begin = clock_now_ns();
	for (uint64_t n = 0; n < PASSES * ITEMS; n++) {
		uint64_t i = n % ITEMS;

		if (store_read(s, scratch, hash128(&i, sizeof(i)), ITEM_BYTES,
			    0, ITEM_BYTES, &data) < 0)
			die("cannot read an entry");
	}
	begin = clock_now_ns() - begin;
	store_close(s);
	store_scratch_free(scratch);
	return PASSES * ITEMS * 1e9 / (double)begin;
}

/* Returns the rate at which plain files are read by name in an open directory,
 * per second. */
static double read_bare(int dir_fd, void *buf)
{
	uint64_t begin = clock_now_ns();

	for (uint64_t n = 0; n < PASSES * ITEMS; n++) {
		char name[32];
		int fd;

		(void)snprintf(name, sizeof(name), "%" PRIu64, n % ITEMS);
		fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || pread(fd, buf, ITEM_BYTES, 0) < 0)
			die("cannot read a bare file");
		(void)close(fd);
	}
	begin = clock_now_ns() - begin;
	return PASSES * ITEMS * 1e9 / (double)begin;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static int make_bare(const char *dir, const void *data)
{
	int dir_fd;

	if (mkdir(dir, 0700) < 0)
		die("cannot make a directory for bare files");
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned int i = 0; i < ITEMS; i++) {
		char name[32];
		int fd;

		(void)snprintf(name, sizeof(name), "%u", i);
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, data, ITEM_BYTES) < 0)
			die("cannot write a bare file");
		(void)close(fd);
	}
	return dir_fd;
}

static void remove_bare(const char *dir, int dir_fd)
{
	for (unsigned int i = 0; i < ITEMS; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%u", i);
		/* rmdir() reports a failure */
		(void)unlinkat(dir_fd, name, 0);
	}
	(void)close(dir_fd);
	if (rmdir(dir) < 0)
		die("cannot remove the bare files");
}

static void bench_reads(const char *dir)
{
	double bare[ROUNDS], verified[ROUNDS], unverified[ROUNDS], b;
	unsigned char *data = calloc(1, ITEM_BYTES);
	struct store *s = open_store(dir, true);
	char bare_dir[4096];
	int fd;

	if (!data)
		die("out of memory");
	(void)snprintf(bare_dir, sizeof(bare_dir), "%s.bare", dir);
	fd = make_bare(bare_dir, data);
	store_wait_ready(s);
	for (uint64_t i = 0; i < ITEMS; i++)
		put(s, i, data, ITEM_BYTES);
	store_close(s);
	for (int r = 0; r < ROUNDS; r++) {
		bare[r] = read_bare(fd, data);
		verified[r] = read_store(dir, true);
		unverified[r] = read_store(dir, false);
	}
	b = median(bare);
	printf("110 KB items, reads/s: bare %.0f, entries verified %.0f "
	       "(%.2f), not %.0f (%.2f)\n",
		b, median(verified), median(verified) / b, median(unverified),
		median(unverified) / b);
	remove_bare(bare_dir, fd);
	free(data);
}

/* Read the last entry while the tier still reads its directories. */
static void first_hit(struct store *s, uint64_t entries)
{
	struct store_scratch *scratch = store_scratch_new();
	uint64_t last = entries - 1;
	const void *data;

	if (!scratch ||
		store_read(s, scratch, hash128(&last, sizeof(last)), 1, 0, 1,
			&data) != 1)
		die("no hit after a restart");
	store_scratch_free(scratch);
}

/* Returns the processor time of all threads, which depends little on other
 * programs. */
static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / NS_PER_MS;
}

/* Measure how soon a closed tier finds an entry and admits one after it was
 * opened. */
static void reopen(const char *dir, uint64_t entries, const char *how)
{
	uint64_t begin = clock_now_ns(), hit, ready;
	double cpu = cpu_ms();
	struct store *s = open_store(dir, true);

	first_hit(s, entries);
	hit = clock_now_ns() - begin;
	store_wait_ready(s);
	ready = clock_now_ns() - begin;
	printf("%s: first hit after %.1f ms, admission after %.1f ms, "
	       "processor time %.1f ms\n",
		how, (double)hit / NS_PER_MS, (double)ready / NS_PER_MS,
		cpu_ms() - cpu);
	store_close(s);
}

static bool drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool done;

	sync();
	done = fd >= 0 && write(fd, "3", 1) == 1;
	if (fd >= 0)
		(void)close(fd); /* loses nothing that is needed */
	return done;
}

static void bench_start(const char *dir, uint64_t entries)
{
	struct store *s = open_store(dir, true);
	uint64_t begin;

	if (entries == 0)
		die("give a number of entries");
	store_wait_ready(s);
	begin = clock_now_ns();
	for (uint64_t i = 0; i < entries; i++)
		put(s, i, "x", 1);
	printf("%" PRIu64 " entries, published at %.0f/s\n", entries,
		(double)entries * 1e9 / (double)(clock_now_ns() - begin));
	store_close(s);
	for (int i = 0; i < 3; i++)
		reopen(dir, entries, "reopened");
	for (int i = 0; i < 3 && drop_caches(); i++)
		reopen(dir, entries, "reopened cold");
}

int main(int argc, char **argv)
{
	struct error err;
	uint64_t removed;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: bench-store DIR [ENTRIES]\n");
		return 2;
	}
	if (access(argv[1], F_OK) == 0)
		die("the directory exists; name one that does not exist");
	if (argc == 3)
		bench_start(argv[1], strtoull(argv[2], NULL, 10));
	else
		bench_reads(argv[1]);
	if (store_clear_dir(argv[1], &removed, &err))
		die(err.msg);
	if (rmdir(argv[1]) < 0)
		die("cannot remove the directory");
	return EXIT_SUCCESS;
}
