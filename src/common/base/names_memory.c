/* SPDX-License-Identifier: MIT */
/* The limit on the memory of names; see names_memory.h. No state. */
#include "common/base/names_memory.h"

#include <unistd.h>

#include "common/base/cgroup.h"

/* The memory of 20 million names. Most datasets have fewer. */
#define USUAL_BYTES (UINT64_C(20000000) * NAME_MEMORY_BYTES)
/* Memory for the largest record of changes, and for the rest of a mount. */
#define REST_BYTES (UINT64_C(5) << 28)

static uint64_t lesser_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t names_memory_bytes(void)
{
	uint64_t memory = lesser_of(cgroup_memory_limit(""),
		(uint64_t)sysconf(_SC_PHYS_PAGES) *
			(uint64_t)sysconf(_SC_PAGESIZE));
	uint64_t half = memory > REST_BYTES ? (memory - REST_BYTES) / 2 : 0;
	uint64_t usual = lesser_of(USUAL_BYTES, half);

	return memory / 4 > usual ? memory / 4 : usual;
}
