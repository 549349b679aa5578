/* SPDX-License-Identifier: MIT */
/* Reads facts about other processes from /proc. No state; any thread. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the state of a process as a letter of proc(5): 'T' is stopped, 'Z' a
 * zombie; 0: unknown. */
char proc_state(pid_t pid);

/* Returns the time at which the process was started, in clock ticks since boot;
 * 0: unknown. The pid and this number together identify a process until the
 * machine reboots. */
uint64_t proc_born(pid_t pid);

/* Returns the minor number of the device of a FUSE mount from the descriptor of
 * its connection. Returns 0 if the descriptor is not a connection, or if the
 * kernel does not tell (before 6.16). */
unsigned proc_fuse_device(pid_t pid, int fd);

/* The name of a process as ps(1) shows it, "" if it is unknown. */
#define PROC_NAME_MAX 32
void proc_name(pid_t pid, char name[PROC_NAME_MAX]);

/* Returns the process that a thread belongs to; 0: unknown. */
pid_t proc_of_thread(pid_t thread);

#endif
