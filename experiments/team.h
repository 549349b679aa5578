/* SPDX-License-Identifier: MIT */
/*
 * Threads that run a loop together. One thread calls team_run() and takes
 * part in the loop; the others wait between calls.
 */
#ifndef EXAMPLES_TEAM_H
#define EXAMPLES_TEAM_H

struct team;

/* Start the threads. `threads` includes the caller's. Returns 0, -ENOMEM, or
 * the error of pthread_create(). */
int team_new(struct team **out, unsigned threads);
void team_free(struct team *t);

/* Call work(arg, i) once for each i from 0 to n - 1. Returns when all calls are
 * done. */
void team_run(struct team *t, void (*work)(void *arg, unsigned i), void *arg,
	unsigned n);

#endif
