/* SPDX-License-Identifier: MIT */
/*
 * Checks of the host: the requirements of a mount, limits, clock, name servers,
 * units of systemd, the kernel's log. No state.
 */
#include "analysis/fleet/doctor_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cgroup.h"
#include "common/base/cleanup.h"
#include "common/base/feature.h"
#include "common/base/probe.h"
#include "common/base/size.h"
#include "common/base/uring.h"

#define FUSE_MAJOR 10
#define FUSE_MINOR 229
#define FILES_FEW 1024u
/* Less memory than this leaves little for --staging. */
#define MEMORY_FEW ((uint64_t)256 << 20)
#define UNITS_TIMEOUT_MS 2000

static void check_fuse_device(struct doctor *d)
{
	static const char name[] = "/dev/fuse";
	CLEANUP_FD int fd = open(name, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		doctor_find(d, DOCTOR_BAD, "device",
			errno == EACCES || errno == EPERM
				? "give this user access to it (mode 0666); in "
				  "a container, allow the device"
				: "run 'modprobe fuse'; in a container, pass "
				  "the device, as in 'podman run --device "
				  "/dev/fuse'",
			"cannot open %s: %s", name, strerror(errno));
	else if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) ||
		st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR))
		doctor_find(d, DOCTOR_BAD, "device",
			"remove it and run 'mknod -m 666 /dev/fuse c 10 229'",
			"%s is not the device of FUSE", name);
	else
		doctor_find(d, DOCTOR_OK, "device", "", "%s opens", name);
}

/* Find a program in PATH, as a shell does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");

	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if ((size_t)snprintf(path, PATH_MAX, "%.*s/%s", (int)len, dirs,
			    name) < PATH_MAX &&
			access(path, X_OK) == 0)
			return true;
		dirs += len + (dirs[len] == ':');
	}
	return false;
}

static void check_fusermount(struct doctor *d)
{
	char path[PATH_MAX];
	struct stat st;

	if (!find_program("fusermount3", path))
		doctor_find(d, geteuid() ? DOCTOR_BAD : DOCTOR_WARN,
			"fusermount3", "install the package fuse3",
			"it is not in PATH; only root can mount without it");
	else if (stat(path, &st) == 0 &&
		(!(st.st_mode & S_ISUID) || st.st_uid != 0))
		doctor_find(d, geteuid() ? DOCTOR_BAD : DOCTOR_WARN,
			"fusermount3",
			"install the package fuse3 again, or run 'chown root' "
			"and 'chmod u+s' for it",
			"%s is not setuid root; users cannot mount", path);
	else
		doctor_find(
			d, DOCTOR_OK, "fusermount3", "", "%s is there", path);
}

static void check_holder(struct doctor *d, const char *holder)
{
	if (holder)
		doctor_find(d, DOCTOR_OK, "refrain-hold", "", "%s is there",
			holder);
	else
		doctor_find(d, DOCTOR_WARN, "refrain-hold",
			"install refrain completely",
			"it is missing; a mount ends when its daemon dies");
}

/* Does the kernel offer io_uring to this process? */
static bool uring_works(void)
{
	struct uring *u;
	bool works;

	if (uring_new(&u, 8, 1) < 0)
		return false;
	works = !uring_pool(u);
	(void)uring_free(u, 0); /* no operation is in flight */
	return works;
}

static void check_uring(struct doctor *d)
{
	if (!feature_enabled("io_uring"))
		doctor_find(d, DOCTOR_WARN, "io_uring",
			"remove io_uring from REFRAIN_DISABLE",
			"REFRAIN_DISABLE turns it off; reads use a thread "
			"each");
	else if (!uring_works())
		doctor_find(d, DOCTOR_WARN, "io_uring",
			"set the sysctl kernel.io_uring_disabled to 0; in a "
			"container, allow io_uring_setup in the seccomp "
			"profile",
			"the kernel refuses it; reads use a thread each, which "
			"is slower");
	else
		doctor_find(d, DOCTOR_OK, "io_uring", "", "it works");
}

