/* SPDX-License-Identifier: MIT */
/* Trains and scores a model of images or of text by the same functions; see
 * model.h. */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn.h"
#include "lm.h"

#define TIMEOUT_MS 60000

struct model {
	const struct train_options *o;
	struct nn *nn; /* the model of images, or NULL */
	struct lm *lm; /* the model of text, or NULL */
};

static int new_nn(struct model *m, uint64_t classes)
{
	struct nn_config c = {
		.side = m->o->config.height,
		.channels = 3,
		.classes = (uint32_t)classes,
		.width = m->o->width,
		.batch_max = m->o->config.batch,
		.threads = 1,
		.seed = m->o->config.seed,
	};

	return nn_new(&m->nn, &c);
}

int model_new(
	struct model **out, const struct train_options *o, uint64_t classes)
{
	struct model *m = calloc(1, sizeof(*m));
	int rc;

	*out = m;
	if (!m)
		return -ENOMEM;
	m->o = o;
	if (!o->text)
		return new_nn(m, classes);
	m->lm = lm_new(o->width, o->config.batch, o->config.seed);
	rc = m->lm ? 0 : -ENOMEM;
	return rc;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	nn_free(m->nn);
	lm_free(m->lm);
	free(m);
}

double model_step(struct model *m, const struct refrain_batch *b, double rate)
{
	const struct train_options *o = m->o;
	double loss;

	if (o->text) {
		loss = lm_gradient(m->lm, b->data, b->count);
		lm_update(m->lm, rate, o->momentum, o->decay);
		return loss;
	}
	loss = nn_gradient(m->nn, b->data, b->labels, b->count);
	nn_update(m->nn, rate, o->momentum, o->decay);
	return loss;
}

/* -- Held-out examples -- */

static int take_batch(struct held_out *h, const struct refrain_batch *b)
{
	uint64_t count = h->count + b->count;
	char *data = realloc(h->data, count * b->sample_bytes);
	int64_t *labels;

	if (!data)
		return -ENOMEM;
	h->data = data;
	labels = realloc(h->labels, count * sizeof(*labels));
	if (!labels)
		return -ENOMEM;
	h->labels = labels;
	memcpy(data + h->count * b->sample_bytes, b->data, b->data_bytes);
	memcpy(labels + h->count, b->labels, b->count * sizeof(*labels));
	h->sample_bytes = b->sample_bytes;
	h->count = count;
	return 0;
}

int held_out_read(
	struct held_out *h, const struct train_options *o, const char *path)
{
	struct refrain_config c;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	int rc;

	*h = (struct held_out){0};
	score_config(o, path, &c);
	rc = refrain_open(&l, &c);
	while (rc >= 0 && (rc = refrain_next(l, &b, TIMEOUT_MS)) > 0) {
		rc = take_batch(h, b);
		refrain_release(b);
	}
	if (rc < 0)
		fprintf(stderr, "echo-train: %s: %s\n", path,
			refrain_message(l));
	refrain_close(l);
	return rc;
}

void held_out_release(struct held_out *h)
{
	free(h->data);
	free(h->labels);
}

double model_score(struct model *m, const struct held_out *h,
	const struct train_options *o)
{
	double sum = 0;

	for (uint64_t at = 0; at < h->count; at += o->config.batch) {
		const void *data = h->data + at * h->sample_bytes;
		uint64_t left = h->count - at;
		uint32_t n = left < o->config.batch ? (uint32_t)left
						    : o->config.batch;

		if (o->text)
			sum += n * lm_loss(m->lm, data, n);
		else
			sum += nn_correct(m->nn, data, h->labels + at, n);
	}
	return sum / (double)h->count;
}

bool model_reaches(const struct train_options *o, double score)
{
	if (o->target <= 0 || score <= 0)
		return false;
	return o->text ? score <= o->target : score >= o->target;
}
