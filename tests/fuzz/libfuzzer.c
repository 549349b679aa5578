/* SPDX-License-Identifier: MIT */
/* Runs the fuzz target named by REFRAIN_FUZZ under libFuzzer. One thread. */
#include <string.h>

#include "fuzz.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int LLVMFuzzerInitialize(int *argc, char ***argv);
EXPORT int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *name = getenv("REFRAIN_FUZZ");

	(void)argc, (void)argv;
	for (size_t i = 0; name && fuzz_targets[i]; i++)
		if (strcmp(fuzz_targets[i]->name, name) == 0)
			target = fuzz_targets[i];
	FUZZ_MUST(target);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= FUZZ_MAX_BYTES)
		target->one(data, size);
	return 0;
}
