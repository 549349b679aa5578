/* SPDX-License-Identifier: MIT */
/*
 * Trains a classifier of one hidden layer on the JPEGs of DATASET, which has a
 * directory for each class in train and in test:
 *
 *	train DATASET [ECHO [EPOCHS]]
 *
 * ECHO is how often each image is served once it is decoded. An epoch decodes
 * each image once, so ECHO 2 with half of the epochs trains as many steps with
 * half of the reads and decodes. After each epoch a line shows the accuracy on
 * the test images, and how many images were decoded and served.
 *
 * Build it against the installed library:
 *	cc -O3 train.c -o train $(pkg-config --cflags --libs refrain) -lm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <refrain/loader.h>

#define SIDE 16
#define INPUTS (3 * SIDE * SIDE)
#define HIDDEN 32
#define CLASSES_MAX 100
#define RATE 0.02F
#define STEP_TIMEOUT_MS 60000

struct net {
	float in[HIDDEN][INPUTS], out[CLASSES_MAX][HIDDEN];
	float hidden[HIDDEN], score[CLASSES_MAX];
};

static struct net net;
static size_t classes;

static void net_init(void)
{
	srand(1);
	for (size_t h = 0; h < HIDDEN; h++)
		for (size_t i = 0; i < INPUTS; i++)
			net.in[h][i] =
				((float)rand() / (float)RAND_MAX - 0.5F) /
				sqrtf(INPUTS);
	for (size_t c = 0; c < classes; c++)
		for (size_t h = 0; h < HIDDEN; h++)
			net.out[c][h] = (float)rand() / (float)RAND_MAX - 0.5F;
}

/* Returns the class that x (INPUTS values) most probably has. */
static size_t forward(const float *x)
{
	size_t best = 0;

	for (size_t h = 0; h < HIDDEN; h++) {
		float sum = 0;

		for (size_t i = 0; i < INPUTS; i++)
			sum += net.in[h][i] * x[i];
		net.hidden[h] = sum > 0 ? sum : 0;
	}
	for (size_t c = 0; c < classes; c++) {
		net.score[c] = 0;
		for (size_t h = 0; h < HIDDEN; h++)
			net.score[c] += net.out[c][h] * net.hidden[h];
		if (net.score[c] > net.score[best])
			best = c;
	}
	return best;
}

/* Change the weights by one step of gradient descent on the cross entropy of
 * one image. */
static void learn(const float *x, size_t label)
{
	float top = net.score[forward(x)], sum = 0, back[HIDDEN] = {0};

	for (size_t c = 0; c < classes; c++)
		sum += net.score[c] = expf(net.score[c] - top);
	for (size_t c = 0; c < classes; c++) {
		float error = net.score[c] / sum - (c == label ? 1 : 0);

		for (size_t h = 0; h < HIDDEN; h++) {
			back[h] += error * net.out[c][h];
			net.out[c][h] -= RATE * error * net.hidden[h];
		}
	}
	for (size_t h = 0; h < HIDDEN; h++)
		for (size_t i = 0; net.hidden[h] > 0 && i < INPUTS; i++)
			net.in[h][i] -= RATE * back[h] * x[i];
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "train: %s: %s\n", what, why);
	return -1;
}

static struct refrain_loader *open_folder(const char *top, const char *folder,
	double echo, uint64_t epochs, int augment)
{
	char path[4096];
	struct refrain_config c;
	struct refrain_loader *l;

	snprintf(path, sizeof(path), "%s/%s", top, folder);
	refrain_config_init(&c);
	c.dataset = path;
	c.batch = 32;
	c.height = c.width = SIDE;
	c.type = REFRAIN_F32;
	c.echo = echo;
	c.epochs = epochs;
	c.augment = augment;
	/* a smaller crop of such small images shows too little */
	c.area_min = 0.6F;
	if (refrain_open(&l, &c) < 0)
		return (void)fail(path, refrain_message(NULL)), NULL;
	return l;
}

/* Returns the fraction of test images that are classified correctly; -1 on an
 * error. */
static double test(const char *top)
{
	struct refrain_loader *l =
		open_folder(top, "test", 1, 1, REFRAIN_AUGMENT_EVAL);
	const struct refrain_batch *b;
	double right = 0, all = 0;
	int rc;

	if (!l)
		return -1;
	while ((rc = refrain_next(l, &b, STEP_TIMEOUT_MS)) > 0) {
		const float *x = b->data;

		for (size_t i = 0; i < b->count; i++, all++)
			right +=
				forward(x + i * INPUTS) == (size_t)b->labels[i];
		refrain_release(b);
	}
	if (rc < 0)
		fail("test images", refrain_message(l));
	refrain_close(l);
	return rc < 0 ? -1 : right / all;
}

static void report(
	uint64_t epoch, const char *top, uint64_t fresh, uint64_t served)
{
	printf("%5llu  %8.3f  %7llu  %6llu\n", (unsigned long long)epoch,
		test(top), (unsigned long long)fresh,
		(unsigned long long)served);
}

int main(int argc, char **argv)
{
	double echo = argc > 2 ? atof(argv[2]) : 1;
	uint64_t epochs = argc > 3 ? strtoul(argv[3], NULL, 10) : 4;
	struct refrain_loader *l;
	const struct refrain_batch *b;
	uint64_t fresh = 0, served = 0;
	int rc;

	if (argc < 2 || argc > 4)
		return fputs("usage: train DATASET [ECHO [EPOCHS]]\n", stderr),
		       2;
	l = open_folder(argv[1], "train", echo, epochs, REFRAIN_AUGMENT_TRAIN);
	if (!l)
		return 1;
	classes = refrain_classes(l);
	if (classes > CLASSES_MAX)
		return fail(argv[1], "more classes than this example has"), 1;
	net_init();
	puts("epoch  accuracy  decoded  served");
	while ((rc = refrain_next(l, &b, STEP_TIMEOUT_MS)) > 0) {
		const float *x = b->data;

		for (size_t i = 0; i < b->count; i++)
			if (b->labels[i] >= 0)
				learn(x + i * INPUTS, (size_t)b->labels[i]);
		fresh += b->fresh;
		served += b->count;
		/* The run ends with echoes of images of the last epoch: report
		 * that epoch after them. */
		if (b->ended_epoch < epochs - 1)
			report(b->ended_epoch + 1, argv[1], fresh, served);
		refrain_release(b);
	}
	if (rc < 0)
		fail("training", refrain_message(l));
	else
		report(epochs, argv[1], fresh, served);
	refrain_close(l);
	return rc < 0;
}
