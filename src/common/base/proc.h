/* SPDX-License-Identifier: MIT */
/* Reads /proc about other processes. No state; any thread. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdint.h>
#include <sys/types.h>

/* The state as a letter of proc(5): 'T' is stopped, 'Z' a zombie; 0: unknown.
 */
char proc_state(pid_t pid);

/* The start time of the process, in clock ticks since boot; 0: unknown. The pid
 * and this number together identify a process until the machine reboots. */
uint64_t proc_born(pid_t pid);

/* The minor number of the device of the FUSE mount that the descriptor is the
 * connection of. 0 if it is not one, or the kernel does not say so (before
 * 6.16). */
unsigned proc_fuse_device(pid_t pid, int fd);

/* The process that a thread belongs to; 0: unknown. */
pid_t proc_of_thread(pid_t thread);

#endif
