/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the network: its layers and the memory of a batch.
 * Private to nn*.c. Between two calls of team_run() the caller's thread owns
 * everything; within one, a slice owns its pictures and its own sums.
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

/* A convolution with what follows it. Pictures are rows of pixels of
 * channels. */
struct layer {
	uint32_t side, in, out; /* of the input; channels */
	uint32_t pool;		/* 1, or 2: maximum of 2 x 2 */
	uint32_t group;		/* pictures that are multiplied at once */
	nn_real *weight;	/* 9 * in rows of out */
	nn_real *scale, *shift; /* out each: of the normalisation */
	double *mean, *var;	/* out each: averages over batches */

	/* For a batch. */
	nn_real *pooled;	   /* what is normalised */
	uint8_t *from;		   /* which of the four it was */
	nn_real *active;	   /* normalised and rectified */
	nn_real *slope;		   /* of the loss by `active`, then `pooled` */
	nn_real *centre, *inverse; /* out each: mean, 1 / deviation */
	nn_real *slope_scale, *slope_shift; /* out each: by scale and shift */
};

/* The memory of one slice. */
struct slice {
	nn_real *columns;	/* the neighbourhoods of a group's pixels */
	nn_real *convolved;	/* a group's pixels, before the maximum */
	nn_real *gradient;	/* of all weights, of this slice alone */
	double *sums;		/* 2 * channels */
	nn_real *mean, *scores; /* of one picture: channels; classes */
	double loss;
	uint32_t correct;
};

struct nn {
	struct nn_config c;
	struct team *team;
	struct layer layer[NN_LAYERS];
	struct slice slice[NN_SLICES];
	uint32_t features;	 /* channels of the last layer */
	nn_real *linear, *bias;	 /* features rows of classes; classes */
	size_t weights, decayed; /* all; those before the first shift */
	nn_real *weight, *gradient, *velocity;

	/* For a call. */
	const nn_real *pictures;
	const int64_t *labels;
	uint32_t count;
	uint32_t at; /* the layer */
};

/* Pictures [*first, *first + n) of the call belong to slice i: returns n. */
uint32_t slice_pictures(const struct nn *nn, unsigned i, uint32_t *first);

/* The gradient of slice i of the weights that begin at `weight`. */
nn_real *slice_gradient(const struct nn *nn, unsigned i, const nn_real *weight);

/* Pixels and numbers of one picture after the layer. */
size_t layer_pixels(const struct layer *l);
size_t layer_numbers(const struct layer *l);

/* -- nn_layer.c: of one slice; `first` and `n` are its pictures -- */

/* input -> pooled; sums and squares of it into s->sums. */
void layer_convolve(const struct layer *l, struct slice *s,
	const nn_real *input, uint32_t first, uint32_t n);
/* pooled -> active. */
void layer_activate(const struct layer *l, uint32_t first, uint32_t n);
/* slope by `active` -> past the rectifier, and its sums into s->sums. */
void layer_slope_sums(
	const struct layer *l, struct slice *s, uint32_t first, uint32_t n);
/* ... -> by `pooled`, by the weights (added) and by the input (NULL: not). */
void layer_slope(const struct layer *l, struct slice *s, nn_real *gradient,
	const nn_real *input, nn_real *slope_input, uint32_t first, uint32_t n,
	uint32_t count);

#endif
