/* SPDX-License-Identifier: MIT */
/* Finds what keeps a mount busy: programs with open files of the mount, and
 * other paths or namespaces where it is mounted. Sees only what this user may
 * read in /proc. */
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

/* A file system, as the kernel's list of mounts names it. The kernel may give
 * the number of an ended file system to a new one, but a new one rarely has the
 * same source. */
struct holders_device {
	unsigned major, minor;
	uint64_t source; /* hash of the source's name */
};

/* Returns the device of the mount at `path`; all members are 0 if nothing is
 * mounted there. */
struct holders_device holders_device_of(const char *path);

/*
 * Returns the process that serves the mount; 0 if none is visible. It is found
 * by its connection to the kernel, which only kernels from Linux 6.16 on show.
 * refrain-hold is returned only if no other process has the connection. If
 * several daemons have a connection with that number, the newest is returned:
 * an older one takes long to end, and the kernel has given its number to a
 * later mount.
 */
pid_t holders_daemon(struct holders_device device);

/* Describe where else the device is mounted: at another path, or in the mount
 * namespace of another process. Writes "" if no such mount is visible. Returns
 * buf. */
const char *holders_mounts(
	struct holders_device device, char *buf, size_t size);

#endif
