/* SPDX-License-Identifier: MIT */
/*
 * Replaces the program of the daemon while programs read: the new one checks
 * that it can go on, then this process executes it. The kernel ends the other
 * threads, and the process keeps its number, its holder and the descriptors of
 * the session. Requests that were being answered are answered by the new
 * program, as after a crash. Runs on a control connection's thread.
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

/* The command line of the next program, and what it changes. */
struct upgrade {
	struct mount *m;
	struct command_words words;
	char changes[COMMAND_CHANGES_MAX]; /* for later daemons */
	size_t changes_bytes;
	uint64_t size[STORE_TIERS_MAX];	  /* new ones; 0: as before */
	uint64_t before[STORE_TIERS_MAX]; /* of those that were changed; 0 */
};

/* How long the new program may check whether it can go on. */
#define CHECK_NS (15 * NS_PER_S * TIME_LIMIT_FACTOR)
#define CHECK_LOOK_MS 10

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

/* Set the message for a size that is too small: entries are never evicted for
 * it. */
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

/* Find the tier whose directory, as typed, the option names. */
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

/* Replace the DIR:SIZE of the same directory. */
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
	/* Accept options that are not changed, because a remount names all of
	 * them. */
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

/* Something can be read, or the end has come. False: it is `until_ns`. */
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

/* False: it did not end, or the kernel says why. */
static bool check_ends(pid_t pid, uint64_t until_ns, int *status)
{
	struct timespec look = {.tv_nsec = CHECK_LOOK_MS * NS_PER_MS};
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG)) == 0 &&
		clock_now_ns() < until_ns)
		(void)nanosleep(&look, NULL);
	return got == pid;
}

/* The child passes its copies of the state to the new program. */
static void exec_check(struct upgrade *u, int said)
{
	const struct mount *m = u->m;
	char fds[64];

	if (command_words_insert(&u->words, "--check-takeover") < 0)
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
	/* One that hangs in the kernel is left. */
	(void)check_ends(pid, clock_now_ns() + NS_PER_S, &status);
	return error_set(err, -ETIMEDOUT,
		"the program did not say within %llu s whether it can go on",
		(unsigned long long)(CHECK_NS / NS_PER_S));
}

/* Run the new program up to the point where it would take over. */
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
	return error_set(err, -EINVAL, "%s",
		*line ? line : "the program is not refrain, or is too old");
}

/* -- The change ------------------------------------------------------------ */

/* Keep the changed options for later daemons. Returns false if they do not
 * fit. */
static bool keep_changes(struct upgrade *u)
{
	char before[COMMAND_CHANGES_MAX];
	size_t bytes;

	bytes = session_changes(
		session_fd(u->m->session), before, sizeof(before));
	if (!session_keep_changes(u->m->session, u->changes, u->changes_bytes))
		return false;
	memcpy(u->changes, before, bytes); /* to restore them */
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
		/* Only if the program has gone since the check. */
		session_note_end(m->session, SESSION_KILLED);
		(void)keep_changes(u);
	}
	(void)unsetenv("REFRAIN_TAKEOVER");
}

/* Larger sizes, which never fail. */
static void restore_sizes(struct upgrade *u)
{
	for (size_t i = 0; i < u->m->options.ntiers; i++)
		if (u->before[i] > 0)
			(void)store_resize(u->m->store, i, u->before[i]);
}

/*
 * Limit tiers to smaller sizes from now on, although readers go on. Larger
 * sizes are for the new program: they could not be taken back.
 */
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

/* Check and prepare what upgrade_exec() does. */
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
