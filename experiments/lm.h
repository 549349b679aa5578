/* SPDX-License-Identifier: MIT */
/*
 * A small model of text, for the experiments: the next byte from those before
 * it, by a table of vectors, one hidden layer (tanh) and cross entropy, with
 * stochastic gradient descent with momentum. An example is a line of
 * LM_CONTEXT bytes and LM_TARGETS more, each of which is to be foretold from
 * the LM_CONTEXT before it. One thread; products of matrices by BLAS.
 */
#ifndef EXPERIMENTS_LM_H
#define EXPERIMENTS_LM_H

#include <stddef.h>
#include <stdint.h>

#include "../examples/nn.h" /* nn_real */

#define LM_CONTEXT 8
#define LM_TARGETS 32
#define LM_BYTES (LM_CONTEXT + LM_TARGETS) /* of an example */
#define LM_SYMBOLS 128 /* bytes above count as the last of them */

struct lm;

/* NULL if there is no memory. `hidden` is the width of the hidden layer. */
struct lm *lm_new(uint32_t hidden, uint32_t batch_max, uint64_t seed);
void lm_free(struct lm *m);

/*
 * The mean of -log(probability) over all bytes that are foretold in `count`
 * examples, in nats. lm_gradient() also leaves how it changes with each weight
 * in lm_gradients().
 */
double lm_loss(struct lm *m, const uint8_t *examples, uint32_t count);
double lm_gradient(struct lm *m, const uint8_t *examples, uint32_t count);

/* Change the weights by the gradients of the last lm_gradient(). */
void lm_update(struct lm *m, double rate, double momentum, double decay);

/* All weights, one after the other, and their gradients. */
size_t lm_weight_count(const struct lm *m);
nn_real *lm_weights(struct lm *m);
const nn_real *lm_gradients(const struct lm *m);

#endif
