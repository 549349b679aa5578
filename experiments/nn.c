/* SPDX-License-Identifier: MIT */
/* Runs each layer of the network as a loop over slices of the batch. Between
 * two loops, the caller's thread does the work that needs the whole batch, such
 * as the statistics of a normalisation. */
#include "nn_impl.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define EPSILON 1e-5 /* added to variances, so that none is 0 */
/* weight of the old value in the moving averages over batches */
#define MEMORY 0.9

uint32_t slice_pictures(const struct nn *nn, unsigned i, uint32_t *first)
{
	uint32_t end = (uint32_t)((uint64_t)nn->count * (i + 1) / NN_SLICES);

	*first = (uint32_t)((uint64_t)nn->count * i / NN_SLICES);
	return end - *first;
}

nn_real *slice_gradient(const struct nn *nn, unsigned i, const nn_real *weight)
{
	return nn->slice[i].gradient + (weight - nn->weight);
}

/* -- Forward -- */

static void convolve_slice(void *arg, unsigned i)
{
	struct nn *nn = arg;
	struct layer *l = &nn->layer[nn->at];
	const nn_real *input = nn->pictures;
	uint32_t first, n = slice_pictures(nn, i, &first);

	if (nn->at > 0) {
		layer_activate(l - 1, first, n);
		input = l[-1].active;
	}
	layer_convolve(l, &nn->slice[i], input, first, n);
}

static void sum_slices(struct nn *nn, uint32_t channels)
{
	double *sums = nn->slice[0].sums;

	for (unsigned i = 1; i < NN_SLICES; i++)
		for (uint32_t c = 0; c < 2 * channels; c++)
			sums[c] += nn->slice[i].sums[c];
}

/* Compute the mean and deviation of a batch, and update the moving averages. */
static void take_statistics(struct nn *nn, struct layer *l)
{
	const double *sums = nn->slice[0].sums;
	double all = (double)nn->count * (double)layer_pixels(l);

	sum_slices(nn, l->out);
	for (uint32_t c = 0; c < l->out; c++) {
		double mean = sums[c] / all;
		double var = sums[l->out + c] / all - mean * mean;

		if (var < 0)
			var = 0;
		l->centre[c] = (nn_real)mean;
		l->inverse[c] = (nn_real)(1 / sqrt(var + EPSILON));
		l->mean[c] += (1 - MEMORY) * (mean - l->mean[c]);
		l->var[c] += (1 - MEMORY) * (var - l->var[c]);
	}
}

static void recall_statistics(struct layer *l)
{
	for (uint32_t c = 0; c < l->out; c++) {
		l->centre[c] = (nn_real)l->mean[c];
		l->inverse[c] = (nn_real)(1 / sqrt(l->var[c] + EPSILON));
	}
}

/* Compute the mean over the last layer's image, and the scores of the classes.
 */
static void score_picture(const struct nn *nn, struct slice *s, uint32_t p)
{
	const struct layer *l = &nn->layer[NN_LAYERS - 1];
	const nn_real *active = l->active + p * layer_numbers(l);
	size_t pixels = layer_pixels(l);
	uint32_t classes = nn->c.classes;

	memset(s->mean, 0, nn->features * sizeof(*s->mean));
	for (size_t i = 0; i < pixels; i++, active += l->out)
		for (uint32_t c = 0; c < l->out; c++)
			s->mean[c] += active[c] / (nn_real)pixels;
	memcpy(s->scores, nn->bias, classes * sizeof(*s->scores));
	for (uint32_t f = 0; f < nn->features; f++)
		for (uint32_t c = 0; c < classes; c++)
			s->scores[c] +=
				s->mean[f] * nn->linear[f * classes + c];
}