static void check_file_limit(struct doctor *d)
{
	uint64_t memory = cgroup_memory_limit("");
	char size[SIZE_TEXT_MAX];
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_FEW)
		doctor_find(d, DOCTOR_WARN, "limits",
			"raise it with 'ulimit -n', or LimitNOFILE= in the "
			"unit",
			"a process may open only %ju files; the mount needs "
			"some for each request",
			(uintmax_t)files.rlim_cur);
	else
		doctor_find(
			d, DOCTOR_OK, "limits", "", "enough files may be open");
	if (memory == CGROUP_NO_LIMIT)
		doctor_find(
			d, DOCTOR_OK, "cgroup", "", "memory is not limited");
	else
		doctor_find(d, memory < MEMORY_FEW ? DOCTOR_WARN : DOCTOR_OK,
			"cgroup",
			memory < MEMORY_FEW
				? "raise the limit of the control group, or "
				  "mount with a smaller --staging and --limit"
				: "",
			"its memory limit is %s", size_format(memory, size));
}

static void check_clock(struct doctor *d)
{
	struct timex t = {.modes = 0};
	int state = adjtimex(&t);

	/* A time before the first version of this program must be wrong. */
	if (time(NULL) < 1704067200)
		doctor_find(d, DOCTOR_BAD, "clock",
			"set the clock, and start a service such as chrony",
			"it shows a time before 2024; stores refuse requests "
			"whose time is wrong");
	else if (state == TIME_ERROR || (state >= 0 && t.status & STA_UNSYNC))
		doctor_find(d, DOCTOR_WARN, "clock",
			"start a service such as chrony or systemd-timesyncd",
			"nothing synchronises it; stores refuse requests whose "
			"time is off by 15 minutes");
	else
		doctor_find(d, DOCTOR_OK, "clock", "", "it is synchronised");
}

static void check_resolver(struct doctor *d)
{
	FILE *f = fopen("/etc/resolv.conf", "re");
	char line[1024];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, "nameserver", 10) == 0;
	if (f)
		(void)fclose(f); /* the file was only read */
	doctor_find(d, found ? DOCTOR_OK : DOCTOR_WARN, "name server",
		found ? "" : "add a line 'nameserver ADDRESS' to it",
		"/etc/resolv.conf %s", found ? "names one" : "names none");
}

/* -- Units of systemd ------------------------------------------------------ */

static void run_systemctl(void *arg, int to)
{
	(void)arg;
	(void)dup2(to, STDOUT_FILENO);
	(void)freopen("/dev/null", "w", stderr);
	(void)execlp("systemctl", "systemctl", "list-units", "--all",
		"--no-legend", "--plain", "--no-pager", "refrain*",
		(char *)NULL);
}

static void check_unit_line(struct doctor *d, char *line, unsigned *units)
{
	char unit[256], load[32], active[32];

	if (sscanf(line, "%255s %31s %31s", unit, load, active) != 3)
		return;
	++*units;
	if (strcmp(active, "failed") == 0)
		doctor_find(d, DOCTOR_BAD, "unit",
			"look at 'journalctl -u' of it, then run 'systemctl "
			"restart' for it",
			"%s has failed", unit);
}

static void check_units(struct doctor *d)
{
	char path[PATH_MAX], text[16384], *line, *rest = text;
	struct probe probe;
	unsigned units = 0;
	size_t len = 0;
	ssize_t n = -1;

	if (!find_program("systemctl", path) ||
		probe_start(&probe, run_systemctl, NULL) < 0) {
		doctor_find(d, DOCTOR_OK, "unit", "", "there is no systemd");
		return;
	}
	while (len < sizeof(text) - 1 && probe_wait(&probe, UNITS_TIMEOUT_MS) &&
		(n = read(probe.fd, text + len, sizeof(text) - 1 - len)) > 0) {
		len += (size_t)n;
		n = -1;
	}
	probe_end(&probe);
	text[len] = '\0';
	while ((line = strsep(&rest, "\n")))
		check_unit_line(d, line, &units);
	if (n == 0)
		doctor_find(d, DOCTOR_OK, "unit", "",
			"systemd has %u units of refrain", units);
	else
		doctor_find(d, DOCTOR_WARN, "unit",
			"look at 'systemctl status'",
			"systemctl did not answer");
}

