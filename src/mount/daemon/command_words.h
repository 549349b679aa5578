/* SPDX-License-Identifier: MIT */
/*
 * The command line of a daemon, and changes of its options. Changes by upgrades
 * are kept in the session, so that they also apply to a daemon that is started
 * again with the old command line. One thread.
 */
#ifndef COMMAND_WORDS_H
#define COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_CHANGES_MAX ((size_t)2048)

/* V[0] is the program, v[1] "mount", the last element NULL. The struct owns all
 * words. */
struct command_words {
	char **v;
	size_t n, cap;
};

/* Append a word. Returns 0 or -ENOMEM. */
int command_words_add(struct command_words *w, const char *text);
/* Insert a word before all options. */
int command_words_insert(struct command_words *w, const char *text);
/* Does the command line have this option with this value? "" stands for any
 * value, or for a flag. */
bool command_words_have(
	const struct command_words *w, const char *name, const char *value);
void command_words_release(struct command_words *w);

/*
 * Change an option that may change while the mount exists: log-level, timeout,
 * or cache with DIR:SIZE, where DIR is written as in the command line. Returns
 * -EINVAL for any other option, or if there is no such cache.
 */
int command_words_change(
	struct command_words *w, const char *name, const char *value);

/*
 * Add a change to a text of changes, which are NAME=VALUE with a NUL after
 * each. It replaces an earlier change of the same option. Returns 0 or -ENOSPC.
 */
int command_changes_put(char text[COMMAND_CHANGES_MAX], size_t *bytes,
	const char *name, const char *value);

/* Copy a command line and, if this daemon follows another one, apply what
 * upgrades have changed. argv[0] is "mount". Returns 0 or -ENOMEM. */
int command_words_of(struct command_words *w, int argc, char *const *argv);

#endif
