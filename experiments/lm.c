/* SPDX-License-Identifier: MIT */
/* The text model; see lm.h. A row of a matrix belongs to one predicted byte. */
#include "lm.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef NN_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

#define VECTOR 16 /* length of the vector for a byte of the context */
#define INPUT (LM_CONTEXT * VECTOR)

struct lm {
	uint32_t hidden, batch_max;
	size_t weights;
	nn_real *weight, *gradient, *velocity;

	/* Where each matrix begins in `weight` and in `gradient`. */
	size_t table;	 /* LM_SYMBOLS rows with VECTOR columns */
	size_t first;	 /* INPUT rows with `hidden` columns */
	size_t bias;	 /* `hidden` numbers */
	size_t second;	 /* `hidden` rows with LM_SYMBOLS columns */
	size_t constant; /* LM_SYMBOLS numbers */

	/* Values of a batch, with a row for each predicted byte. */
	nn_real *input, *active, *scores;
	nn_real *slope_input, *slope_active;
};

/* Returns a random number from -1 to 1, by SplitMix64 (Steele et al., 2014). */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) * 0x1p-52 - 1;
}

/* Set weights to uniformly distributed numbers with a deviation of 1 /
 * sqrt(fan). */
static void fill(nn_real *w, size_t n, double fan, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		w[i] = (nn_real)(sqrt(3 / fan) * uniform(state));
}

static void place_weights(struct lm *m)
{
	m->table = 0;
	m->first = m->table + (size_t)LM_SYMBOLS * VECTOR;
	m->bias = m->first + (size_t)INPUT * m->hidden;
	m->second = m->bias + m->hidden;
	m->constant = m->second + (size_t)m->hidden * LM_SYMBOLS;
	m->weights = m->constant + LM_SYMBOLS;
}

struct lm *lm_new(uint32_t hidden, uint32_t batch_max, uint64_t seed)
{
	size_t rows = (size_t)batch_max * LM_TARGETS;
	struct lm *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->hidden = hidden;
	m->batch_max = batch_max;
	place_weights(m);
	m->weight = calloc(m->weights, sizeof(nn_real));
	m->gradient = calloc(m->weights, sizeof(nn_real));
	m->velocity = calloc(m->weights, sizeof(nn_real));
	m->input = calloc(rows * INPUT, sizeof(nn_real));
	m->slope_input = calloc(rows * INPUT, sizeof(nn_real));
	m->active = calloc(rows * hidden, sizeof(nn_real));
	m->slope_active = calloc(rows * hidden, sizeof(nn_real));
	m->scores = calloc(rows * LM_SYMBOLS, sizeof(nn_real));
	if (!m->weight || !m->gradient || !m->velocity || !m->input ||
		!m->slope_input || !m->active || !m->slope_active ||
		!m->scores) {
		lm_free(m);
		return NULL;
	}
	fill(m->weight + m->table, (size_t)LM_SYMBOLS * VECTOR, 4, &seed);
	fill(m->weight + m->first, (size_t)INPUT * hidden, INPUT, &seed);
	fill(m->weight + m->second, (size_t)hidden * LM_SYMBOLS, hidden, &seed);
	return m;
}

void lm_free(struct lm *m)
{
	if (!m)
		return;
	free(m->weight);
	free(m->gradient);
	free(m->velocity);
	free(m->input);
	free(m->slope_input);
	free(m->active);
	free(m->slope_active);
	free(m->scores);
	free(m);
}

/* -- Forward -- */

static size_t symbol(uint8_t byte)
{
	return byte < LM_SYMBOLS ? byte : LM_SYMBOLS - 1;
}

static void look_up(struct lm *m, const uint8_t *examples, uint32_t count)
{
	const nn_real *table = m->weight + m->table;
	nn_real *to = m->input;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t t = 0; t < LM_TARGETS; t++)
			for (uint32_t c = 0; c < LM_CONTEXT; c++) {
				uint8_t byte = examples[i * LM_BYTES + t + c];

				memcpy(to, table + symbol(byte) * VECTOR,
					VECTOR * sizeof(*to));
				to += VECTOR;
			}
}

/* Compute y = x w + b for `rows` rows. */
static void affine(const nn_real *x, const nn_real *w, const nn_real *b,
	nn_real *y, size_t rows, uint32_t in, uint32_t out)
{
	for (size_t r = 0; r < rows; r++)
		memcpy(y + r * out, b, out * sizeof(*y));
	GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)out,
		(int)in, 1, x, (int)in, w, (int)out, 1, y, (int)out);
}

