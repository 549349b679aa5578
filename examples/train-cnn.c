/* SPDX-License-Identifier: MIT */
/*
 * Trains a small convolutional network (nn.h) on JPEGs that refrain's loader
 * reads. DATASET has a directory for each class in train, which is served with
 * random crops and echoes, and in test, which is served in order and unchanged.
 * After each epoch the program prints the loss, the accuracy on the test
 *images, and how many images were decoded (fresh) and served: with --echo 2,
 *half of the images that are served need no decoding.
 *
 * Build it against the installed library, with any CBLAS:
 *	cc -O3 train-cnn.c nn*.c team.c -o train-cnn -pthread -lm \
 *		$(pkg-config --cflags --libs refrain openblas)
 *
 * An epoch ends when each image has been decoded once. With an echo factor of e
 * an epoch has e times as many steps, so 1/e of the epochs are the same work
 *for the trainer.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <refrain/loader.h>

#include "nn.h"

#define STEP_TIMEOUT_MS 60000
#define WARM_UP 0.1 /* share of the steps in which the rate increases */

struct options {
	const char *dataset, *share;
	double echo, rate, momentum, decay, target;
	int echo_point;
	uint32_t epochs, batch, threads, width, side, window, share_jobs;
	uint64_t seed;
};

struct run {
	const struct options *o;
	struct nn *nn;
	struct refrain_loader *train;
	uint64_t steps, done;	/* of the whole run */
	uint64_t fresh, served; /* images */
	double loss;		/* sum over the epoch's steps */
	uint64_t epoch, epoch_steps;
	struct timespec begun;
};

static double seconds_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begun->tv_sec) +
		(double)(now.tv_nsec - begun->tv_nsec) * 1e-9;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "train-cnn: %s: %s\n", what, why);
	return 1;
}

/* -- Data -- */

static struct refrain_config common_config(
	const struct options *o, const char *path)
{
	struct refrain_config c;

	refrain_config_init(&c);
	c.dataset = path;
	c.batch = o->batch;
	c.seed = o->seed;
	c.height = c.width = o->side;
	c.type = REFRAIN_F32;
	c.threads = o->threads;
	return c;
}

static int open_train(struct run *r)
{
	const struct options *o = r->o;
	char path[4096];
	struct refrain_config c;

	snprintf(path, sizeof(path), "%s/train", o->dataset);
	c = common_config(o, path);
	c.epochs = o->epochs;
	c.echo = o->echo;
	c.echo_point = o->echo_point;
	c.window = o->window;
	c.area_min = 0.6F; /* smaller crops of such small images show little */
	c.last = REFRAIN_LAST_DROP;
	c.share = o->share;
	c.share_jobs = o->share_jobs;
	if (refrain_open(&r->train, &c) < 0)
		return fail("training data", refrain_message(NULL));
	r->steps = refrain_steps_left(r->train);
	return 0;
}

/* The share of test images that are classified correctly; < 0 on failure. */
static double test_accuracy(struct run *r)
{
	char path[4096];
	struct refrain_config c;
	struct refrain_loader *test;
	const struct refrain_batch *b;
	uint64_t right = 0, all = 0;
	int rc;

	snprintf(path, sizeof(path), "%s/test", r->o->dataset);
	c = common_config(r->o, path);
	c.augment = REFRAIN_AUGMENT_EVAL;
	c.flags = REFRAIN_FLAG_IN_ORDER;
	if (refrain_open(&test, &c) < 0)
		return fail("test data", refrain_message(NULL)), -1;
	while ((rc = refrain_next(test, &b, STEP_TIMEOUT_MS)) > 0) {
		right += nn_correct(r->nn, b->data, b->labels, b->count);
		all += b->count;
		refrain_release(b);
	}
	if (rc < 0)
		fail("test data", refrain_message(test));
	refrain_close(test);
	return rc < 0 ? -1 : (double)right / (double)all;
}

/* -- Training -- */

