/* SPDX-License-Identifier: MIT */
/* Colour jitter of a u8 sample in NHWC. A pure function, for any thread. */
#ifndef IMAGE_JITTER_IMPL_H
#define IMAGE_JITTER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Do these factors (brightness, contrast, saturation) change anything? */
bool jitter_needed(const float factors[3]);

/* Apply jitter in place, as described at augment(). */
void jitter(const float factors[3], uint8_t *rgb, size_t pixels);

#endif
