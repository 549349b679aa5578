/* SPDX-License-Identifier: MIT */
/*
 * Runs the fuzz targets without libFuzzer, on examples and on mutations of them
 * that are the same in each run. With a directory, it writes the examples of
 * one target to that directory instead, as the first corpus of libFuzzer. One
 * thread.
 *
 * 	mutate [ROUNDS]          all targets; a round mutates each example once
 * 	mutate TARGET DIR        write its examples
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define ROUNDS 1000

static uint64_t state = 1;

static size_t draw(size_t below)
{
	state = state * UINT64_C(6364136223846793005) +
		UINT64_C(1442695040888963407);
	return (size_t)(state >> 33) % below;
}

/* Repeat some bytes, or remove them. */
static size_t cut_or_grow(uint8_t *buf, size_t size)
{
	size_t at = draw(size), n = 1 + draw(16);

	if (draw(2) && size + n <= FUZZ_MAX_BYTES) {
		memmove(buf + at + n, buf + at, size - at);
		return size + n;
	}
	if (n >= size - at)
		return at > 0 ? at : 1;
	memmove(buf + at, buf + at + n, size - at - n);
	return size - n;
}

/* Write a large or small number at a place where a field may be. */
static void put_number(uint8_t *buf, size_t size)
{
	static const uint64_t numbers[] = {0, 1, 0x7fffffff, 0xffffffff,
		INT64_MAX, UINT64_MAX, 1 << 20, 255, 256, 65535};
	uint64_t number = numbers[draw(sizeof(numbers) / sizeof(numbers[0]))];
	size_t n = (size_t)1 << draw(4), at = draw(size);

	if (at + n <= size)
		memcpy(buf + at, &number, n);
}

static size_t mutate(uint8_t *buf, size_t size)
{
	static const char liked[] = "\0\377\n\"'{}[]%=,.-/0123456789KMGT";

	for (size_t n = 1 + draw(4); n > 0; n--) {
		switch (draw(5)) {
		case 0:
			buf[draw(size)] ^= (uint8_t)(1U << draw(8));
			break;
		case 1:
			buf[draw(size)] = (uint8_t)draw(256);
			break;
		case 2:
			buf[draw(size)] = (uint8_t)liked[draw(sizeof(liked))];
			break;
		case 3:
			put_number(buf, size);
			break;
		default:
			size = cut_or_grow(buf, size);
		}
	}
	return size;
}

static unsigned long run(const struct fuzz_target *t, unsigned rounds)
{
	uint8_t buf[FUZZ_MAX_BYTES], copy[FUZZ_MAX_BYTES] = {0};
	unsigned long runs = 0;
	size_t size;

	t->one(copy, 0);
	for (unsigned i = 0; (size = t->seed(i, buf)) > 0; i++) {
		t->one(buf, size);
		for (unsigned r = 0; r < rounds; r++) {
			memcpy(copy, buf, size);
			t->one(copy, mutate(copy, size));
			runs++;
		}
	}
	return runs;
}

static int write_examples(const struct fuzz_target *t, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t buf[FUZZ_MAX_BYTES];
	char name[32];
	size_t size;

	FUZZ_MUST(fd >= 0);
	for (unsigned i = 0; (size = t->seed(i, buf)) > 0; i++) {
		(void)snprintf(name, sizeof(name), "example%u", i);
		fuzz_file(fd, name, buf, size);
	}
	(void)close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned rounds = ROUNDS;

	if (argc == 2)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	for (size_t i = 0; fuzz_targets[i]; i++) {
		const struct fuzz_target *t = fuzz_targets[i];

		if (argc != 3)
			printf("%s: %lu mutations\n", t->name, run(t, rounds));
		else if (strcmp(t->name, argv[1]) == 0)
			return write_examples(t, argv[2]);
	}
	return argc == 3;
}
