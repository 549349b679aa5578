/* SPDX-License-Identifier: MIT */
/* The command that is analysed: all descendants of this process except the
 * daemon, including those that have a session of their own or whose parents
 * have ended. They may see the mount in place of the source. One thread uses
 * it. */
#ifndef STUDY_TRAINER_IMPL_H
#define STUDY_TRAINER_IMPL_H

#include <sys/types.h>

#include "analysis/study/study.h"

/* Maximum number of older children; further ones are ignored. */
#define TRAINER_OLDER_MAX 32

struct trainer {
	pid_t daemon; /* set once */
	pid_t pid;    /* 0: the command is not running */
	int status;   /* as waitpid() reports it, once the command has ended */
	unsigned long long started; /* start time in clock ticks, as in /proc */
	/* Sessions of older children, which do not belong to the command */
	pid_t older[TRAINER_OLDER_MAX];
	unsigned nolder;
	/* processor time of adopted processes that have ended */
	double reaped_s;
};

/* Start the command. Its standard output goes to this process's standard error.
 */
int trainer_start(struct trainer *t, const struct analyze_config *config,
	struct error *err);

/* Has the command ended? */
bool trainer_ended(struct trainer *t);

/* Returns the seconds of processor time of all processes of the command,
 * including ended ones. */
double trainer_cpu_s(const struct trainer *t);

/* Call fn for each process of the command, including those that have ended and
 * have not been reaped. `fields` is the part of the process's line in /proc
 * that begins with its state. */
void trainer_each(const struct trainer *t,
	void (*fn)(void *arg, pid_t pid, const char *fields), void *arg);

/* Has a process of the command mapped a file of this device? */
bool trainer_maps(const struct trainer *t, dev_t device);

/* End all processes of the command, by force if necessary. */
void trainer_stop(struct trainer *t);

#endif
