/* SPDX-License-Identifier: MIT */
/*
 * The library's version, for programs that were built with another header.
 */
#include "refrain/loader.h"

int refrain_version(void)
{
	return REFRAIN_VERSION;
}
