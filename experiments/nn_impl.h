/* SPDX-License-Identifier: MIT */
/*
 * The layers of the network and the memory of a batch. Private to nn*.c.
 * Between two calls of team_run() the caller's thread owns everything; during a
 * call, each slice owns its images and its sums.
 */
#ifndef EXAMPLES_NN_IMPL_H
#define EXAMPLES_NN_IMPL_H

#include <cblas.h>

#include "nn.h"
#include "team.h"

#ifdef NN_DOUBLE
#define NN_GEMM cblas_dgemm
#else
#define NN_GEMM cblas_sgemm
#endif

#define NN_LAYERS 4
#define NN_SLICES 8

/* A convolution, followed by maximum, normalisation and ReLU. Images are rows
 * of pixels of channels. */
struct layer {
	/* side of the input; channels of input and output */
	uint32_t side, in, out;
	uint32_t pool;	 /* 1: no maximum; 2: maximum of 2 x 2 pixels */
	uint32_t group;	 /* number of images that one product multiplies */
	nn_real *weight; /* 9 * `in` rows with `out` columns */
	nn_real *scale, *shift; /* `out` numbers each, of the normalisation */
	double *mean, *var;	/* `out` numbers each; averages over batches */

	/* Values of the current batch. */
	nn_real *pooled; /* input of the normalisation */
	uint8_t *from;	 /* which of the four pixels was the maximum */
	nn_real *active; /* values after normalisation and ReLU */
	/* gradient with respect to `active`, later to `pooled` */
	nn_real *slope;
	/* `out` numbers each: mean, and 1 / deviation */
	nn_real *centre, *inverse;
	/* `out` numbers each: gradients of scale and shift */
	nn_real *slope_scale, *slope_shift;
};

/* The memory of one slice. */
struct slice {
	nn_real *columns; /* rows with the neighbourhoods of a group's pixels */
	nn_real *convolved; /* pixels of a group before the maximum */
	/* gradient of all weights from the images of this slice */
	nn_real *gradient;
	double *sums; /* 2 * `channels` numbers */
	/* for one image: `channels` means, and `classes` scores */
	nn_real *mean, *scores;
	double loss;
	uint32_t correct;
};

struct nn {
	struct nn_config c;
	struct team *team;
	struct layer layer[NN_LAYERS];
	struct slice slice[NN_SLICES];
	uint32_t features; /* number of channels of the last layer */
	/* `features` rows with `classes` columns; `classes` numbers */
	nn_real *linear, *bias;
	size_t weights,
		/* number of all weights; number of the weights that decay */
		decayed;
	nn_real *weight, *gradient, *velocity;

	/* Arguments of the current call. */
	const nn_real *pictures;
	const int64_t *labels;
	uint32_t count;
	uint32_t at; /* index of the current layer */
};

/* Returns how many images of the call belong to slice i, and sets *first to the
 * first. */
uint32_t slice_pictures(const struct nn *nn, unsigned i, uint32_t *first);

/* Returns slice i's gradient of the weights that begin at `weight`. */
nn_real *slice_gradient(const struct nn *nn, unsigned i, const nn_real *weight);

/* Return the number of pixels, or of values, of one image after the layer. */
size_t layer_pixels(const struct layer *l);
size_t layer_numbers(const struct layer *l);

/* -- nn_layer.c: for one slice, whose images are `first` and `n` -- */

/* Compute `pooled` from the input; add its sums and sums of squares to s->sums.
 */
void layer_convolve(const struct layer *l, struct slice *s,
	const nn_real *input, uint32_t first, uint32_t n);
/* Compute `active` from `pooled`. */
void layer_activate(const struct layer *l, uint32_t first, uint32_t n);
/* Take the gradient with respect to `active` back through the ReLU; add its
 * sums to s->sums. */
void layer_slope_sums(
	const struct layer *l, struct slice *s, uint32_t first, uint32_t n);
/* Compute the gradient with respect to `pooled`, add that of the weights, and
 * compute that of the input if it is not NULL. */
void layer_slope(const struct layer *l, struct slice *s, nn_real *gradient,
	const nn_real *input, nn_real *slope_input, uint32_t first, uint32_t n,
	uint32_t count);

#endif
