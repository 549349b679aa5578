/* SPDX-License-Identifier: MIT */
/* What /proc says about other processes. No state; any thread. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <sys/types.h>

/* One letter as proc(5) has it: 'T' is stopped, 'Z' dead; 0: not known. */
char proc_state(pid_t pid);

#endif
