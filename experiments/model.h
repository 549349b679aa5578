/* SPDX-License-Identifier: MIT */
/*
 * What the trainer of the experiments trains: the network of the examples on
 * images, or the model of text on records. And what is held out of the
 * training: examples in memory, by which a model is scored. One thread.
 */
#ifndef EXPERIMENTS_MODEL_H
#define EXPERIMENTS_MODEL_H

#include <stdbool.h>

#include "options.h"

struct model;

/* 0 or -errno. */
int model_new(
	struct model **out, const struct train_options *o, uint64_t classes);
void model_free(struct model *m);

/* One step of gradient descent: the mean loss of the batch before it. */
double model_step(struct model *m, const struct refrain_batch *b, double rate);

/* All examples of a dataset. */
struct held_out {
	char *data;
	int64_t *labels;
	size_t sample_bytes;
	uint64_t count;
};

/* Read all of `path`: 0 or -errno; what failed is said on stderr. */
int held_out_read(
	struct held_out *h, const struct train_options *o, const char *path);
void held_out_release(struct held_out *h);

/* Images: the share that is taken for what it is. Text: nats a byte. */
double model_score(struct model *m, const struct held_out *h,
	const struct train_options *o);
/* Is there a score (not 0), and is it as good as the target? */
bool model_reaches(const struct train_options *o, double score);

#endif
