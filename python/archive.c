/* SPDX-License-Identifier: MIT */
/* Only for the wheel (`make wheel`), whose module is linked with static
 * libraries of libjpeg. Their objects are made for programs: they address
 * `stderr` as if the program defined it. The linker gives them this definition
 * (--wrap=stderr). */
#include <stdio.h>

extern FILE *__real_stderr;
extern FILE *__wrap_stderr;
FILE *__wrap_stderr;

__attribute__((constructor)) static void set_stderr(void)
{
	__wrap_stderr = __real_stderr;
}
