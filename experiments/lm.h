/* SPDX-License-Identifier: MIT */
/*
 * A small text model for the experiments. It predicts each byte from the
 * LM_CONTEXT bytes before it, with a table of vectors, one hidden layer (tanh)
 * and cross entropy. It is trained by stochastic gradient descent with
 * momentum. An example is LM_CONTEXT bytes followed by the LM_TARGETS bytes to
 * predict. One thread; BLAS multiplies the matrices.
 */
#ifndef EXPERIMENTS_LM_H
#define EXPERIMENTS_LM_H

#include <stddef.h>
#include <stdint.h>

#include "nn.h" /* nn_real */

#define LM_CONTEXT 8
#define LM_TARGETS 32
#define LM_BYTES (LM_CONTEXT + LM_TARGETS) /* size of an example */
#define LM_SYMBOLS 128 /* higher bytes are treated as the last symbol */

struct lm;

/* Allocate a model. Returns NULL if memory is short. `hidden` is the width of
 * the hidden layer. */
struct lm *lm_new(uint32_t hidden, uint32_t batch_max, uint64_t seed);
void lm_free(struct lm *m);

/* Returns the mean of -log(probability) over all predicted bytes of `count`
 * examples, in nats. lm_gradient() also computes the gradients, which
 * lm_gradients() returns. */
double lm_loss(struct lm *m, const uint8_t *examples, uint32_t count);
double lm_gradient(struct lm *m, const uint8_t *examples, uint32_t count);

/* Change the weights by the gradients that lm_gradient() has computed. */
void lm_update(struct lm *m, double rate, double momentum, double decay);

/* Access to all weights, one after the other, and to their gradients. */
size_t lm_weight_count(const struct lm *m);
nn_real *lm_weights(struct lm *m);
const nn_real *lm_gradients(const struct lm *m);

#endif
