/* SPDX-License-Identifier: MIT */
/*
 * The command that is analysed: all our descendants but the daemon, also those
 * that made a session of their own or whose parents have ended. The mount may
 * cover the source for them. One thread uses it.
 */
#ifndef STUDY_TRAINER_IMPL_H
#define STUDY_TRAINER_IMPL_H

#include <sys/types.h>

#include "analysis/study/study.h"

/* Children that were there before; further ones are ignored. */
#define TRAINER_OLDER_MAX 32

struct trainer {
	pid_t daemon;			/* set once */
	pid_t pid;			/* 0: not running */
	int status;			/* of waitpid(), once it has ended */
	unsigned long long started;	/* in ticks, as those of /proc */
	pid_t older[TRAINER_OLDER_MAX]; /* sessions of older children, which are
					   not the command's */
	unsigned nolder;
	double reaped_s; /* processor time of adopted processes that ended */
};

/* Its standard output goes to our standard error. */
int trainer_start(struct trainer *t, const struct analyze_config *config,
	struct error *err);

/* Has it ended? */
bool trainer_ended(struct trainer *t);

/* Processor seconds that its processes have used, those that ended, too. */
double trainer_cpu_s(const struct trainer *t);

/* Call fn for each process of the command, also for one that has ended and was
 * not waited for. `fields` is the part of the process's line in /proc that
 * begins with its state. */
void trainer_each(const struct trainer *t,
	void (*fn)(void *arg, pid_t pid, const char *fields), void *arg);

/* Has one of its processes mapped a file of this device into its memory? */
bool trainer_maps(const struct trainer *t, dev_t device);

/* End all its processes, by force if need be. */
void trainer_stop(struct trainer *t);

#endif