/* Turn scores into probabilities, and add the loss of the label. */
static void count_picture(const struct nn *nn, struct slice *s, int64_t label)
{
	uint32_t best = 0;
	double sum = 0, most;

	for (uint32_t c = 1; c < nn->c.classes; c++)
		if (s->scores[c] > s->scores[best])
			best = c;
	most = (double)s->scores[best];
	s->correct += (int64_t)best == label;
	for (uint32_t c = 0; c < nn->c.classes; c++)
		sum += exp((double)s->scores[c] - most);
	/* cppcheck-suppress invalidFunctionArg; two classes or more */
	s->loss += log(sum) + most - (double)s->scores[label];
	for (uint32_t c = 0; c < nn->c.classes; c++)
		s->scores[c] =
			(nn_real)(exp((double)s->scores[c] - most) / sum);
}

static void begin_scores(struct nn *nn, unsigned i)
{
	struct layer *last = &nn->layer[NN_LAYERS - 1];
	uint32_t first, n = slice_pictures(nn, i, &first);

	layer_activate(last, first, n);
	nn->slice[i].loss = 0;
	nn->slice[i].correct = 0;
}

static void score_slice(void *arg, unsigned i)
{
	struct nn *nn = arg;
	uint32_t first, n = slice_pictures(nn, i, &first);

	begin_scores(nn, i);
	for (uint32_t p = first; p < first + n; p++) {
		score_picture(nn, &nn->slice[i], p);
		count_picture(nn, &nn->slice[i], nn->labels[p]);
	}
}

/* -- Backward -- */

static void slope_picture(const struct nn *nn, unsigned i, uint32_t p)
{
	const struct layer *l = &nn->layer[NN_LAYERS - 1];
	const struct slice *s = &nn->slice[i];
	nn_real *linear = slice_gradient(nn, i, nn->linear);
	nn_real *bias = slice_gradient(nn, i, nn->bias);
	nn_real *slope = l->slope + p * layer_numbers(l);
	nn_real one = 1 / (nn_real)nn->count, *d = s->scores;
	uint32_t classes = nn->c.classes;
	size_t pixels = layer_pixels(l);

	d[nn->labels[p]] -= 1;
	for (uint32_t c = 0; c < classes; c++) {
		d[c] *= one;
		bias[c] += d[c];
	}
	for (uint32_t f = 0; f < nn->features; f++) {
		nn_real sum = 0;

		for (uint32_t c = 0; c < classes; c++) {
			linear[f * classes + c] += s->mean[f] * d[c];
			sum += nn->linear[f * classes + c] * d[c];
		}
		slope[f] = sum / (nn_real)pixels;
	}
	for (size_t i2 = 1; i2 < pixels; i2++)
		memcpy(slope + i2 * l->out, slope, l->out * sizeof(*slope));
}

static void score_and_slope_slice(void *arg, unsigned i)
{
	struct nn *nn = arg;
	uint32_t first, n = slice_pictures(nn, i, &first);

	memset(nn->slice[i].gradient, 0, nn->weights * sizeof(nn_real));
	begin_scores(nn, i);
	for (uint32_t p = first; p < first + n; p++) {
		score_picture(nn, &nn->slice[i], p);
		count_picture(nn, &nn->slice[i], nn->labels[p]);
		slope_picture(nn, i, p);
	}
	layer_slope_sums(&nn->layer[NN_LAYERS - 1], &nn->slice[i], first, n);
}

/* Compute the gradients of scale and shift from the sums of d and d * x. */
static void take_slopes(struct nn *nn, struct layer *l)
{
	const double *sums = nn->slice[0].sums;

	sum_slices(nn, l->out);
	for (uint32_t c = 0; c < l->out; c++) {
		double by_x = sums[l->out + c] - sums[c] * (double)l->centre[c];

		l->slope_shift[c] = (nn_real)sums[c];
		l->slope_scale[c] = (nn_real)(by_x * (double)l->inverse[c]);
	}
}

static void slope_slice(void *arg, unsigned i)
{
	struct nn *nn = arg;
	struct layer *l = &nn->layer[nn->at];
	uint32_t first, n = slice_pictures(nn, i, &first);
	struct slice *s = &nn->slice[i];

	layer_slope(l, s, slice_gradient(nn, i, l->weight),
		nn->at > 0 ? l[-1].active : nn->pictures,
		nn->at > 0 ? l[-1].slope : NULL, first, n, nn->count);
	if (nn->at > 0)
		layer_slope_sums(l - 1, s, first, n);
}