/* The learning rate increases linearly, then decreases to 0 like a cosine. */
static double rate_at(const struct run *r)
{
	double at = (double)r->done / (double)r->steps;

	if (at < WARM_UP)
		return r->o->rate * (at / WARM_UP + 1.0 / (double)r->steps);
	at = (at - WARM_UP) / (1 - WARM_UP);
	return r->o->rate * 0.5 * (1 + cos(acos(-1.0) * at));
}

/* Print a line for the epoch. Returns true if the target is reached. */
static bool tell(struct run *r, double accuracy)
{
	printf("epoch %llu  steps %llu  fresh %llu  served %llu  "
	       "loss %.4f  accuracy %.4f  seconds %.1f\n",
		(unsigned long long)r->epoch, (unsigned long long)r->done,
		(unsigned long long)r->fresh, (unsigned long long)r->served,
		r->loss / (double)r->epoch_steps, accuracy,
		seconds_since(&r->begun));
	fflush(stdout);
	r->loss = 0;
	r->epoch_steps = 0;
	return r->o->target > 0 && accuracy >= r->o->target;
}

static void step(struct run *r, const struct refrain_batch *b)
{
	double rate = rate_at(r);

	r->loss += nn_gradient(r->nn, b->data, b->labels, b->count);
	nn_update(r->nn, rate, r->o->momentum, r->o->decay);
	r->epoch_steps++;
	r->done++;
	r->fresh += b->fresh;
	r->served += b->count;
}

/* Returns 0 at the end of the run or at the target, 1 on failure. */
static int train(struct run *r)
{
	const struct refrain_batch *b;
	double accuracy;
	int rc;

	while ((rc = refrain_next(r->train, &b, STEP_TIMEOUT_MS)) > 0) {
		bool ended = b->ends_epoch;

		step(r, b);
		refrain_release(b);
		/* Echoes follow the last fresh image of the run. */
		if (!ended || ++r->epoch == r->o->epochs)
			continue;
		accuracy = test_accuracy(r);
		if (accuracy < 0)
			return 1;
		if (tell(r, accuracy))
			return 0;
	}
	if (rc < 0)
		return fail("training data", refrain_message(r->train));
	if (r->epoch_steps == 0)
		return fail("training data", "it has less than one batch");
	accuracy = test_accuracy(r);
	if (accuracy < 0)
		return 1;
	r->epoch = r->o->epochs; /* even if its last batch was dropped */
	(void)tell(r, accuracy);
	return 0;
}

static int new_network(struct run *r)
{
	struct nn_config c = {
		.side = r->o->side,
		.channels = 3,
		.classes = (uint32_t)refrain_classes(r->train),
		.width = r->o->width,
		.batch_max = r->o->batch,
		.threads = r->o->threads,
		.seed = r->o->seed,
	};
	int rc = nn_new(&r->nn, &c);

	return rc < 0 ? fail("network", strerror(-rc)) : 0;
}

static int run(const struct options *o)
{
	struct run r = {.o = o};
	int status;

	clock_gettime(CLOCK_MONOTONIC, &r.begun);
	status = open_train(&r);
	if (status == 0)
		status = new_network(&r);
	if (status == 0)
		status = train(&r);
	nn_free(r.nn);
	refrain_close(r.train);
	return status;
}

/* -- The command line -- */

static const char usage[] =
	"Usage: train-cnn [OPTION ...] DATASET\n"
	"Train a small network on the JPEGs in DATASET/train, which has a\n"
	"directory for each class, and test it on those in DATASET/test.\n\n"
	"  --echo E          serve each decoded image E times (1)\n"
	"  --echo-point P    repeat images before or after augmentation, or\n"
	"                    the whole batch (before)\n"
	"  --window N        most images with echoes outstanding (chosen by\n"
	"                    the library)\n"
	"  --epochs N        decode each image N times (10)\n"
	"  --batch B         images per step (128)\n"
	"  --lr RATE         highest learning rate (0.1)\n"
	"  --momentum M      momentum of gradient descent (0.9)\n"
	"  --decay D         weight decay (0.0005)\n"
	"  --width W         channels of the first layer (32)\n"
	"  --size PIXELS     side of an image, a multiple of 8 (32)\n"
	"  --seed S          seed for order, crops and first weights (0)\n"
	"  --threads N       threads of the trainer, and of the loader (2)\n"
	"  --target SHARE    stop at this accuracy, from 0 to 1\n"
	"  --share NAME      share batches with other jobs with this NAME\n"
	"  --share-jobs J    wait until J jobs have joined the share\n";

