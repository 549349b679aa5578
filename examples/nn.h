/* SPDX-License-Identifier: MIT */
/*
 * A small convolutional network and its training, for the examples: 3 x 3
 * convolutions as products of matrices (BLAS), each followed by 2 x 2 maximum,
 * batch normalisation and ReLU; the mean over the picture; a linear layer;
 * cross entropy; stochastic gradient descent with momentum.
 *
 * Work is cut into slices whose number does not depend on that of the threads
 * and which are summed in order: the same seed and batches give the same
 * weights on any number of threads. One thread calls; the network has
 * threads - 1 more of its own.
 */
#ifndef EXAMPLES_NN_H
#define EXAMPLES_NN_H

#include <stddef.h>
#include <stdint.h>

/* In double for the test that compares gradients with differences. */
#ifdef NN_DOUBLE
typedef double nn_real;
#else
typedef float nn_real;
#endif

#define NN_THREADS_MAX 8

struct nn_config {
	uint32_t side;	    /* of the square pictures; a multiple of 8 */
	uint32_t channels;  /* of them */
	uint32_t classes;   /* at least 2 */
	uint32_t width;	    /* channels of the first layer */
	uint32_t batch_max; /* pictures in a call, at most */
	uint32_t threads;   /* 0: 1 */
	uint64_t seed;	    /* of the first weights */
};

struct nn;

/* -EINVAL, -ENOMEM, or what pthread_create() says. */
int nn_new(struct nn **out, const struct nn_config *config);
void nn_free(struct nn *nn);

/*
 * The mean loss of `count` pictures (rows of pixels of channels), in training
 * mode: over the statistics of the batch. nn_gradient() also leaves how it
 * changes with each weight in nn_gradients(); labels are below `classes`.
 */
double nn_loss(struct nn *nn, const nn_real *pictures, const int64_t *labels,
	uint32_t count);
double nn_gradient(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count);

/* Change the weights by the gradients of the last nn_gradient(). */
void nn_update(struct nn *nn, double rate, double momentum, double decay);

/* How many of `count` pictures are taken for what they are. */
uint32_t nn_correct(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count);

/* All weights, one after the other, and their gradients. */
size_t nn_weight_count(const struct nn *nn);
nn_real *nn_weights(struct nn *nn);
const nn_real *nn_gradients(const struct nn *nn);

#endif
