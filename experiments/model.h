/* SPDX-License-Identifier: MIT */
/*
 * The model that the experiments train: the network of the examples on images,
 * or a text model on records. Also the held-out examples, which are kept in
 * memory and on which the model is scored. One thread.
 */
#ifndef EXPERIMENTS_MODEL_H
#define EXPERIMENTS_MODEL_H

#include <stdbool.h>

#include "options.h"

struct model;

/* Returns 0 or -errno. */
int model_new(
	struct model **out, const struct train_options *o, uint64_t classes);
void model_free(struct model *m);

/* One step of gradient descent. Returns the mean loss before the step. */
double model_step(struct model *m, const struct refrain_batch *b, double rate);

/* All examples of a dataset. */
struct held_out {
	char *data;
	int64_t *labels;
	size_t sample_bytes;
	uint64_t count;
};

/* Read all of `path`. Returns 0 or -errno, with a message on stderr. */
int held_out_read(
	struct held_out *h, const struct train_options *o, const char *path);
void held_out_release(struct held_out *h);

/* Images: the share that is classified correctly. Text: nats a byte. */
double model_score(struct model *m, const struct held_out *h,
	const struct train_options *o);
/* Is there a score (not 0) that is at least as good as the target? */
bool model_reaches(const struct train_options *o, double score);

#endif
