/* SPDX-License-Identifier: MIT */
/*
 * A small convolutional network and its training, for the examples: 3 x 3
 * convolutions as products of matrices (BLAS), each followed by 2 x 2 maximum,
 * batch normalisation and ReLU; the mean over the picture; a linear layer;
 * cross entropy; stochastic gradient descent with momentum.
 *
 * The images of a batch are divided into a fixed number of slices, whose
 * results are added in order. The same seed and batches therefore give the same
 * weights with any number of threads. One thread calls; the network starts
 * threads - 1 more.
 */
#ifndef EXAMPLES_NN_H
#define EXAMPLES_NN_H

#include <stddef.h>
#include <stdint.h>

/* A test compares gradients with differences, for which it needs double. */
#ifdef NN_DOUBLE
typedef double nn_real;
#else
typedef float nn_real;
#endif

#define NN_THREADS_MAX 8

struct nn_config {
	uint32_t side;	    /* side of the square images; a multiple of 8 */
	uint32_t channels;  /* channels of an image */
	uint32_t classes;   /* number of classes, at least 2 */
	uint32_t width;	    /* number of channels of the first layer */
	uint32_t batch_max; /* maximum number of images in a call */
	uint32_t threads;   /* number of threads; 0: 1 */
	uint64_t seed;	    /* seed for the initial weights */
};

struct nn;

/* Make a network. Returns 0, -EINVAL, -ENOMEM, or the error of
 * pthread_create(). */
int nn_new(struct nn **out, const struct nn_config *config);
void nn_free(struct nn *nn);

/* Returns the mean loss of `count` images in training mode, that is with the
 * statistics of the batch itself. Images are rows of pixels of channels.
 * nn_gradient() also computes the gradients, which nn_gradients() returns.
 * Labels must be less than `classes`. */
double nn_loss(struct nn *nn, const nn_real *pictures, const int64_t *labels,
	uint32_t count);
double nn_gradient(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count);

/* Change the weights by the gradients that nn_gradient() has computed. */
void nn_update(struct nn *nn, double rate, double momentum, double decay);

/* Returns the number of images that are classified correctly. */
uint32_t nn_correct(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count);

/* Access to all weights, one after the other, and to their gradients. */
size_t nn_weight_count(const struct nn *nn);
nn_real *nn_weights(struct nn *nn);
const nn_real *nn_gradients(const struct nn *nn);

#endif
