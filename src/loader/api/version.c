/* SPDX-License-Identifier: MIT */
/*
 * The version of the library, for programs that were compiled with the header
 * of another version.
 */
#include "refrain/loader.h"

int refrain_version(void)
{
	return REFRAIN_VERSION;
}
