/* SPDX-License-Identifier: MIT */
/*
 * `herd READERS MOUNTED ORIGINAL [direct]`: READERS threads open the file
 * MOUNTED at the same moment and read it from its begin to its end. Prints
 * "WRONG FIRST LAST": the number of readers that read other bytes than those of
 * ORIGINAL; the milliseconds until all readers had their first bytes; and the
 * milliseconds until the first reader had all bytes. A thread writes only its
 * own element; the main thread owns the other data.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"

#define STEP_BYTES ((size_t)128 << 10)
#define READERS_MAX 256

struct herd {
	/* The arguments. Set before the threads start. */
	const char *path;
	const char *want;
	size_t size;
	int flags;
	uint64_t start_ns;
	pthread_barrier_t barrier;
};

struct one {
	struct herd *herd;
	pthread_t thread;
	uint64_t first_ns, last_ns; /* times since the start */
	int wrong;
};

static int read_all(struct one *o, int fd, char *buf)
{
	const struct herd *h = o->herd;
	size_t at = 0;
	ssize_t n;

	while ((n = read(fd, buf, STEP_BYTES)) > 0) {
		if (at == 0)
			o->first_ns = clock_now_ns() - h->start_ns;
		if (at + (size_t)n > h->size ||
			memcmp(buf, h->want + at, (size_t)n) != 0)
			return 1;
		at += (size_t)n;
	}
	o->last_ns = clock_now_ns() - h->start_ns;
	return n < 0 || at != h->size;
}

static void *one_main(void *arg)
{
	struct one *o = arg;
	char *buf = aligned_alloc(4096, STEP_BYTES);
	int fd;

	(void)pthread_barrier_wait(&o->herd->barrier);
	fd = open(o->herd->path, o->herd->flags);
	o->wrong = fd < 0 || !buf || read_all(o, fd, buf);
	if (fd >= 0)
		(void)close(fd); /* cannot lose data: the file was only read */
	free(buf);
	return NULL;
}

static int run(struct herd *h, unsigned n)
{
	static struct one ones[READERS_MAX];
	uint64_t first_ns = 0, last_ns = UINT64_MAX;
	int wrong = 0;

	if (pthread_barrier_init(&h->barrier, NULL, n) != 0)
		return 2;
	h->start_ns = clock_now_ns();
	for (unsigned i = 0; i < n; i++) {
		ones[i].herd = h;
		if (pthread_create(&ones[i].thread, NULL, one_main, &ones[i]))
			exit(2);
	}
	for (unsigned i = 0; i < n; i++) {
		const struct one *o = &ones[i];

		/* cannot fail: the thread is joinable */
		(void)pthread_join(o->thread, NULL);
		wrong += o->wrong;
		first_ns = o->first_ns > first_ns ? o->first_ns : first_ns;
		last_ns = o->last_ns < last_ns ? o->last_ns : last_ns;
	}
	printf("%d %d %d\n", wrong, (int)(first_ns / 1000000),
		(int)(last_ns / 1000000));
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct herd h = {.flags = O_RDONLY | O_CLOEXEC};
	struct stat st;
	unsigned n;
	int fd;

	if (argc < 4)
		return 2;
	n = (unsigned)strtoul(argv[1], NULL, 10);
	h.path = argv[2];
	h.flags |= argc > 4 ? O_DIRECT : 0;
	fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (n == 0 || n > READERS_MAX || fd < 0 || fstat(fd, &st) < 0)
		return 2;
	h.size = (size_t)st.st_size;
	h.want = mmap(NULL, h.size, PROT_READ, MAP_SHARED, fd, 0);
	(void)close(fd); /* the mapping stays valid */
	return h.want == MAP_FAILED ? 2 : run(&h, n);
}
