/* SPDX-License-Identifier: MIT */
/*
 * The command line of a daemon, and changes of options in it. The changes of
 * upgrades are kept in the session, so that a daemon that is started again with
 * the old command line has them, too. One thread.
 */
#ifndef COMMAND_WORDS_H
#define COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_CHANGES_MAX ((size_t)2048)

/* v[0] is the program, v[1] "mount"; a NULL is at the end. All are ours. */
struct command_words {
	char **v;
	size_t n, room;
};

/* Append a word. -ENOMEM. */
int command_words_add(struct command_words *w, const char *text);
/* Insert a word before all options. */
int command_words_insert(struct command_words *w, const char *text);
/* Is that option there, with that value? "" is any, or a flag's. */
bool command_words_have(
	const struct command_words *w, const char *name, const char *value);
void command_words_release(struct command_words *w);

/*
 * Change an option that may change while the mount is there: log-level,
 * timeout, or cache with DIR:SIZE, where DIR is as it was typed. -EINVAL: it is
 * another one, or there is no such cache.
 */
int command_words_change(
	struct command_words *w, const char *name, const char *value);

/*
 * A text of changes, NAME=VALUE with a NUL after each. Put one more in place of
 * an earlier one of the same option. -ENOSPC.
 */
int command_changes_put(char text[COMMAND_CHANGES_MAX], size_t *bytes,
	const char *name, const char *value);

/* Copy a command line, and apply what upgrades have changed, if it is that of a
 * daemon that follows another one. argv[0] is "mount". -ENOMEM. */
int command_words_of(struct command_words *w, int argc, char *const *argv);

#endif
