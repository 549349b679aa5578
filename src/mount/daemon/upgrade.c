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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/size.h"

/* Behind the program and the name of its command. */
#define FIRST_WORD 2u

/* The command line of the next program; the words are the owner's. */
struct upgrade {
	struct mount *m;
	char **words;
	size_t n, room;
};

static int command_add(struct upgrade *u, const char *text)
{
	char *copy = strdup(text);

	if (!copy || ARRAY_ROOM(u->words, u->n + 1, &u->room) < 0) {
		free(copy);
		return -ENOMEM;
	}
	u->words[u->n++] = copy;
	u->words[u->n] = NULL;
	return 0;
}

/* Before the options that are there. */
static int command_insert(struct upgrade *u, const char *text)
{
	char *word;

	if (command_add(u, text) < 0)
		return -ENOMEM;
	word = u->words[u->n - 1];
	memmove(u->words + FIRST_WORD + 1, u->words + FIRST_WORD,
		(u->n - 1 - FIRST_WORD) * sizeof(*u->words));
	u->words[FIRST_WORD] = word;
	return 0;
}

static void upgrade_release(struct upgrade *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->words[i]);
	free(u->words);
}

/* -- Options --------------------------------------------------------------- */

/* Does this size hold what the tier has? Nothing is evicted for it (M2). */
static int check_tier_size(
	struct mount *m, size_t tier, const char *text, struct error *err)
{
	struct tier_status s;
	struct statvfs st;
	uint64_t bytes, whole = 0;
	int rc;

	store_tier_status(m->store, tier, &s);
	if (statvfs(s.dir, &st) == 0)
		whole = (uint64_t)st.f_blocks * st.f_frsize;
	rc = size_parse(text, whole, &bytes, err);
	if (rc < 0)
		return rc;
	if (bytes < s.used_bytes + s.reserved_bytes)
		return error_set(err, -EINVAL,
			"cache '%s' holds %llu bytes, and nothing is evicted: "
			"give it more than '%s'",
			s.dir,
			(unsigned long long)(s.used_bytes + s.reserved_bytes),
			text);
	return 0;
}

/* The tier whose directory the option names, as it was typed. */
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

/* DIR:SIZE in place of that of the same directory. */
static int set_cache(struct upgrade *u, const char *value, struct error *err)
{
	const char *colon = strrchr(value, ':');
	int tier, at = 0, rc;

	tier = colon ? find_tier(u->m, value, (size_t)(colon - value))
		     : -ENOENT;
	if (tier < 0)
		return error_set(err, -EINVAL,
			"'%s' is not DIR:SIZE of a cache of this mount; mount "
			"again to add or remove one",
			value);
	rc = check_tier_size(u->m, (size_t)tier, colon + 1, err);
	for (size_t i = 0; rc == 0 && i < u->n; i++) {
		bool joined = strncmp(u->words[i], "--cache=", 8) == 0;
		char *word = NULL;

		if (!joined && strcmp(u->words[i], "--cache") != 0)
			continue;
		if (at++ != tier)
			continue;
		i += !joined;
		if (i == u->n ||
			asprintf(&word, "%s%.*s%s", joined ? "--cache=" : "",
				(int)strlen(u->m->typed[tier]),
				u->m->typed[tier], colon) < 0)
			return error_set(err, -ENOMEM, "%m");
		free(u->words[i]);
		u->words[i] = word;
	}
	return rc;
}

static bool is_option(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, "--", 2) == 0 &&
		strncmp(word + 2, name, len) == 0 &&
		(word[2 + len] == '\0' || word[2 + len] == '=');
}

/* Take it out of the command line; what follows "--" are operands. */
static void drop_option(struct upgrade *u, const char *name)
{
	for (size_t i = FIRST_WORD; i < u->n && strcmp(u->words[i], "--");) {
		size_t n = strchr(u->words[i], '=') || i + 1 == u->n ? 1 : 2;

		if (!is_option(u->words[i], name)) {
			i++;
			continue;
		}
		for (size_t k = 0; k < n; k++)
			free(u->words[i + k]);
		/* The NULL at the end, too. */
		memmove(u->words + i, u->words + i + n,
			(u->n - i - n + 1) * sizeof(*u->words));
		u->n -= n;
	}
}

/* Change an option in the command line. */
static int set_option(struct upgrade *u, const char *name, const char *value,
	struct error *err)
{
	char *word = NULL;
	int rc;

