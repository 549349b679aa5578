/* SPDX-License-Identifier: MIT */
/* The loop of `refrain top`, which `refrain status --all --watch` is, too. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include "common/base/err.h"

/* Show `count` screens (0: no limit), one each delay_s seconds. -errno. */
int top_run(unsigned count, unsigned delay_s, struct error *err);

#endif
