/* SPDX-License-Identifier: MIT */
/* Finds the process of the command that uses a processor most. A process that
 * never rests may be the limit, even if other processors are idle: it may have
 * only one thread, or a lock that only one of its threads can hold at a time.
 */
#ifndef STUDY_BUSY_PROCESS_IMPL_H
#define STUDY_BUSY_PROCESS_IMPL_H

#include <stddef.h>

#include "analysis/study/trainer_impl.h"

struct busy_process;

/* The processor time that each process has used so far. Zero it before its
 * first use. */
struct busy {
	/* if memory was short, some are missing */
	struct busy_process *process;
	size_t n, room;
};

void busy_look(struct busy *b, const struct trainer *t);
void busy_release(struct busy *b);

/* Returns the largest processor time that one process has used between two
 * looks. The first thread of a process with children is not counted: its
 * children read and prepare, and this thread may do nothing but ask its device
 * whether a step has ended. */
double busy_most_s(const struct busy *was, const struct busy *now);

#endif
