/* SPDX-License-Identifier: MIT */
/*
 * Replaces the program of the daemon while programs read: a child process runs
 * the new program to check that it can continue, then this process executes the
 * new program. The kernel ends the other threads; the process keeps its number,
 * its holder and the descriptors of the session. The new program answers the
 * requests that were being answered, as after a crash. Runs on a control
 * connection's thread.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/size.h"
#include "mount/daemon/command_words.h"

/* The command line of the next program, and the options that it changes. */
struct upgrade {
	struct mount *m;
	struct command_words words;
	/* text of changes, for later daemons */
	char changes[COMMAND_CHANGES_MAX];
	size_t changes_bytes;
	uint64_t size[STORE_TIERS_MAX]; /* new sizes of tiers; 0: unchanged */
	/* old sizes of tiers that were shrunk; 0: not shrunk */
	uint64_t before[STORE_TIERS_MAX];
};

/* How long the new program may take to check whether it can continue. */
#define CHECK_NS (15 * NS_PER_S * TIME_LIMIT_FACTOR)
#define CHECK_LOOK_MS 10

/* The option that checks a mount with a record of requests. Programs that read
 * only older records do not know this option, but would say yes to
 * --check-takeover. */
#define CHECK_REQUESTS "--check-requests"

/* -- Options --------------------------------------------------------------- */

static int new_size(struct mount *m, size_t tier, const char *text,
	uint64_t *bytes, struct error *err)
{
	struct statvfs st;
	uint64_t whole = 0;

	if (statvfs(m->tier_dir[tier], &st) == 0)
		whole = (uint64_t)st.f_blocks * st.f_frsize;
	return size_parse(text, whole, bytes, err);
}

/* Set the error for a size that is smaller than the tier's content: the tier
 * cannot shrink, because no entry is ever evicted. */
static int size_too_small(
	struct mount *m, size_t tier, uint64_t bytes, struct error *err)
{
	struct tier_status s;

	store_tier_status(m->store, tier, &s);
	return error_set(err, -EINVAL,
		"cache '%s' holds %llu bytes, and nothing is evicted: give it "
		"more than %llu bytes",
		s.dir, (unsigned long long)(s.used_bytes + s.reserved_bytes),
		(unsigned long long)bytes);
}

/* Find the tier of this directory, written as in the command line or as an
 * absolute path. */
static int find_tier(struct mount *m, const char *dir, size_t len)
{
	for (size_t i = 0; i < m->options.ntiers; i++) {
		const char *typed = m->typed[i], *real = m->tier_dir[i];

		if ((strlen(typed) == len && memcmp(typed, dir, len) == 0) ||
			(strlen(real) == len && memcmp(real, dir, len) == 0))
			return (int)i;
	}
	return -ENOENT;
}

static int keep_change(struct upgrade *u, const char *name, const char *value,
	struct error *err)
{
	int rc = command_words_change(&u->words, name, value);

	if (rc == 0)
		rc = command_changes_put(
			u->changes, &u->changes_bytes, name, value);
	return rc < 0 ? error_set(err, rc, "cannot change '%s': %m", name) : 0;
}

/* Note the new size of a tier, and replace its DIR:SIZE in the command line. */
static int set_cache(struct upgrade *u, const char *value, struct error *err)
{
	const char *colon = strrchr(value, ':');
	struct mount *m = u->m;
	CLEANUP_FREE char *typed = NULL;
	struct tier_status s;
	int rc, tier = -ENOENT;

	if (colon)
		tier = find_tier(m, value, (size_t)(colon - value));
	if (tier < 0)
		return error_set(err, -EINVAL,
			"'%s' is not DIR:SIZE of a cache of this mount; mount "
			"again to add or remove one",
			value);
	rc = new_size(m, (size_t)tier, colon + 1, &u->size[tier], err);
	if (rc < 0)
		return rc;
	store_tier_status(m->store, (size_t)tier, &s);
	if (u->size[tier] < s.used_bytes + s.reserved_bytes)
		return size_too_small(m, (size_t)tier, u->size[tier], err);
	if (asprintf(&typed, "%s%s", m->typed[tier], colon) < 0)
		return error_set(err, -ENOMEM, "%m");
	return keep_change(u, "cache", typed, err);
}

/* Change an option in the command line. */
static int set_option(struct upgrade *u, const char *name, const char *value,
	struct error *err)
{
	if (strcmp(name, "cache") == 0)
		return set_cache(u, value, err);
	if (strcmp(name, "log-level") == 0 || strcmp(name, "timeout") == 0)
		return keep_change(u, name, value, err);
	/* Accept an option that has this value already, because a remount names
	 * all options, not only changed ones. */
	if (command_words_have(&u->words, name, value))
		return 0;
	return error_set(err, -EINVAL,
		"option '%s' cannot be changed while the mount is there; "
		"unmount, and mount again",
		name);
}