enum {
	ECHO = 256,
	POINT,
	WINDOW,
	EPOCHS,
	BATCH,
	LR,
	MOMENTUM,
	DECAY,
	WIDTH,
	SIZE,
	SEED,
	THREADS,
	TARGET,
	SHARE,
	SHARE_JOBS,
};

static const struct option table[] = {
	{"echo", required_argument, NULL, ECHO},
	{"echo-point", required_argument, NULL, POINT},
	{"window", required_argument, NULL, WINDOW},
	{"epochs", required_argument, NULL, EPOCHS},
	{"batch", required_argument, NULL, BATCH},
	{"lr", required_argument, NULL, LR},
	{"momentum", required_argument, NULL, MOMENTUM},
	{"decay", required_argument, NULL, DECAY},
	{"width", required_argument, NULL, WIDTH},
	{"size", required_argument, NULL, SIZE},
	{"seed", required_argument, NULL, SEED},
	{"threads", required_argument, NULL, THREADS},
	{"target", required_argument, NULL, TARGET},
	{"share", required_argument, NULL, SHARE},
	{"share-jobs", required_argument, NULL, SHARE_JOBS},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Parse a number that is not negative. */
static bool real(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out >= 0 && isfinite(*out);
}

static bool whole(const char *text, uint32_t least, uint32_t *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	*out = (uint32_t)v;
	return end != text && !*end && !errno && text[0] != '-' && v >= least &&
		v <= 1000000000;
}

static bool point(const char *text, int *out)
{
	static const char *const names[] = {"before", "after", "batch"};

	for (int i = 0; i < 3; i++) {
		*out = i;
		if (strcmp(text, names[i]) == 0)
			return true;
	}
	return false;
}

static bool take(struct options *o, int c, const char *text)
{
	uint32_t seed;

	switch (c) {
	case ECHO:
		return real(text, &o->echo) && o->echo >= 1;
	case POINT:
		return point(text, &o->echo_point);
	case WINDOW:
		return whole(text, 0, &o->window);
	case EPOCHS:
		return whole(text, 1, &o->epochs);
	case BATCH:
		return whole(text, 2, &o->batch);
	case LR:
		return real(text, &o->rate);
	case MOMENTUM:
		return real(text, &o->momentum) && o->momentum < 1;
	case DECAY:
		return real(text, &o->decay);
	case WIDTH:
		return whole(text, 1, &o->width);
	case SIZE:
		return whole(text, 8, &o->side);
	case SEED:
		if (!whole(text, 0, &seed))
			return false;
		o->seed = seed;
		return true;
	case THREADS:
		return whole(text, 1, &o->threads) &&
			o->threads <= NN_THREADS_MAX;
	case TARGET:
		return real(text, &o->target);
	case SHARE:
		o->share = text;
		return true;
	case SHARE_JOBS:
		return whole(text, 1, &o->share_jobs);
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.echo = 1,
		.rate = 0.1,
		.momentum = 0.9,
		.decay = 5e-4,
		.epochs = 10,
		.batch = 128,
		.threads = 2,
		.width = 32,
		.side = 32,
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (c == 'h')
			return fputs(usage, stdout) == EOF;
		if (c == '?')
			return 2;
		if (!take(&o, c, optarg)) {
			fail("option out of range", argv[optind - 1]);
			return 2;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return 2;
	}
	o.dataset = argv[optind];
	return run(&o);
}
