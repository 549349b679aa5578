/* SPDX-License-Identifier: MIT */
/* PSNR and SSIM of two images; see likeness.h. */
#include "loader/image/likeness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "loader/image/augment.h"
#include "loader/image/decode.h"
#include "refrain/loader.h"

#define WINDOW 8u
#define WINDOW_STEP 4u

struct likeness_meter {
	struct decoder *decoder;
	struct augmenter *augmenter;
	struct augment_config config;
	uint8_t *decoded; /* only grows */
	size_t room;
	uint8_t rgb[2][LIKENESS_BYTES];
};

int likeness_meter_new(struct likeness_meter **out)
{
	const struct decode_limits limits = {
		.max_pixels = 200000000,
		.max_memory_bytes = UINT64_MAX,
		.max_scans = 500,
	};
	struct likeness_meter *m = calloc(1, sizeof(*m));
	int rc;

	*out = m;
	if (!m)
		return -ENOMEM;
	m->config = (struct augment_config){
		.height = LIKENESS_SIDE,
		.width = LIKENESS_SIDE,
		.type = REFRAIN_U8,
		.layout = REFRAIN_NHWC,
		.augment = REFRAIN_AUGMENT_EVAL,
		.scale = SCALE_EXACT,
	};
	rc = decoder_new(&m->decoder, &limits);
	return rc < 0 ? rc : augmenter_new(&m->augmenter, &m->config);
}

void likeness_meter_free(struct likeness_meter *m)
{
	if (!m)
		return;
	decoder_free(m->decoder);
	augmenter_free(m->augmenter);
	free(m->decoded);
	free(m);
}

/* Decode the centre of an image file into LIKENESS_BYTES. */
static int likeness_centre(struct likeness_meter *m, const void *data,
	size_t bytes, uint8_t *rgb, struct error *err)
{
	struct image_info info;
	struct image image;
	struct crop crop;
	size_t need;
	int rc = decode_probe(m->decoder, data, bytes, &info, err);

	if (rc < 0)
		return rc;
	crop_of(&m->config, 0, info.width, info.height, &crop);
	need = decode_layout(&info, &crop.box, 1, &image);
	if (need > m->room) {
		free(m->decoded);
		m->decoded = malloc(need);
		m->room = m->decoded ? need : 0;
		if (!m->decoded)
			return error_set(err, -ENOMEM, "%m");
	}
	image.data = m->decoded;
	rc = decode_region(m->decoder, data, bytes, &info, &image, err);
	return rc < 0 ? rc : augment(m->augmenter, &image, &crop, rgb);
}

int likeness_of_files(struct likeness_meter *m, const void *a, size_t a_bytes,
	const void *b, size_t b_bytes, struct likeness *out, struct error *err)
{
	int rc = likeness_centre(m, a, a_bytes, m->rgb[0], err);

	if (rc == 0)
		rc = likeness_centre(m, b, b_bytes, m->rgb[1], err);
	if (rc == 0)
		*out = likeness_of(m->rgb[0], m->rgb[1]);
	return rc;
}

/* -- The measures ---------------------------------------------------------- */

static double psnr_of(const uint8_t *a, const uint8_t *b)
{
	uint64_t sum = 0;
	double psnr;

	for (size_t i = 0; i < LIKENESS_BYTES; i++)
		sum += (uint64_t)((a[i] - b[i]) * (a[i] - b[i]));
	if (sum == 0)
		return LIKENESS_PSNR_MAX;
	psnr = 10 * log10(255.0 * 255.0 * (double)LIKENESS_BYTES / (double)sum);
	return psnr > LIKENESS_PSNR_MAX ? LIKENESS_PSNR_MAX : psnr;
}

static double luma(const uint8_t *rgb)
{
	return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

/* SSIM of one window, with the usual constants (0.01 * 255)^2 and
 * (0.03 * 255)^2. */
static double ssim_window(const uint8_t *a, const uint8_t *b)
{
	const double n = WINDOW * WINDOW, c1 = 6.5025, c2 = 58.5225;
	double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0, va, vb, cov;

	for (size_t y = 0; y < WINDOW; y++)
		for (size_t x = 0; x < WINDOW; x++) {
			size_t at = 3 * (y * LIKENESS_SIDE + x);
			double p = luma(a + at), q = luma(b + at);

			sa += p;
			sb += q;
			aa += p * p;
			bb += q * q;
			ab += p * q;
		}
	va = aa / n - sa / n * (sa / n);
	vb = bb / n - sb / n * (sb / n);
	cov = ab / n - sa / n * (sb / n);
	return (2 * sa / n * (sb / n) + c1) * (2 * cov + c2) /
		((sa / n * (sa / n) + sb / n * (sb / n) + c1) * (va + vb + c2));
}

static double ssim_of(const uint8_t *a, const uint8_t *b)
{
	double sum = 0;
	unsigned windows = 0;

	for (size_t y = 0; y + WINDOW <= LIKENESS_SIDE; y += WINDOW_STEP)
		for (size_t x = 0; x + WINDOW <= LIKENESS_SIDE;
			x += WINDOW_STEP) {
			size_t at = 3 * (y * LIKENESS_SIDE + x);

			sum += ssim_window(a + at, b + at);
			windows++;
		}
	return sum / windows;
}

struct likeness likeness_of(const uint8_t *a, const uint8_t *b)
{
	return (struct likeness){psnr_of(a, b), ssim_of(a, b)};
}