	if (strcmp(name, "cache") == 0)
		return set_cache(u, value, err);
	if (strcmp(name, "log-level") != 0 && strcmp(name, "timeout") != 0)
		return error_set(err, -EINVAL,
			"option '%s' cannot be changed while the mount is "
			"there; unmount, and mount again",
			name);
	if (asprintf(&word, "--%s=%s", name, value) < 0)
		return error_set(err, -ENOMEM, "%m");
	drop_option(u, name);
	rc = command_insert(u, word);
	free(word);
	return rc < 0 ? error_set(err, rc, "%m") : 0;
}

static int make_command(struct upgrade *u, const char *program,
	const json_t *options, struct error *err)
{
	const struct mount_options *o = &u->m->options;
	const char *name;
	json_t *value;
	size_t i;
	int rc = command_add(u, program);

	for (size_t w = 0; rc == 0 && w < o->nwords; w++)
		rc = command_add(u, o->words[w]);
	if (rc < 0)
		return error_set(err, rc, "%m");
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

static void first_answer(int fd, char *line, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(fd, line + n, size - 1 - n)) > 0)
		n += (size_t)got;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

/* The child passes its copies of the state to the new program. */
static void exec_check(struct upgrade *u, int said)
{
	const struct mount *m = u->m;
	char fds[64];

	if (command_insert(u, "--check-takeover") < 0)
		_exit(1);
	(void)dup2(said, STDERR_FILENO);
	(void)fcntl(session_fd(m->session), F_SETFD, 0);
	(void)fcntl(m->names_fd, F_SETFD, 0);
	(void)snprintf(fds, sizeof(fds), "%d:-1,%d,%d,-1", (int)getpid(),
		session_fd(m->session), m->names_fd);
	(void)setenv("REFRAIN_TAKEOVER", fds, 1);
	if (chdir(m->cwd) < 0)
		_exit(1);
	(void)execv(u->words[0], u->words);
	(void)dprintf(STDERR_FILENO, "cannot run '%s': %s\n", u->words[0],
		strerror(errno));
	_exit(1);
}

/* Run the new program up to the point where it would take over. */
static int check_program(struct upgrade *u, struct error *err)
{
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
		first_answer(fd[0], line, sizeof(line));
	(void)close(fd[0]);
	if (pid < 0)
		return error_set(err, -errno, "cannot check: %m");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(err, -errno, "cannot check: %m");
	if (WIFEXITED(status) && WEXITSTATUS(status) == MOUNT_CAN_TAKE_OVER)
		return 0;
	return error_set(err, -EINVAL, "%s",
		*line ? line : "the program is not refrain, or is too old");
}

/* -- The change ------------------------------------------------------------ */

static void inherit(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, 0);
}

static void upgrade_exec(struct upgrade *u)
{
	struct mount *m = u->m;
	const int fds[] = {fs_connection(m->fs), session_fd(m->session),
		m->names_fd, fs_journal(m->fs)};
	char text[96];

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		inherit(fds[i]);
	(void)snprintf(text, sizeof(text), "%d:%d,%d,%d,%d", (int)getpid(),
		fds[0], fds[1], fds[2], fds[3]);
	(void)setenv("REFRAIN_TAKEOVER", text, 1);
	/* It is in the background already. */
	if (!m->options.foreground)
		(void)setenv("REFRAIN_HELD", "again", 1);
	log_flush(m->log);
	session_note_upgrade(m->session, true);
	if (chdir(m->cwd) == 0)
		(void)execv(u->words[0], u->words);
	/* Only if the program has gone since the check. */
	session_note_upgrade(m->session, false);
	(void)unsetenv("REFRAIN_TAKEOVER");
}

void command_upgrade(void *arg, struct ctl_conn *conn, const json_t *request)
{
	struct mount *m = arg;
	struct upgrade u = {.m = m};
	const char *program =
		json_string_value(json_object_get(request, "program"));
	struct error err;
	int rc = 0;

	if (!ctl_peer_owns(conn))
		rc = error_set(&err, -EPERM,
			"only the mount's user and root may upgrade it");
	else if (!program || *program != '/')
		rc = error_set(&err, -EINVAL, "\"program\" must be a path");
	else if (!atomic_load(&m->can_upgrade))
		rc = error_set(&err, -EAGAIN,
			"the mount cannot be taken over: it is not served yet, "
			"or shared memory is short");
	if (rc == 0)
		rc = make_command(
			&u, program, json_object_get(request, "options"), &err);
	if (rc == 0)
		rc = check_program(&u, &err);
	if (rc < 0) {
		(void)ctl_fail(conn, "%s", err.msg);
	} else {
		(void)ctl_send(conn, json_pack("{s:b}", "ok", 1));
		upgrade_exec(&u);
	}
	upgrade_release(&u);
}