static int make_command(struct upgrade *u, const char *program,
	const json_t *options, struct error *err)
{
	const struct mount_options *o = &u->m->options;
	const char *name;
	json_t *value;
	size_t i;
	int rc = command_words_add(&u->words, program);

	for (size_t w = 0; rc == 0 && w < o->nwords; w++)
		rc = command_words_add(&u->words, o->words[w]);
	if (rc < 0)
		return error_set(err, rc, "%m");
	u->changes_bytes = session_changes(
		session_fd(u->m->session), u->changes, sizeof(u->changes));
	json_array_foreach((json_t *)(uintptr_t)options, i, value)
	{
		name = json_string_value(json_array_get(value, 0));
		if (!name || !json_string_value(json_array_get(value, 1)))
			return error_set(
				err, -EINVAL, "an option is malformed");
		rc = set_option(u, name,
			json_string_value(json_array_get(value, 1)), err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* -- The check ------------------------------------------------------------- */

static void inherit(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, 0);
}

/* Wait until the descriptor has bytes or has reached its end. Returns false at
 * `until_ns`. */
static bool check_says(int fd, uint64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now_ns;
	int rc = 0;

	while (rc <= 0 && (now_ns = clock_now_ns()) < until_ns) {
		rc = poll(&p, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
		if (rc < 0 && errno != EINTR)
			return false;
	}
	return rc > 0;
}

static void first_answer(int fd, uint64_t until_ns, char *line, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && check_says(fd, until_ns) &&
		(got = read(fd, line + n, size - 1 - n)) > 0)
		n += (size_t)got;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

/* Wait for the end of the child. Returns false if it has not ended at
 * `until_ns`, or if waitpid() fails. */
static bool check_ends(pid_t pid, uint64_t until_ns, int *status)
{
	struct timespec look = {.tv_nsec = CHECK_LOOK_MS * NS_PER_MS};
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG)) == 0 &&
		clock_now_ns() < until_ns)
		(void)nanosleep(&look, NULL);
	return got == pid;
}

/* Run in the child: execute the new program, which inherits the descriptors of
 * the mount's state. */
static void exec_check(struct upgrade *u, int said)
{
	const struct mount *m = u->m;
	char fds[64];

	if (command_words_insert(&u->words,
		    fs_journal(m->fs) >= 0 ? CHECK_REQUESTS
					   : "--check-takeover") < 0)
		_exit(1);
	(void)dup2(said, STDERR_FILENO);
	inherit(session_fd(m->session));
	inherit(m->names_fd);
	inherit(fs_journal(m->fs));
	(void)snprintf(fds, sizeof(fds), "%d:-1,%d,%d,%d", (int)getpid(),
		session_fd(m->session), m->names_fd, fs_journal(m->fs));
	(void)setenv("REFRAIN_TAKEOVER", fds, 1);
	if (chdir(m->cwd) < 0)
		_exit(1);
	(void)execv(u->words.v[0], u->words.v);
	(void)dprintf(STDERR_FILENO, "cannot run '%s': %s\n", u->words.v[0],
		strerror(errno));
	_exit(1);
}

static int not_checked(pid_t pid, struct error *err)
{
	int status;

	(void)kill(pid, SIGKILL);
	/* A child that hangs in the kernel does not end now, so wait for a
	 * limited time. */
	(void)check_ends(pid, clock_now_ns() + NS_PER_S, &status);
	return error_set(err, -ETIMEDOUT,
		"the program did not say within %llu s whether it can go on",
		(unsigned long long)(CHECK_NS / NS_PER_S));
}

/* Run the new program until it has checked everything that it needs for taking
 * over. */
static int check_program(struct upgrade *u, struct error *err)
{
	uint64_t until_ns = clock_now_ns() + CHECK_NS;
	int fd[2], status = 0;
	char line[400];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot check: %m");
	pid = fork();
	if (pid == 0)
		exec_check(u, fd[1]);
	(void)close(fd[1]);
	if (pid > 0)
		first_answer(fd[0], until_ns, line, sizeof(line));
	(void)close(fd[0]);
	if (pid < 0)
		return error_set(err, -errno, "cannot check: %m");
	if (!check_ends(pid, until_ns, &status))
		return not_checked(pid, err);
	if (WIFEXITED(status) && WEXITSTATUS(status) == MOUNT_CAN_TAKE_OVER)
		return 0;
	if (strncmp(line, "refrain: ", strlen("refrain: ")) == 0 &&
		strstr(line, CHECK_REQUESTS))
		return error_set(err, -EINVAL,
			"the program is too old to read the record of "
			"requests; unmount, and mount again with it");
	return error_set(err, -EINVAL, "%s",
		*line ? line : "the program is not refrain, or is too old");
}

