/* SPDX-License-Identifier: MIT */
/*
 * Converts u8 values to those of a sample: tables for normalisation and type,
 * and the fill value of a cutout. Constant once created: any thread.
 */
#ifndef IMAGE_EMITTER_IMPL_H
#define IMAGE_EMITTER_IMPL_H

#include "loader/image/augment.h"
#include "loader/image/kernels_impl.h"

void emitter_init(struct emitter *e, const struct augment_config *c);

/* The bits of the nearest binary16; halves are rounded to even. */
uint16_t half_of(float value);

/* Fill a part of a finished sample with the mean. */
void emitter_fill(
	const struct emitter *e, const struct rect *part, void *sample);

#endif
