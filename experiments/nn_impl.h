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

/* A convolution with its maximum, normalisation and ReLU. Images are rows of
 * pixels of channels. */
struct layer {
	uint32_t side, in, out; /* side of the input; channels */
	uint32_t pool;		/* 1, or 2: maximum of 2 x 2 */
	uint32_t group;		/* images multiplied at once */
	nn_real *weight;	/* 9 * in rows of out */
	nn_real *scale, *shift; /* out each; for the normalisation */
	double *mean, *var;	/* out each; averages over batches */

	/* Values of the current batch. */
	nn_real *pooled;	   /* input of the normalisation */
	uint8_t *from;		   /* which of the four was the maximum */
	nn_real *active;	   /* normalised and rectified */
	nn_real *slope;		   /* gradient by `active`, then `pooled` */
	nn_real *centre, *inverse; /* out each: mean, 1 / deviation */
	nn_real *slope_scale, *slope_shift; /* out each: gradients */
};

/* The memory of one slice. */
struct slice {
	nn_real *columns;	/* neighbourhoods of a group's pixels */
	nn_real *convolved;	/* a group's pixels, before the maximum */
	nn_real *gradient;	/* for all weights, from this slice only */
	double *sums;		/* 2 * channels */
	nn_real *mean, *scores; /* for one image: channels; classes */
	double loss;
	uint32_t correct;
};

struct nn {
	struct nn_config c;
	struct team *team;
	struct layer layer[NN_LAYERS];
	struct slice slice[NN_SLICES];
	uint32_t features;	/* channels of the last layer */
	nn_real *linear, *bias; /* features rows of classes; classes */
	size_t weights,
		decayed; /* number of all weights; of those that decay */
	nn_real *weight, *gradient, *velocity;

	/* Arguments of the current call. */
	const nn_real *pictures;
	const int64_t *labels;
	uint32_t count;
	uint32_t at; /* the current layer */
};

/* Images [*first, *first + n) of the call belong to slice i; returns n. */
uint32_t slice_pictures(const struct nn *nn, unsigned i, uint32_t *first);

/* The gradient from slice i for the weights that begin at `weight`. */
nn_real *slice_gradient(const struct nn *nn, unsigned i, const nn_real *weight);

/* Numbers of pixels, and of all values, of one image after the layer. */
size_t layer_pixels(const struct layer *l);
size_t layer_numbers(const struct layer *l);

/* -- nn_layer.c: for one slice, whose images are `first` and `n` -- */

/* input -> pooled; its sums and sums of squares into s->sums. */
void layer_convolve(const struct layer *l, struct slice *s,
	const nn_real *input, uint32_t first, uint32_t n);
/* pooled -> active. */
void layer_activate(const struct layer *l, uint32_t first, uint32_t n);
/* Gradient by `active` -> through the ReLU; its sums into s->sums. */
void layer_slope_sums(
	const struct layer *l, struct slice *s, uint32_t first, uint32_t n);
/* -> gradients by `pooled`, the weights (added) and, if not NULL, the input. */
void layer_slope(const struct layer *l, struct slice *s, nn_real *gradient,
	const nn_real *input, nn_real *slope_input, uint32_t first, uint32_t n,
	uint32_t count);

#endif
