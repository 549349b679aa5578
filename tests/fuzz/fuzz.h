/* SPDX-License-Identifier: MIT */
/* Fuzz targets: one for each format that the programs read from files, from the
 * network or from the command line. The same targets run under libFuzzer (`make
 * fuzz`), and in `make check` on some thousand mutations that are the same in
 * each run. One thread. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_MAX_BYTES ((size_t)4096)

struct fuzz_target {
	const char *name;
	/* Run the target on these bytes. A wrong result ends the process. */
	void (*one)(const uint8_t *data, size_t size);
	/* Write example number i into buf, of FUZZ_MAX_BYTES. Returns its
	 * length; 0: there is no such example. */
	size_t (*seed)(unsigned i, uint8_t *buf);
};

extern const struct fuzz_target fuzz_tar, fuzz_list, fuzz_index;
extern const struct fuzz_target fuzz_manifest, fuzz_identity, fuzz_entry,
	fuzz_name, fuzz_ctl, fuzz_plan, fuzz_fault, fuzz_synthetic, fuzz_size,
	fuzz_json, fuzz_option, fuzz_decode, fuzz_levels, fuzz_png, fuzz_npy,
	fuzz_yolo, fuzz_rows, fuzz_coco, fuzz_fields, fuzz_share,
	fuzz_memcached, fuzz_service, fuzz_transcode;

#ifdef HAVE_REMOTE
extern const struct fuzz_target fuzz_answer;
#endif

/* All fuzz targets; ends with NULL. */
extern const struct fuzz_target *const fuzz_targets[];

/* Make a directory that is removed when the process ends. Returns its
 * descriptor. */
int fuzz_dir(char path[64]);

/* Write the bytes to the file `name` in that directory. */
void fuzz_file(int dir_fd, const char *name, const void *data, size_t size);

/* Returns the bytes as an allocated string, which ends at the first NUL. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Take example number i from a list of texts that ends with NULL. Returns its
 * length. */
size_t fuzz_seed_text(const char *const *texts, unsigned i, uint8_t *buf);

/* End the process unless `what` is true. assert() is not used, because a build
 * may disable it. */
#define FUZZ_MUST(what)                                                        \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, \
				#what);                                        \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
