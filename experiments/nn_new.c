/* SPDX-License-Identifier: MIT */
/* Creates and frees a network: its shape, its memory and the initial weights.
 */
#include "nn_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* number of rows of a product; more rows are not faster */
#define GROUP_PIXELS 256
#define WIDTH_MAX 512
#define SIDE_MAX 512

/* Limits the threads of OpenBLAS. NULL if another BLAS library is linked. */
void openblas_set_num_threads(int n) __attribute__((weak));

/* -- Memory: zeroed by the allocation; a failure is stored in *rc -- */

static void *take(size_t n, size_t size, int *rc)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		*rc = -ENOMEM;
	return p;
}

static nn_real *take_reals(size_t n, int *rc)
{
	return take(n, sizeof(nn_real), rc);
}

static void layer_memory(struct layer *l, uint32_t batch, int *rc)
{
	size_t n = batch * layer_numbers(l);

	l->pooled = take_reals(n, rc);
	l->from = take(n, 1, rc);
	l->active = take_reals(n, rc);
	l->slope = take_reals(n, rc);
	l->centre = take_reals(l->out, rc);
	l->inverse = take_reals(l->out, rc);
	l->slope_scale = take_reals(l->out, rc);
	l->slope_shift = take_reals(l->out, rc);
	l->mean = take(l->out, sizeof(double), rc);
	l->var = take(l->out, sizeof(double), rc);
}

static void layer_release(struct layer *l)
{
	free(l->pooled);
	free(l->from);
	free(l->active);
	free(l->slope);
	free(l->centre);
	free(l->inverse);
	free(l->slope_scale);
	free(l->slope_shift);
	free(l->mean);
	free(l->var);
}

static void slice_memory(
	const struct nn *nn, struct slice *s, uint32_t out_max, int *rc)
{
	size_t columns = 2 * (size_t)out_max, convolved = 0;

	for (unsigned i = 0; i < NN_LAYERS; i++) {
		const struct layer *l = &nn->layer[i];
		size_t pixels = (size_t)l->group * l->side * l->side;

		if (pixels * 9 * l->in > columns)
			columns = pixels * 9 * l->in;
		if (pixels * l->out > convolved)
			convolved = pixels * l->out;
	}
	s->columns = take_reals(columns, rc);
	s->convolved = take_reals(convolved, rc);
	s->gradient = take_reals(nn->weights, rc);
	s->sums = take(2 * (size_t)out_max, sizeof(double), rc);
	s->mean = take_reals(nn->features, rc);
	s->scores = take_reals(nn->c.classes, rc);
}

static void slice_release(struct slice *s)
{
	free(s->columns);
	free(s->convolved);
	free(s->gradient);
	free(s->sums);
	free(s->mean);
	free(s->scores);
}

/* -- Shape -- */

static void shape(struct nn *nn)
{
	static const uint8_t pool[NN_LAYERS] = {2, 2, 2, 1};
	uint32_t side = nn->c.side, in = nn->c.channels, out = nn->c.width;

	for (unsigned i = 0; i < NN_LAYERS; i++) {
		struct layer *l = &nn->layer[i];
		uint32_t pixels = side * side;

		*l = (struct layer){.side = side, .in = in, .out = out};
		l->pool = pool[i];
		l->group = 1 + (GROUP_PIXELS - 1) / pixels;
		side /= l->pool;
		in = out;
		if (i + 2 < NN_LAYERS)
			out *= 2;
	}
	nn->features = in;
}

/* Count the weights. Those that decay come first, then scales, shifts and the
 * bias. */
static void count_weights(struct nn *nn)
{
	for (unsigned i = 0; i < NN_LAYERS; i++)
		nn->weights += (size_t)9 * nn->layer[i].in * nn->layer[i].out;
	nn->weights += (size_t)nn->features * nn->c.classes;
	nn->decayed = nn->weights;
	for (unsigned i = 0; i < NN_LAYERS; i++)
		nn->weights += (size_t)2 * nn->layer[i].out;
	nn->weights += nn->c.classes;
}