/* -- The kernel's log ------------------------------------------------------ */

struct kernel_sign {
	const char *text, *also; /* `also` may be NULL */
	const char *what, *advice;
};

static const struct kernel_sign kernel_signs[] = {
	{"Killed process", "(refrain", "the kernel has killed a refrain daemon",
		"give its control group more memory, or mount with a smaller "
		"--staging; see Sizing in operations.md"},
	{"Memory cgroup out of memory", NULL,
		"the kernel has killed processes of a control group that was "
		"out of memory",
		"raise its limit, or use less memory"},
	{"I/O error, dev", NULL, "a disk had an I/O error",
		"check the disk with smartctl, and its caches with 'refrain "
		"verify'"},
	{"EXT4-fs error", NULL, "a file system is damaged",
		"unmount it and run fsck"},
	{"not responding", "nfs", "an NFS server did not respond",
		"check the server and the network"},
	{"blocked for more than", NULL, "a process hung in the kernel",
		"look which disk or server hangs"},
};

#define KERNEL_SIGNS (sizeof(kernel_signs) / sizeof(*kernel_signs))

static void note_signs(const char *record, bool seen[KERNEL_SIGNS],
	char last[KERNEL_SIGNS][256])
{
	const char *text = strchr(record, ';');

	text = text ? text + 1 : record;
	for (size_t i = 0; i < KERNEL_SIGNS; i++) {
		const struct kernel_sign *s = &kernel_signs[i];

		if (!strstr(text, s->text) ||
			(s->also && !strstr(text, s->also)))
			continue;
		seen[i] = true;
		(void)snprintf(last[i], sizeof(last[i]), "%.*s",
			(int)strcspn(text, "\n"), text);
	}
}

static void check_kernel_log(struct doctor *d)
{
	CLEANUP_FD int fd =
		open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192], last[KERNEL_SIGNS][256];
	bool seen[KERNEL_SIGNS] = {false}, any = false;
	ssize_t n = -1;

	/* Each read() returns one record; records that were overwritten
	 * meanwhile give EPIPE. */
	for (unsigned i = 0; fd >= 0 && i < 100000; i++) {
		n = read(fd, record, sizeof(record) - 1);
		if (n == 0 || (n < 0 && errno != EPIPE))
			break;
		record[n > 0 ? n : 0] = '\0';
		note_signs(record, seen, last);
	}
	if (fd < 0 || (n < 0 && errno != EAGAIN)) {
		doctor_find(d, DOCTOR_WARN, "kernel log", "run this as root",
			"cannot read it: %s", strerror(errno));
		return;
	}
	for (size_t i = 0; i < KERNEL_SIGNS; i++) {
		if (!seen[i])
			continue;
		any = true;
		doctor_find(d, DOCTOR_WARN, "kernel log",
			kernel_signs[i].advice, "%s: %s", kernel_signs[i].what,
			last[i]);
	}
	if (!any)
		doctor_find(d, DOCTOR_OK, "kernel log", "",
			"it has no message about memory, disks or servers");
}

void doctor_machine(struct doctor *d, const char *holder)
{
	check_fuse_device(d);
	check_fusermount(d);
	check_holder(d, holder);
	check_uring(d);
	check_file_limit(d);
	check_clock(d);
	check_resolver(d);
	check_units(d);
	check_kernel_log(d);
}
