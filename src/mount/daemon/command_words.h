/* SPDX-License-Identifier: MIT */
/* The command line of a daemon, and changes of its options. Upgrades store
 * their changes in the session, so that they also apply to a later daemon that
 * is started with the old command line. Used by one thread. */
#ifndef COMMAND_WORDS_H
#define COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_CHANGES_MAX ((size_t)2048)

/* v[0] is the program, v[1] is "mount", and the last element is NULL. The
 * struct owns all words. */
struct command_words {
	char **v;
	size_t n, cap;
};

/* Append a word. Returns 0 or -ENOMEM. */
int command_words_add(struct command_words *w, const char *text);
/* Insert a word before all options. */
int command_words_insert(struct command_words *w, const char *text);
/* Does the command line contain this option with this value? The value ""
 * stands for any value, or for an option that has none. */
bool command_words_have(
	const struct command_words *w, const char *name, const char *value);
void command_words_release(struct command_words *w);

/* Change an option that can be changed while the mount exists: log-level,
 * timeout, or cache with DIR:SIZE, where DIR is written as in the command line.
 * Returns 0, -EINVAL for any other option or an unknown DIR, or -ENOMEM. */
int command_words_change(
	struct command_words *w, const char *name, const char *value);

/* Add a change to a text of changes. Each change is NAME=VALUE and a NUL, and
 * replaces an earlier change of the same option. Returns 0, -ENOSPC or
 * -ENOMEM. */
int command_changes_put(char text[COMMAND_CHANGES_MAX], size_t *bytes,
	const char *name, const char *value);

/* Copy a command line. If this daemon continues the mount of another one, apply
 * the changes that upgrades have made. argv[0] is "mount". Returns 0 or
 * -ENOMEM. */
int command_words_of(struct command_words *w, int argc, char *const *argv);

#endif
