/* SPDX-License-Identifier: MIT */
/* Features that a user can switch off to find a fault. Each part reads the
 * switch once at its start. */
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
