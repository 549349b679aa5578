/* SPDX-License-Identifier: MIT */
/*
 * Finds the options of mounts: the command-line words of the processes that
 * serve or hold them. The kernel returns these words even if neither process
 * answers. For a mount that is dead and not held, no words are found.
 */
#include "analysis/fleet/doctor_impl.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/base/option.h"

#define WORDS_MAX_BYTES ((size_t)64 << 10)

static const char *word_next(const struct doctor_words *w, const char *word)
{
	const char *end = w->words + w->bytes;

	word = word ? word + strlen(word) + 1 : w->words;
	return word && word < end ? word : NULL;
}

const char *doctor_option(
	const struct doctor_words *w, const char *name, unsigned at)
{
	size_t len = strlen(name);

	for (const char *s = word_next(w, NULL); s; s = word_next(w, s)) {
		if (strncmp(s, "--", 2) != 0 || strncmp(s + 2, name, len) != 0)
			continue;
		if (s[len + 2] && s[len + 2] != '=')
			continue;
		if (at-- > 0)
			continue;
		return s[len + 2] ? s + len + 3 : word_next(w, s);
	}
	return NULL;
}

/* Is this word the mountpoint? It may be relative to the directory in which the
 * process was started. */
static bool word_is_at(const char *word, const char *mountpoint)
{
	size_t n = strlen(word), m = strlen(mountpoint);

	while (n > 1 && word[n - 1] == '/')
		n--;
	if (n == m && strncmp(word, mountpoint, m) == 0)
		return true;
	/* the name is relative, so only the ends are compared */
	return *word != '/' && n < m && mountpoint[m - n - 1] == '/' &&
		strncmp(mountpoint + m - n, word, n) == 0;
}

/* Does this option have its argument in the next word? */
static bool takes_next(const struct option_usage *usage, const char *word)
{
	size_t len = strcspn(word, "=");
	const struct option_def *o = option_table(usage);

	if (strncmp(word, "--", 2) == 0)
		o = option_find(usage, word + 2, len - 2);
	else
		while (o->name && o->letter != word[1])
			o++;
	/* "--name=VALUE" and "-nVALUE" are one word. */
	return o && o->name && o->arg && !word[word[1] == '-' ? len : 2];
}

const char *doctor_source(const struct doctor *d, const struct doctor_words *w)
{
	const char *s = word_next(w, NULL);

	while (s && strcmp(s, "mount") != 0)
		s = word_next(w, s);
	s = s ? word_next(w, s) : NULL;
	while (s && *s == '-') {
		if (takes_next(d->mount, s))
			s = word_next(w, s);
		s = s ? word_next(w, s) : NULL;
	}
	return s;
}

bool doctor_path(
	const struct doctor_words *w, const char *name, char path[PATH_MAX])
{
	bool known = *name == '/' || (*w->cwd && strcmp(w->cwd, "/") != 0);
	int n = snprintf(path, PATH_MAX, "%s%s%s", *name == '/' ? "" : w->cwd,
		*name == '/' ? "" : "/", name);

	return known && n < PATH_MAX;
}

static bool words_read(const char *pid, struct doctor_words *w)
{
	char path[64];
	CLEANUP_FD int fd = -1;
	char *text = malloc(WORDS_MAX_BYTES + 1);
	ssize_t n = -1;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (text && fd >= 0)
		n = read(fd, text, WORDS_MAX_BYTES);
	if (n <= 0) {
		free(text);
		return false;
	}
	text[n] = '\0';
	*w = (struct doctor_words){
		.words = text, .bytes = (size_t)n, .pid = atoi(pid)};
	(void)snprintf(path, sizeof(path), "/proc/%.16s/cwd", pid);
	n = readlink(path, w->cwd, sizeof(w->cwd) - 1);
	w->cwd[n > 0 ? n : 0] = '\0';
	return true;
}

/* Get the user and the group of a process, if its real, effective, saved and
 * file system user are the same. The owner of /proc/PID cannot be used, because
 * root owns the directory of each process that has made itself undumpable. */
static bool words_user(struct doctor_words *w)
{
	char path[64], line[256];
	unsigned a, b, c, e, group = (unsigned)-1;
	bool one = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)w->pid);
	f = fopen(path, "re");
	while (f && group == (unsigned)-1 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %u %u %u %u", &a, &b, &c, &e) == 4)
			one = a == b && a == c && a == e;
		/* this line comes after that of the users */
		(void)sscanf(line, "Gid: %u", &group);
	}
	if (f)
		(void)fclose(f); /* the file was only read */
	w->user = one ? a : (uid_t)-1;
	w->group = group;
	return one && group != (unsigned)-1;
}

static bool is_refrain(const char *program)
{
	const char *slash = strrchr(program, '/');

	program = slash ? slash + 1 : program;
	/* libtool names a program that is not installed "lt-NAME" */
	program += strncmp(program, "lt-", 3) == 0 ? 3 : 0;
	return strncmp(program, "refrain", 7) == 0;
}

/* Is the program of this process refrain? Its words do not prove that: a
 * process can write anything to them, and so can one of root, such as a sudo
 * that asks for a password. But if this user must not see the program, the
 * words are used. */
static bool program_is_refrain(const struct doctor_words *w)
{
	char path[64], program[PATH_MAX];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)w->pid);
	n = readlink(path, program, sizeof(program) - 1);
	if (n < 0)
		return errno == EACCES || errno == EPERM;
	program[n] = '\0';
	return is_refrain(program);
}

/* Returns the user of a mount; (uid_t)-1: unknown. */
static uid_t mount_user(const char *mountpoint)
{
	struct mountinfo info;
	struct mountinfo_entry e;
	uid_t found = (uid_t)-1, user;
	gid_t group;

	if (mountinfo_open(&info, 0) < 0)
		return found;
	while (mountinfo_next(&info, &e))
		if (strcmp(e.type, MOUNTINFO_REFRAIN) == 0 &&
			strcmp(e.path, mountpoint) == 0 &&
			mountinfo_owner(&e, &user, &group) == 0)
			found = user;
	mountinfo_close(&info);
	return found;
}

/* Does the process serve or hold the mount at this mountpoint? */
static bool words_serve(const struct doctor_words *w, const char *mountpoint)
{
	const char *program = word_next(w, NULL);
	bool mounts = false;

	if (!program || !is_refrain(program))
		return false;
	for (const char *s = word_next(w, NULL); s; s = word_next(w, s)) {
		if (mounts && word_is_at(s, mountpoint))
			return true;
		mounts = mounts || strcmp(s, "mount") == 0;
	}
	return false;
}

static void words_give(struct doctor *d, struct doctor_words *w)
{
	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		const char *mountpoint = fleet_get(d->fleet, i).mountpoint;

		if (d->words[i].words || !words_serve(w, mountpoint) ||
			!words_user(w) || !program_is_refrain(w) ||
			(w->user != 0 && w->user != mount_user(mountpoint)))
			continue;
		d->words[i] = *w;
		return;
	}
	free(w->words);
}

void doctor_words_find(struct doctor *d)
{
	CLEANUP_DIR DIR *dir = opendir("/proc");
	const struct dirent *e;
	struct doctor_words w;

	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			words_read(e->d_name, &w))
			words_give(d, &w);
}
