/* SPDX-License-Identifier: MIT */
/*
 * Which process of the command uses a processor most. A process without a
 * moment of rest may be the limit, however many processors are idle: it may
 * have one thread, or a lock that only one of its threads holds at a time.
 */
#ifndef STUDY_BUSY_PROCESS_IMPL_H
#define STUDY_BUSY_PROCESS_IMPL_H

#include <stddef.h>

#include "analysis/study/trainer_impl.h"

struct busy_process;

/* The processor time of each process so far; begins with zeros. */
struct busy {
	struct busy_process *process; /* without memory some are absent */
	size_t n, room;
};

void busy_look(struct busy *b, const struct trainer *t);
void busy_release(struct busy *b);

/*
 * The most seconds that a process used between two looks. Of a process that has
 * children, the first thread is left out: other processes read and prepare,
 * and this thread may do nothing but ask its device whether a step has ended.
 */
double busy_most_s(const struct busy *was, const struct busy *now);

#endif
