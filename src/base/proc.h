/* SPDX-License-Identifier: MIT */
/* Reads /proc about other processes. No state; any thread. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <sys/types.h>

/* The state as a letter of proc(5): 'T' is stopped, 'Z' dead; 0: unknown. */
char proc_state(pid_t pid);

#endif
