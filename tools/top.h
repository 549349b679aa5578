/* SPDX-License-Identifier: MIT */
/* The loop that prints screens of `refrain top` and of `refrain status --all
 * --watch`. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include "common/base/err.h"

/* Print `count` screens (0: no limit), one every delay_s seconds. Returns 0, or
 * -errno with err set. */
int top_run(unsigned count, unsigned delay_s, struct error *err);

#endif
