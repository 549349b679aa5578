/* SPDX-License-Identifier: MIT */
/*
 * The options of the trainer of the experiments, and the loader's
 * configuration that they make. No state.
 */
#ifndef EXPERIMENTS_OPTIONS_H
#define EXPERIMENTS_OPTIONS_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#define SMOOTH_MAX 64

enum train_schedule { SCHEDULE_CONSTANT, SCHEDULE_LINEAR };

struct train_options {
	struct refrain_config
		config;	      /* of the loader, without the members that
				 train_config() and score_config() set */
	const char *held_out; /* NULL: nothing is scored */
	const char *test;     /* scored once, at the end; may be NULL */
	bool text;	      /* datasets are raw records; else images */
	unsigned steps;	      /* 0: the steps of all epochs */
	unsigned width;	      /* of the network */
	double rate, momentum, decay;
	int schedule;	       /* enum train_schedule */
	double target;	       /* 0: none */
	unsigned smooth;       /* number of scores to average for that */
	unsigned report_every; /* examples served between reports */
};

/* Returns 0 or an exit status. *done: exit now, as after --help. */
int train_options_parse(
	struct train_options *o, int argc, char **argv, bool *done);

/* The loader's configuration for training on `dataset`. */
void train_config(const struct train_options *o, struct refrain_config *c);
/* The configuration for reading all of `path` once, in order, unchanged. */
void score_config(const struct train_options *o, const char *path,
	struct refrain_config *c);

const char *train_point_name(const struct train_options *o);
const char *train_schedule_name(const struct train_options *o);

#endif
