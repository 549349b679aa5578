/* SPDX-License-Identifier: MIT */
/* Computes the print of this process: a hash of what its decoder and its resize
 * produce. */
#include "loader/service/service_print.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "loader/image/image.h"
#include "loader/service/service_print_impl.h"
#include "refrain/loader.h"

#define PRINT_SIDE 32u
#define PRINT_CROPS 8u
#define PRINT_MEMORY_BYTES ((uint64_t)16 << 20)

static const struct {
	const uint8_t *data;
	size_t bytes;
} print_images[] = {
	{print_baseline, sizeof(print_baseline)},
	{print_progressive, sizeof(print_progressive)},
	{print_grey, sizeof(print_grey)},
};

struct printer {
	struct augment_config config;
	struct decoder *decoder;
	struct augmenter *augmenter;
	uint64_t hash;
};

static int print_crop(struct printer *p, const void *data, size_t bytes,
	const struct image_info *info, uint64_t seed, struct error *err)
{
	uint8_t sample[3 * PRINT_SIDE * PRINT_SIDE];
	CLEANUP_FREE uint8_t *room = NULL;
	struct image image;
	struct crop crop;
	int rc;

	crop_of(&p->config, seed, info->width, info->height, &crop);
	/* Decode one crop at each scale, because libjpeg has different code for
	 * each. */
	room = malloc(decode_layout(info, &crop.box, 1U << (seed % 4), &image));
	image.data = room;
	if (!room)
		return error_set(err, -ENOMEM, "service: %m");
	rc = decode_region(p->decoder, data, bytes, info, &image, err);
	if (rc == 0)
		rc = augment(p->augmenter, &image, &crop, sample);
	if (rc == 0)
		p->hash = hash64(sample, sizeof(sample), p->hash);
	return rc;
}

static int print_image(struct printer *p, size_t i, struct error *err)
{
	struct image_info info;
	int rc = decode_probe(p->decoder, print_images[i].data,
		print_images[i].bytes, &info, err);

	for (uint64_t seed = 0; rc == 0 && seed < PRINT_CROPS; seed++)
		rc = print_crop(p, print_images[i].data, print_images[i].bytes,
			&info, seed, err);
	return rc;
}

int service_print(uint64_t *print, struct error *err)
{
	const struct decode_limits limits = {.max_pixels = 1U << 16,
		.max_memory_bytes = PRINT_MEMORY_BYTES,
		.max_scans = 100};
	struct printer p = {.config = {.height = PRINT_SIDE,
				    .width = PRINT_SIDE,
				    .type = REFRAIN_U8,
				    .layout = REFRAIN_NHWC,
				    .augment = REFRAIN_AUGMENT_TRAIN,
				    .flip = true,
				    .area_min = 0.08F,
				    .area_max = 1,
				    .aspect_min = 0.75F,
				    .aspect_max = 1.25F,
				    .jitter = {0.25F, 0.25F, 0.25F}}};
	int rc = decoder_new(&p.decoder, &limits);

	if (rc == 0)
		rc = augmenter_new(&p.augmenter, &p.config);
	if (rc < 0)
		rc = error_set(err, rc, "service: %m");
	for (size_t i = 0;
		rc == 0 && i < sizeof(print_images) / sizeof(print_images[0]);
		i++)
		rc = print_image(&p, i, err);
	augmenter_free(p.augmenter);
	decoder_free(p.decoder);
	*print = p.hash;
	return rc;
}
