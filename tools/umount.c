/* SPDX-License-Identifier: MIT */
/* refrain umount: detaches the mount, then waits until its daemon has ended. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/proc.h"
#include "common/base/unmount.h"
#include "command.h"
#include "analysis/fleet/client.h"
#include "analysis/fleet/request.h"
#include "holder.h"
#include "holders.h"
#include "mounts.h"

/* Time limit for the end of the daemon, which needs some seconds. It is checked
 * every LOOK_MS, and the reason of the delay is printed after SAY_MS. */
#define GONE_TIMEOUT_MS 30000
#define LOOK_MS 1000
#define SAY_MS 2000
/* Time limit for other processes that have descriptors of the daemon; they may
 * be about to end. */
#define HELD_TIMEOUT_MS 3000

/* Time for which a busy mount is retried. Programs need time to end, and a
 * daemon that limits the kernel's pages opens files of its own mount. */
#define BUSY_MS 500
#define BUSY_LOOK_MS 20

struct umount_args {
	bool lazy;
};

static const struct option_def umount_table[] = {
	{
		.name = "lazy",
		.letter = 'l',
		.help = "Detach the mount at once; its daemon ends when the "
			"last program stops using it.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct umount_args, lazy),
	},
	{.name = NULL},
};

const struct option_usage umount_usage = {
	.name = "umount",
	.operands = "MOUNTPOINT",
	.summary = "Unmount MOUNTPOINT and wait until its daemon has ended. If "
		   "the daemon is dead, detach the mount.",
	.options = umount_table,
	.min_operands = 1,
	.max_operands = 1,
};

static int busy(const char *path, struct error *err)
{
	char who[512];

	if (*holders_programs(path, who, sizeof(who)))
		return error_set(err, -EBUSY,
			"'%s' is busy: used by %s; end these programs, or "
			"detach the mount with --lazy",
			path, who);
	return error_set(err, -EBUSY,
		"'%s' is busy: something is mounted below it, or programs use "
		"it ('fuser -vm %s' as root lists them); end those, or detach "
		"the mount with --lazy",
		path, path);
}

static int detach_when_free(const char *path, bool lazy, struct error *err)
{
	struct timespec pause = {.tv_nsec = BUSY_LOOK_MS * (long)NS_PER_MS};
	int rc = unmount(path, lazy, err);

	for (int ms = 0; rc == -EBUSY && ms < BUSY_MS; ms += BUSY_LOOK_MS) {
		/* it does no harm if the pause is shorter */
		(void)nanosleep(&pause, NULL);
		rc = unmount(path, lazy, err);
	}
	return rc == -EBUSY ? busy(path, err) : rc;
}

/* The daemon of the mount that is unmounted. */
struct leaving {
	const char *path;
	struct holders_device device;
	struct ctl_client *client; /* NULL: its socket cannot be reached */
	pid_t pid;		   /* 0: the process is not visible */
	int pidfd;		   /* used without a client; -1: none */
};

static int wait_gone(const struct leaving *l, int timeout_ms)
{
	struct pollfd p = {.fd = l->pidfd, .events = POLLIN};

	if (l->client)
		return ctl_wait_gone(l->client, timeout_ms);
	return poll(&p, 1, timeout_ms) == 1 ? 0 : -ETIMEDOUT;
}

/* Print why the end takes so long, if the daemon reports it. */
static void say_what_it_does(const struct leaving *l)
{
	uint64_t parked = 0, inflight = 0;
	char why[128] = "it writes to its cache, or waits for a disk";
	json_t *s = NULL;

	if (l->client && ask_status(l->client, &s, NULL) == 0) {
		parked = ask_number(s, "parked");
		inflight = ask_number(s, "inflight");
	}
	json_decref(s);
	if (parked > 0)
		(void)snprintf(why, sizeof(why),
			"%" PRIu64 " %s for the source", parked,
			ask_plural(parked, "reader waits", "readers wait"));
	else if (inflight > 0)
		(void)snprintf(why, sizeof(why), "%" PRIu64 " %s at the source",
			inflight,
			ask_plural(inflight, "request is", "requests are"));
	(void)fprintf(stderr,
		"refrain: umount: '%s' is unmounted; waiting for its daemon "
		"(process %d): %s\n",
		l->path, (int)l->pid, why);
}

/* Wait until the daemon ends; the mount is detached already. If the daemon does
 * not end, report what keeps it busy. */