/* -- The change ------------------------------------------------------------ */

/* Store the changed options in the session for later daemons, and exchange
 * u->changes for the earlier ones. Returns false if they do not fit. */
static bool keep_changes(struct upgrade *u)
{
	char before[COMMAND_CHANGES_MAX];
	size_t bytes;

	bytes = session_changes(
		session_fd(u->m->session), before, sizeof(before));
	if (!session_keep_changes(u->m->session, u->changes, u->changes_bytes))
		return false;
	memcpy(u->changes, before, bytes); /* a second call restores them */
	u->changes_bytes = bytes;
	return true;
}

static void upgrade_exec(struct upgrade *u)
{
	struct mount *m = u->m;
	const int fds[] = {fs_connection(m->fs), session_fd(m->session),
		m->names_fd, fs_journal(m->fs)};
	char text[96];

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		inherit(fds[i]);
	inherit(held_link());
	(void)snprintf(text, sizeof(text), "%d:%d,%d,%d,%d", (int)getpid(),
		fds[0], fds[1], fds[2], fds[3]);
	(void)setenv("REFRAIN_TAKEOVER", text, 1);
	/* The new program must not fork: this process is in the background
	 * already. */
	if (!m->options.foreground)
		(void)setenv("REFRAIN_HELD", "again", 1);
	log_flush(m->log);
	if (keep_changes(u)) {
		session_note_end(m->session, SESSION_UPGRADED);
		if (chdir(m->cwd) == 0)
			(void)execv(u->words.v[0], u->words.v);
		/* execv() fails only if somebody has removed or changed the
		 * program since the check. */
		session_note_end(m->session, SESSION_KILLED);
		(void)keep_changes(u);
	}
	(void)unsetenv("REFRAIN_TAKEOVER");
}

/* Restore the sizes of the tiers that were shrunk. A larger size never fails.
 */
static void restore_sizes(struct upgrade *u)
{
	for (size_t i = 0; i < u->m->options.ntiers; i++)
		if (u->before[i] > 0)
			(void)store_resize(u->m->store, i, u->before[i]);
}

/* Shrink tiers before the upgrade, because that may fail, and readers may fill
 * the tiers further until the upgrade. The new program makes tiers larger:
 * entries that used the additional space could not be taken back after a failed
 * upgrade. */
static int shrink_tiers(struct upgrade *u, struct error *err)
{
	for (size_t i = 0; i < u->m->options.ntiers; i++) {
		struct tier_status s;

		store_tier_status(u->m->store, i, &s);
		if (u->size[i] == 0 || u->size[i] >= s.capacity_bytes)
			continue;
		if (store_resize(u->m->store, i, u->size[i]) < 0) {
			restore_sizes(u);
			return size_too_small(u->m, i, u->size[i], err);
		}
		u->before[i] = s.capacity_bytes;
	}
	return 0;
}

/* Check and prepare everything that upgrade_exec() needs. */
static int upgrade_prepare(struct upgrade *u, const char *program,
	const json_t *options, struct error *err)
{
	int rc = make_command(u, program, options, err);

	if (rc == 0)
		rc = check_program(u, err);
	if (rc == 0)
		rc = shrink_tiers(u, err);
	return rc;
}

static int may_upgrade(struct mount *m, const struct ctl_conn *conn,
	const char *program, struct error *err)
{
	if (!ctl_peer_owns(conn))
		return error_set(err, -EPERM,
			"only the mount's user and root may upgrade it");
	if (!program || *program != '/')
		return error_set(err, -EINVAL, "\"program\" must be a path");
	if (!atomic_load(&m->can_upgrade))
		return error_set(err, -EAGAIN,
			"the mount cannot be taken over: it is not served yet, "
			"or shared memory is short");
	return 0;
}

void command_upgrade(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct mount *m = OBJECT(mount, arg);
	struct upgrade u = {.m = m};
	const char *program =
		json_string_value(json_object_get(request, "program"));
	struct error err;
	int rc = may_upgrade(m, conn, program, &err);

	if (rc == 0 && atomic_exchange(&m->upgrading, true)) {
		(void)ctl_fail(conn,
			"another upgrade of this mount has begun; wait until "
			"it has ended");
		return;
	}
	if (rc == 0) {
		rc = upgrade_prepare(
			&u, program, json_object_get(request, "options"), &err);
		if (rc == 0) {
			(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
			upgrade_exec(&u);
			restore_sizes(&u);
		}
		atomic_store(&m->upgrading, false);
	}
	if (rc < 0)
		(void)ctl_fail(conn, "%s", err.msg);
	command_words_release(&u.words);
}
