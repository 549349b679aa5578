/* SPDX-License-Identifier: MIT */
/*
 * How the posix origin reads files: with direct I/O where possible, and without
 * leaving pages of the source in memory.
 */
#include "origin_rows.h"
#include "suite.h"

#include <dirent.h>
#include <sys/mman.h>

/* Returns the flags with which this process has the file open; 0: the file is
 * not open. */
static int open_flags(const char *path)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	char link[64], have[256], line[256];
	const char *want = in_source(path);
	int flags = 0;

	for (struct dirent *d = readdir(dir); d && !flags; d = readdir(dir)) {
		FILE *info;
		ssize_t n;

		(void)snprintf(
			link, sizeof(link), "/proc/self/fd/%.20s", d->d_name);
		n = readlink(link, have, sizeof(have) - 1);
		have[n > 0 ? n : 0] = '\0';
		if (strcmp(have, want) != 0)
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fdinfo/%.20s",
			d->d_name);
		info = fopen(link, "re");
		while (info && fgets(line, sizeof(line), info))
			if (strncmp(line, "flags:", 6) == 0)
				flags = (int)strtol(line + 6, NULL, 8);
		if (info)
			(void)fclose(info);
	}
	(void)closedir(dir);
	return flags;
}

/* Read the whole file. Returns true if direct I/O was used. */
static bool reads_directly(const char *path, const char *like)
{
	struct origin_file *f = origin_file_new(o, path);
	struct read_wait w;
	bool direct;

	read_begin(o, &w, f, version, 0, SIZE_BYTES);
	ck_assert_int_eq(read_end(&w), SIZE_BYTES);
	check_bytes(like, 0, SIZE_BYTES, w.data);
	free(w.data);
	direct = open_flags(path) & O_DIRECT;
	origin_file_free(o, f);
	return direct;
}

START_TEST(test_posix_reads_a_file_through_the_cache_that_wants_it)
{
	if (!own_mounts())
		return;
	/* One of the file systems below the source has no direct I/O. */
	ck_assert_int_eq(mkdir(in_source("ram"), 0755), 0);
	ck_assert_int_eq(
		mount("refrain", in_source("ram"), "ramfs", 0, NULL), 0);
	strcat(source, "/ram");
	put_file("f", file_path(0), SEED, SIZE_BYTES, MTIME_NS);
	*strrchr(source, '/') = '\0';
	open_row(_i);
	if (reads_directly(file_path(0), file_path(0))) {
		ck_assert(!reads_directly("ram/f", file_path(0)));
		/* Other file systems still use direct I/O. */
		ck_assert(reads_directly(file_path(2), file_path(2)));
	} else {
		ck_assert(!reads_directly("ram/f", file_path(0)));
	}
	close_row();
	ck_assert_int_eq(umount2(in_source("ram"), MNT_DETACH), 0);
}
END_TEST

/* Returns the number of pages of the file that are in memory. */
static size_t resident_pages(const char *path)
{
	unsigned char in_core[SIZE_BYTES / 4096 + 1];
	int fd = open(in_source(path), O_RDONLY);
	void *map = mmap(NULL, SIZE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	size_t n = 0;

	ck_assert(map != MAP_FAILED);
	ck_assert_int_eq(mincore(map, SIZE_BYTES, in_core), 0);
	for (size_t i = 0; i < sizeof(in_core); i++)
		n += in_core[i] & 1;
	(void)munmap(map, SIZE_BYTES);
	close(fd);
	return n;
}

static void drop_pages(const char *path)
{
	int fd = open(in_source(path), O_RDONLY);

	ck_assert_int_eq(fsync(fd), 0);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

START_TEST(test_posix_leaves_no_pages_of_its_source_in_memory)
{
	struct origin_file *f;
	struct read_wait w;

	for (unsigned i = 0; i < FILES; i++) {
		drop_pages(file_path(i));
		if (resident_pages(file_path(i)) == 0)
			continue;
		(void)fprintf(stderr, "skipped: files in memory only\n");
		return;
	}
	open_row(_i);
	for (unsigned i = 0; i < FILES; i++) {
		f = origin_file_new(o, file_path(i));
		for (size_t off = 0; off < SIZE_BYTES; off += 100000) {
			size_t len = SIZE_BYTES - off;

			read_begin(o, &w, f, version, off,
				len < 100000 ? len : 100000);
			ck_assert_int_gt(read_end(&w), 0);
			free(w.data);
		}
		origin_file_free(o, f);
	}
	close_row();
	for (unsigned i = 0; i < FILES; i++)
		ck_assert_uint_eq(resident_pages(file_path(i)), 0);
}
END_TEST

static void add_tests(TCase *tc)
{
	tcase_add_loop_test(tc,
		test_posix_reads_a_file_through_the_cache_that_wants_it, 0, 4);
	tcase_add_loop_test(
		tc, test_posix_leaves_no_pages_of_its_source_in_memory, 0, 4);
}

int main(void)
{
	Suite *suite = suite_create("posix_direct");
	TCase *tc =
		case_with(suite, "posix_direct", setup_source, teardown_source);

	add_tests(tc);
	return run_suite(suite);
}
