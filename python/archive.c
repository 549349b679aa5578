/* SPDX-License-Identifier: MIT */
/*
 * For the wheel alone (`make wheel`), whose module is linked with archives of
 * libjpeg. Their objects are made for programs: they address stderr as if it
 * were in the same file. The linker lets them have this one (--wrap=stderr).
 */
#include <stdio.h>

extern FILE *__real_stderr;
extern FILE *__wrap_stderr;
FILE *__wrap_stderr;

__attribute__((constructor)) static void set_stderr(void)
{
	__wrap_stderr = __real_stderr;
}
