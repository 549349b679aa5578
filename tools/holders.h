/* SPDX-License-Identifier: MIT */
/*
 * Finds what keeps a mount busy: programs with open files on it, and other
 * places where it is mounted. Finds only what this user may read in /proc.
 */
#ifndef TOOLS_HOLDERS_H
#define TOOLS_HOLDERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Describe the programs that use the mount at `path`; "" if none is visible.
 * Returns buf.
 */
const char *holders_programs(const char *path, char *buf, size_t size);

/* A file system, as the kernel's lists of mounts name it. After it has ended,
 * another file system may get its number, but rarely one with the same source.
 */
struct holders_device {
	unsigned major, minor;
	uint64_t source; /* a hash */
};

/* The device of the mount at `path`; all 0 if there is none. */
struct holders_device holders_device_of(const char *path);

/*
 * The process that serves the mount, found by its connection to the kernel; 0:
 * none is visible. It is refrain-hold only if no other process has the
 * connection. A daemon that takes long to end keeps the number of a connection
 * that the kernel has given to a later mount, so the newest process with that
 * number is returned. Kernels before Linux 6.16 do not show connections.
 */
pid_t holders_daemon(struct holders_device device);

/*
 * Describe where else the device is mounted: another path, or the mount
 * namespace of a process; "" if no place is visible. Returns buf.
 */
const char *holders_mounts(
	struct holders_device device, char *buf, size_t size);

#endif
