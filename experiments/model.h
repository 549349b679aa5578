/* SPDX-License-Identifier: MIT */
/* The model that the experiments train: for images the network of the examples,
 * for records of text a text model. Also reads the held-out examples, on which
 * the model is scored, into memory. One thread. */
#ifndef EXPERIMENTS_MODEL_H
#define EXPERIMENTS_MODEL_H

#include <stdbool.h>

#include "options.h"

struct model;

/* Returns 0 or -errno. */
int model_new(
	struct model **out, const struct train_options *o, uint64_t classes);
void model_free(struct model *m);

/* Train one step of gradient descent. Returns the mean loss before the step. */
double model_step(struct model *m, const struct refrain_batch *b, double rate);

/* All examples of a dataset that is not trained on. */
struct held_out {
	char *data;
	int64_t *labels;
	size_t sample_bytes;
	uint64_t count;
};

/* Read all examples of the dataset `path`. Returns 0, or -errno after printing
 * an error. */
int held_out_read(
	struct held_out *h, const struct train_options *o, const char *path);
void held_out_release(struct held_out *h);

/* Returns for images the fraction that is classified correctly, for text nats
 * per byte. */
double model_score(struct model *m, const struct held_out *h,
	const struct train_options *o);
/* Does the score reach the target? A score of 0 does not count. */
bool model_reaches(const struct train_options *o, double score);

#endif
