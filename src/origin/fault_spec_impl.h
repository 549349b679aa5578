/* SPDX-License-Identifier: MIT */
/* The faults of a fault origin as text; origin.h documents the words. */
#ifndef ORIGIN_FAULT_SPEC_IMPL_H
#define ORIGIN_FAULT_SPEC_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct fault_spec {
	uint64_t delay_ns, rate_bytes, piece_bytes, seed;
	double error, cut, stall; /* shares, 0 to 1 */
	bool meta;
	char match[256]; /* "": all */
};

/* Returns -EINVAL with the error in err, or -ENOMEM. */
int fault_spec_parse(struct fault_spec *s, const char *text, struct error *err);

#endif
