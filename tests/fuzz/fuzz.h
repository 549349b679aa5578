/* SPDX-License-Identifier: MIT */
/*
 * Fuzz targets: one for every format that is read back or typed in. The same
 * targets run under libFuzzer (`make fuzz`) and, for some thousand mutations
 * that are always the same, in `make check`. One thread.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_MAX_BYTES ((size_t)4096)

struct fuzz_target {
	const char *name;
	/* Any bytes at all; whatever must not be ends the process. */
	void (*one)(const uint8_t *data, size_t size);
	/* Example number i into buf (FUZZ_MAX_BYTES); 0: there is none. */
	size_t (*seed)(unsigned i, uint8_t *buf);
};

extern const struct fuzz_target fuzz_tar, fuzz_list, fuzz_index;
extern const struct fuzz_target fuzz_manifest, fuzz_identity, fuzz_entry,
	fuzz_name, fuzz_ctl, fuzz_plan, fuzz_fault, fuzz_synthetic, fuzz_size,
	fuzz_json, fuzz_option, fuzz_decode, fuzz_png, fuzz_yolo, fuzz_rows,
	fuzz_coco, fuzz_fields, fuzz_share, fuzz_memcached, fuzz_service;

#ifdef HAVE_REMOTE
extern const struct fuzz_target fuzz_answer;
#endif

/* All of them; ends with NULL. */
extern const struct fuzz_target *const fuzz_targets[];

/* A directory for the process, removed at its end; its descriptor. */
int fuzz_dir(char path[64]);

/* The bytes as a file of that name in it. */
void fuzz_file(int dir_fd, const char *name, const void *data, size_t size);

/* The bytes as a string of malloc(), cut at the first NUL. */
char *fuzz_text(const uint8_t *data, size_t size);

/* An example from a list of texts that ends with NULL. */
size_t fuzz_seed_text(const char *const *texts, unsigned i, uint8_t *buf);

/* Not assert(), which can be off. */
#define FUZZ_MUST(what)                                                        \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, \
				#what);                                        \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
