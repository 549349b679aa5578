/* SPDX-License-Identifier: MIT */
/* The counter table, made from counters.def. Constant data. */
#include "common/base/counters.h"

const struct counter_info counter_table[] = {
#define COUNTER(name, unit, help)                                              \
	{#name, unit, help, offsetof(struct counters, name)},
#include "common/base/counters.def"
#undef COUNTER
	{NULL, NULL, NULL, 0},
};