/* Turn the scores of a row into probabilities. Returns -log of the probability
 * of the byte `right`. */
static double count_row(nn_real *scores, size_t right)
{
	double most = (double)scores[0], sum = 0, loss;

	for (size_t c = 1; c < LM_SYMBOLS; c++)
		if ((double)scores[c] > most)
			most = (double)scores[c];
	for (size_t c = 0; c < LM_SYMBOLS; c++)
		sum += exp((double)scores[c] - most);
	loss = log(sum) + most - (double)scores[right];
	for (size_t c = 0; c < LM_SYMBOLS; c++)
		scores[c] = (nn_real)(exp((double)scores[c] - most) / sum);
	return loss;
}

static size_t right_of(const uint8_t *examples, size_t row)
{
	size_t i = row / LM_TARGETS, t = row % LM_TARGETS;

	return symbol(examples[i * LM_BYTES + LM_CONTEXT + t]);
}

double lm_loss(struct lm *m, const uint8_t *examples, uint32_t count)
{
	const nn_real *w = m->weight;
	size_t rows = (size_t)count * LM_TARGETS;
	double loss = 0;

	look_up(m, examples, count);
	affine(m->input, w + m->first, w + m->bias, m->active, rows, INPUT,
		m->hidden);
	for (size_t i = 0; i < rows * m->hidden; i++)
		m->active[i] = (nn_real)tanh((double)m->active[i]);
	affine(m->active, w + m->second, w + m->constant, m->scores, rows,
		m->hidden, LM_SYMBOLS);
	for (size_t r = 0; r < rows; r++)
		loss += count_row(
			m->scores + r * LM_SYMBOLS, right_of(examples, r));
	return loss / (double)rows;
}

/* -- Backward -- */

/* Compute the gradients of w, b and x from the gradient d of y = x w + b. */
static void slope_affine(const struct lm *m, const nn_real *x, const nn_real *d,
	size_t w, size_t b, nn_real *slope_x, size_t rows, uint32_t in,
	uint32_t out)
{
	nn_real *bias = m->gradient + b;

	GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)in, (int)out,
		(int)rows, 1, x, (int)in, d, (int)out, 0, m->gradient + w,
		(int)out);
	memset(bias, 0, out * sizeof(*bias));
	for (size_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < out; c++)
			bias[c] += d[r * out + c];
	GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)in,
		(int)out, 1, d, (int)out, m->weight + w, (int)out, 0, slope_x,
		(int)in);
}

static void slope_table(
	const struct lm *m, const uint8_t *examples, uint32_t count)
{
	nn_real *table = m->gradient + m->table;
	const nn_real *d = m->slope_input;

	memset(table, 0, LM_SYMBOLS * VECTOR * sizeof(*table));
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t t = 0; t < LM_TARGETS; t++)
			for (uint32_t c = 0; c < LM_CONTEXT; c++) {
				uint8_t byte = examples[i * LM_BYTES + t + c];
				nn_real *to = table + symbol(byte) * VECTOR;

				for (uint32_t v = 0; v < VECTOR; v++)
					to[v] += *d++;
			}
}

double lm_gradient(struct lm *m, const uint8_t *examples, uint32_t count)
{
	size_t rows = (size_t)count * LM_TARGETS;
	double loss = lm_loss(m, examples, count);

	for (size_t r = 0; r < rows; r++)
		m->scores[r * LM_SYMBOLS + right_of(examples, r)] -= 1;
	for (size_t i = 0; i < rows * LM_SYMBOLS; i++)
		m->scores[i] /= (nn_real)rows;
	slope_affine(m, m->active, m->scores, m->second, m->constant,
		m->slope_active, rows, m->hidden, LM_SYMBOLS);
	for (size_t i = 0; i < rows * m->hidden; i++)
		m->slope_active[i] *= 1 - m->active[i] * m->active[i];
	slope_affine(m, m->input, m->slope_active, m->first, m->bias,
		m->slope_input, rows, INPUT, m->hidden);
	slope_table(m, examples, count);
	return loss;
}

void lm_update(struct lm *m, double rate, double momentum, double decay)
{
	for (size_t i = 0; i < m->weights; i++) {
		m->velocity[i] = (nn_real)momentum * m->velocity[i] +
			m->gradient[i] + (nn_real)decay * m->weight[i];
		m->weight[i] -= (nn_real)rate * m->velocity[i];
	}
}

size_t lm_weight_count(const struct lm *m)
{
	return m->weights;
}

nn_real *lm_weights(struct lm *m)
{
	return m->weight;
}

const nn_real *lm_gradients(const struct lm *m)
{
	return m->gradient;
}
