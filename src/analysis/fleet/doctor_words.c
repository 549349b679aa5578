/* SPDX-License-Identifier: MIT */
/*
 * The options of mounts: the words of the processes that serve or hold them,
 * which the kernel tells even if neither answers. A mount that is dead and not
 * held has none.
 */
#include "analysis/fleet/doctor_impl.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

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

/* Is this word the mountpoint, which may have been given relative to the
 * process' directory? */
static bool word_is_at(
	const struct doctor_words *w, const char *word, const char *mountpoint)
{
	size_t n = strlen(word), m = strlen(mountpoint);

	while (n > 1 && word[n - 1] == '/')
		n--;
	if (n == m && strncmp(word, mountpoint, m) == 0)
		return true;
	(void)w;
	/* A relative name: its end must agree. */
	return *word != '/' && n < m && mountpoint[m - n - 1] == '/' &&
		strncmp(mountpoint + m - n, word, n) == 0;
}

/* The word before the mountpoint that is no option. */
const char *doctor_source(const struct doctor_words *w)
{
	const char *s = word_next(w, NULL);

	while (s && strcmp(s, "mount") != 0)
		s = word_next(w, s);
	s = s ? word_next(w, s) : NULL;
	while (s && *s == '-') {
		/* Options that take no word of their own are rare before the
		 * source. */
		bool own = strchr(s, '=') || strcmp(s, "--foreground") == 0 ||
			strcmp(s, "-f") == 0 || strcmp(s, "--no-hold") == 0 ||
			strcmp(s, "--allow-other") == 0 ||
			strcmp(s, "--log-json") == 0 ||
			strcmp(s, "--no-sign-request") == 0;

		s = word_next(w, s);
		if (s && !own)
			s = word_next(w, s);
	}
	return s;
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

/* Does the process serve, or hold, the mount at this place? */
static bool words_serve(const struct doctor_words *w, const char *mountpoint)
{
	const char *program = word_next(w, NULL), *slash;
	bool mounts = false;

	slash = program ? strrchr(program, '/') : NULL;
	program = slash ? slash + 1 : program;
	if (!program || strncmp(program, "refrain", 7) != 0)
		return false;
	for (const char *s = word_next(w, NULL); s; s = word_next(w, s)) {
		if (mounts && word_is_at(w, s, mountpoint))
			return true;
		mounts = mounts || strcmp(s, "mount") == 0;
	}
	return false;
}

static void words_give(struct doctor *d, struct doctor_words *w)
{
	for (size_t i = 0; i < fleet_count(d->fleet); i++) {
		if (d->words[i].words ||
			!words_serve(w, fleet_get(d->fleet, i).mountpoint))
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
