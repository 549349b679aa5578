/* SPDX-License-Identifier: MIT */
/*
 * Changes options in a command line. Used by one thread.
 */
#include "mount/daemon/command_words.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "mount/daemon/mount_impl.h"

int command_words_add(struct command_words *w, const char *text)
{
	char *copy = strdup(text);

	if (!copy || ARRAY_ROOM(w->v, w->n + 1, &w->cap) < 0) {
		free(copy);
		return -ENOMEM;
	}
	w->v[w->n++] = copy;
	w->v[w->n] = NULL;
	return 0;
}

/* Returns the index of the word after "mount". */
static size_t first_option(const struct command_words *w)
{
	return w->n > 0 && strcmp(w->v[0], "mount") == 0 ? 1 : 2;
}

int command_words_insert(struct command_words *w, const char *text)
{
	size_t at = first_option(w);
	char *word;

	if (command_words_add(w, text) < 0)
		return -ENOMEM;
	word = w->v[w->n - 1];
	memmove(w->v + at + 1, w->v + at, (w->n - 1 - at) * sizeof(*w->v));
	w->v[at] = word;
	return 0;
}

void command_words_release(struct command_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	free(w->v);
}

/* -- Changes --------------------------------------------------------------- */

static bool is_option(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, "--", 2) == 0 &&
		strncmp(word + 2, name, len) == 0 &&
		(word[2 + len] == '\0' || word[2 + len] == '=');
}

bool command_words_have(
	const struct command_words *w, const char *name, const char *value)
{
	for (size_t i = first_option(w); i < w->n && strcmp(w->v[i], "--");
		i++) {
		const char *word = w->v[i], *given = strchr(word, '=');

		if (!is_option(word, name))
			continue;
		given = given ? given + 1 : w->v[i + 1];
		if (!*value || (given && strcmp(given, value) == 0))
			return true;
	}
	return false;
}

/* Remove an option from the command line. Words after "--" are operands. */
static void drop_option(struct command_words *w, const char *name)
{
	size_t i = first_option(w);

	while (i < w->n && strcmp(w->v[i], "--")) {
		size_t n = strchr(w->v[i], '=') || i + 1 == w->n ? 1 : 2;

		if (!is_option(w->v[i], name)) {
			i++;
			continue;
		}
		for (size_t k = 0; k < n; k++)
			free(w->v[i + k]);
		/* This also moves the NULL at the end. */
		memmove(w->v + i, w->v + i + n,
			(w->n - i - n + 1) * sizeof(*w->v));
		w->n -= n;
	}
}

/* Returns the length of DIR and the colon in DIR:SIZE. */
static size_t dir_length(const char *value)
{
	const char *colon = strrchr(value, ':');

	return colon ? (size_t)(colon - value) + 1 : strlen(value);
}

/* Replace the SIZE of DIR:SIZE in the --cache option of the same directory. */
static int set_cache_word(struct command_words *w, const char *value)
{
	size_t dir = dir_length(value);

	for (size_t i = first_option(w); i < w->n && strcmp(w->v[i], "--");
		i++) {
		bool joined = strncmp(w->v[i], "--cache=", 8) == 0;
		char *word = NULL;
		const char *old;

		if (!joined && strcmp(w->v[i], "--cache") != 0)
			continue;
		i += !joined;
		if (i == w->n)
			break;
		old = w->v[i] + (joined ? 8 : 0);
		if (dir_length(old) != dir || memcmp(old, value, dir) != 0)
			continue;
		if (asprintf(&word, "%s%s", joined ? "--cache=" : "", value) <
			0)
			return -ENOMEM;
		free(w->v[i]);
		w->v[i] = word;
		return 0;
	}
	return -EINVAL;
}

int command_words_change(
	struct command_words *w, const char *name, const char *value)
{
	char *word = NULL;
	int rc;

	if (strcmp(name, "cache") == 0)
		return set_cache_word(w, value);
	if (strcmp(name, "log-level") != 0 && strcmp(name, "timeout") != 0)
		return -EINVAL;
	if (asprintf(&word, "--%s=%s", name, value) < 0)
		return -ENOMEM;
	drop_option(w, name);
	rc = command_words_insert(w, word);
	free(word);
	return rc;
}

/* -- Changes in the session ------------------------------------------------ */

/* Returns how many bytes from the beginning identify what a change sets. Two
 * changes of one option with the same beginning replace each other. */
static size_t key_length(const char *name, const char *value)
{
	size_t len = strlen(name) + 1;

	return strcmp(name, "cache") == 0 ? len + dir_length(value) : len;
}

int command_changes_put(char text[COMMAND_CHANGES_MAX], size_t *bytes,
	const char *name, const char *value)
{
	CLEANUP_FREE char *change = NULL;
	size_t key = key_length(name, value), len, at = 0;

	if (asprintf(&change, "%s=%s", name, value) < 0)
		return -ENOMEM;
	while (at < *bytes) {
		len = strnlen(text + at, *bytes - at) + 1;
		if (strncmp(text + at, change, key) != 0) {
			at += len;
			continue;
		}
		memmove(text + at, text + at + len, *bytes - at - len);
		*bytes -= len;
	}
	len = strlen(change) + 1;
	if (len > COMMAND_CHANGES_MAX - *bytes)
		return -ENOSPC;
	memcpy(text + *bytes, change, len);
	*bytes += len;
	return 0;
}

/* Apply changes. Skip options that this program does not know: a newer program
 * may have made the change. */
static int apply_changes(struct command_words *w, char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
		char *value = strchr(text + at, '=');
		int rc;

		if (!value)
			continue;
		*value = '\0';
		rc = command_words_change(w, text + at, value + 1);
		*value = '=';
		if (rc == -ENOMEM)
			return rc;
	}
	return 0;
}

int command_words_of(struct command_words *w, int argc, char *const *argv)
{
	char text[COMMAND_CHANGES_MAX];
	int fd = held_session(), rc = 0;

	for (int i = 0; rc == 0 && i < argc; i++)
		rc = command_words_add(w, argv[i]);
	if (rc == 0 && fd >= 0)
		rc = apply_changes(
			w, text, session_changes(fd, text, sizeof(text)));
	return rc;
}