/* Add up the gradients of all slices for part i of the weights. */
static void gather_slice(void *arg, unsigned i)
{
	struct nn *nn = arg;
	size_t begin = nn->weights * i / NN_SLICES;
	size_t end = nn->weights * (i + 1) / NN_SLICES;

	memset(nn->gradient + begin, 0, (end - begin) * sizeof(nn_real));
	for (unsigned k = 0; k < NN_SLICES; k++)
		for (size_t w = begin; w < end; w++)
			nn->gradient[w] += nn->slice[k].gradient[w];
}

static void gather(struct nn *nn)
{
	team_run(nn->team, gather_slice, nn, NN_SLICES);
	for (unsigned i = 0; i < NN_LAYERS; i++) {
		const struct layer *l = &nn->layer[i];
		size_t bytes = l->out * sizeof(nn_real);

		memcpy(nn->gradient + (l->scale - nn->weight), l->slope_scale,
			bytes);
		memcpy(nn->gradient + (l->shift - nn->weight), l->slope_shift,
			bytes);
	}
}

/* -- Calls -- */

static void begin(struct nn *nn, const nn_real *pictures, const int64_t *labels,
	uint32_t count)
{
	nn->pictures = pictures;
	nn->labels = labels;
	nn->count = count;
}

static double mean_loss(const struct nn *nn)
{
	double sum = 0;

	for (unsigned i = 0; i < NN_SLICES; i++)
		sum += nn->slice[i].loss;
	return sum / nn->count;
}

static void forwards(struct nn *nn, bool training)
{
	for (nn->at = 0; nn->at < NN_LAYERS; nn->at++) {
		team_run(nn->team, convolve_slice, nn, NN_SLICES);
		if (training)
			take_statistics(nn, &nn->layer[nn->at]);
		else
			recall_statistics(&nn->layer[nn->at]);
	}
}

double nn_loss(struct nn *nn, const nn_real *pictures, const int64_t *labels,
	uint32_t count)
{
	begin(nn, pictures, labels, count);
	forwards(nn, true);
	team_run(nn->team, score_slice, nn, NN_SLICES);
	return mean_loss(nn);
}

double nn_gradient(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count)
{
	begin(nn, pictures, labels, count);
	forwards(nn, true);
	team_run(nn->team, score_and_slope_slice, nn, NN_SLICES);
	for (nn->at = NN_LAYERS; nn->at-- > 0;) {
		take_slopes(nn, &nn->layer[nn->at]);
		team_run(nn->team, slope_slice, nn, NN_SLICES);
	}
	gather(nn);
	return mean_loss(nn);
}

uint32_t nn_correct(struct nn *nn, const nn_real *pictures,
	const int64_t *labels, uint32_t count)
{
	uint32_t sum = 0;

	begin(nn, pictures, labels, count);
	forwards(nn, false);
	team_run(nn->team, score_slice, nn, NN_SLICES);
	for (unsigned i = 0; i < NN_SLICES; i++)
		sum += nn->slice[i].correct;
	return sum;
}

void nn_update(struct nn *nn, double rate, double momentum, double decay)
{
	nn_real r = (nn_real)rate, m = (nn_real)momentum;

	for (size_t i = 0; i < nn->weights; i++) {
		nn_real d = i < nn->decayed ? (nn_real)decay : 0;

		nn->velocity[i] = m * nn->velocity[i] + nn->gradient[i] +
			d * nn->weight[i];
		nn->weight[i] -= r * nn->velocity[i];
	}
}

size_t nn_weight_count(const struct nn *nn)
{
	return nn->weights;
}

nn_real *nn_weights(struct nn *nn)
{
	return nn->weight;
}

const nn_real *nn_gradients(const struct nn *nn)
{
	return nn->gradient;
}
