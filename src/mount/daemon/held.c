/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that outlive the daemon. The process that started the daemon,
 * which is systemd or refrain-hold, holds copies of them: the daemon passes the
 * copies by sd_notify(3), and the next daemon gets them by the protocol of
 * sd_listen_fds(3). When the daemon replaces its program, the new program
 * inherits the descriptors.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/base/path.h"
#include "common/base/proc.h"
#include "common/base/refuse.h"
#include "common/base/unmount.h"

/* The first descriptor that sd_listen_fds(3) passes. */
#define LISTEN_FDS_START 3
#define LISTEN_FDS_MAX 16

/* The names of the descriptors, in the order of struct session_fds. */
static const char *const held_names[] = {
	"refrain-fuse", "refrain-session", "refrain-names", "refrain-requests"};

#define HELD_FDS (sizeof(held_names) / sizeof(held_names[0]))

static void held_assign(struct session_fds *fds, const char *name, int fd)
{
	int *at[HELD_FDS] = {
		&fds->fuse, &fds->session, &fds->names, &fds->requests};

	/* cannot fail: the descriptor is open */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < HELD_FDS; i++)
		if (strcmp(name, held_names[i]) == 0 && *at[i] < 0) {
			*at[i] = fd;
			return;
		}
	(void)close(fd);
}

/* Get a number from the environment; -1 if it is missing or not a number. */
static long env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text || !*text)
		return -1;
	n = strtol(text, &end, 10);
	return *end ? -1 : n;
}

/* Get the number of descriptors that were passed, and their names. */
static int listened(const char **names)
{
	long n = env_number("LISTEN_FDS");

	*names = getenv("LISTEN_FDNAMES");
	return env_number("LISTEN_PID") == (long)getpid() && *names && n >= 0 &&
			n <= LISTEN_FDS_MAX
		? (int)n
		: 0;
}

int held_session(void)
{
	const char *names;
	int n = listened(&names);

	for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + n; fd++) {
		size_t len = strcspn(names, ":");

		if (len == strlen(held_names[1]) &&
			memcmp(names, held_names[1], len) == 0)
			return fd;
		names += len;
		names += *names == ':';
	}
	return -1;
}

static void take_listened(struct session_fds *fds)
{
	const char *names;
	int n = listened(&names);

	for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + n; fd++) {
		size_t len = strcspn(names, ":");
		CLEANUP_FREE char *name = strndup(names, len);

		if (name)
			held_assign(fds, name, fd);
		names += len;
		names += *names == ':';
	}
}

/* Take descriptors from the environment. They were inherited from the program
 * that this process ran before an upgrade. */
static void take_inherited(struct session_fds *fds)
{
	const char *text = getenv("REFRAIN_TAKEOVER");
	struct session_fds got;
	int pid;

	if (!text ||
		sscanf(text, "%d:%d,%d,%d,%d", &pid, &got.fuse, &got.session,
			&got.names, &got.requests) != 5 ||
		pid != getpid())
		return;
	*fds = got;
	/* No check here: a descriptor that is not open is refused when it is
	 * used. */
	(void)fcntl(fds->fuse, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fds->session, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fds->names, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fds->requests, F_SETFD, FD_CLOEXEC);
}

/* Does the process that started this one hold copies of descriptors? systemd
 * before 254 does not set FDSTORE itself, but the unit of refrain does. */
bool held_by_somebody(void)
{
	return getenv("NOTIFY_SOCKET") &&
		(getenv("REFRAIN_HELD") || getenv("FDSTORE"));
}

bool held_by_hold(void)
{
	return held_by_somebody() &&
		(getenv("REFRAIN_HELD") || held_link() >= 0);
}

/* Was the mount unmounted or aborted while no daemon served it? */
static bool connection_ended(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLNVAL));
}

static bool all_given(const struct session_fds *fds)
{
	return fds->fuse >= 0 && fds->session >= 0 && fds->names >= 0;
}