static int umount_wait_for_end(const struct leaving *l, struct error *err)
{
	int pid = (int)l->pid, ms = 0;
	char who[512];

	while (wait_gone(l, LOOK_MS) == -ETIMEDOUT) {
		bool held = *holders_mounts(l->device, who, sizeof(who));

		ms += LOOK_MS;
		if (ms >= HELD_TIMEOUT_MS && held)
			return error_set(err, -ETIMEDOUT,
				"'%s' is unmounted, but its daemon (process "
				"%d) still serves: %s",
				l->path, pid, who);
		if (proc_state(l->pid) == 'T')
			return error_set(err, -ETIMEDOUT,
				"'%s' is unmounted, but its daemon (process "
				"%d) is stopped: 'kill -CONT %d' lets it end",
				l->path, pid, pid);
		if (ms >= GONE_TIMEOUT_MS)
			return error_set(err, -ETIMEDOUT,
				"'%s' is unmounted, but its daemon (process "
				"%d) has not ended after %d s; 'kill -9 %d' "
				"ends it",
				l->path, pid, ms / 1000, pid);
		if (ms == SAY_MS && !held)
			say_what_it_does(l);
	}
	return 0;
}

/* Find the daemon of a mount. `found` is what ctl_connect() returned. If that
 * failed, the kernel may show which process is the daemon. */
static void find_daemon(struct leaving *l, int found)
{
	if (l->client) {
		l->pid = ctl_client_pid(l->client);
	} else if (found < 0) {
		l->pid = holders_daemon(l->device);
		if (l->pid > 0)
			l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	}
}

/* Open a pidfd of the daemon's holder, to wait for its end; -1: there is none.
 */
static int holder_open(pid_t daemon)
{
	pid_t holder = holder_of(daemon);

	return holder > 0 ? (int)syscall(SYS_pidfd_open, holder, 0) : -1;
}

static int wait_for_holder(int held, const char *path, struct error *err)
{
	struct pollfd p = {.fd = held, .events = POLLIN};

	if (poll(&p, 1, HELD_TIMEOUT_MS) == 1)
		return 0;
	return error_set(err, -ETIMEDOUT,
		"'%s' is unmounted, but its refrain-hold has not ended", path);
}

/* Wait for the end of the daemon. ctl_connect() has set `found` and `why`. */
static int wait_for_daemon(const struct leaving *l, int found,
	const struct error *why, struct error *err)
{
	if (found == -ETIMEDOUT)
		return error_set(err, found, "'%s' is unmounted, but %s",
			l->path, why->msg);
	if (l->client || l->pidfd >= 0)
		return umount_wait_for_end(l, err);
	/* The kernel has no daemon for the mount, and no process of one is
	 * visible. */
	if (found == 0 || found == -ENOTCONN)
		return 0;
	return error_set(err, found,
		"'%s' is unmounted, but it is not known whether its daemon has "
		"ended: %s",
		l->path, why->msg);
}

static int umount_and_wait(const char *mountpoint, bool lazy, struct error *err)
{
	struct leaving l = {.pidfd = -1};
	CLEANUP_FREE char *path = NULL;
	struct error why = {""};
	CLEANUP_FD int held = -1;
	int found = 0, rc = mounts_find(mountpoint, &path, err);

	if (rc < 0)
		return rc;
	l.path = path;
	l.device = holders_device_of(path);
	/* A lazy unmount does not wait for the daemon, which may be stuck. */
	if (!lazy) {
		found = ctl_connect(&l.client, path, &why);
		find_daemon(&l, found);
		held = holder_open(l.pid);
	}
	rc = detach_when_free(path, lazy || found == -ENOTCONN, err);
	if (rc == 0)
		rc = wait_for_daemon(&l, found, &why, err);
	if (rc == 0 && held >= 0)
		rc = wait_for_holder(held, path, err);
	ctl_disconnect(l.client);
	if (l.pidfd >= 0)
		(void)close(l.pidfd);
	return rc;
}

int cmd_umount(int argc, char **argv)
{
	struct umount_args args = {.lazy = false};
	struct error err = {""};
	int status;

	if (command_parse(&umount_usage, argc, argv, &args, &status) < 0)
		return status;
	if (umount_and_wait(argv[1], args.lazy, &err) < 0)
		return command_fail("umount", &err);
	return EXIT_OK;
}
