/* SPDX-License-Identifier: MIT */
/* Parses the options of the trainer of the experiments, and makes
 * configurations of the loader from them. No state. */
#ifndef EXPERIMENTS_OPTIONS_H
#define EXPERIMENTS_OPTIONS_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#define SMOOTH_MAX 64

enum train_schedule { SCHEDULE_CONSTANT, SCHEDULE_LINEAR };

struct train_options {
	struct refrain_config
		/* the loader's configuration, without the members that
		 * train_config() and score_config() set */
		config;
	const char *held_out; /* dataset for scores; NULL: none is computed */
	const char *test; /* dataset for one score at the end; may be NULL */
	bool text;	  /* datasets are raw records, otherwise images */
	/* maximum number of steps; 0: the steps of all epochs */
	unsigned steps;
	unsigned width; /* width of the network */
	double rate, momentum, decay;
	int schedule;  /* enum train_schedule */
	double target; /* score that ends the run; 0: none */
	/* number of scores whose mean is compared with the target */
	unsigned smooth;
	/* number of examples that are served between reports */
	unsigned report_every;
};

/* Parse the options. Returns 0 or an exit status. Sets *done if the program
 * should end now, as after --help. */
int train_options_parse(
	struct train_options *o, int argc, char **argv, bool *done);

/* Set the configuration for training on `dataset`. */
void train_config(const struct train_options *o, struct refrain_config *c);
/* Set the configuration for reading all examples of `path` once, in order and
 * unchanged. */
void score_config(const struct train_options *o, const char *path,
	struct refrain_config *c);

const char *train_point_name(const struct train_options *o);
const char *train_schedule_name(const struct train_options *o);

#endif