void held_take(struct mount *m)
{
	struct session_fds *fds = &m->given;

	take_listened(fds);
	take_inherited(fds);
	(void)unsetenv("REFRAIN_TAKEOVER");
	/* programs that the daemon starts must not take the */
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS"); /* descriptors for their own */
	(void)unsetenv("LISTEN_FDNAMES");
	/* Children that outlive the daemon must not inherit the link, because
	 * the holder takes its closing for the end of the daemon. */
	(void)fcntl(held_link(), F_SETFD, FD_CLOEXEC);
	if (m->options.check)
		return;
	if (all_given(fds) && connection_ended(fds->fuse))
		held_refuse(m, "its connection has ended");
	else if (all_given(fds))
		atomic_store(&m->has_holder, held_by_somebody());
	else if (fds->fuse >= 0 || fds->session >= 0 || fds->names >= 0)
		held_refuse(m, "not all of its state was kept");
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void held_drop(const struct mount *m)
{
	char text[64];

	(void)m;
	for (size_t i = 0; i < HELD_FDS; i++) {
		(void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s",
			held_names[i]);
		notify_holder(text, -1);
	}
}

/*
 * Unmount what was passed on, and end its connection, because a notifier may
 * hang in the kernel while it has the connection. If this user may not end the
 * connection, refuse its requests, so that the notifier can end.
 */
static void end_given(const struct mount *m)
{
	unsigned device = proc_fuse_device(getpid(), m->given.fuse);
	CLEANUP_FREE char *path = path_of_mountpoint(m->options.mountpoint);
	struct mountinfo_device d;
	struct error ignored;

	if (!path || fs_given_connection(m->options.mountpoint) >= 0)
		return;
	if (mountinfo_find(path, &d) == 0 && d.refrain &&
		(device == 0 || d.minor == device))
		(void)unmount_by_force(path, d.minor, &ignored);
	if (!connection_ended(m->given.fuse))
		connection_refuse(m->given.fuse, m->given.requests);
}

/* End the mount that was passed on, and close its connection. A new mount
 * replaces it. */
void held_refuse(struct mount *m, const char *why)
{
	/* if memory is short, only the reason is not reported */
	m->refused = strdup(why);
	atomic_store(&m->has_holder, false);
	held_drop(m);
	/* If the mount has ended, the path may belong to another mount by now.
	 */
	if (m->given.fuse >= 0 && !connection_ended(m->given.fuse))
		end_given(m);
	close_fd(&m->given.fuse);
	close_fd(&m->given.session);
	close_fd(&m->given.names);
	close_fd(&m->given.requests);
}

void held_store(struct mount *m)
{
	const int fds[HELD_FDS] = {fs_connection(m->fs), session_fd(m->session),
		m->names_fd, fs_journal(m->fs)};
	CLEANUP_FREE char *line = NULL;
	char text[64];

	if (m->names_fd < 0 || session_connection(m->session) >= 0 ||
		!fs_can_be_held(m->fs))
		return;
	if (asprintf(&line, "X_REFRAIN_MOUNTPOINT=%s", m->mountpoint) >= 0 &&
		!strchr(line, '\n'))
		notify_holder(line, -1);
	for (size_t i = 0; i < HELD_FDS && fds[i] >= 0; i++) {
		(void)snprintf(text, sizeof(text),
			"FDSTORE=1\nFDNAME=%s\nFDPOLL=0", held_names[i]);
		notify_holder(text, fds[i]);
	}
	atomic_store(&m->has_holder, held_by_somebody());
}

bool held_leave(struct mount *m)
{
	if (!atomic_load(&m->has_holder))
		return false;
	session_note_end(m->session, SESSION_LEFT);
	return true;
}

bool held_again(void)
{
	const char *how = getenv("REFRAIN_HELD");

	return how && strcmp(how, "again") == 0;
}

int held_link(void)
{
	return (int)env_number("REFRAIN_LINK");
}

const char *held_state(const struct mount *m)
{
	bool ours = getenv("REFRAIN_HELD");
	pid_t holder = getppid();
	struct pollfd link = {.fd = held_link()};

	if (!held_by_somebody())
		return "no";
	if (m->names_fd < 0 || !fs_can_be_held(m->fs) ||
		!manifest_is_recorded(m->manifest))
		return "incomplete";
	if (ours && holder != m->holder)
		return "lost";
	/* If this daemon has joined a holder, the link closes when the holder
	 * ends. poll() ignores a link of -1. */
	if (poll(&link, 1, 0) == 1)
		return "lost";
	return ours && proc_state(holder) == 'T' ? "stopped" : "yes";
}