static void place_weights(struct nn *nn)
{
	nn_real *w = nn->weight;

	for (unsigned i = 0; i < NN_LAYERS; i++) {
		nn->layer[i].weight = w;
		w += (size_t)9 * nn->layer[i].in * nn->layer[i].out;
	}
	nn->linear = w;
	w = nn->weight + nn->decayed;
	for (unsigned i = 0; i < NN_LAYERS; i++) {
		nn->layer[i].scale = w;
		nn->layer[i].shift = w + nn->layer[i].out;
		w += (size_t)2 * nn->layer[i].out;
	}
	nn->bias = w;
}

/* -- Initial weights -- */

/* Returns a uniform random number: the last step of SplitMix64 (Steele et al.,
 * 2014), applied to a counter. */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

/* Set weights to normally distributed numbers (Box and Muller), for `fan`
 * inputs. */
static void fill_normal(nn_real *w, size_t n, uint32_t fan, uint64_t *state)
{
	double deviation = sqrt(2.0 / fan);

	for (size_t i = 0; i < n; i++) {
		double radius = sqrt(-2 * log(uniform(state)));
		double angle = 2 * acos(-1.0) * uniform(state);

		w[i] = (nn_real)(deviation * radius * cos(angle));
	}
}

static void first_weights(struct nn *nn)
{
	uint64_t state = nn->c.seed;

	for (unsigned i = 0; i < NN_LAYERS; i++) {
		struct layer *l = &nn->layer[i];

		fill_normal(l->weight, (size_t)9 * l->in * l->out, 9 * l->in,
			&state);
		for (uint32_t c = 0; c < l->out; c++) {
			l->scale[c] = 1;
			l->var[c] = 1;
		}
	}
	fill_normal(nn->linear, (size_t)nn->features * nn->c.classes,
		nn->features, &state);
}

/* -- The network -- */

static int nn_memory(struct nn *nn)
{
	int rc = 0;

	nn->weight = take_reals(nn->weights, &rc);
	nn->gradient = take_reals(nn->weights, &rc);
	nn->velocity = take_reals(nn->weights, &rc);
	for (unsigned i = 0; i < NN_LAYERS; i++)
		layer_memory(&nn->layer[i], nn->c.batch_max, &rc);
	for (unsigned i = 0; i < NN_SLICES; i++)
		slice_memory(nn, &nn->slice[i], nn->features, &rc);
	return rc;
}

int nn_new(struct nn **out, const struct nn_config *config)
{
	struct nn *nn;
	int rc;

	*out = NULL;
	if (config->side < 8 || config->side % 8 || config->side > SIDE_MAX ||
		!config->channels || config->channels > WIDTH_MAX ||
		config->classes < 2 || !config->width ||
		config->width > WIDTH_MAX || !config->batch_max ||
		config->threads > NN_THREADS_MAX)
		return -EINVAL;
	nn = calloc(1, sizeof(*nn));
	if (!nn)
		return -ENOMEM;
	nn->c = *config;
	shape(nn);
	count_weights(nn);
	rc = nn_memory(nn);
	if (rc == 0)
		rc = team_new(&nn->team, config->threads ? config->threads : 1);
	if (rc < 0) {
		nn_free(nn);
		return rc;
	}
	place_weights(nn);
	first_weights(nn);
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
	*out = nn;
	return 0;
}

void nn_free(struct nn *nn)
{
	if (!nn)
		return;
	team_free(nn->team);
	for (unsigned i = 0; i < NN_LAYERS; i++)
		layer_release(&nn->layer[i]);
	for (unsigned i = 0; i < NN_SLICES; i++)
		slice_release(&nn->slice[i]);
	free(nn->weight);
	free(nn->gradient);
	free(nn->velocity);
	free(nn);
}
