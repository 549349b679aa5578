/* SPDX-License-Identifier: MIT */
/*
 * The cost of a sample once its image is decoded: crop, resize, mirror,
 * normalise, layout; for each output, with and without SIMD. Crops are those
 * of training on images of 500 x 375, pixels are noise. Processor time of one
 * thread, the least of all rounds.
 *
 *	resize [ROUNDS [SIZE [WIDTH HEIGHT]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "loader/image/image.h"
#include "refrain/loader.h"

#define IMAGES 16
#define CROPS 256

static const struct output {
	const char *name;
	int type, layout, augment;
	float jitter;
} outputs[] = {
	{"u8 NHWC", REFRAIN_U8, REFRAIN_NHWC, REFRAIN_AUGMENT_TRAIN, 0},
	{"u8 NCHW", REFRAIN_U8, REFRAIN_NCHW, REFRAIN_AUGMENT_TRAIN, 0},
	{"f32 NCHW normalised", REFRAIN_F32, REFRAIN_NCHW,
		REFRAIN_AUGMENT_TRAIN, 0},
	{"f16 NCHW normalised", REFRAIN_F16, REFRAIN_NCHW,
		REFRAIN_AUGMENT_TRAIN, 0},
	{"f32 NHWC normalised", REFRAIN_F32, REFRAIN_NHWC,
		REFRAIN_AUGMENT_TRAIN, 0},
	{"f32 NCHW evaluation", REFRAIN_F32, REFRAIN_NCHW, REFRAIN_AUGMENT_EVAL,
		0},
	{"u8 NHWC jittered", REFRAIN_U8, REFRAIN_NHWC, REFRAIN_AUGMENT_TRAIN,
		0.4F},
};

#define OUTPUTS (sizeof(outputs) / sizeof(outputs[0]))

struct bench {
	struct image images[IMAGES];
	uint32_t size, width, height;
	uint8_t *samples; /* a batch: written one after the other */
};

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail */
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void config_of(const struct bench *b, const struct output *output,
	struct augment_config *c)
{
	*c = (struct augment_config){.height = b->size,
		.width = b->size,
		.type = output->type,
		.layout = output->layout,
		.augment = output->augment,
		.flip = true,
		.normalise = true,
		.mean = {0.485F, 0.456F, 0.406F},
		.std = {0.229F, 0.224F, 0.225F},
		.area_min = 0.08F,
		.area_max = 1,
		.aspect_min = 0.75F,
		.aspect_max = 4 / 3.0F};
	for (unsigned i = 0; i < 3; i++)
		c->jitter[i] = output->jitter;
}

/* Milliseconds a sample, or below 0. */
static double one_round(const struct bench *b, const struct augment_config *c)
{
	struct augmenter *a;
	double start;

	if (augmenter_new(&a, c) < 0)
		return -1;
	start = cpu_ms();
	for (uint64_t i = 0; i < CROPS; i++) {
		struct crop crop;

		crop_of(c, i, b->width, b->height, &crop);
		if (augment(a, &b->images[i % IMAGES], &crop,
			    b->samples + i % 64 * augment_sample_bytes(c)) < 0)
			abort();
	}
	start = cpu_ms() - start;
	augmenter_free(a);
	return start / CROPS;
}

static int allocate(struct bench *b)
{
	uint64_t state = 1;

	b->samples = aligned_alloc(64, (size_t)b->size * b->size * 3 * 4 * 64);
	if (!b->samples)
		return -1;
	for (unsigned i = 0; i < IMAGES; i++) {
		struct image *image = &b->images[i];
		size_t bytes = (size_t)b->width * b->height * 3;

		*image = (struct image){.data = malloc(bytes),
			.stride_bytes = (size_t)b->width * 3,
			.width = b->width,
			.height = b->height,
			.full_width = b->width,
			.full_height = b->height,
			.denom = 1};
		if (!image->data)
			return -1;
		for (size_t k = 0; k < bytes; k++) {
			state = state * UINT64_C(6364136223846793005) + 1;
			image->data[k] = (uint8_t)(state >> 56);
		}
	}
	return 0;
}

static void measure(const struct bench *b, unsigned rounds)
{
	double best[OUTPUTS][2] = {{0}};

	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < 2 * OUTPUTS; i++) {
			struct augment_config c;
			double *least = &best[i / 2][i % 2], ms;

			config_of(b, &outputs[i / 2], &c);
			if (i % 2)
				(void)setenv("REFRAIN_DISABLE", "simd", 1);
			ms = one_round(b, &c);
			(void)unsetenv("REFRAIN_DISABLE"); /* a good name */
			if (ms >= 0 && (ms < *least || *least == 0))
				*least = ms;
		}
	printf("%-22s %8s %8s   ms a sample of %u\n", "", "SIMD", "plain",
		b->size);
	for (size_t i = 0; i < OUTPUTS; i++)
		printf("%-22s %8.4f %8.4f\n", outputs[i].name, best[i][0],
			best[i][1]);
}

int main(int argc, char **argv)
{
	struct bench b = {.size = 224, .width = 500, .height = 375};
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;

	if (argc > 2)
		b.size = (uint32_t)atoi(argv[2]);
	if (argc > 4) {
		b.width = (uint32_t)atoi(argv[3]);
		b.height = (uint32_t)atoi(argv[4]);
	}
	if (rounds < 1 || b.size < 1 || b.width < 1 || b.height < 1) {
		fprintf(stderr,
			"usage: resize [ROUNDS [SIZE [WIDTH HEIGHT]]]\n");
		return 2;
	}
	if (allocate(&b) < 0) {
		fprintf(stderr, "resize: out of memory\n");
		return 1;
	}
	measure(&b, rounds);
	for (unsigned i = 0; i < IMAGES; i++)
		free(b.images[i].data);
	free(b.samples);
	return 0;
}
