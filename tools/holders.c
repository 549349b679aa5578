/* SPDX-License-Identifier: MIT */
/* Reads /proc to find the processes that keep a mount busy. Does not access the
 * mount. */
#include "holders.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/mountinfo.h"
#include "common/base/notifier.h"
#include "common/base/proc.h"
#include "holder.h"

#define SHOWN_MAX 3u

/* Returns the next process of the list of /proc; 0 at its end. */
static pid_t next_process(DIR *proc)
{
	const struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]))
			return (pid_t)strtol(e->d_name, NULL, 10);
	return 0;
}

/* Does a symbolic link of /proc lead to a file of the mount? */
static bool leads_to(const char *link, const char *path)
{
	size_t len = strlen(path);
	char to[PATH_MAX];
	ssize_t n = readlink(link, to, sizeof(to) - 1);

	if (n < (ssize_t)len)
		return false;
	to[n] = '\0';
	return strncmp(to, path, len) == 0 && (!to[len] || to[len] == '/');
}

static bool has_open_file(pid_t pid, const char *path)
{
	char name[64], link[PATH_MAX];
	CLEANUP_DIR DIR *fds = NULL;
	const struct dirent *e;

	(void)snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	fds = opendir(name);
	while (fds && (e = readdir(fds))) {
		(void)snprintf(link, sizeof(link), "%s/%s", name, e->d_name);
		if (leads_to(link, path))
			return true;
	}
	return false;
}

/* Does the process use the mount at `path`: as working directory, as root, or
 * by an open file, a mapped file or its program? */
static bool uses(pid_t pid, const char *path)
{
	static const char *const links[] = {"cwd", "root", "exe"};
	char link[64];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(
			link, sizeof(link), "/proc/%d/%s", (int)pid, links[i]);
		if (leads_to(link, path))
			return true;
	}
	return has_open_file(pid, path);
}

static void command_of(pid_t pid, char name[64])
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	(void)strcpy(name, "?");
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(name, 64, f))
		name[strcspn(name, "\n")] = '\0';
	(void)fclose(f); /* cannot lose data: the file was only read */
}

const char *holders_programs(const char *path, char *buf, size_t size)
{
	CLEANUP_DIR DIR *proc = opendir("/proc");
	unsigned shown = 0, more = 0;
	char name[64];
	size_t used = 0;
	pid_t pid;

	buf[0] = '\0';
	while ((pid = next_process(proc)) > 0) {
		if (pid == getpid() || !uses(pid, path))
			continue;
		if (shown == SHOWN_MAX) {
			more++;
			continue;
		}
		command_of(pid, name);
		used += (size_t)snprintf(buf + used, size - used,
			"%s%s (process %d)", shown++ ? ", " : "", name,
			(int)pid);
	}
	if (more > 0)
		(void)snprintf(buf + used, size - used, " and %u more", more);
	return buf;
}

static struct holders_device device_of_entry(const struct mountinfo_entry *e)
{
	return (struct holders_device){
		.major = e->major,
		.minor = e->minor,
		.source = hash64(e->source, strlen(e->source), 0),
	};
}

struct holders_device holders_device_of(const char *path)
{
	struct holders_device d = {0, 0, 0};
	struct mountinfo_entry e;
	struct mountinfo list;

	if (mountinfo_open(&list, 0) < 0)
		return d;
	while (mountinfo_next(&list, &e))
		if (strcmp(e.path, path) == 0)
			d = device_of_entry(&e);
	mountinfo_close(&list);
	return d;
}

/* Find where process `pid` has the device mounted in its mount namespace (pid
 * 0: this process). Returns false if it is not mounted there. */
static bool find_device(
	pid_t pid, struct holders_device d, char *path, size_t size)
{
	struct mountinfo_entry e;
	struct mountinfo list;
	bool found = false;

	if (mountinfo_open(&list, pid) < 0)
		return false;
	while (!found && mountinfo_next(&list, &e)) {
		struct holders_device at = device_of_entry(&e);

		found = at.major == d.major && at.minor == d.minor &&
			at.source == d.source;
		if (found)
			(void)snprintf(path, size, "%s", e.path);
	}
	mountinfo_close(&list);
	return found;
}

static ino_t namespace_of(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* -- The daemon ------------------------------------------------------------ */

/* Has the process a descriptor of the kernel's connection for the device? */
static bool has_connection(pid_t pid, unsigned minor)
{
	char name[64], link[PATH_MAX];
	CLEANUP_DIR DIR *fds = NULL;
	const struct dirent *e;

	(void)snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	fds = opendir(name);
	while (fds && (e = readdir(fds))) {
		(void)snprintf(link, sizeof(link), "%s/%s", name, e->d_name);
		if (leads_to(link, "/dev/fuse") &&
			proc_fuse_device(pid, atoi(e->d_name)) == minor)
			return true;
	}
	return false;
}

pid_t holders_daemon(struct holders_device device)
{
	CLEANUP_DIR DIR *proc = opendir("/proc");
	pid_t pid, holder = 0, daemon = 0;
	uint64_t born, newest = 0;
	char name[64];

	while ((pid = next_process(proc)) > 0) {
		if (pid == getpid() || device.minor == 0 ||
			!has_connection(pid, device.minor))
			continue;
		command_of(pid, name);
		born = proc_born(pid);
		if (strcmp(name, HOLDER_PROGRAM) == 0) {
			holder = pid;
		} else if (strcmp(name, NOTIFIER_COMM) != 0 &&
			strncmp(name, "refrain", strlen("refrain")) == 0 &&
			/* systemd stores descriptors of connections, too, but
			 * it does not serve */
			born >= newest) {
			daemon = pid;
			newest = born;
		}
	}
	return daemon ? daemon : holder;
}

/* -- Other mounts ---------------------------------------------------------- */

const char *holders_mounts(struct holders_device device, char *buf, size_t size)
{
	CLEANUP_DIR DIR *proc = opendir("/proc");
	ino_t own = namespace_of(getpid()), last = own;
	char path[PATH_MAX], name[64];
	pid_t pid;

	buf[0] = '\0';
	if (find_device(0, device, path, sizeof(path))) {
		(void)snprintf(buf, size, "it is also mounted at '%s'", path);
		return buf;
	}
	while ((pid = next_process(proc)) > 0) {
		ino_t space = namespace_of(pid);

		/* Skip the namespaces of this process and of the process
		 * before. Processes with adjacent numbers often have the same
		 * namespace. */
		if (space == own || space == last || space == 0)
			continue;
		last = space;
		if (!find_device(pid, device, path, sizeof(path)))
			continue;
		command_of(pid, name);
		(void)snprintf(buf, size,
			"the mount namespace of %s (process %d) has it at '%s'",
			name, (int)pid, path);
		return buf;
	}
	return buf;
}
