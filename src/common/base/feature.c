/* SPDX-License-Identifier: MIT */
/* Debug switches of probed features; read once at start-up of each part. */
#include "common/base/feature.h"

#include <stdlib.h>
#include <string.h>

bool feature_enabled(const char *name)
{
	const char *p = getenv("REFRAIN_DISABLE");
	size_t len = strlen(name);

	while (p && *p) {
		size_t n = strcspn(p, ",");

		if ((n == len && memcmp(p, name, n) == 0) ||
			(n == 3 && memcmp(p, "all", 3) == 0))
			return false;
		p += n;
		p += *p == ',';
	}
	return true;
}
