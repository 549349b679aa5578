/* SPDX-License-Identifier: MIT */
/*
 * Threads that do one loop together. One thread calls team_run() and takes
 * part in it; the others wait in between.
 */
#ifndef EXAMPLES_TEAM_H
#define EXAMPLES_TEAM_H

struct team;

/* `threads` with the caller's, at least 1. -ENOMEM, or -errno of a thread. */
int team_new(struct team **out, unsigned threads);
void team_free(struct team *t);

/* Call work(arg, i) for 0 <= i < n, each once, and return when all have. */
void team_run(struct team *t, void (*work)(void *arg, unsigned i), void *arg,
	unsigned n);

#endif
